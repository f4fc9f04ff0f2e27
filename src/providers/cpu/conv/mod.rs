//! Convolution, with bias, residual and activation fused.
//!
//! `f32` with constant weights over one or two axes goes through `direct`: products in registers that read
//! the image where it lies, or for kernels of 3 × 3 through Winograd's algorithm, or two convolutions as one;
//! bfloat16 likewise, see `half`.
//! Everything else goes through `general`.

mod common;
mod deform;
mod depthwise;
mod direct;
mod dot;
mod im2col;
mod pair;
mod transpose;
mod winograd;

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::providers::cpu::gemm::{PackedA, Store};
use crate::providers::cpu::number::dispatch;
use crate::providers::cpu::{CpuKernel, Entry, NodeContext};
use crate::tensor::{ElementType, bf16, f16};
pub(crate) use depthwise::{Channels, DepthwisePlane};
pub(crate) use dot::{
    ChannelBlocked, DotPanels, DotPlan, Image, ImageLayout, Images, Pixels, Place, RawSums, Requantized,
    Residual, dot_plan_needed,
};
pub(crate) use im2col::{PatchTable, Patches};

pub(crate) const KERNELS: &[Entry] = &[
    Entry::new("Conv", build),
    Entry::new("FusedConv", build).domain("com.microsoft"),
    Entry::new("FusedConv", build_channel_blocked).domain("rukh"),
    Entry::new("ConvPair", build_pair).domain("rukh"),
    Entry::new("ConvTranspose", transpose::build),
    Entry::new("DeformConv", deform::build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Conv>();
    if let (Some(ElementType::F32), Some(w)) = (node.input(0), node.constant(1))
        && (3..=4).contains(&w.shape().len())
    {
        if let Some(conv) = winograd::Conv3x3::new(op, w, node.pool)? {
            return Ok(CpuKernel::Tensor(Box::new(conv)));
        }
        return Ok(CpuKernel::Tensor(Box::new(direct::DirectConv::new(op.clone(), w, node.pool)?)));
    }
    if let (Some(ElementType::BF16), Some(w)) = (node.input(0), node.constant(1))
        && (3..=4).contains(&w.shape().len())
        && let Some(kernel) = dot::Bf16Conv::new(op, w, node.pool)?
    {
        return Ok(CpuKernel::Tensor(Box::new(kernel)));
    }
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        let op = op.clone();
        let packed = match node.constant(1) {
            // A depthwise kernel reads the weight as it is.
            Some(w) if T::PACK && !(op.group > 1 && w.shape()[1] == 1) => {
                let (m, k) = (w.shape()[0] / op.group, w.shape()[1..].iter().product());
                Some(PackedA::of(w.aligned()?.view().slice::<T>(), false, op.group, m, k, node.pool, true))
            }
            _ => None,
        };
        Ok(CpuKernel::Tensor(Box::new(im2col::ConvKernel::<T> { op, packed })))
    }, else Err(node.no_kernel()))
}

/// Of constant weights, in bfloat16, on processors that have products of its dot groups.
fn build_channel_blocked(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let weight = node.constant(1).filter(|w| (3..=4).contains(&w.shape().len()));
    let kernel = match (node.input(0), weight) {
        (Some(ElementType::BF16), Some(w)) => dot::Bf16Conv::new(node.op::<Conv>(), w, node.pool)?,
        _ => None,
    };
    match kernel.filter(dot::Bf16Conv::blocks_channels) {
        Some(kernel) => Ok(CpuKernel::Tensor(Box::new(kernel))),
        None => Err(node.no_kernel()),
    }
}

fn build_pair(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    match node.input(0) {
        Some(ElementType::F32) => Ok(CpuKernel::Tensor(Box::new(pair::PairConv::new(node)?))),
        _ => Err(node.no_kernel()),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_channel_blocked;
#[cfg(test)]
mod tests_instruction_sets;
