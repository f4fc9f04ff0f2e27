//! The parameters of `kernels/fft.hip`.

use bytemuck::{Pod, Zeroable};

use crate::providers::hip::params::Divider;

/// `FftParams` of `kernels/include/rukh/fft.h`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct FftParams {
    pub(super) input: u64,
    pub(super) out: u64,
    pub(super) window: u64,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) roots: u64,
    pub(super) fine: u64,
    pub(super) coarse: u64,
    pub(super) lines: u64,
    pub(super) in_outer: u64,
    pub(super) in_inner: u64,
    pub(super) in_step: u64,
    pub(super) out_outer: u64,
    pub(super) out_inner: u64,
    pub(super) out_step: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) whole: u64,
    pub(super) window_length: u64,
    pub(super) scale: f64,
    pub(super) subs: Divider,
    pub(super) inners: Divider,
    pub(super) in_k: u32,
    pub(super) in_sub: u32,
    pub(super) out_k: u32,
    pub(super) out_sub: u32,
    pub(super) n: u32,
    pub(super) lines_each: u32,
    pub(super) in_type: u32,
    pub(super) out_type: u32,
    pub(super) flags: u32,
    pub(super) stages: u32,
    pub(super) radices: u64,
}

const _: () = assert!(size_of::<FftParams>() == 232);

/// `Flag` there.
pub(super) mod flags {
    pub(in super::super) const IN_COMPLEX: u32 = 1;
    pub(in super::super) const OUT_REAL: u32 = 2;
    pub(in super::super) const MIRROR: u32 = 4;
    pub(in super::super) const STEP: u32 = 8;
    pub(in super::super) const ALONG_IN: u32 = 16;
    pub(in super::super) const ALONG_OUT: u32 = 32;
}
