//! Softmax of few columns: so many rows are taken as one that they are whole vectors, whose lanes are those of columns again
//! and again. With 12 columns that is all of three vectors, not a part of each.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::rows::TERMS;
use crate::loops::simd::LONGEST;
use crate::loops::vector::exp_below_zero;

/// Vectors of rows that are taken as one, at most. Vectors have 2ⁿ lanes, so an even number of them would be rows twice: there
/// are one and three.
const MOST: usize = 3;

/// Normalises the columns of a matrix `[along, inner]` of `x`, or of `y` itself.
pub(super) struct FewColumns<'a> {
    pub(super) x: Option<&'a [f32]>,
    pub(super) y: &'a mut [f32],
    pub(super) inner: usize,
    pub(super) logarithm: bool,
}

/// The vectors of rows that are taken as one; `None` where columns are taken by themselves.
pub(super) fn vectors(along: usize, inner: usize, len: usize) -> Option<usize> {
    let rows = (1..=len).find(|rows| (rows * inner).is_multiple_of(len))?;
    let vectors = rows * inner / len;
    (rows > 1 && vectors <= MOST && along.is_multiple_of(rows)).then_some(vectors)
}

impl SimdOp for FewColumns<'_> {
    type Output = ();

    /// Asks for `vectors`.
    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        match vectors(self.y.len() / self.inner, self.inner, isa.f32().len()) {
            Some(1) => self.normalise::<I, 1>(isa),
            Some(MOST) => self.normalise::<I, MOST>(isa),
            _ => unreachable!("rows that are no whole vectors"),
        }
    }
}

impl FewColumns<'_> {
    #[inline(always)]
    fn normalise<I: Isa, const V: usize>(self, isa: I) {
        let ops = isa.f32();
        let (len, FewColumns { x, y, inner, logarithm }) = (ops.len(), self);
        let (width, count, to) = (V * len, y.len(), y.as_mut_ptr());
        let from = x.map_or(to.cast_const(), <[f32]>::as_ptr);
        assert!(count.is_multiple_of(width) && x.is_none_or(|x| x.len() == count), "whole rows");
        // SAFETY: `at` is a multiple of `width` below `count` and `v < V`, so that a vector ends at `count` or before, which `x`
        // has by the assertion; without it `from` is `to`, of which no other reference is used here.
        let load = |from: *const f32, at: usize, v: usize| unsafe { ops.load_ptr(from.add(at + v * len)) };
        // SAFETY: as above.
        let store = |x: I::F32, at: usize, v: usize| unsafe { ops.store_ptr(x, to.add(at + v * len)) };
        let rows = || (0..count).step_by(width);
        let mut largest = [ops.splat(f32::NEG_INFINITY); V];
        for at in rows() {
            for (v, largest) in largest.iter_mut().enumerate() {
                *largest = ops.max(*largest, load(from, at, v));
            }
        }
        let largest = among_columns(isa, largest, inner, |lanes| {
            lanes.iter().copied().step_by(inner).fold(f32::NEG_INFINITY, f32::max)
        });
        let (mut totals, mut sums) = ([ops.splat(0.0); V], [ops.splat(0.0); V]);
        for (k, at) in rows().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                let power = exp_below_zero(isa, ops.sub(load(from, at, v), largest[v]));
                *sum = ops.add(*sum, power);
                if !logarithm {
                    store(power, at, v);
                }
            }
            if k % TERMS == TERMS - 1 || at + width == count {
                for (total, sum) in totals.iter_mut().zip(&mut sums) {
                    *total = ops.add(*total, *sum);
                    *sum = ops.splat(0.0);
                }
            }
        }
        let totals = among_columns(isa, totals, inner, |lanes| {
            let total: f64 = lanes.iter().step_by(inner).map(|&x| f64::from(x)).sum();
            if logarithm { total.ln() as f32 } else { (1.0 / total) as f32 }
        });
        for at in rows() {
            for (v, &total) in totals.iter().enumerate() {
                let value = match logarithm {
                    true => ops.sub(ops.sub(load(from, at, v), largest[v]), total),
                    false => ops.mul(load(to, at, v), total),
                };
                store(value, at, v);
            }
        }
    }
}

/// In the lanes of each column a function of all of them, which are `inner` apart.
#[inline(always)]
fn among_columns<I: Isa, const V: usize>(
    isa: I,
    vectors: [I::F32; V],
    inner: usize,
    f: impl Fn(&[f32]) -> f32,
) -> [I::F32; V] {
    let (ops, len) = (isa.f32(), isa.f32().len());
    let mut lanes = [0.0; MOST * LONGEST];
    let all = &mut lanes[..V * len];
    vectors.into_iter().enumerate().for_each(|(v, x)| ops.store(x, &mut all[v * len..]));
    for column in 0..inner {
        let value = f(&all[column..]);
        all[column..].iter_mut().step_by(inner).for_each(|lane| *lane = value);
    }
    std::array::from_fn(|v| ops.load(&all[v * len..]))
}
