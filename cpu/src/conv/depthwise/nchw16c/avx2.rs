//! Sixteen channels as two vectors of eight: from planes and back, and the products, with AVX2.

use std::arch::x86_64::*;

use rten_simd::isa::Avx2Isa;

use super::Nchw16c;
use crate::conv::common::activation::{activate_rest, activate_vectors};
use crate::gemm::VECTOR;
use crate::loops::avx2::{LEN, first, transposed};
use crate::ops::activation::Activation;

impl Nchw16c {
    /// As `multiply`.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; `multiply` asserts the extents.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn multiply_avx2<const S: usize>(
        &self,
        lines: usize,
        image: &[f32],
        kernel: &[f32],
        bias: &[f32; VECTOR],
        sums: &mut [f32],
    ) {
        let line = self.output[1];
        for y in 0..lines {
            let mut x = 0;
            while x < line {
                let (from, to) = (y * S * self.pitch + x * S, y * line + x);
                // SAFETY: extents are asserted.
                unsafe {
                    let (from, to) = (image.as_ptr().add(from * VECTOR), sums.as_mut_ptr().add(to * VECTOR));
                    let kernel = kernel.as_ptr();
                    x += match line - x {
                        7 => self.positions::<S, 7>(from, kernel, bias, to),
                        6.. => self.positions::<S, 6>(from, kernel, bias, to),
                        4.. => self.positions::<S, 4>(from, kernel, bias, to),
                        2.. => self.positions::<S, 2>(from, kernel, bias, to),
                        _ => self.positions::<S, 1>(from, kernel, bias, to),
                    };
                }
            }
        }
    }

    /// The sums of `N` outputs; tells their number. With both halves of the channels at a time there are twice as many
    /// sums as outputs, and two weights.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; what is read and written must be valid.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn positions<const S: usize, const N: usize>(
        &self,
        from: *const f32,
        mut kernel: *const f32,
        bias: &[f32; VECTOR],
        to: *mut f32,
    ) -> usize {
        let ([height, width], [down, across]) = (self.kernel, self.dilations);
        // SAFETY: as the caller promises.
        unsafe {
            let (low, high) = (_mm256_loadu_ps(bias.as_ptr()), _mm256_loadu_ps(bias.as_ptr().add(LEN)));
            let mut sums = [[low, high]; N];
            for y in 0..height {
                for x in 0..width {
                    let from = from.add((y * down * self.pitch + x * across) * VECTOR);
                    let weights = [_mm256_loadu_ps(kernel), _mm256_loadu_ps(kernel.add(LEN))];
                    for (i, sums) in sums.iter_mut().enumerate() {
                        for (half, (sum, weight)) in sums.iter_mut().zip(weights).enumerate() {
                            let x = _mm256_loadu_ps(from.add(i * S * VECTOR + half * LEN));
                            *sum = _mm256_fmadd_ps(weight, x, *sum);
                        }
                    }
                    kernel = kernel.add(VECTOR);
                }
            }
            for (i, [low, high]) in sums.into_iter().enumerate() {
                _mm256_storeu_ps(to.add(i * VECTOR), low);
                _mm256_storeu_ps(to.add(i * VECTOR + LEN), high);
            }
        }
        N
    }

    /// As `Nchw16cElement::load_transposed`.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load_avx2(&self, from: &[&[f32]; VECTOR], image: &mut [f32]) {
        let (width, count) = (self.image[1], from[0].len());
        let to = self.inside(from, image);
        for (half, from) in from.as_chunks::<LEN>().0.iter().enumerate() {
            let (mut x, mut to) = (0, to.wrapping_add(half * LEN));
            for start in (0..count).step_by(LEN) {
                let part = (count - start).min(LEN);
                let mask = first(part);
                let rows = from.map(|line| match line.is_empty() {
                    true => _mm256_setzero_ps(),
                    // SAFETY: the mask leaves out what follows the line.
                    false => unsafe { _mm256_maskload_ps(line.as_ptr().wrapping_add(start), mask) },
                });
                for column in transposed(rows).into_iter().take(part) {
                    // SAFETY: as many as the lines have positions; `inside` asserts that there is room.
                    unsafe { _mm256_storeu_ps(to, column) };
                    x += 1;
                    to = to.wrapping_add(VECTOR);
                    if x == width {
                        (x, to) = (0, to.wrapping_add((self.pitch - width) * VECTOR));
                    }
                }
            }
        }
    }
}

/// As `Nchw16cElement::store_transposed`.
///
/// # Safety
/// The processor has AVX2; pointers are null or have room.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn store_avx2(activation: Activation, sums: &[f32], count: usize, to: [*mut f32; VECTOR]) {
    assert!(sums.len() >= count.next_multiple_of(LEN) * VECTOR);
    for start in (0..count).step_by(LEN) {
        let part = (count - start).min(LEN);
        let mask = first(part);
        for (half, to) in to.as_chunks::<LEN>().0.iter().enumerate() {
            let rows = std::array::from_fn(|i| {
                // SAFETY: inside by the assertion.
                unsafe { _mm256_loadu_ps(sums.as_ptr().add((start + i) * VECTOR + half * LEN)) }
            });
            let columns = activated(activation, transposed(rows));
            for (column, to) in columns.into_iter().zip(to).filter(|(_, to)| !to.is_null()) {
                // SAFETY: the mask leaves out what follows the last output.
                unsafe { _mm256_maskstore_ps(to.wrapping_add(start), mask, column) };
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn activated(activation: Activation, x: [__m256; LEN]) -> [__m256; LEN] {
    match (activation, Avx2Isa::new()) {
        (Activation::Identity, _) | (_, None) => x,
        // The operands in this order let NaN through.
        (Activation::Relu, _) => x.map(|x| _mm256_max_ps(_mm256_setzero_ps(), x)),
        (_, Some(isa)) => called(isa, activation, x),
    }
}

#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn called(isa: Avx2Isa, activation: Activation, x: [__m256; LEN]) -> [__m256; LEN] {
    let x = activate_vectors(isa, activation, x.map(|x| x.into()));
    let mut floats = [[0.0; LEN]; LEN];
    for (to, x) in floats.iter_mut().zip(x) {
        // SAFETY: a vector of floats.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), x.0) };
    }
    activate_rest(activation, floats.as_flattened_mut());
    // SAFETY: as above.
    floats.map(|from| unsafe { _mm256_loadu_ps(from.as_ptr()) })
}
