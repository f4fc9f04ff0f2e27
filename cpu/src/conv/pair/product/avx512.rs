//! The product with vectors of sixteen.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Product, Tiles};
use crate::conv::common::avx512::{Called, Function, with_function};
use crate::conv::depthwise::nchw16c::{ChannelLines, Nchw16cElement, Place, Source};
use crate::gemm::VECTOR;
use crate::tensor::bf16;

/// Positions of a tile, whose sums with a vector of weights are in 32 registers; of one for 7 × 7, of which two tiles would
/// else compute seven positions twice; and of one for small images.
const POSITIONS: usize = 28;
const POSITIONS_OF_49: usize = 25;
const FEW: usize = 7;

/// What a lane multiplies: a float, or a dot group of two bfloat16 numbers.
pub(in crate::conv::pair) trait Factor: Copy + Sync {
    /// Of images.
    type Element: Nchw16cElement;
    /// Whether results become bfloat16 numbers, in the end.
    const ROUNDED: bool;

    /// Computes `P` positions from one on.
    ///
    /// # Safety
    /// As of `Source`; the positions lie in the image, and there is room for each.
    unsafe fn tile<F: Function, const P: usize>(
        tiles: &Tiles<'_, Self>,
        f: &F,
        at: usize,
        places: &[*mut f32; P],
    );
}

impl Factor for f32 {
    type Element = f32;
    const ROUNDED: bool = false;

    // In a function of its own, so that the sums keep their registers.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn tile<F: Function, const P: usize>(
        tiles: &Tiles<'_, f32>,
        f: &F,
        at: usize,
        places: &[*mut f32; P],
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            tiles.sums(f, at, places, |weights: *const f32| {
                let weights = _mm512_loadu_ps(weights);
                move |x: *const f32, sum| _mm512_fmadd_ps(_mm512_set1_ps(*x), weights, sum)
            });
        }
    }
}

impl Factor for u32 {
    type Element = bf16;
    const ROUNDED: bool = true;

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn tile<F: Function, const P: usize>(
        tiles: &Tiles<'_, u32>,
        f: &F,
        at: usize,
        places: &[*mut f32; P],
    ) {
        // SAFETY: as the caller promises; vectors of dot groups are vectors of bfloat16 numbers.
        unsafe {
            let halves = |dot_groups: __m512i| std::mem::transmute::<__m512i, __m512bh>(dot_groups);
            tiles.sums(f, at, places, |weights: *const u32| {
                let weights = halves(_mm512_loadu_si512(weights.cast()));
                move |x: *const u32, sum| _mm512_dpbf16_ps(sum, weights, halves(_mm512_set1_epi32(*x as i32)))
            });
        }
    }
}

impl<T: Factor> Source<T::Element> for Product<'_, T, T::Element> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn lines(&self, part: ChannelLines, to: Place<'_>) {
        let (tiles, lines) = (self.tiles(part.image, part.channels), part.lines);
        let count = lines.len() * self.width;
        let (to, pitch) = to.of(lines.len(), self.width);
        let place = |y: usize| to.wrapping_add((y - lines.start) * pitch);
        let with = |positions: usize| count.next_multiple_of(positions);
        // SAFETY: `each` gives positions of the image, there is room for each, the processor has what is asked for.
        unsafe {
            if count < POSITIONS_OF_49 {
                let f = Called(self.activation);
                let single = |at, to| T::tile::<_, 1>(&tiles, &f, at, &[to]);
                return tiles.each(
                    lines.clone(),
                    place,
                    |at, to| T::tile::<_, FEW>(&tiles, &f, at, to),
                    single,
                );
            }
            let few = count < POSITIONS || with(POSITIONS_OF_49) < with(POSITIONS);
            if T::ROUNDED {
                with_function!(rounded self.activation, f => tiles.whole(&f, lines.clone(), place, few));
            } else {
                with_function!(self.activation, f => tiles.whole(&f, lines.clone(), place, few));
            }
        }
    }
}

impl<T: Factor> Tiles<'_, T> {
    /// All positions by whole tiles: of `POSITIONS_OF_49` if `few`.
    ///
    /// # Safety
    /// As of `Source`; there are as many positions as a tile has.
    unsafe fn whole<F: Function>(
        &self,
        f: &F,
        lines: Range<usize>,
        place: impl Fn(usize) -> *mut f32,
        few: bool,
    ) {
        let none = |_, _: *mut f32| ();
        // SAFETY: as the caller promises.
        unsafe {
            match few {
                true => {
                    self.each(lines, place, |at, to| T::tile::<_, POSITIONS_OF_49>(self, f, at, to), none)
                }
                false => self.each(lines, place, |at, to| T::tile::<_, POSITIONS>(self, f, at, to), none),
            }
        }
    }

    /// Sums the products of `P` positions: `multiply` makes of a vector of weights what adds a product with an element of the
    /// image to a sum.
    ///
    /// # Safety
    /// As of `Factor::tile`; the caller is compiled for what the closures need.
    #[inline(always)]
    unsafe fn sums<F: Function, M: Fn(*const T, __m512) -> __m512, const P: usize>(
        &self,
        f: &F,
        at: usize,
        places: &[*mut f32; P],
        multiply: impl Fn(*const T) -> M,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = [_mm512_loadu_ps(self.bias.as_ptr()); P];
            let mut from = self.image.as_ptr().wrapping_add(at);
            for weights in self.weights.as_chunks::<VECTOR>().0 {
                let multiply = multiply(weights.as_ptr());
                for (p, sum) in sums.iter_mut().enumerate() {
                    *sum = multiply(from.wrapping_add(p), *sum);
                }
                from = from.wrapping_add(self.area);
            }
            for (sum, to) in f.eval(sums).into_iter().zip(places) {
                _mm512_storeu_ps(*to, sum);
            }
        }
    }
}
