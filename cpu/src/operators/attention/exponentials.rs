//! The softmax's exponentials as bfloat16 numbers: what a product with values takes.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use crate::loops::vector::ROUGH_POWER;
use crate::tensor::bf16;

/// Writes `exp(score · scale − largest)` of each score, rounded, two in a word, and gives the sum of what was
/// rounded, within 1e-4 of itself. No score exceeds `largest` so scaled. The words that follow the last score up to
/// a multiple of eight are zeros, for which there must be room.
///
/// # Safety
/// The processor must have AVX512_BF16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn rounded_exponentials(
    scores: &[f32],
    scale: f32,
    largest: f32,
    words: &mut [u32],
) -> f32 {
    /// Numbers in a vector.
    const LEN: usize = 16;
    /// Below it the result is no normal number: that would take a hundred times as long, and counts as zero anyhow.
    const LOWEST: f32 = -125.5;

    assert!(words.len() >= scores.len().div_ceil(LEN) * LEN / 2, "room for whole vectors");
    let factor = _mm512_set1_ps(scale * std::f32::consts::LOG2_E);
    let subtrahend = _mm512_set1_ps(largest * std::f32::consts::LOG2_E);
    let mut sum = _mm512_setzero_ps();
    for (from, to) in scores.chunks(LEN).zip(words.chunks_exact_mut(LEN / 2)) {
        let mask = if from.len() < LEN { (1u16 << from.len()) - 1 } else { !0 };
        // SAFETY: the mask leaves out what lies beyond the scores, and `to` has as many bytes as the rounded vector.
        unsafe {
            let x = _mm512_maskz_loadu_ps(mask, from.as_ptr());
            // The second operand is the result where one is no number.
            let x = _mm512_max_ps(_mm512_set1_ps(LOWEST), _mm512_fmsub_ps(x, factor, subtrahend));
            let k = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
            let r = _mm512_sub_ps(x, k);
            let mut y = _mm512_set1_ps(ROUGH_POWER[3]);
            for i in [2, 1, 0] {
                y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(ROUGH_POWER[i]));
            }
            let y = _mm512_maskz_scalef_ps(mask, y, k);
            sum = _mm512_add_ps(sum, y);
            let rounded = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(y));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), rounded);
        }
    }
    _mm512_reduce_add_ps(sum)
}

/// The largest of scores times a positive `scale`, and of another number. A score that is no number counts as none.
///
/// # Safety
/// The processor must have AVX512_BF16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn largest(scores: &[f32], scale: f32, other: f32) -> f32 {
    let (chunks, rest) = scores.as_chunks::<16>();
    let (factor, mut most) = (_mm512_set1_ps(scale), _mm512_set1_ps(other));
    for chunk in chunks {
        // SAFETY: a chunk is a vector. The second operand is the result where one is no number.
        unsafe { most = _mm512_max_ps(_mm512_mul_ps(_mm512_loadu_ps(chunk.as_ptr()), factor), most) };
    }
    if !rest.is_empty() {
        let mask = (1u16 << rest.len()) - 1;
        // SAFETY: the mask leaves out what lies beyond the scores.
        unsafe {
            let x = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, rest.as_ptr()), factor);
            most = _mm512_mask_max_ps(most, mask, x, most);
        }
    }
    _mm512_reduce_max_ps(most)
}

/// Numbers times a factor, rounded.
///
/// # Safety
/// The processor must have AVX512_BF16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn rounded_times(from: &[f32], factor: f32, to: &mut [bf16]) {
    for (from, to) in from.chunks(16).zip(to.chunks_mut(16)) {
        let mask = (!0u32 >> (32 - from.len().min(to.len()))) as u16;
        // SAFETY: the mask leaves out what lies beyond the numbers.
        unsafe {
            let x = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, from.as_ptr()), _mm512_set1_ps(factor));
            let rounded = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x));
            _mm256_mask_storeu_epi16(to.as_mut_ptr().cast(), mask, rounded);
        }
    }
}

/// On a processor of another kind nobody may call it.
///
/// # Safety
/// None may call it.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn largest(_scores: &[f32], _scale: f32, _other: f32) -> f32 {
    unreachable!("bfloat16 numbers on a processor without them")
}

/// On a processor of another kind nobody may call it.
///
/// # Safety
/// None may call it.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn rounded_times(_from: &[f32], _factor: f32, _to: &mut [bf16]) {
    unreachable!("bfloat16 numbers on a processor without them")
}

/// On a processor of another kind nobody may call it.
///
/// # Safety
/// None may call it.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn rounded_exponentials(
    _scores: &[f32],
    _scale: f32,
    _largest: f32,
    _words: &mut [u32],
) -> f32 {
    unreachable!("bfloat16 numbers on a processor without them")
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::gemm::{Bf16Pair, DotGroup};

    #[test]
    fn largest_and_products_of_any_number() {
        if !Bf16Pair::available() {
            println!("skipped: this processor has no bfloat16 numbers");
            return;
        }
        for count in [1usize, 15, 16, 17, 40] {
            let mut x: Vec<f32> = (0..count).map(|i| ((i * 37) % 101) as f32 * -0.7 - 3.0).collect();
            let want = x.iter().fold(-9.0, |most: f32, x| most.max(x * 0.5));
            // SAFETY: the processor was asked.
            assert_eq!(unsafe { largest(&x, 0.5, -9.0) }, want, "{count}");
            // SAFETY: as above.
            assert_eq!(unsafe { largest(&x, 0.5, 2.0) }, 2.0);
            let mut y = vec![bf16::ONE; count];
            // SAFETY: as above.
            unsafe { rounded_times(&x, 3.0, &mut y) };
            assert!(y.iter().zip(&x).all(|(y, x)| *y == bf16::from_f32(x * 3.0)), "{count}");
            x[count / 2] = f32::NAN;
            // SAFETY: as above.
            assert!(unsafe { largest(&x, 0.5, -9.0) } >= -9.0);
        }
    }

    #[test]
    fn exponentials_of_any_number_of_scores() {
        if !Bf16Pair::available() {
            println!("skipped: this processor has no bfloat16 numbers");
            return;
        }
        for count in [1usize, 15, 16, 17, 40, 256] {
            let mut scores: Vec<f32> = (0..count).map(|i| ((i * 37) % 101) as f32 * -0.7 + 70.0).collect();
            let largest = scores.iter().copied().fold(f32::MIN, f32::max) * 0.5;
            if count > 16 {
                scores[9] = f32::NEG_INFINITY;
            }
            let mut words = vec![9u32; count.div_ceil(16) * 8];
            // SAFETY: the processor was asked.
            let sum = unsafe { rounded_exponentials(&scores, 0.5, largest, &mut words) };
            let halves: &[u16] = bytemuck::cast_slice(&words);
            let want: Vec<f64> =
                scores.iter().map(|&x| (f64::from(x) * 0.5 - f64::from(largest)).exp()).collect();
            for (i, &half) in halves.iter().enumerate() {
                let (got, want) = (bf16::from_bits(half).to_f64(), want.get(i).copied().unwrap_or(0.0));
                assert!((got - want).abs() <= 0.0041 * want + 2e-38, "{count} at {i}: {got} {want}");
            }
            let want: f64 = want.iter().sum();
            assert!((f64::from(sum) - want).abs() <= 1e-4 * want, "{count}: {sum} {want}");
        }
        // SAFETY: the processor was asked.
        let sum = unsafe { rounded_exponentials(&[0.0, f32::NAN], 1.0, 0.0, &mut [0; 8]) };
        assert!(sum.is_nan());
    }
}
