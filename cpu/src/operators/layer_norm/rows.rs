//! Rows of `f32` that have one scale and bias: no call for each step of a row, which takes as long as a short row itself.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use crate::loops::store::store_first;
use crate::loops::widen::RUN;

/// Sums that do not wait for each other.
const SUMS: usize = 4;

/// Normalises the rows of `x`, or of `y` itself.
pub(super) struct Rows<'a, F> {
    pub(super) x: Option<&'a [f32]>,
    pub(super) y: &'a mut [f32],
    /// Elements of a row, above zero.
    pub(super) row: usize,
    /// Whether nothing is subtracted.
    pub(super) rms: bool,
    pub(super) epsilon: f64,
    /// As long as a row.
    pub(super) scale: &'a [f32],
    /// As long as a row, or one element.
    pub(super) bias: &'a [f32],
    /// Is given the number of each row, its mean and the inverse of its deviation.
    pub(super) statistics: F,
}

impl<F: Fn(usize, f64, f64)> SimdOp for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Rows { x, y, row, rms, epsilon, scale, bias, statistics } = self;
        let ops = isa.f32();
        let len = ops.len();
        let (whole, count) = (row - row % len, row as f64);
        let mask = ops.first_n_mask(row - whole);
        let one = ops.splat(bias[0]);
        let bias = (bias.len() == row).then_some(bias);
        assert!(scale.len() == row && x.is_none_or(|x| x.len() == y.len()));
        for (i, y) in y.chunks_exact_mut(row).enumerate() {
            let (mean, spread) = {
                let x = x.map_or(&*y, |x| &x[i * row..(i + 1) * row]);
                let mean = if rms { 0.0 } else { sum(isa, x, |x| x) / count };
                let center = ops.splat(mean as f32);
                let square = |x: I::F32| {
                    let x = ops.sub(x, center);
                    ops.mul(x, x)
                };
                (mean, sum(isa, x, square) / count)
            };
            let factor = 1.0 / (spread + epsilon).sqrt();
            statistics(i, mean, factor);
            let (center, factor) = (ops.splat(mean as f32), ops.splat(factor as f32));
            let value = |x: I::F32, scale: I::F32, bias| {
                ops.mul_add(ops.mul(ops.sub(x, center), factor), scale, bias)
            };
            let x = x.map_or(y.as_ptr(), |x| x[i * row..(i + 1) * row].as_ptr());
            let (y, scale) = (y.as_mut_ptr(), scale.as_ptr());
            // SAFETY: all have `row` elements, of which `at + len` and what the mask leaves of the last vector are not
            // beyond.
            unsafe {
                for at in (0..whole).step_by(len) {
                    let bias = bias.map_or(one, |bias| ops.load_ptr(bias.as_ptr().add(at)));
                    let x = ops.load_ptr(x.add(at));
                    ops.store_ptr(value(x, ops.load_ptr(scale.add(at)), bias), y.add(at));
                }
                if whole < row {
                    let last = |from: *const f32| ops.load_ptr_mask(from.add(whole), mask);
                    let bias = bias.map_or(one, |bias| last(bias.as_ptr()));
                    store_first(isa, value(last(x), last(scale), bias), y.add(whole), row - whole, mask);
                }
            }
        }
    }
}

/// The sum of what becomes of the elements: in `f32`, runs together in `f64`.
#[inline(always)]
fn sum<I: Isa>(isa: I, x: &[f32], term: impl Fn(I::F32) -> I::F32) -> f64 {
    let ops = isa.f32();
    let len = ops.len();
    let mut total = 0.0;
    for x in x.chunks(RUN) {
        let mut sums = [ops.zero(); SUMS];
        let mut groups = x.chunks_exact(SUMS * len);
        for group in groups.by_ref() {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum = ops.add(*sum, term(ops.load(&group[k * len..])));
            }
        }
        for (k, rest) in groups.remainder().chunks(len).enumerate() {
            let mask = ops.first_n_mask(rest.len());
            // SAFETY: the mask has as many elements as the slice.
            let x = unsafe { ops.load_ptr_mask(rest.as_ptr(), mask) };
            sums[k] = ops.add(sums[k], ops.select(term(x), ops.zero(), mask));
        }
        let [a, b, c, d] = sums;
        total += f64::from(ops.sum(ops.add(ops.add(a, b), ops.add(c, d))));
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};
    use std::cell::RefCell;

    /// Beside sums in `f64`, with one instruction set, in place and not.
    fn check<I: Isa>(isa: I) {
        const COUNT: usize = 3;
        for row in [1, 3, 8, 12, 17, 96, 1030, 2048] {
            let x: Vec<f32> = (0..COUNT * row).map(|i| (i * 37 % 101) as f32 / 7.0 - 3.0).collect();
            let scale: Vec<f32> = (0..row).map(|i| 1.0 + (i % 5) as f32).collect();
            let biases: Vec<f32> = (0..row).map(|i| (i % 3) as f32 - 1.0).collect();
            for (rms, in_place, bias) in
                [(false, false, &biases[..]), (true, false, &biases[..1]), (false, true, &biases[..1])]
            {
                let mut y = if in_place { x.clone() } else { vec![f32::NAN; x.len()] };
                let told = RefCell::new(Vec::new());
                let statistics = |i, mean, factor| told.borrow_mut().push((i, mean, factor));
                let from = (!in_place).then_some(&x[..]);
                let (epsilon, scale) = (1e-5, &scale[..]);
                Rows { x: from, y: &mut y, row, rms, epsilon, scale, bias, statistics }.eval(isa);
                for (i, (x, y)) in x.chunks(row).zip(y.chunks(row)).enumerate() {
                    let of =
                        |f: &dyn Fn(f64) -> f64| x.iter().map(|&x| f(x.into())).sum::<f64>() / row as f64;
                    let mean = if rms { 0.0 } else { of(&|x| x) };
                    let factor = 1.0 / (of(&|x| (x - mean) * (x - mean)) + epsilon).sqrt();
                    let (number, told_mean, told_factor) = told.borrow()[i];
                    let near = |got: f64, want: f64| (got - want).abs() <= 1e-5 * want.abs() + 1e-5;
                    assert!(number == i && near(told_mean, mean) && near(told_factor / factor, 1.0));
                    for (k, &got) in y.iter().enumerate() {
                        let bias = f64::from(bias[k % bias.len()]);
                        let want = (f64::from(x[k]) - mean) * factor * f64::from(scale[k]) + bias;
                        assert!(
                            near(got.into(), want),
                            "{row} {rms} {in_place}, {i}, {k}: {got}, not {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }

    #[test]
    fn rows_have_their_statistics() {
        // Rows of 1, 3 and of 2, 6 with a scale that is a row, and with one that is as large as the input.
        let x = t(&[2, 2], &[1.0f32, 3.0, 2.0, 6.0]);
        let epsilon = [("epsilon", Attribute::Float(0.0))];
        for scale in [t(&[2], &[2.0f32, 4.0]), t(&[2, 2], &[2.0f32, 4.0, 2.0, 4.0])] {
            let inputs = [x.clone(), scale, t(&[2], &[1.0f32, 0.5])];
            let out = run("LayerNormalization", 17, &epsilon, &inputs, 3).unwrap();
            assert_eq!(elements::<f32>(&out[0]).1, [-1.0, 4.5, -1.0, 4.5]);
            assert_eq!(elements::<f32>(&out[1]).1, [2.0, 4.0]);
            assert_eq!(elements::<f32>(&out[2]).1, [1.0, 0.5]);
        }
    }
}
