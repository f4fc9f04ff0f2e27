//! MaxUnpool.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::graph::Dim;
use crate::ops::OpError;
use crate::ops::unpool::MaxUnpool;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::{GROUP, KernelName, Operand};
use super::map::{Class, MapOp, MapTensor, Program};
use super::params::Divider;
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[Entry::new("MaxUnpool", build)];

const MAX_RANK: usize = 8;

/// `UnpoolParams` of `kernels/pool.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct UnpoolParams {
    x: u64,
    indices: u64,
    y: u64,
    errors: u64,
    count: u64,
    limit: u64,
    size: u32,
    rank: u32,
    from: [Divider; MAX_RANK],
    to: [u32; MAX_RANK],
}

const _: () = assert!(size_of::<UnpoolParams>() == 184);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(Unpool { op: node.op::<MaxUnpool>().clone(), ty }))
}

struct Unpool {
    op: MaxUnpool,
    ty: ElementType,
}

impl HipKernel for Unpool {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(Some(out))) = (inputs[0], outputs.first()) else { return Ok(()) };
        let dims: Vec<Dim> = x.shape.iter().map(|&d| Dim::from(d)).collect();
        let size = |d: &Dim| d.known().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let from: Vec<usize> = self.op.inferred(&dims)?.iter().map(size).collect();
        let count: usize = x.shape.iter().product();
        let mut params = UnpoolParams {
            count: count as u64,
            limit: from.iter().product::<usize>() as u64,
            size: self.ty.size() as u32,
            ..UnpoolParams::zeroed()
        };
        if from != *out {
            if from.len() > MAX_RANK || out.iter().any(|&d| d > u32::MAX as usize) {
                return Err(OpError::Unsupported(format!(
                    "MaxUnpool to {out:?}; the GPU kernel takes {MAX_RANK} dimensions of 2^32 - 1 elements"
                )));
            }
            params.rank = from.len() as u32;
            for (d, (&from, &to)) in from.iter().zip(*out).enumerate() {
                (params.from[d], params.to[d]) = (Divider::new(from), to as u32);
            }
        }
        let y = MapTensor::new(Operand::Output(0), self.ty, out);
        let class = if self.ty == ElementType::F64 { Class::F64 } else { Class::F32 };
        Program::new(class).number(MapOp::Load, 0.0).launch(plan, &y, &[])?;
        let addresses = [
            (offset_of!(UnpoolParams, x), Operand::Input(0)),
            (offset_of!(UnpoolParams, indices), Operand::Input(1)),
            (offset_of!(UnpoolParams, y), Operand::Output(0)),
            (offset_of!(UnpoolParams, errors), Operand::Errors),
        ];
        let groups = count.div_ceil(GROUP as usize);
        let kernel = KernelName { family: "pool", name: c"unpool" };
        plan.launch(kernel, [groups, 1, 1], &params, &addresses)
    }
}
