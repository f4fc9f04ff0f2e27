//! The largest or least of each of many rows of `f32`, for reductions and pooling. Bound by reading; of short rows most of the
//! time goes into what is done once for each, so that there is little of that.

use rten_simd::ops::{BitOps, MaskOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::simd::LONGEST;

/// Vectors that are compared independently of one another.
const PARTS: usize = 4;

/// Writes the largest (`LEAST`: the least) element of each row of `length`; NaN where one is among them. Of none it is what
/// every number replaces.
pub(crate) struct RowExtremes<'a, const LEAST: bool> {
    pub(crate) x: &'a [f32],
    pub(crate) length: usize,
    pub(crate) y: &'a mut [f32],
}

impl<const LEAST: bool> SimdOp for RowExtremes<'_, LEAST> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let RowExtremes { x, length, y } = self;
        if length == 0 {
            return y.fill(nothing::<LEAST>());
        }
        assert_eq!(x.len(), length * y.len(), "a row for each result");
        for (y, row) in y.iter_mut().zip(x.chunks_exact(length)) {
            *y = if length < isa.f32().len() { short::<LEAST>(row) } else { long::<I, LEAST>(isa, row) };
        }
    }
}

fn nothing<const LEAST: bool>() -> f32 {
    if LEAST { f32::INFINITY } else { f32::NEG_INFINITY }
}

/// The one of two numbers to keep.
#[inline(always)]
fn keep<const LEAST: bool>(a: f32, b: f32) -> f32 {
    if LEAST == (a < b) { a } else { b }
}

/// A row of less than a vector.
#[inline(always)]
fn short<const LEAST: bool>(row: &[f32]) -> f32 {
    let (mut extreme, mut has_nan) = (nothing::<LEAST>(), false);
    for &x in row {
        has_nan |= x.is_nan();
        extreme = keep::<LEAST>(x, extreme);
    }
    if has_nan { f32::NAN } else { extreme }
}

/// A row of at least a vector. The last vector may overlap the one before.
#[inline(always)]
fn long<I: Isa, const LEAST: bool>(isa: I, row: &[f32]) -> f32 {
    let ops = isa.f32();
    let (len, count) = (ops.len(), row.len());
    assert!(count >= len, "a vector of elements");
    // SAFETY: it is asked for vectors that lie inside, by the assertion.
    let load = |at: usize| unsafe { ops.load_ptr(row.as_ptr().add(at)) };
    let join = |a: I::F32, b: I::F32| if LEAST { ops.min(a, b) } else { ops.max(a, b) };
    let mut extremes = [load(0); PARTS];
    // NaN where one of its numbers is: one instruction, where a comparison and what notes it are two.
    let mut sums = [ops.splat(0.0); PARTS];
    let whole = count / (PARTS * len) * (PARTS * len);
    for at in (0..whole).step_by(PARTS * len) {
        for k in 0..PARTS {
            let x = load(at + k * len);
            extremes[k] = join(x, extremes[k]);
            sums[k] = ops.add(sums[k], x);
        }
    }
    for at in (whole..count).step_by(len) {
        let x = load(at.min(count - len));
        extremes[0] = join(x, extremes[0]);
        sums[0] = ops.add(sums[0], x);
    }
    let sum = ops.add(ops.add(sums[0], sums[1]), ops.add(sums[2], sums[3]));
    // Infinite numbers may also have cancelled each other.
    if !isa.m32().all(ops.eq(sum, sum)) && row.iter().any(|x| x.is_nan()) {
        return f32::NAN;
    }
    let mut lanes = [0.0; LONGEST];
    let [a, b, c, d] = extremes;
    ops.store(join(join(a, b), join(c, d)), &mut lanes);
    let mut width = len;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = keep::<LEAST>(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of all lengths, with NaN at every place of one of them, and infinite numbers that cancel each other.
    fn check<I: Isa>(isa: I) {
        for length in (0..70).chain([127, 128, 129, 300]) {
            let rows = 3;
            let mut x: Vec<f32> = (0..rows * length).map(|i| (i * 7919 % 1009) as f32 - 500.0).collect();
            if length > 2 {
                (x[0], x[length / 2]) = (f32::INFINITY, f32::NEG_INFINITY);
            }
            for has_nan in (0..length).map(Some).chain([None]) {
                let mut x = x.clone();
                has_nan.into_iter().for_each(|at| x[length + at] = f32::NAN);
                let (mut largest, mut least) = ([1.0; 3], [1.0; 3]);
                RowExtremes::<false> { x: &x, length, y: &mut largest }.eval(isa);
                RowExtremes::<true> { x: &x, length, y: &mut least }.eval(isa);
                for i in 0..rows {
                    let row = &x[i * length..][..length];
                    if row.iter().any(|x| x.is_nan()) {
                        assert!(largest[i].is_nan() && least[i].is_nan(), "{length}, NaN at {has_nan:?}");
                        continue;
                    }
                    assert_eq!(largest[i], row.iter().copied().fold(f32::NEG_INFINITY, f32::max), "{length}");
                    assert_eq!(least[i], row.iter().copied().fold(f32::INFINITY, f32::min), "{length}");
                }
            }
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }
}
