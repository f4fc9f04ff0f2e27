//! The parameters of a normalisation of rows, as `kernels/include/rukh/norm.h` declares them.

use bytemuck::{Pod, Zeroable};

use super::super::params::{Axes, Divider};

/// `Lie` in the kernel: which element of a parameter belongs to an element of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(super) enum Lie {
    One = 1,
    PerElement = 2,
    ByGroup = 3,
    Any = 4,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct ParameterParams {
    pub(super) address: u64,
    pub(super) ty: u32,
    pub(super) lie: u32,
    pub(super) axes: Axes,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct NormParams {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) skip: u64,
    pub(super) bias: u64,
    pub(super) sum: u64,
    pub(super) mean: u64,
    pub(super) deviation: u64,
    pub(super) partials: u64,
    pub(super) places: u64,
    pub(super) rows: u64,
    pub(super) step: u64,
    pub(super) along: u64,
    pub(super) chunk: u64,
    pub(super) epsilon: f64,
    pub(super) ty: u32,
    pub(super) out_type: u32,
    pub(super) stat_type: u32,
    pub(super) rms: u32,
    pub(super) team: u32,
    pub(super) splits: u32,
    pub(super) teams: u32,
    pub(super) skip_rows: Divider,
    pub(super) inner: Divider,
    pub(super) groups: u32,
    pub(super) per_group: u32,
    pub(super) pack: u32,
    pub(super) period: Divider,
    pub(super) moved: u32,
    pub(super) early: u32,
    pub(super) unused: u32,
    pub(super) scale: ParameterParams,
    pub(super) shift: ParameterParams,
}

const _: () = assert!(size_of::<NormParams>() == 568);
