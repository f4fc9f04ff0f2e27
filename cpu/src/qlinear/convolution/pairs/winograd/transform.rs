//! The transforms of tiles: `Bᵀ · tile · B` and, of 2 × 2 outputs, `Aᵀ · sums · A / 4`, of vectors of tiles.

use super::lanes::{LANES, line_len};
#[cfg(target_arch = "x86_64")]
use super::larger;

/// Transforms a line of tiles of `size` × `size` outputs, of two more lines of dot groups: element by element, `step` apart, first
/// of all of the pairs of bytes 0 and 2, then of those of bytes 1 and 3. What is written after the last tile is meaningless.
pub(super) fn inputs(size: usize, lines: &[u32], tiles: usize, out: &mut [u32], step: usize) {
    let elements = (size + 2) * (size + 2);
    assert!(lines.len() >= (size + 2) * line_len(tiles, size));
    assert!(out.len() >= (2 * elements - 1) * step + tiles.next_multiple_of(LANES));
    assert!(crate::gemm::pairs::available());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: there are the instructions; lines and elements have room by the assertions.
    unsafe {
        match size {
            2 => x86::inputs(lines, tiles, out, step),
            4 => larger::inputs(lines, tiles, out, step),
            _ => unreachable!("tiles have 2 or 4 rows of outputs"),
        }
    }
}

/// The outputs of a line of tiles, `size` lines of `width`, or fewer where there is no more room: of sums whose elements are
/// `step` apart.
pub(super) fn outputs(size: usize, sums: &[i32], step: usize, tiles: usize, width: usize, out: &mut [i32]) {
    let elements = (size + 2) * (size + 2);
    assert!(sums.len() >= (elements - 1) * step + tiles.next_multiple_of(LANES) && width <= size * tiles);
    assert!(crate::gemm::pairs::available());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: there are the instructions; sums are there by the assertion.
    unsafe {
        match size {
            2 => x86::outputs(sums, step, tiles, width, out),
            4 => larger::outputs(sums, step, tiles, width, out),
            _ => unreachable!("tiles have 2 or 4 rows of outputs"),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = out;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::lanes::store_what_fits;
    use super::{LANES, line_len};

    /// # Safety
    /// The processor has AVX2; there is as much as `super::inputs` asserts.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn inputs(lines: &[u32], tiles: usize, out: &mut [u32], step: usize) {
        let (len, low) = (line_len(tiles, 2), _mm256_set1_epi16(0xff));
        for half in [0, 1] {
            for t in (0..tiles).step_by(LANES) {
                // Columns from 2t, and from the next tile's first on: each line of `Bᵀ · tile`.
                let mut columns = [[_mm256_setzero_si256(); 4]; 4];
                for (j, offset) in [0, 8, 2, 10].into_iter().enumerate() {
                    let line = |i: usize| {
                        // SAFETY: a line has 18 columns from that on.
                        let x = unsafe {
                            _mm256_loadu_si256(lines.as_ptr().add(i * len + 2 * t + offset).cast())
                        };
                        if half == 0 { _mm256_and_si256(x, low) } else { _mm256_srli_epi16::<8>(x) }
                    };
                    let (a, b, c, d) = (line(0), line(1), line(2), line(3));
                    columns[0][j] = _mm256_sub_epi16(a, c);
                    columns[1][j] = _mm256_add_epi16(b, c);
                    columns[2][j] = _mm256_sub_epi16(c, b);
                    columns[3][j] = _mm256_sub_epi16(b, d);
                }
                let even = |a: __m256i, b: __m256i| {
                    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
                    _mm256_permute4x64_epi64::<0xd8>(_mm256_castps_si256(_mm256_shuffle_ps::<0x88>(a, b)))
                };
                let odd = |a: __m256i, b: __m256i| {
                    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
                    _mm256_permute4x64_epi64::<0xd8>(_mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(a, b)))
                };
                for (i, [first, second, third, fourth]) in columns.into_iter().enumerate() {
                    let (a, b) = (even(first, second), odd(first, second));
                    let (c, d) = (even(third, fourth), odd(third, fourth));
                    let elements = [
                        _mm256_sub_epi16(a, c),
                        _mm256_add_epi16(b, c),
                        _mm256_sub_epi16(c, b),
                        _mm256_sub_epi16(b, d),
                    ];
                    for (j, x) in elements.into_iter().enumerate() {
                        // SAFETY: as the caller promises.
                        unsafe {
                            let to = out.as_mut_ptr().add((half * 16 + i * 4 + j) * step + t);
                            _mm256_storeu_si256(to.cast(), x);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// The processor has AVX2; there are as many sums as `super::outputs` asserts.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn outputs(sums: &[i32], step: usize, tiles: usize, width: usize, out: &mut [i32]) {
        let (first, second) = out.split_at_mut(width);
        for t in (0..tiles).step_by(LANES) {
            let mut lines = [[_mm256_setzero_si256(); 4]; 2];
            let [upper, lower] = &mut lines;
            for (j, (upper, lower)) in upper.iter_mut().zip(lower).enumerate() {
                // SAFETY: as the caller promises.
                let sum = |i: usize| unsafe {
                    _mm256_loadu_si256(sums.as_ptr().add((i * 4 + j) * step + t).cast())
                };
                let (a, b, c, d) = (sum(0), sum(1), sum(2), sum(3));
                *upper = _mm256_add_epi32(_mm256_add_epi32(a, b), c);
                *lower = _mm256_sub_epi32(_mm256_sub_epi32(b, c), d);
            }
            for ([a, b, c, d], line) in lines.into_iter().zip([&mut *first, &mut *second]) {
                let even = _mm256_srai_epi32::<2>(_mm256_add_epi32(_mm256_add_epi32(a, b), c));
                let odd = _mm256_srai_epi32::<2>(_mm256_sub_epi32(_mm256_sub_epi32(b, c), d));
                let (low, high) = (_mm256_unpacklo_epi32(even, odd), _mm256_unpackhi_epi32(even, odd));
                let both = [
                    _mm256_permute2x128_si256::<0x20>(low, high),
                    _mm256_permute2x128_si256::<0x31>(low, high),
                ];
                for (at, x) in [2 * t, 2 * t + LANES].into_iter().zip(both) {
                    if at >= width || line.is_empty() {
                        break;
                    }
                    store_what_fits(&mut line[at..width], x);
                }
            }
        }
    }
}
