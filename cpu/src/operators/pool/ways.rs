//! How elements of a window of `f32` become one, in vectors.

use rten_simd::Isa;
use rten_simd::ops::{BitOps, FloatOps, MaskOps, NumOps};

pub(super) use crate::loops::simd::LONGEST;
use crate::ops::pool::Reduction;
use crate::ops::window::Geometry;

use super::window_counts;

/// Outputs of a line that vectors of eight find maxima of faster than longer ones, half of which would be empty.
pub(super) const SHORT: usize = 16;

/// How two parts of a reduction become one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Numbers, none of which is NaN.
    Max,
    /// NaN is more than any number.
    MaxOrNan,
    Sum,
}

/// The ways as parameters of functions.
pub(super) const MAX: u8 = Way::Max as u8;
pub(super) const MAX_OR_NAN: u8 = Way::MaxOrNan as u8;
pub(super) const SUM: u8 = Way::Sum as u8;

impl Way {
    /// Of sums, or of maxima of these elements.
    #[inline(always)]
    pub(super) fn of<I: Isa>(isa: I, sums: bool, elements: &[f32]) -> Self {
        match () {
            () if sums => Way::Sum,
            // Which takes a comparison more with each element.
            () if has_nan(isa, elements) => Way::MaxOrNan,
            () => Way::Max,
        }
    }
}

/// What a reduction starts with.
pub(super) fn start<const WAY: u8>() -> f32 {
    if WAY == Way::Sum as u8 { 0.0 } else { f32::NEG_INFINITY }
}

/// A sum with a vector more.
#[inline(always)]
pub(super) fn join<I: Isa, const WAY: u8>(isa: I, sum: I::F32, x: I::F32) -> I::F32 {
    let ops = isa.f32();
    if WAY == Way::Sum as u8 {
        ops.add(sum, x)
    } else if WAY == Way::Max as u8 {
        ops.max(sum, x)
    } else {
        ops.select(ops.select(x, sum, ops.gt(x, sum)), x, ops.eq(x, x))
    }
}

/// The number of elements of each window, and of a vector more; empty for maxima.
pub(super) fn counts(g: &Geometry, reduction: &Reduction) -> Vec<f32> {
    let Reduction::Average { count_padding } = reduction else { return Vec::new() };
    let counts = window_counts(g, *count_padding).into_iter().map(|count| count as f32);
    counts.chain([1.0; LONGEST]).collect()
}

/// Writes a vector of outputs: as many as there is room for, since those after a line are written over later.
#[inline(always)]
pub(super) fn finish<I: Isa, const WAY: u8>(isa: I, sum: I::F32, counts: &[f32], x: usize, y: &mut [f32]) {
    let ops = isa.f32();
    let sum = if WAY == Way::Sum as u8 { ops.div(sum, ops.load(&counts[x..])) } else { sum };
    let to = &mut y[x..];
    if to.len() >= ops.len() {
        ops.store(sum, to);
    } else {
        let mut vector = [0.0; LONGEST];
        ops.store(sum, &mut vector);
        to.copy_from_slice(&vector[..to.len()]);
    }
}

#[inline(always)]
fn has_nan<I: Isa>(isa: I, x: &[f32]) -> bool {
    let ops = isa.f32();
    let len = ops.len();
    let mut numbers = ops.first_n_mask(len);
    let pairs = x.chunks_exact(2 * len);
    let rest = pairs.remainder();
    for pair in pairs {
        // The sum of a number and one that is none is none; infinities that cancel out are taken for one.
        let sum = ops.add(ops.load(pair), ops.load(&pair[len..]));
        numbers = isa.m32().and(numbers, ops.eq(sum, sum));
    }
    !isa.m32().all(numbers) || rest.iter().any(|x| x.is_nan())
}
