//! The parameters of quantization and conversion, as `kernels/quantize.hip` declares them.

use bytemuck::{Pod, Zeroable};

use super::super::params::Divider;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct QuantizeParams {
    pub(super) x: u64,
    pub(super) scale: u64,
    pub(super) zero: u64,
    pub(super) y: u64,
    pub(super) errors: u64,
    pub(super) count: u64,
    pub(super) ty: u32,
    pub(super) scale_type: u32,
    pub(super) zero_type: u32,
    pub(super) out_type: u32,
    pub(super) granularity: u32,
    pub(super) one_zero: u32,
    pub(super) saturate: u32,
    pub(super) precision: u32,
    pub(super) inner: Divider,
    pub(super) axis: Divider,
    pub(super) block: Divider,
    pub(super) blocks: u32,
}

const _: () = assert!(size_of::<QuantizeParams>() == 120);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct DynamicParams {
    pub(super) limits: u64,
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) scale: u64,
    pub(super) zero: u64,
    pub(super) errors: u64,
    pub(super) count: u64,
}

const _: () = assert!(size_of::<DynamicParams>() == 56);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct ConvertParams {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) count: u64,
    pub(super) ty: u32,
    pub(super) op: u32,
    pub(super) to: u32,
    pub(super) saturate: u32,
    pub(super) rounding: u32,
    pub(super) negative: u32,
    pub(super) positive: u32,
    pub(super) unused: u32,
}

const _: () = assert!(size_of::<ConvertParams>() == 56);
