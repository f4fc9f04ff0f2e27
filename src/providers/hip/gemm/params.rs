//! Parameters of the product kernels, as `kernels/include/rukh/gemm.h` declares them.

use std::mem::size_of;

use bytemuck::{Pod, Zeroable};

pub(in super::super) const MAX_AXES: usize = 6;

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in super::super) struct GemmParams {
    pub(in super::super) a: u64,
    pub(in super::super) b: u64,
    pub(in super::super) out: u64,
    pub(in super::super) bias: u64,
    pub(in super::super) residual: u64,
    pub(in super::super) partial: u64,
    pub(in super::super) arrived: u64,
    /// Elements between rows and between columns of A, B, the result, bias and residual.
    pub(in super::super) strides: [[i64; 2]; 5],
    pub(in super::super) m: u32,
    pub(in super::super) n: u32,
    pub(in super::super) k: u32,
    pub(in super::super) k_part: u32,
    pub(in super::super) batch: u32,
    pub(in super::super) parts: u32,
    pub(in super::super) axes: u32,
    pub(in super::super) activation: u32,
    pub(in super::super) act_a: f32,
    pub(in super::super) act_b: f32,
    pub(in super::super) alpha: f32,
    pub(in super::super) beta: f32,
    pub(in super::super) slope: f32,
    pub(in super::super) low: f32,
    pub(in super::super) high: f32,
    unused: u32,
    pub(in super::super) axis: [AxisParams; MAX_AXES],
}

const _: () = assert!(size_of::<GemmParams>() == 488);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in super::super) struct AxisParams {
    pub(in super::super) size: i64,
    /// Of A, B, the result, bias and residual.
    pub(in super::super) strides: [i64; 5],
}
