//! Sixteen channels as vectors: from planes of halves and back, and the products.

use std::arch::x86_64::*;

use super::super::words::{Function, HardSwish, Identity, Other, Relu};
use super::{ChannelLanes, TURNED};
use crate::ops::activation::Activation;
use crate::providers::cpu::gemm::VECTOR;
use crate::tensor::bf16;

impl ChannelLanes {
    /// Writes lines of channels, each as long as others or empty, between the margins of an image of floats.
    ///
    /// # Safety
    /// The processor has AVX512 F and BW.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn widen(&self, from: &[&[bf16]; VECTOR], image: &mut [f32]) {
        let ([_, width], pitch, count) = (self.image, self.pitch, from[0].len());
        assert!(
            image.len() >= count / width * pitch * VECTOR
                && pitch >= width + self.pads[1]
                && from.iter().all(|line| line.len() == count || line.is_empty())
        );
        let (mut x, mut at) = (0, self.pads[1]);
        for start in (0..count).step_by(TURNED) {
            let part = (count - start).min(TURNED);
            let mask = (!0u64 >> (64 - part)) as u32;
            let mut words = [_mm512_setzero_si512(); VECTOR];
            for (words, line) in words.iter_mut().zip(from) {
                let mask = if line.is_empty() { 0 } else { mask };
                // SAFETY: the mask leaves out what follows the line.
                *words = unsafe { _mm512_maskz_loadu_epi16(mask, line.as_ptr().wrapping_add(start).cast()) };
            }
            let words = turned(words);
            for (j, words) in words.into_iter().enumerate() {
                let high = _mm512_and_si512(words, _mm512_set1_epi32(0xffff_0000_u32 as i32));
                for (j, x16) in [(2 * j, _mm512_slli_epi32::<16>(words)), (2 * j + 1, high)] {
                    if j >= part {
                        break;
                    }
                    // SAFETY: the position lies inside the image as asserted above.
                    unsafe { _mm512_store_si512(image.as_mut_ptr().add(at * VECTOR).cast(), x16) };
                    (x, at) = (x + 1, at + 1);
                    if x == width {
                        (x, at) = (0, at + pitch - width);
                    }
                }
            }
        }
    }

    /// Writes the sums of output lines to `sums`.
    ///
    /// # Safety
    /// The processor has AVX512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn multiply<const S: usize>(
        &self,
        lines: usize,
        image: &[f32],
        kernel: &[f32],
        bias: &[f32; VECTOR],
        sums: &mut [f32],
    ) {
        let line = self.output[1];
        let reach = (line - 1) * S + (self.kernel[1] - 1) * self.dilations[1];
        assert!(
            S == self.stride
                && kernel.len() >= self.kernel[0] * self.kernel[1] * VECTOR
                && image.len() >= self.lines(lines) * self.pitch * VECTOR
                && reach < self.pitch
                && sums.len() >= lines * line * VECTOR
        );
        for y in 0..lines {
            let mut x = 0;
            while x < line {
                let (from, to) = (y * S * self.pitch + x * S, y * line + x);
                // SAFETY: extents were asserted above.
                unsafe {
                    let (from, to) = (image.as_ptr().add(from * VECTOR), sums.as_mut_ptr().add(to * VECTOR));
                    let kernel = kernel.as_ptr();
                    x += match line - x {
                        8.. => self.run::<S, 8>(from, kernel, bias, to),
                        7 => self.run::<S, 7>(from, kernel, bias, to),
                        4.. => self.run::<S, 4>(from, kernel, bias, to),
                        2.. => self.run::<S, 2>(from, kernel, bias, to),
                        _ => self.run::<S, 1>(from, kernel, bias, to),
                    };
                }
            }
        }
    }

    /// The sums of `N` outputs; tells their number.
    ///
    /// # Safety
    /// The processor has AVX512F; what is read and written must be valid.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn run<const S: usize, const N: usize>(
        &self,
        from: *const f32,
        mut kernel: *const f32,
        bias: &[f32; VECTOR],
        to: *mut f32,
    ) -> usize {
        let ([height, width], [down, across]) = (self.kernel, self.dilations);
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = [_mm512_loadu_ps(bias.as_ptr()); N];
            for y in 0..height {
                for x in 0..width {
                    let from = from.add((y * down * self.pitch + x * across) * VECTOR);
                    let weight = _mm512_loadu_ps(kernel);
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_fmadd_ps(weight, _mm512_loadu_ps(from.add(i * S * VECTOR)), *sum);
                    }
                    kernel = kernel.add(VECTOR);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                _mm512_storeu_ps(to.add(i * VECTOR), sum);
            }
        }
        N
    }
}

