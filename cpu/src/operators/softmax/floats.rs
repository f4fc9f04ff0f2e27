//! Softmax and log-softmax of `f32` in vectors, along rows and along columns of a matrix.
//!
//! Three passes: the largest element, exponentials and their sum, the division. Bound: the exponential, as long as what
//! is normalised together stays in the first-level cache.

use std::ops::Range;

use rten_simd::ops::{BitOps, FloatOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp};

use crate::loops::store::store_first;
use crate::ops::OpError;
use crate::ops::softmax::{Normalizer, Softmax};
use crate::tensor::{TensorView, TensorViewMut};

use super::GRAIN;
use super::few_columns::{FewColumns, vectors};
use super::rows::{LANES, Rows, TERMS};
use crate::isa::Dispatch;
use crate::kernel::{Kernel, KernelContext};
use crate::loops::parallel::{Parts, split_mut};
use crate::loops::simd::vector_len;
use crate::loops::vector::exp_below_zero;

/// Softmax or log-softmax of a tensor.
pub(super) struct Floats(pub Softmax);

/// Vectors of columns that are normalised at a time: whole lines of the cache with every instruction set.
const GROUP: usize = 4;

/// Columns of a piece of work.
const COLUMNS: usize = 128;

impl Kernel for Floats {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let (outer, along, inner) = self.0.split(output.shape())?;
        let logarithm = self.0.normalizer == Normalizer::LogSoftmax;
        let (x, y) = (inputs[0].map(|x| x.slice::<f32>()), output.slice::<f32>());
        if y.is_empty() {
            return Ok(());
        }
        if inner == 1 {
            split_mut(cx.pool, y, along, (GRAIN / along).max(1), |range, y| {
                let x = x.map(|x| &x[range.start * along..range.end * along]);
                Rows { x, y, along, logarithm }.widest();
            });
            return Ok(());
        }
        let blocks = inner.div_ceil(COLUMNS);
        let grain = (GRAIN / (along * inner.min(COLUMNS))).max(1);
        let parts = Parts::new(y);
        let few_columns = vectors(along, inner, vector_len()).is_some();
        cx.pool.split(outer * blocks, grain, |units| {
            for unit in units {
                if few_columns {
                    let all = unit * along * inner..(unit + 1) * along * inner;
                    // SAFETY: the ranges that `split` hands out do not overlap.
                    let y = unsafe { parts.get(all.clone()) };
                    FewColumns { x: x.map(|x| &x[all]), y, inner, logarithm }.widest();
                    continue;
                }
                let (start, first) = (unit / blocks * along * inner, unit % blocks * COLUMNS);
                let x = x.map(|x| &x[start..][..along * inner]);
                let columns = first..(first + COLUMNS).min(inner);
                Columns { x, y: &parts, start, along, inner, columns, logarithm }.widest();
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Normalises columns of a matrix `[along, inner]` of `x`, or of `y` itself, where it starts at `start`.
pub(super) struct Columns<'a> {
    pub(super) x: Option<&'a [f32]>,
    pub(super) y: &'a Parts<'a, f32>,
    pub(super) start: usize,
    pub(super) along: usize,
    pub(super) inner: usize,
    pub(super) columns: Range<usize>,
    pub(super) logarithm: bool,
}

impl SimdOp for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let len = isa.f32().len();
        let mut first = self.columns.start;
        while first + GROUP * len <= self.columns.end {
            self.group::<I, GROUP>(isa, first, GROUP * len);
            first += GROUP * len;
        }
        while first < self.columns.end {
            let width = len.min(self.columns.end - first);
            self.group::<I, 1>(isa, first, width);
            first += width;
        }
    }
}

impl Columns<'_> {
    /// `width` columns from `first` on: V vectors, of which the last may be a part.
    #[inline(always)]
    fn group<I: Isa, const V: usize>(&self, isa: I, first: usize, width: usize) {
        let ops = isa.f32();
        let len = ops.len();
        let mask = ops.first_n_mask(width - (V - 1) * len);
        // SAFETY: each call has columns of its own, and holds one row of them at a time.
        let to = |k: usize| unsafe {
            let at = self.start + k * self.inner + first;
            self.y.get(at..at + width).as_mut_ptr()
        };
        let from = |k: usize| match self.x {
            Some(x) => x[k * self.inner + first..][..width].as_ptr(),
            None => to(k).cast_const(),
        };
        // SAFETY: a row has `width` elements, of which the mask leaves out what the last vector has too many.
        let load = |row: *const f32, v: usize| unsafe {
            match v + 1 == V {
                true => ops.load_ptr_mask(row.add(v * len), mask),
                false => ops.load_ptr(row.add(v * len)),
            }
        };
        // SAFETY: as for `load`.
        let store = |x: I::F32, row: *mut f32, v: usize| unsafe {
            match v + 1 == V {
                true => store_first(isa, x, row.add(v * len), width - v * len, mask),
                false => ops.store_ptr(x, row.add(v * len)),
            }
        };
        let mut largest = [ops.splat(f32::NEG_INFINITY); V];
        for k in 0..self.along {
            for (v, largest) in largest.iter_mut().enumerate() {
                *largest = ops.max(*largest, load(from(k), v));
            }
        }
        let (mut totals, mut sums) = ([ops.splat(0.0); V], [ops.splat(0.0); V]);
        for k in 0..self.along {
            for (v, sum) in sums.iter_mut().enumerate() {
                let power = exp_below_zero(isa, ops.sub(load(from(k), v), largest[v]));
                *sum = ops.add(*sum, power);
                if !self.logarithm {
                    store(power, to(k), v);
                }
            }
            if k % TERMS == TERMS - 1 || k + 1 == self.along {
                for (total, sum) in totals.iter_mut().zip(&mut sums) {
                    *total = ops.add(*total, *sum);
                    *sum = ops.splat(0.0);
                }
            }
        }
        for total in &mut totals {
            *total = match self.logarithm {
                true => logarithm(isa, *total),
                false => ops.div(ops.splat(1.0), *total),
            };
        }
        for k in 0..self.along {
            for (v, &total) in totals.iter().enumerate() {
                let value = match self.logarithm {
                    true => ops.sub(ops.sub(load(from(k), v), largest[v]), total),
                    false => ops.mul(load(to(k), v), total),
                };
                store(value, to(k), v);
            }
        }
    }
}

