//! A convolution with one output position over channels of one element: a matrix times a vector. Bound by
//! reading the weight.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::panels::rows_of;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::{Lines, Segments};
use crate::conv::common::masks::{LONGEST, Masks};

/// Vectors of sums.
const SUMS: usize = 4;

/// Writes each element `times` times, so that a vector of elements meets one of a panel.
pub(crate) fn repeat(x: &[f32], times: usize, out: &mut [f32]) {
    for (out, &x) in out.chunks_exact_mut(times).zip(x) {
        out.fill(x);
    }
}

/// Some rows of the product.
pub(crate) struct Vector<'a> {
    /// The panels from the first row on.
    pub(crate) panels: &'a [f32],
    /// The right operand, each element repeated for the rows of a panel.
    pub(crate) x: &'a [f32],
    /// Whole panels of rows, but for the last.
    pub(crate) rows: Range<usize>,
    pub(crate) epilogue: F32Epilogue<'a>,
}

impl SimdOp for Vector<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let rows = rows_of(isa);
        let masks = Masks::new(isa);
        let segments = Segments::new(Lines::whole(1), 0, 1, isa.f32().len());
        let panels = self.panels.chunks_exact(self.x.len().max(1));
        for (first, panel) in self.rows.clone().step_by(rows).zip(panels) {
            let mut sums = [0.0; 2 * LONGEST];
            multiply(isa, panel, self.x, &mut sums[..rows]);
            let end = (first + rows).min(self.rows.end);
            self.epilogue.rows(isa, &masks, &sums, 1, first..end, &segments);
        }
    }
}

/// The products of elements, summed for every `out.len()`-th. Those of a panel are the rows' sums.
#[inline(always)]
pub(crate) fn multiply<I: Isa>(isa: I, panel: &[f32], x: &[f32], out: &mut [f32]) {
    let ops = isa.f32();
    let len = ops.len();
    let mut sums = [ops.zero(); SUMS];
    let (panels, xs) = (panel.chunks_exact(SUMS * len), x.chunks_exact(SUMS * len));
    let rest = panels.remainder().iter().zip(xs.remainder());
    for (panel, x) in panels.zip(xs) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = ops.mul_add(ops.load(&panel[i * len..]), ops.load(&x[i * len..]), *sum);
        }
    }
    let mut all = [0.0; SUMS * LONGEST];
    for (sum, all) in sums.into_iter().zip(all.chunks_exact_mut(len)) {
        ops.store(sum, all);
    }
    // All of these begin at a multiple of the rows.
    out.fill(0.0);
    for (i, sum) in all[..SUMS * len].iter().enumerate() {
        out[i % out.len()] += sum;
    }
    for (i, (w, x)) in rest.enumerate() {
        out[i % out.len()] += w * x;
    }
}
