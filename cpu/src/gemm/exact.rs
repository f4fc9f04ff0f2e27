//! Exact sums of products of 8-bit numbers, computed in `f32`.
//!
//! The difference of an 8-bit number and its zero point is at most 255, so a sum of 256 products is
//! at most 256 · 255² < 2²⁴ and exact in `f32`. The depth is cut there; the parts are added up in a
//! wider type.

use std::ops::Range;

use super::epilogue::Epilogue;
use super::operand::{Left, Product, Right, Source};
use super::shape::GemmShape;
use super::tile::multiply;
use crate::loops::parallel::Parts;
use crate::loops::simd::{Loop, widest};
use crate::tensor::Element;
use crate::threads::Pool;

const DEPTH: usize = 256;

/// A type that adds up parts of sums.
pub(crate) trait Accumulate: Element {
    fn added(self, part: f32) -> Self;
    fn of(sum: i32) -> Self;
}

impl Accumulate for i32 {
    #[inline(always)]
    fn added(self, part: f32) -> i32 {
        // Beside 1.5·2⁵² an f64 has no room for fractions: the number lies in its last bits. A cast is no
        // vector instruction, since it saturates.
        self.wrapping_add((part as f64 + 6_755_399_441_055_744.0).to_bits() as i32)
    }

    #[inline(always)]
    fn of(sum: i32) -> i32 {
        sum
    }
}

impl Accumulate for f64 {
    #[inline(always)]
    fn added(self, part: f32) -> f64 {
        self + part as f64
    }

    #[inline(always)]
    fn of(sum: i32) -> f64 {
        sum as f64
    }
}

/// Writes the batch of products `a · b` to `out`, `m × n` elements each.
pub(crate) fn multiply_exact<S: Accumulate>(
    pool: &Pool,
    GemmShape { batch, m, n, k }: GemmShape,
    a: &dyn Source<f32>,
    b: &dyn Source<f32>,
    out: &mut [S],
) {
    out.fill(S::default());
    let sink = Sums { out: Parts::new(out), m, n };
    for start in (0..k).step_by(DEPTH) {
        let (a, b) = (Columns { source: a, start }, Rows { source: b, start });
        let k = DEPTH.min(k - start);
        multiply(pool, &Product { batch, m, n, k, a: Left::Source(&a), b: Right::Source(&b) }, &sink);
    }
}

/// The columns of a matrix from `start`.
struct Columns<'a> {
    source: &'a dyn Source<f32>,
    start: usize,
}

impl Source<f32> for Columns<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        self.source.fill(batch, rows, self.start + columns.start..self.start + columns.end, out);
    }
}

/// The rows of a matrix from `start`.
struct Rows<'a> {
    source: &'a dyn Source<f32>,
    start: usize,
}

impl Source<f32> for Rows<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        self.source.fill(batch, self.start + rows.start..self.start + rows.end, columns, out);
    }
}

struct Sums<'a, S> {
    out: Parts<'a, S>,
    m: usize,
    n: usize,
}

impl<S: Accumulate> Epilogue<f32> for Sums<'_, S> {
    fn write(&self, batch: usize, row: usize, start: usize, values: &mut [f32]) {
        let at = (batch * self.m + row) * self.n + start;
        // SAFETY: a product writes each element of its result once.
        let out = unsafe { self.out.get(at..at + values.len()) };
        widest(AddUp { out, parts: values });
    }
}

struct AddUp<'a, S> {
    out: &'a mut [S],
    parts: &'a [f32],
}

impl<S: Accumulate> Loop for AddUp<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.parts).for_each(|(y, &x)| *y = y.added(x));
    }
}