/// The logarithm of each lane.
#[inline(always)]
fn logarithm<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (ops, lanes) = (isa.f32(), x.to_array());
    let mut logarithms = [0.0; LANES];
    logarithms.iter_mut().zip(lanes).for_each(|(y, x)| *y = x.ln());
    ops.load(&logarithms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside sums in `f64`, with one instruction set, in place and not.
    fn check<I: Isa>(isa: I) {
        for (along, inner) in [1, 3, 8, 12, 16, 17, 49, 130, 256, 257, 2100]
            .into_iter()
            .flat_map(|along| [1, 2, 3, 4, 6, 8, 12, 21, 64, 70, 130].map(move |inner| (along, inner)))
        {
            for logarithm in [false, true] {
                // Of rows several, of which some are normalised together.
                let outer = if inner == 1 { 7 } else { 1 };
                let x: Vec<f32> = (0..outer * along * inner)
                    .map(|i| (i * 37 % 101) as f32 / 5.0 - 70.0 * ((i % 7) / 6) as f32)
                    .collect();
                let sums: Vec<(f64, f64)> = (0..outer * inner)
                    .map(|i| {
                        let first = i / inner * along * inner + i % inner;
                        let column = || (0..along).map(|k| f64::from(x[first + k * inner]));
                        let largest = column().fold(f64::NEG_INFINITY, f64::max);
                        (largest, column().map(|x| (x - largest).exp()).sum())
                    })
                    .collect();
                let want = |i: usize| {
                    let (largest, sum) = sums[i / (along * inner) * inner + i % inner];
                    let x = f64::from(x[i]) - largest;
                    if logarithm { x - sum.ln() } else { x.exp() / sum }
                };
                let has_few_columns = inner > 1 && vectors(along, inner, isa.f32().len()).is_some();
                for (in_place, few_columns) in [(false, false), (true, false), (false, true), (true, true)] {
                    let mut y = if in_place { x.clone() } else { vec![f32::NAN; x.len()] };
                    let from = (!in_place).then_some(&x[..]);
                    if few_columns && has_few_columns {
                        FewColumns { x: from, y: &mut y, inner, logarithm }.eval(isa);
                    } else if inner == 1 {
                        Rows { x: from, y: &mut y, along, logarithm }.eval(isa);
                    } else {
                        let parts = Parts::new(&mut y);
                        let columns = 0..inner;
                        Columns { x: from, y: &parts, start: 0, along, inner, columns, logarithm }.eval(isa);
                    }
                    for (i, &got) in y.iter().enumerate() {
                        // An exponential takes over the rounding of `x − largest`, a logarithm that of a sum.
                        let room = 1e-5 * want(i).abs() + if logarithm { 2e-7 } else { 1e-30 };
                        let near = (f64::from(got) - want(i)).abs() <= room;
                        assert!(near, "{along} × {inner}, element {i}, {logarithm}: {got}, not {}", want(i));
                    }
                }
            }
        }
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut y = [1.0, wrong, 2.0, 100.0, -3.0];
            Rows { x: None, y: &mut y, along: 5, logarithm: false }.eval(isa);
            assert!(y.iter().all(|y| y.is_nan()), "{wrong}: {y:?}");
            // One row of several.
            for along in [5, 9, 20] {
                let mut y: Vec<f32> = (0..5 * along).map(|i| (i % 4) as f32).collect();
                y[along * 2 - 1] = wrong;
                Rows { x: None, y: &mut y, along, logarithm: false }.eval(isa);
                for (i, row) in y.chunks(along).enumerate() {
                    assert!(row.iter().all(|y| y.is_nan() == (i == 1)), "{wrong}, row {i}: {row:?}");
                }
            }
        }
        let mut y = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 0.0];
        Rows { x: None, y: &mut y, along: 4, logarithm: false }.eval(isa);
        assert_eq!(y, [0.0, 0.5, 0.0, 0.5]);
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }
}
