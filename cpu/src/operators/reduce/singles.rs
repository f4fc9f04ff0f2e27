//! Rows of `f32`, which are reduced without wider numbers for each element.

use std::marker::PhantomData;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use crate::loops::simd::Loop;

/// Rows of f32, or elements of a row, that are added up in f32, halves with halves, before the sum joins others in f64: three
/// roundings of a small sum, the fewer of which are conversions.
pub(super) const TOGETHER: usize = 8;

/// Halves joined with halves.
#[inline(always)]
fn tree(x: impl Fn(usize) -> f32) -> f32 {
    ((x(0) + x(1)) + (x(2) + x(3))) + ((x(4) + x(5)) + (x(6) + x(7)))
}

/// The sum of a row of f32.
pub(super) struct SumOfSingles<'a>(pub(super) &'a [f32]);

impl Loop for SumOfSingles<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        const LANES: usize = 16;
        let (chunks, rest) = self.0.as_chunks::<{ LANES * TOGETHER }>();
        let mut lanes = [0.0f64; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] += f64::from(tree(|k| chunk[k * LANES + i]));
            }
        }
        let (chunks, rest) = rest.as_chunks::<LANES>();
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] += f64::from(chunk[i]);
            }
        }
        let mut quarter = [0.0; LANES / 4];
        for i in 0..LANES / 4 {
            let at = |k: usize| lanes[i + k * LANES / 4];
            quarter[i] = (at(0) + at(1)) + (at(2) + at(3));
        }
        quarter.into_iter().chain(rest.iter().map(|&x| f64::from(x))).sum()
    }
}

/// How elements of several rows of f32 become one, and how that joins a wider value.
pub(super) trait Fold {
    fn fold(x: [f32; TOGETHER]) -> f32;
    fn join(acc: f64, x: f64) -> f64;
}

pub(super) struct Sums;

impl Fold for Sums {
    #[inline(always)]
    fn fold(x: [f32; TOGETHER]) -> f32 {
        tree(|k| x[k])
    }

    #[inline(always)]
    fn join(acc: f64, x: f64) -> f64 {
        acc + x
    }
}

/// The extreme of the elements; NaN where one is among them.
pub(super) struct Extremes<S>(PhantomData<S>);

impl<S: Extreme> Fold for Extremes<S> {
    #[inline(always)]
    fn fold(x: [f32; TOGETHER]) -> f32 {
        let two = |k: usize| keep::<S, f32>(x[2 * k], x[2 * k + 1]);
        // One comparison for two elements.
        let wrong = |k: usize| x[2 * k].is_nan() | x[2 * k + 1].is_nan();
        let extreme = keep::<S, f32>(keep::<S, f32>(two(0), two(1)), keep::<S, f32>(two(2), two(3)));
        if wrong(0) | wrong(1) | wrong(2) | wrong(3) { f32::NAN } else { extreme }
    }

    #[inline(always)]
    fn join(acc: f64, x: f64) -> f64 {
        if acc.is_nan() { acc } else { keep::<S, f64>(acc, x) }
    }
}

/// Joins rows of f32 with a row of wider values.
pub(super) struct Rows<'a, F>(
    pub(super) [&'a [f32]; TOGETHER],
    pub(super) &'a mut [f64],
    pub(super) PhantomData<F>,
);

impl<F: Fold> SimdOp for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        join_rows::<I, F>(isa, self.0, self.1);
    }
}

/// Joins rows of f32, so far from one another, with a row of wider values: `TOGETHER` at a time, of which there are whole
/// groups.
pub(super) struct EvenRows<'a, F> {
    pub(super) x: &'a [f32],
    pub(super) stride: usize,
    pub(super) groups: usize,
    pub(super) acc: &'a mut [f64],
    pub(super) fold: PhantomData<F>,
}

impl<F: Fold> SimdOp for EvenRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        for group in 0..self.groups {
            let first = group * TOGETHER;
            let rows = std::array::from_fn(|k| &self.x[(first + k) * self.stride..]);
            join_rows::<I, F>(isa, rows, self.acc);
        }
    }
}

/// The compiler makes vectors of as many elements as vectors of f64 have. With AVX-512 that is eight, and one loop does all.
/// With shorter vectors, of which f64 has four or two, elements of f32 are folded in a loop of their own, in whole vectors.
#[inline(always)]
fn join_rows<I: Isa, F: Fold>(isa: I, rows: [&[f32]; TOGETHER], acc: &mut [f64]) {
    const COLUMNS: usize = 256;
    let mut folded = [0.0; COLUMNS];
    for (block, acc) in acc.chunks_mut(COLUMNS).enumerate() {
        let (n, from) = (acc.len(), block * COLUMNS);
        // Of equal lengths one by one, so that no vector is left for what might be beyond the end.
        let [a, b, c, d, e, f, g, h] = rows.map(|row| &row[from..]);
        let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
        let (e, f, g, h) = (&e[..n], &f[..n], &g[..n], &h[..n]);
        if isa.f32().len() > 8 {
            for i in 0..n {
                let x = F::fold([a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]]);
                acc[i] = F::join(acc[i], f64::from(x));
            }
            continue;
        }
        let folded = &mut folded[..n];
        for i in 0..n {
            folded[i] = F::fold([a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]]);
        }
        for i in 0..n {
            acc[i] = F::join(acc[i], f64::from(folded[i]));
        }
    }
}

/// A step that keeps one of the elements.
pub(super) trait Extreme {
    /// Whether it keeps the least, not the largest.
    const IS_LEAST: bool;

    /// Whether the first one is kept of numbers that are none of them NaN.
    fn keeps<T: PartialOrd>(a: &T, b: &T) -> bool;
}

#[inline(always)]
fn keep<S: Extreme, T: PartialOrd>(a: T, b: T) -> T {
    if S::keeps(&a, &b) { a } else { b }
}
