//! What happens to tiles of `f32` sums on their way to memory: bias, residual, activation. The contract is that of
//! `gemm::epilogue`.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdUnaryOp};

use super::activation::{activate_rest, has_rest, with_activation};
use super::lines::Segments;
use super::masks::Masks;
use crate::loops::fetch;
use crate::loops::parallel::Parts;
use crate::loops::store::{EIGHT, store_first};
use crate::ops::activation::Activation;
use crate::tensor::TensorView;

/// Outputs that a processor's second cache holds, at most. With more, fetching those of a tile before its sums made 1 × 1 of 64
/// channels 1.3 times as fast (384 × 1500, Cascade Lake); with 384 × 384 a tenth was lost.
const NEAR: usize = 256 * 1024;

/// Where sums go: a row-major matrix of a row for each output channel.
#[derive(Clone, Copy)]
pub(crate) struct F32Epilogue<'a> {
    /// An element for each row.
    pub(crate) bias: Option<&'a [f32]>,
    /// Of the output's shape.
    pub(crate) residual: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    /// The outputs of all images.
    pub(crate) out: &'a Parts<'a, f32>,
    /// Where this matrix begins there.
    pub(crate) start: usize,
    /// Columns of the matrix.
    pub(crate) columns: usize,
}

impl<'a> F32Epilogue<'a> {
    /// That of the first image of a convolution, with its optional inputs.
    pub(crate) fn new(
        activation: Activation,
        inputs: &[Option<TensorView<'a>>],
        out: &'a Parts<'a, f32>,
        columns: usize,
    ) -> Self {
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<f32>());
        F32Epilogue { bias: optional(2), residual: optional(3), activation, out, start: 0, columns }
    }

