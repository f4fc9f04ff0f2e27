//! The parameters of a reduction, as `kernels/include/rukh/reduce.h` declares them.

use bytemuck::{Pod, Zeroable};

use super::super::params::{Axes, Divider};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct ReduceParams {
    pub(super) input: u64,
    pub(super) out: u64,
    pub(super) partials: u64,
    pub(super) arrived: u64,
    pub(super) center: u64,
    pub(super) outputs: u64,
    pub(super) count: u64,
    pub(super) chunk: u64,
    pub(super) divisor: f64,
    pub(super) power: f64,
    pub(super) neutral: u64,
    pub(super) ty: u32,
    pub(super) out_type: u32,
    pub(super) op: u32,
    pub(super) finish: u32,
    pub(super) team: u32,
    pub(super) splits: u32,
    pub(super) whole_packs: u32,
    pub(super) unused: u32,
    pub(super) row: u64,
    pub(super) tiles: Divider,
    pub(super) unused2: u32,
    pub(super) added: i64,
    pub(super) kept: Axes,
    pub(super) reduced: Axes,
}

const _: () = assert!(size_of::<ReduceParams>() == 488);

/// `ReduceOp` in the kernel: how elements are put together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(in super::super) enum Op {
    Sum,
    SumAbs,
    SumSquare,
    Prod,
    Max,
    Min,
    /// The maximum and the sum of exponentials in one pass.
    LogSumExp,
    SumPower,
    /// Two outputs, one behind the other.
    MinMax,
}

/// `Finish` in the kernel: what becomes of the joined value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(in super::super) enum Finish {
    Plain,
    Mean,
    Root,
    Log,
    LogExp,
    /// The root of the power that SumPower took.
    RootP,
    /// Plus a constant, of integers.
    Plus,
}
