//! Vectors of eight floats.

use std::arch::x86_64::*;

/// Floats of a vector.
pub(crate) const LEN: usize = 8;

/// The mask of the first elements.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn first(count: usize) -> __m256i {
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// A square of 8 × 8 elements, transposed.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transposed(rows: [__m256; LEN]) -> [__m256; LEN] {
    let mut pairs = rows;
    for i in 0..4 {
        let (a, b) = (rows[2 * i], rows[2 * i + 1]);
        (pairs[2 * i], pairs[2 * i + 1]) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    }
    let mut fours = rows;
    for i in 0..2 {
        for k in 0..2 {
            let (a, b) = (pairs[4 * i + k], pairs[4 * i + k + 2]);
            fours[4 * i + 2 * k] = _mm256_shuffle_ps::<0x44>(a, b);
            fours[4 * i + 2 * k + 1] = _mm256_shuffle_ps::<0xee>(a, b);
        }
    }
    // Halves of a vector are of columns four apart.
    let mut columns = rows;
    for k in 0..4 {
        columns[k] = _mm256_permute2f128_ps::<0x20>(fours[k], fours[4 + k]);
        columns[4 + k] = _mm256_permute2f128_ps::<0x31>(fours[k], fours[4 + k]);
    }
    columns
}
