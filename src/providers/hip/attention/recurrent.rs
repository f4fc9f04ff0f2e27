//! LinearAttention and CausalConvWithState: launches of `kernels/recurrent.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::attention::recurrent::{CausalConv, LinearAttention};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::fill::groups;
use super::super::launch::{KernelName, Operand};
use super::super::params::{Divider, divider};
use super::super::{HipKernel, PlanBuilder};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct LinearParams {
    q: u64,
    k: u64,
    v: u64,
    past: u64,
    decay: u64,
    beta: u64,
    y: u64,
    present: u64,
    state: u64,
    tiles: Divider,
    heads: Divider,
    query_heads: u32,
    key_heads: u32,
    out_heads: u32,
    steps: u32,
    d_k: u32,
    d_v: u32,
    ty: u32,
    state_type: u32,
    decay_columns: u32,
    beta_columns: u32,
    scale: f32,
    unused: u32,
}

const _: () = assert!(size_of::<LinearParams>() == 144);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CausalParams {
    x: u64,
    weight: u64,
    bias: u64,
    past: u64,
    y: u64,
    present: u64,
    count: u64,
    positions: Divider,
    channels: Divider,
    length: u32,
    state: u32,
    kernel: u32,
    dilation: u32,
    ty: u32,
    last: u32,
    silu: u32,
    unused: u32,
}

const _: () = assert!(size_of::<CausalParams>() == 112);

/// Columns of the values that a workgroup takes, and rows of a state that it has room for in registers.
const COLUMNS: usize = 16;
const HELD_ROWS: usize = 256;

fn is_f32_or_half(ty: ElementType) -> bool {
    matches!(ty, ElementType::F32 | ElementType::F16 | ElementType::BF16)
}

pub(super) fn build_linear(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| is_f32_or_half(*ty)).ok_or_else(|| node.no_kernel())?;
    let state_type = node.input(3).unwrap_or(ty);
    if !is_f32_or_half(state_type) {
        return Err(node.no_kernel());
    }
    Ok(Box::new(Linear { op: *node.op(), ty, state_type }))
}

pub(super) fn build_causal(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| is_f32_or_half(*ty)).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(Causal { op: *node.op(), ty }))
}

struct Linear {
    op: LinearAttention,
    ty: ElementType,
    state_type: ElementType,
}

impl HipKernel for Linear {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let op = &self.op;
        let shape = |i: usize| inputs.get(i).copied().flatten().map(|input| input.shape);
        let (Some(&[batch, steps, q_columns]), Some(k), Some(v)) = (shape(0), shape(1), shape(2)) else {
            return Ok(());
        };
        let (d_k, d_v) = (q_columns / op.heads, v[2] / op.kv_heads);
        let key_heads =
            op.key_heads(k[2], d_k).map_err(|reason| OpError::Data(format!("input 1 (key): {reason}")))?;
        let gate = |i: usize, used: bool| shape(i).filter(|_| used).map(|shape| shape[2]);
        let (decay, beta) = (gate(4, op.gated), gate(5, op.delta));
        let tiles = d_v.div_ceil(COLUMNS);
        let params = LinearParams {
            tiles: divider(tiles)?,
            heads: divider(op.kv_heads)?,
            query_heads: op.heads as u32,
            key_heads: key_heads as u32,
            out_heads: op.output_heads() as u32,
            steps: steps as u32,
            d_k: d_k as u32,
            d_v: d_v as u32,
            ty: self.ty as u32,
            state_type: self.state_type as u32,
            decay_columns: decay.unwrap_or(0) as u32,
            beta_columns: beta.unwrap_or(0) as u32,
            scale: if op.scale == 0.0 { 1.0 / (d_k as f32).sqrt() } else { op.scale },
            ..LinearParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(LinearParams, q), Operand::Input(0)),
            (offset_of!(LinearParams, k), Operand::Input(1)),
            (offset_of!(LinearParams, v), Operand::Input(2)),
        ];
        let optional = [
            (offset_of!(LinearParams, past), 3, shape(3).is_some()),
            (offset_of!(LinearParams, decay), 4, decay.is_some()),
            (offset_of!(LinearParams, beta), 5, beta.is_some()),
        ];
        addresses.extend(optional.iter().filter(|o| o.2).map(|&(at, i, _)| (at, Operand::Input(i))));
        for (at, i) in [(offset_of!(LinearParams, y), 0), (offset_of!(LinearParams, present), 1)] {
            if outputs.get(i).is_some_and(Option::is_some) {
                addresses.push((at, Operand::Output(i)));
            }
        }
        let name = if d_k <= HELD_ROWS {
            c"linear_held"
        } else {
            let state = plan.scratch(batch * op.kv_heads * d_k * d_v * size_of::<f32>());
            addresses.push((offset_of!(LinearParams, state), state));
            c"linear_wide"
        };
        let grid = [batch * op.kv_heads * tiles, 1, 1];
        plan.launch(KernelName { family: "recurrent", name }, grid, &params, &addresses)
    }
}

struct Causal {
    op: CausalConv,
    ty: ElementType,
}

impl HipKernel for Causal {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = |i: usize| inputs.get(i).copied().flatten().map(|input| input.shape);
        let (Some(x), Some(w)) = (shape(0), shape(1)) else { return Ok(()) };
        let Some([batch, channels, length]) = self.op.sizes(x) else { return Ok(()) };
        let (kernel, dilation) = (w[2], self.op.dilation);
        let state = (kernel - 1) * dilation;
        if u32::try_from(state + length).is_err() {
            return Err(OpError::Unsupported(format!(
                "{length} positions behind a state of {state}: on a GPU both together may be {} at most",
                u32::MAX
            )));
        }
        let positions = length.max(state);
        let count = batch * channels * positions;
        let params = CausalParams {
            count: count as u64,
            positions: divider(positions)?,
            channels: divider(channels)?,
            length: length as u32,
            state: state as u32,
            kernel: kernel as u32,
            dilation: dilation as u32,
            ty: self.ty as u32,
            last: u32::from(self.op.channels_last),
            silu: u32::from(self.op.activation == Activation::Silu),
            ..CausalParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(CausalParams, x), Operand::Input(0)),
            (offset_of!(CausalParams, weight), Operand::Input(1)),
        ];
        for (at, i) in [(offset_of!(CausalParams, bias), 2), (offset_of!(CausalParams, past), 3)] {
            if shape(i).is_some() {
                addresses.push((at, Operand::Input(i)));
            }
        }
        for (at, i) in [(offset_of!(CausalParams, y), 0), (offset_of!(CausalParams, present), 1)] {
            if outputs.get(i).is_some_and(Option::is_some) {
                addresses.push((at, Operand::Output(i)));
            }
        }
        let kernel = KernelName { family: "recurrent", name: c"causal_conv" };
        plan.launch(kernel, groups(count), &params, &addresses)
    }
}
