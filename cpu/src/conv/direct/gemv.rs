//! A convolution with one output position over channels of one element: a matrix times a vector. Bound by
//! reading the weight.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::panels::rows_of;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::{LONGEST, Masks};

/// Vectors of sums of a panel.
const SUMS: usize = 4;
/// Panels that are multiplied at a time: they share what is read of the vector, which together with a panel is more than the
/// first cache holds, and as many streams come from the third one faster than a single one (a weight of 5 MB takes 0.58 of
/// the time on a Zen 4).
const PANELS: usize = 8;
/// Vectors of a panel that are summed at a time.
const PART: usize = 64;
/// Rows of a panel, at most.
const MOST_ROWS: usize = 8;

/// Writes each element `times` times, so that a vector of elements meets one of a panel.
pub(crate) fn repeat(x: &[f32], times: usize, out: &mut [f32]) {
    match times {
        4 => out.as_chunks_mut::<4>().0.iter_mut().zip(x).for_each(|(out, &x)| *out = [x; 4]),
        8 => out.as_chunks_mut::<8>().0.iter_mut().zip(x).for_each(|(out, &x)| *out = [x; 8]),
        _ => out.chunks_exact_mut(times).zip(x).for_each(|(out, &x)| out.fill(x)),
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
        let (mut panels, mut first) = (self.panels, self.rows.start);
        let together = isa.f32().len().is_multiple_of(rows);
        while first < self.rows.end {
            let left = (self.rows.end - first).div_ceil(rows);
            let count = if together && left >= PANELS { PANELS } else { 1 };
            let (some, rest) = panels.split_at(count * self.x.len());
            panels = rest;
            let mut sums = [0.0; PANELS * MOST_ROWS + LONGEST];
            if count == 1 {
                multiply(isa, some, self.x, &mut sums[..rows]);
            } else {
                multiply_panels(isa, some, self.x, &mut sums[..PANELS * rows], rows);
            }
            let end = (first + count * rows).min(self.rows.end);
            self.write(isa, &masks, &mut sums[..end - first], first);
            first = end;
        }
    }
}

impl Vector<'_> {
    /// Writes the sums of rows from `first` on. They lie beside each other, as there is one column.
    #[inline(always)]
    fn write<I: Isa>(&self, isa: I, masks: &Masks<I>, sums: &mut [f32], first: usize) {
        let epilogue = F32Epilogue { bias: None, ..self.epilogue };
        assert!(epilogue.columns == 1);
        if let Some(bias) = self.epilogue.bias {
            sums.iter_mut().zip(&bias[first..]).for_each(|(sum, bias)| *sum += bias);
        }
        let at = epilogue.start + first;
        // SAFETY: rows of different vectors do not overlap, and each is computed once, by one thread.
        let out = unsafe { epilogue.out.get(at..at + sums.len()) };
        epilogue.line(isa, masks, sums, 0, at, out);
    }
}

/// As `multiply`, for `PANELS` panels that follow one another, of so many rows each, which divide a vector.
#[inline(always)]
fn multiply_panels<I: Isa>(isa: I, panels: &[f32], x: &[f32], out: &mut [f32], rows: usize) {
    let ops = isa.f32();
    let (len, size) = (ops.len(), x.len());
    let whole = size / len * len;
    assert!(panels.len() >= PANELS * size);
    let mut all = [[0.0; LONGEST]; PANELS];
    for part in (0..whole).step_by(PART * len) {
        let mut sums = [ops.zero(); PANELS];
        for at in (part..whole.min(part + PART * len)).step_by(len) {
            let x = ops.load(&x[at..]);
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: `i < PANELS`, and a vector from `at` on ends at `size` or before; so by the assertion it lies inside.
                let weights = unsafe { ops.load_ptr(panels.as_ptr().add(i * size + at)) };
                *sum = ops.mul_add(weights, x, *sum);
            }
        }
        for (all, sum) in all.iter_mut().zip(sums) {
            ops.store(ops.add(sum, ops.load(all)), all);
        }
    }
    let panels = panels.chunks_exact(size.max(1));
    for ((all, panel), out) in all.iter().zip(panels).zip(out.chunks_exact_mut(rows)) {
        out.fill(0.0);
        for sums in all[..len].chunks_exact(rows) {
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
        }
        for (i, (w, x)) in panel[whole..].iter().zip(&x[whole..]).enumerate() {
            out[i % rows] += w * x;
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
