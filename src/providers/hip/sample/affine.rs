//! AffineGrid.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::grid::AffineGrid;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::elements::shape_of;
use super::super::fill::groups;
use super::super::launch::{KernelName, Operand};
use super::super::params::{Divider, divider};
use super::super::{HipKernel, PlanBuilder};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct AffineParams {
    to: u64,
    maps: u64,
    count: u64,
    ty: u32,
    dimensions: u32,
    lengths: [Divider; 3],
    align_corners: u32,
}

const _: () = assert!(size_of::<AffineParams>() == 72);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(AffineKernel { align_corners: node.op::<AffineGrid>().align_corners, ty }))
}

struct AffineKernel {
    align_corners: bool,
    ty: ElementType,
}

impl HipKernel for AffineKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let maps = shape_of(inputs, 0)?;
        let Some(&[batch, ref space @ .., dimensions]) = outputs.first().copied().flatten() else {
            return Ok(());
        };
        if batch > maps[0] {
            return Err(OpError::Data(format!("theta has {} maps for a batch of {batch}", maps[0])));
        }
        let count = batch * space.iter().product::<usize>();
        let mut params = AffineParams {
            count: count as u64,
            ty: self.ty as u32,
            dimensions: dimensions as u32,
            lengths: [Divider::new(1); 3],
            align_corners: self.align_corners as u32,
            ..AffineParams::zeroed()
        };
        for (to, &length) in params.lengths.iter_mut().zip(space.iter().rev()) {
            *to = divider(length)?;
        }
        plan.launch(
            KernelName { family: "sample", name: c"affine_grid" },
            groups(count),
            &params,
            &[
                (offset_of!(AffineParams, to), Operand::Output(0)),
                (offset_of!(AffineParams, maps), Operand::Input(0)),
            ],
        )
    }
}
