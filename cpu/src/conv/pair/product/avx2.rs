//! The product with one or two vectors of eight.

use std::arch::x86_64::*;
use std::ops::Range;

use rten_simd::SimdUnaryOp;
use rten_simd::isa::Avx2Isa;

use super::{Product, Tiles};
use crate::conv::common::activation::{activate_rest, with_activation};
use crate::conv::depthwise::nchw8c::Source;
use crate::gemm::VECTOR;
use crate::loops::avx2::LEN;

/// Sums of a tile, beside which there are weights and an element of the image in 16 registers.
const SUMS: usize = 12;
/// How far ahead weights are fetched, in floats: what finds them by itself stops where a page ends.
const AHEAD: usize = 256;

impl Source for Product<'_, f32, f32> {
    #[target_feature(enable = "avx2,fma")]
    unsafe fn lines<const V: usize>(
        &self,
        isa: Avx2Isa,
        [image, first]: [usize; 2],
        lines: Range<usize>,
        place: impl Fn(usize) -> *mut f32,
    ) {
        let outputs = self.bias.map_or(first + VECTOR, <[f32]>::len);
        let tiles = self.tiles(image, first..(first + V * LEN).min(outputs));
        // SAFETY: as the caller promises.
        unsafe {
            with_activation!(self.activation, f => match V {
                1 => tiles.lines::<_, 1, SUMS>(isa, &f, &lines, &place),
                _ => tiles.lines::<_, 2, { SUMS / 2 }>(isa, &f, &lines, &place),
            });
            for y in lines {
                let line = std::slice::from_raw_parts_mut(place(y), self.width * VECTOR);
                activate_rest(self.activation, line);
            }
        }
    }
}

impl Tiles<'_, f32> {
    /// # Safety
    /// As of `Source`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn lines<F: SimdUnaryOp<f32>, const V: usize, const P: usize>(
        &self,
        isa: Avx2Isa,
        f: &F,
        lines: &Range<usize>,
        place: &impl Fn(usize) -> *mut f32,
    ) {
        // SAFETY: `each` gives positions of the image, and there is room for each.
        self.each(
            lines.clone(),
            place,
            |at, places: &[_; P]| unsafe { self.tile::<F, V, P>(isa, f, at, places) },
            |at, to| unsafe { self.tile::<F, V, 1>(isa, f, at, &[to]) },
        );
    }

    /// `P` positions from one on. In a function of its own, so that the sums keep their registers.
    ///
    /// # Safety
    /// As of `Source`; the positions lie in the image.
    #[inline(never)]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<F: SimdUnaryOp<f32>, const V: usize, const P: usize>(
        &self,
        isa: Avx2Isa,
        f: &F,
        at: usize,
        places: &[*mut f32; P],
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let bias: [__m256; V] = std::array::from_fn(|v| _mm256_loadu_ps(self.bias.as_ptr().add(v * LEN)));
            let mut sums = [bias; P];
            let mut from = self.image.as_ptr().wrapping_add(at);
            for weights in self.weights.as_chunks::<VECTOR>().0 {
                let weights = weights.as_ptr();
                _mm_prefetch::<_MM_HINT_T0>(weights.wrapping_add(AHEAD).cast());
                let vectors: [__m256; V] = std::array::from_fn(|v| _mm256_loadu_ps(weights.add(v * LEN)));
                for (p, sums) in sums.iter_mut().enumerate() {
                    let x = _mm256_broadcast_ss(&*from.add(p));
                    for (sum, vector) in sums.iter_mut().zip(vectors) {
                        *sum = _mm256_fmadd_ps(x, vector, *sum);
                    }
                }
                from = from.wrapping_add(self.area);
            }
            for (sums, to) in sums.into_iter().zip(places) {
                for (v, sum) in sums.into_iter().enumerate() {
                    _mm256_storeu_ps(to.add(v * LEN), f.eval(isa, sum.into()).0);
                }
            }
        }
    }
}