/// Applies the activation to sums and rounds them: `count` for each lane, to where this one's go, if anywhere.
///
/// # Safety
/// The processor has AVX512 F, BW, DQ, VL and BF16; pointers are null or have room.
pub(super) unsafe fn narrow_with(
    activation: Activation,
    sums: &[f32],
    count: usize,
    to: [*mut bf16; VECTOR],
) {
    // SAFETY: as the caller promises.
    unsafe {
        match activation {
            Activation::Identity => narrow(Identity, sums, count, to),
            Activation::Relu => narrow(Relu, sums, count, to),
            Activation::HardSwish => narrow(HardSwish, sums, count, to),
            other => narrow(Other(other), sums, count, to),
        }
    }
}

/// # Safety
/// As of `narrow_with`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn narrow<F: Function>(f: F, sums: &[f32], count: usize, to: [*mut bf16; VECTOR]) {
    /// Vectors that a function is called for.
    const STEP: usize = 8;
    assert!(sums.len() >= count.next_multiple_of(TURNED) * VECTOR);
    for start in (0..count).step_by(TURNED) {
        let mut words = [_mm512_setzero_si512(); VECTOR];
        for (j, words) in words.as_chunks_mut::<{ STEP / 2 }>().0.iter_mut().enumerate() {
            let mut x = [_mm512_setzero_ps(); STEP];
            for (i, x) in x.iter_mut().enumerate() {
                let at = (start + j * STEP + i) * VECTOR;
                // SAFETY: inside by the assertion.
                *x = unsafe { _mm512_loadu_ps(sums.as_ptr().add(at)) };
            }
            // SAFETY: the processor has what this function was compiled for.
            let x = unsafe { f.eval(x) };
            for (word, [low, high]) in words.iter_mut().zip(x.as_chunks::<2>().0) {
                let [low, high] = [rounded(*low), rounded(*high)];
                *word = _mm512_or_si512(low, _mm512_slli_epi32::<16>(high));
            }
        }
        let mask = (!0u64 >> (64 - (count - start).min(TURNED))) as u32;
        for (words, to) in turned(words).into_iter().zip(to).filter(|(_, to)| !to.is_null()) {
            // SAFETY: the mask leaves out what follows the last output.
            unsafe { _mm512_mask_storeu_epi16(to.add(start).cast(), mask, words) };
        }
    }
}

/// The bits of bfloat16 numbers, as words.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16,avx512vl")]
fn rounded(x: __m512) -> __m512i {
    // SAFETY: both are sixteen halves.
    _mm512_cvtepu16_epi32(unsafe { std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x)) })
}

/// A square of words, turned over.
#[inline]
#[target_feature(enable = "avx512f")]
fn turned(rows: [__m512i; VECTOR]) -> [__m512i; VECTOR] {
    let (mut pairs, mut fours) = (rows, rows);
    for i in 0..8 {
        let (a, b) = (rows[2 * i], rows[2 * i + 1]);
        (pairs[2 * i], pairs[2 * i + 1]) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    }
    for i in 0..4 {
        for k in 0..2 {
            let (a, b) = (pairs[4 * i + k], pairs[4 * i + k + 2]);
            (fours[4 * i + 2 * k], fours[4 * i + 2 * k + 1]) =
                (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        }
    }
    // Quarters of a vector are of columns four apart.
    let mut columns = rows;
    for k in 0..4 {
        let [a, b, c, d] = [fours[k], fours[4 + k], fours[8 + k], fours[12 + k]];
        let (even, odd) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
        let (even2, odd2) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d));
        columns[k] = _mm512_shuffle_i32x4::<0x88>(even, even2);
        columns[4 + k] = _mm512_shuffle_i32x4::<0x88>(odd, odd2);
        columns[8 + k] = _mm512_shuffle_i32x4::<0xdd>(even, even2);
        columns[12 + k] = _mm512_shuffle_i32x4::<0xdd>(odd, odd2);
    }
    columns
}
