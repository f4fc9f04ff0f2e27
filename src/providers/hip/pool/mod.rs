//! Pooling over windows, and LRN.

mod nhwc;
#[cfg(test)]
mod tests;

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::norm_axes::LocalResponse;
use crate::ops::pool::{Pool as PoolOp, Reduction};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::{GROUP, KernelName, Operand};
use super::params::Divider;
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("AveragePool", build),
    Entry::new("LRN", build_lrn),
    Entry::new("LpPool", build),
    Entry::new("MaxPool", build),
    Entry::new("NhwcAveragePool", nhwc::build).domain("rukh"),
    Entry::new("NhwcMaxPool", nhwc::build).domain("rukh"),
];

/// Outputs of a work item of `pool_planes`.
const PLANE_OUTPUTS: usize = 4;

/// Spatial dimensions that the kernel takes.
const DIMS: usize = 3;

/// `PoolParams` of `kernels/pool.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct PoolParams {
    x: u64,
    y: u64,
    indices: u64,
    count: u64,
    power: f64,
    ty: u32,
    op: u32,
    column_major: u32,
    count_padding: u32,
    out: [Divider; DIMS],
    input: [u32; DIMS],
    kernel: [u32; DIMS],
    stride: [u32; DIMS],
    dilation: [u32; DIMS],
    begin: [u32; DIMS],
    end: [u32; DIMS],
    unused: u32,
}

const _: () = assert!(size_of::<PoolParams>() == 168);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let op = node.op::<PoolOp>().clone();
    let bytes = matches!(ty, ElementType::I8 | ElementType::U8) && op.reduction == Reduction::Max;
    if !(ty.is_float() || bytes) || op.window.kernel.len() > DIMS {
        return Err(node.no_kernel());
    }
    Ok(Box::new(Pool { op, ty }))
}

struct Pool {
    op: PoolOp,
    ty: ElementType,
}

impl HipKernel for Pool {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let Some(out) = outputs.iter().flatten().next() else { return Ok(()) };
        let kernel: Vec<usize> = self.op.window.kernel.iter().map(|&k| k as usize).collect();
        let geometry = self.op.window.geometry(&x.shape[2..], &kernel)?;
        let mut params = PoolParams::zeroed();
        params.count = out.iter().product::<usize>() as u64;
        params.ty = self.ty as u32;
        (params.op, params.power) = match self.op.reduction {
            Reduction::Max => (0, 0.0),
            Reduction::Average { count_padding } => {
                params.count_padding = count_padding as u32;
                (1, 0.0)
            }
            Reduction::Norm { p } => (2, p as f64),
        };
        params.column_major = self.op.column_major as u32;
        let absent = DIMS - kernel.len();
        for d in 0..DIMS {
            let of = |list: &[usize], default: usize| {
                let value = d.checked_sub(absent).map_or(default, |d| list[d]);
                u32::try_from(value).map_err(|_| {
                    OpError::Unsupported(format!("a GPU pooling over {value} elements; allowed are 2^32 - 1"))
                })
            };
            params.out[d] = Divider::new(of(&geometry.output, 1)? as usize);
            params.input[d] = of(&geometry.input, 1)?;
            params.kernel[d] = of(&geometry.kernel, 1)?;
            params.stride[d] = of(&geometry.strides, 1)?;
            params.dilation[d] = of(&geometry.dilations, 1)?;
            params.begin[d] = of(&geometry.pads_begin, 0)?;
            params.end[d] = of(&geometry.pads_end, 0)?;
        }
        let mut addresses = vec![(offset_of!(PoolParams, x), Operand::Input(0))];
        let wanted = |i: usize| outputs.get(i).copied().flatten().is_some();
        let y =
            if wanted(0) { Operand::Output(0) } else { plan.scratch(params.count as usize * self.ty.size()) };
        addresses.push((offset_of!(PoolParams, y), y));
        if wanted(1) {
            addresses.push((offset_of!(PoolParams, indices), Operand::Output(1)));
        }
        let flat = params.input[0] == 1 && params.kernel[0] == 1 && params.begin[0] + params.end[0] == 0;
        let small = x.shape.iter().product::<usize>().max(params.count as usize) < 1 << 31;
        let number = matches!(self.ty, ElementType::F32 | ElementType::F16 | ElementType::BF16);
        let simple = !wanted(1) && !matches!(self.op.reduction, Reduction::Norm { .. });
        let (name, outputs) = match self.ty {
            ElementType::F64 => (c"pool_f64", 1),
            _ if flat && small && number && simple => (c"pool_planes", PLANE_OUTPUTS),
            _ => (c"pool_f32", 1),
        };
        let groups = (params.count as usize).div_ceil(GROUP as usize * outputs);
        plan.launch(KernelName { family: "pool", name }, [groups, 1, 1], &params, &addresses)
    }
}

/// `LrnParams` of `kernels/pool.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct LrnParams {
    x: u64,
    y: u64,
    count: u64,
    alpha: f64,
    beta: f64,
    bias: f64,
    inner: Divider,
    channels: Divider,
    below: u32,
    above: u32,
    ty: u32,
    unused: u32,
}

const _: () = assert!(size_of::<LrnParams>() == 88);

fn build_lrn(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(Lrn { op: *node.op::<LocalResponse>(), ty }))
}

struct Lrn {
    op: LocalResponse,
    ty: ElementType,
}

impl HipKernel for Lrn {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some([_, channels, space @ ..]) = inputs[0].map(|x| x.shape) else { return Ok(()) };
        let count: usize = inputs[0].map_or(0, |x| x.shape.iter().product());
        let (size, most) = (self.op.size, u32::MAX as usize / 2);
        let params = LrnParams {
            count: count as u64,
            alpha: self.op.alpha as f64 / size as f64,
            beta: self.op.beta as f64,
            bias: self.op.bias as f64,
            inner: Divider::new(space.iter().product()),
            channels: Divider::new(*channels),
            below: ((size - 1) / 2).min(most) as u32,
            above: (size / 2).min(most) as u32,
            ty: self.ty as u32,
            ..LrnParams::zeroed()
        };
        let name = if self.ty == ElementType::F64 { c"lrn_f64" } else { c"lrn_f32" };
        let addresses =
            [(offset_of!(LrnParams, x), Operand::Input(0)), (offset_of!(LrnParams, y), Operand::Output(0))];
        let groups = count.div_ceil(GROUP as usize);
        plan.launch(KernelName { family: "pool", name }, [groups, 1, 1], &params, &addresses)
    }
}