    /// Writes rows of sums that are `width` apart.
    #[inline(always)]
    pub(crate) fn rows<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        sums: &[f32],
        width: usize,
        rows: Range<usize>,
        segments: &Segments,
    ) {
        with_activation!(self.activation, f => self.write(isa, masks, sums, width, rows, segments, f));
    }

    /// Fetches what `vectors_of_rows` will add into the cache, and where it will write if that is far.
    #[inline(always)]
    pub(crate) fn fetch<I: Isa, const R: usize, const V: usize>(&self, isa: I, row: usize, column: usize) {
        let ops = isa.f32();
        // Shorter vectors may be those of a processor that does not know how to fetch for writing.
        let far = self.out.len() > NEAR && ops.len() >= 8;
        for row in row..row + R {
            let at = self.start + row * self.columns + column;
            if far {
                let lines = (0..V).map(|v| v * ops.len()).chain([V * ops.len() - 1]);
                lines.for_each(|i| fetch::to_write(self.out.start().wrapping_add(at + i)));
            }
            if let Some(residual) = self.residual {
                for v in 0..V {
                    ops.prefetch(residual.as_ptr().wrapping_add(at + v * ops.len()));
                }
            }
        }
    }

    /// Writes rows of sums, of each vectors that follow one another, from a row and a column on.
    // Unoptimized, all its forms together would need more stack than a thread has.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn vectors_of_rows<I: Isa, const R: usize, const V: usize>(
        &self,
        isa: I,
        sums: [[I::F32; V]; R],
        row: usize,
        column: usize,
    ) {
        let ops = isa.f32();
        let (len, count, stride) = (ops.len(), V * ops.len(), self.columns);
        let first = self.start + row * stride + column;
        let end = first + (R - 1) * stride + count;
        assert!(column + count <= stride && end <= self.out.len(), "rows lie inside the outputs");
        let out = self.out.start().wrapping_add(first);
        let residual = self.residual.map(|residual| residual[first..end].as_ptr());
        let bias = self.bias.map(|bias| bias[row..row + R].as_ptr());
        with_activation!(self.activation, f => {
            for (r, sums) in sums.into_iter().enumerate() {
                // SAFETY: all rows lie inside by the assertion and the bounds of slices. No other thread writes these outputs;
                // this one may write some again, with the same values, where nothing is added (see `tiles`).
                unsafe {
                    let bias = ops.splat(bias.map_or(0.0, |bias| *bias.add(r)));
                    for (v, sum) in sums.into_iter().enumerate() {
                        let (mut x, at) = (ops.add(sum, bias), r * stride + v * len);
                        if let Some(residual) = residual {
                            x = ops.add(x, ops.load_ptr(residual.add(at)));
                        }
                        ops.store_ptr(f.eval(isa, x), out.add(at));
                    }
                }
            }
        });
        if has_rest(self.activation) {
            for at in (first..).step_by(stride).take(R) {
                // SAFETY: as above; no other reference to these outputs lives.
                activate_rest(self.activation, unsafe { self.out.get(at..at + count) });
            }
        }
    }

    /// Applies the activation to vectors; what is written of them is to be given to `written`.
    #[inline(always)]
    pub(crate) fn vectors<I: Isa, const N: usize>(&self, isa: I, mut x: [I::F32; N]) -> [I::F32; N] {
        with_activation!(self.activation, f => {
            for x in &mut x {
                *x = f.eval(isa, *x);
            }
        });
        x
    }

    #[inline(always)]
    pub(crate) fn written(&self, out: &mut [f32]) {
        activate_rest(self.activation, out);
    }

    /// Adds the residual to a whole row that holds sums and the bias, and applies the activation. The row
    /// begins at `at` of the outputs.
    #[inline(always)]
    pub(crate) fn plane<I: Isa>(&self, isa: I, masks: &Masks<I>, at: usize, out: &mut [f32]) {
        if self.residual.is_some() || self.activation != Activation::Identity {
            // SAFETY: the sums are the outputs themselves.
            with_activation!(self.activation, f => unsafe {
                self.update(isa, masks, (out.as_ptr(), None), at, out, f);
            });
        }
    }

    /// Writes a part of row `row` from as many sums; it begins at `at` of the outputs.
    #[inline(always)]
    pub(crate) fn line<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        sums: &[f32],
        row: usize,
        at: usize,
        out: &mut [f32],
    ) {
        assert!(sums.len() == out.len());
        let bias = self.bias.map(|bias| bias[row]);
        // SAFETY: there are as many sums as outputs.
        with_activation!(self.activation, f => unsafe {
            self.update(isa, masks, (sums.as_ptr(), bias), at, out, f);
        });
    }

    /// # Safety
    /// There are as many sums as outputs, and be it in the same place.
    #[inline(always)]
    unsafe fn update<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        (sums, bias): (*const f32, Option<f32>),
        at: usize,
        out: &mut [f32],
        f: impl SimdUnaryOp<f32>,
    ) {
        let ops = isa.f32();
        let bias = bias.map(|bias| ops.splat(bias));
        let residual = self.residual.map(|residual| &residual[at..at + out.len()]);
        for i in (0..out.len()).step_by(ops.len()) {
            let count = ops.len().min(out.len() - i);
            let mask = masks.first(count);
            // SAFETY: the mask has no more elements than are left in any of them.
            unsafe {
                let mut x = ops.load_ptr_mask(sums.add(i), mask);
                if let Some(bias) = bias {
                    x = ops.add(x, bias);
                }
                if let Some(residual) = residual {
                    x = ops.add(x, ops.load_ptr_mask(residual[i..].as_ptr(), mask));
                }
                store_first(isa, f.eval(isa, x), out[i..].as_mut_ptr(), count, mask);
            }
        }
        activate_rest(self.activation, out);
    }

    #[inline(always)]
    fn write<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        sums: &[f32],
        width: usize,
        rows: Range<usize>,
        segments: &Segments,
        f: impl SimdUnaryOp<f32>,
    ) {
        let ops = isa.f32();
        let len = ops.len();
        let (Some(first), Some(last)) = (segments.list().first(), segments.list().last()) else { return };
        let (begin, end) = (first.to, last.to + last.len);
        assert!(rows.len() * width + len <= sums.len() && end <= self.columns);
        // What a whole vector writes behind its segment is written once more, by the segments that follow.
        let follow = segments.list().iter().map(|segment| segment.len).sum::<usize>() == end - begin;
        let whole = follow && len <= EIGHT;
        for (i, row) in rows.enumerate() {
            let at = self.start + row * self.columns;
            // SAFETY: tiles do not overlap, and each is computed once.
            let written = unsafe { self.out.get(at + begin..at + end) };
            let out = written.as_mut_ptr();
            let residual = self.residual.map(|residual| residual[at + begin..at + end].as_ptr());
            let bias = ops.splat(self.bias.map_or(0.0, |bias| bias[row]));
            for segment in segments.list() {
                let to = segment.to - begin;
                // SAFETY: the sums have room for a vector from any of their elements (asserted above); the
                // first `segment.len` elements from `to` lie inside the slices.
                unsafe {
                    let x = ops.add(ops.load_ptr(sums.as_ptr().add(i * width + segment.from)), bias);
                    if segment.len == len || whole && to + len <= end - begin {
                        let x = match residual {
                            Some(residual) => ops.add(x, ops.load_ptr(residual.add(to))),
                            None => x,
                        };
                        ops.store_ptr(f.eval(isa, x), out.add(to));
                    } else {
                        let mask = masks.first(segment.len);
                        let x = match residual {
                            Some(residual) => ops.add(x, ops.load_ptr_mask(residual.add(to), mask)),
                            None => x,
                        };
                        store_first(isa, f.eval(isa, x), out.add(to), segment.len, mask);
                    }
                }
            }
            activate_rest(self.activation, written);
        }
    }
}
