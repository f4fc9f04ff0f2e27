//! CumSum and CumProd: launches of `kernels/scan.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::along::Cumulative;
use crate::ops::movement::axis_of;
use crate::providers::ints::shape_input;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::elements::shape_of;
use super::fill::groups;
use super::launch::{KernelName, Operand};
use super::params::{Divider, divider, is_number};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[Entry::new("CumProd", build), Entry::new("CumSum", build)];

/// Shorter lines are not worth a workgroup each.
const LEAST_SCANNED: usize = 8;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ScanParams {
    to: u64,
    from: u64,
    lines: u64,
    length: u64,
    inner: Divider,
    ty: u32,
    product: u32,
    exclusive: u32,
    reverse: u32,
    unused: u32,
}

const _: () = assert!(size_of::<ScanParams>() == 64);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| is_number(*ty)).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(ScanKernel { op: *node.op::<Cumulative>(), ty }))
}

struct ScanKernel {
    op: Cumulative,
    ty: ElementType,
}

impl HipKernel for ScanKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let axis = shape_input(inputs, 1)?.and_then(|axis| axis.first().copied());
        let axis = axis.ok_or_else(|| OpError::Data("the axis is empty; allowed is one integer".into()))?;
        // A scalar has one element to run over.
        let is_scalar = shape.is_empty();
        let shape = if is_scalar { &[1][..] } else { shape };
        let axis = axis_of(if is_scalar { 0 } else { axis }, shape.len())?;
        let inner: usize = shape[axis + 1..].iter().product();
        let lines = shape[..axis].iter().product::<usize>() * inner;
        if shape[axis] == 0 {
            return Ok(());
        }
        let params = ScanParams {
            lines: lines as u64,
            length: shape[axis] as u64,
            inner: divider(inner)?,
            ty: self.ty as u32,
            product: self.op.product as u32,
            exclusive: self.op.exclusive as u32,
            reverse: self.op.reverse as u32,
            ..ScanParams::zeroed()
        };
        // A workgroup a line is only for contiguous lines.
        let rows = inner == 1 && shape[axis] >= LEAST_SCANNED;
        let name = match (self.ty, rows) {
            (ElementType::F32 | ElementType::F16 | ElementType::BF16, true) => c"scan_rows_f32",
            (ElementType::F32 | ElementType::F16 | ElementType::BF16, false) => c"scan_lines_f32",
            (ElementType::F64, true) => c"scan_rows_f64",
            (ElementType::F64, false) => c"scan_lines_f64",
            (_, true) => c"scan_rows_i64",
            (_, false) => c"scan_lines_i64",
        };
        let grid = if rows { [lines, 1, 1] } else { groups(lines) };
        plan.launch(
            KernelName { family: "scan", name },
            grid,
            &params,
            &[
                (offset_of!(ScanParams, to), Operand::Output(0)),
                (offset_of!(ScanParams, from), Operand::Input(0)),
            ],
        )
    }

    fn host_inputs(&self) -> &[usize] {
        &[1]
    }
}
