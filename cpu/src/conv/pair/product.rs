//! The pointwise product with output channels in the lanes of one or two vectors of eight.

use std::arch::x86_64::*;
use std::ops::Range;

use rten_simd::SimdUnaryOp;
use rten_simd::isa::Avx2Isa;

use crate::conv::common::activation::{activate_rest, with_activation};
use crate::conv::depthwise::nchw8c::Source;
use crate::conv::direct::panels::Panels;
use crate::gemm::VECTOR;
use crate::loops::avx2::LEN;
use crate::ops::activation::Activation;

/// Sums of a tile, beside which there are weights and an element of the image in 16 registers.
const SUMS: usize = 12;
/// How far ahead weights are fetched, in floats: what finds them by itself stops where a page ends.
const AHEAD: usize = 1024;

/// What images are multiplied with.
pub(super) struct Product<'a> {
    pub(super) x: &'a [f32],
    /// Channels of an image, of so many elements each, and of a line.
    pub(super) channels: usize,
    pub(super) area: usize,
    pub(super) width: usize,
    /// Panels of sixteen rows.
    pub(super) panels: &'a Panels,
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Activation,
}

impl Source for Product<'_> {
    #[target_feature(enable = "avx2,fma")]
    unsafe fn lines<const V: usize>(
        &self,
        isa: Avx2Isa,
        [image, first]: [usize; 2],
        lines: Range<usize>,
        place: impl Fn(usize) -> *mut f32,
    ) {
        let (size, [_, m, _]) = (self.channels * self.area, self.panels.shape());
        let mut bias = [0.0; VECTOR];
        let count = (m - first).min(V * LEN);
        if let Some(all) = self.bias {
            bias[..count].copy_from_slice(&all[first..][..count]);
        }
        let tiles = Tiles {
            image: &self.x[image * size..][..size],
            weights: &self.panels.from(0, first)[..self.channels * VECTOR],
            area: self.area,
            width: self.width,
            bias: &bias,
        };
        assert!(self.panels.rows() == VECTOR && lines.end * self.width <= self.area);
        // SAFETY: positions lie in the image by the assertion, and there are weights; the rest as the caller promises.
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

/// The product of an image with a panel.
struct Tiles<'a> {
    image: &'a [f32],
    weights: &'a [f32],
    area: usize,
    width: usize,
    bias: &'a [f32; VECTOR],
}

impl Tiles<'_> {
    /// # Safety
    /// As of `Source`; lines lie in the image.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn lines<F: SimdUnaryOp<f32>, const V: usize, const P: usize>(
        &self,
        isa: Avx2Isa,
        f: &F,
        lines: &Range<usize>,
        place: &impl Fn(usize) -> *mut f32,
    ) {
        let (width, start, end) = (self.width, lines.start * self.width, lines.end * self.width);
        let place = |y: usize, x: usize| place(y).wrapping_add(x * VECTOR);
        let (mut at, mut y, mut x) = (start, lines.start, 0);
        // SAFETY: positions lie in the image, and there is room for each.
        unsafe {
            while at < end {
                let left = end - at;
                if left < P && end - start < P {
                    self.tile::<F, V, 1>(isa, f, at, &[place(at / width, at % width)]);
                    at += 1;
                    continue;
                }
                if left < P {
                    // Together with what is before it, once more.
                    at = end - P;
                    (y, x) = (at / width, at % width);
                }
                let mut to = place(y, x);
                let mut places = [to; P];
                for next in &mut places {
                    if x == width {
                        (x, y) = (0, y + 1);
                        to = place(y, 0);
                    }
                    *next = to;
                    (x, to) = (x + 1, to.wrapping_add(VECTOR));
                }
                self.tile::<F, V, P>(isa, f, at, &places);
                at += P;
            }
        }
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
