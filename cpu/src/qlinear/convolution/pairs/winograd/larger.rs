//! The transforms of tiles of 4 × 4 outputs: `Bᵀ · tile · B`, and `Aᵀ · sums · A` with the factors that weights lack, of vectors of
//! tiles.

use std::arch::x86_64::*;

use super::lanes::{LANES, line_len, store_what_fits};

/// Elements of a line of a tile.
const SIDE: usize = 6;

/// The inverse of 9 modulo 2³².
const NINTH: u32 = 954_437_177;

/// A line of `Bᵀ`, times numbers of 16 bits.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn input_line([a, b, c, d, e, f]: [__m256i; SIDE]) -> [__m256i; SIDE] {
    let (u, v) = (_mm256_sub_epi16(e, c), _mm256_sub_epi16(d, b));
    let twice = _mm256_add_epi16(v, v);
    let four = |x: __m256i| _mm256_slli_epi16::<2>(x);
    [
        _mm256_add_epi16(four(_mm256_sub_epi16(a, c)), u),
        _mm256_sub_epi16(_mm256_add_epi16(d, e), four(_mm256_add_epi16(b, c))),
        _mm256_add_epi16(four(_mm256_sub_epi16(b, c)), _mm256_sub_epi16(e, d)),
        _mm256_add_epi16(u, twice),
        _mm256_sub_epi16(u, twice),
        _mm256_sub_epi16(_mm256_sub_epi16(f, d), four(v)),
    ]
}

/// A line of `Aᵀ` times 24, 12, 6 and 6, with the factors that weights lack.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn output_line([a, b, c, d, e, f]: [__m256i; SIDE]) -> [__m256i; 4] {
    let (p, q) = (_mm256_add_epi32(b, c), _mm256_sub_epi32(b, c));
    let (r, s) = (_mm256_add_epi32(d, e), _mm256_sub_epi32(d, e));
    let twice = |x: __m256i| _mm256_add_epi32(x, x);
    let six = |x: __m256i| twice(_mm256_add_epi32(twice(x), x));
    [
        _mm256_add_epi32(_mm256_sub_epi32(six(a), _mm256_slli_epi32::<2>(p)), r),
        _mm256_sub_epi32(s, twice(q)),
        _mm256_sub_epi32(r, p),
        _mm256_add_epi32(_mm256_sub_epi32(twice(s), q), six(f)),
    ]
}

/// # Safety
/// The processor has AVX2; there is as much as `transform::inputs` asserts.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn inputs(lines: &[u32], tiles: usize, out: &mut [u32], step: usize) {
    let (len, low) = (line_len(tiles, 4), _mm256_set1_epi16(0xff));
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let next = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
    for half in [0, 1] {
        for t in (0..tiles).step_by(LANES) {
            // Columns of eight tiles, and the first ones of the next: each line of `Bᵀ · tile`.
            let mut columns = [[_mm256_setzero_si256(); 5]; SIDE];
            for j in 0..5 {
                let mut x = [_mm256_setzero_si256(); SIDE];
                for (i, x) in x.iter_mut().enumerate() {
                    let at = i * len + 4 * t + LANES * j;
                    // SAFETY: a line has 40 columns from a vector's first tile on.
                    let all = unsafe { _mm256_loadu_si256(lines.as_ptr().add(at).cast()) };
                    *x = if half == 0 { _mm256_and_si256(all, low) } else { _mm256_srli_epi16::<8>(all) };
                }
                for (columns, x) in columns.iter_mut().zip(input_line(x)) {
                    columns[j] = x;
                }
            }
            for (i, [a, b, c, d, after]) in columns.into_iter().enumerate() {
                let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
                let (low2, high2) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
                let each = |x: __m256i| _mm256_permutevar8x32_epi32(x, order);
                let first = each(_mm256_unpacklo_epi64(low, low2));
                let second = each(_mm256_unpackhi_epi64(low, low2));
                let third = each(_mm256_unpacklo_epi64(high, high2));
                let fourth = each(_mm256_unpackhi_epi64(high, high2));
                let after = _mm256_castsi256_si128(after);
                let shifted = |x: __m256i, last: __m128i| {
                    let x = _mm256_permutevar8x32_epi32(x, next);
                    _mm256_blend_epi32::<0x80>(x, _mm256_broadcastd_epi32(last))
                };
                let fifth = shifted(first, after);
                let sixth = shifted(second, _mm_srli_si128::<4>(after));
                let elements = input_line([first, second, third, fourth, fifth, sixth]);
                for (j, x) in elements.into_iter().enumerate() {
                    // SAFETY: as the caller promises.
                    unsafe {
                        let to = out.as_mut_ptr().add((half * SIDE * SIDE + i * SIDE + j) * step + t);
                        _mm256_storeu_si256(to.cast(), x);
                    }
                }
            }
        }
    }
}

/// # Safety
/// The processor has AVX2; there are as many sums as `transform::outputs` asserts.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn outputs(sums: &[i32], step: usize, tiles: usize, width: usize, out: &mut [i32]) {
    let ninth = _mm256_set1_epi32(NINTH as i32);
    for t in (0..tiles).step_by(LANES) {
        let mut lines = [[_mm256_setzero_si256(); SIDE]; 4];
        for j in 0..SIDE {
            let mut x = [_mm256_setzero_si256(); SIDE];
            for (i, x) in x.iter_mut().enumerate() {
                // SAFETY: as the caller promises.
                *x = unsafe { _mm256_loadu_si256(sums.as_ptr().add((i * SIDE + j) * step + t).cast()) };
            }
            for (line, x) in lines.iter_mut().zip(output_line(x)) {
                line[j] = x;
            }
        }
        // Beside 9, outputs are multiplied by these powers of two.
        let powers = [3, 2, 1, 1];
        for ((line, out), above) in lines.into_iter().zip(out.chunks_mut(width)).zip(powers) {
            let [a, b, c, d] = output_line(line);
            let exact = |x: __m256i, power: i32| {
                let power = _mm_cvtsi32_si128(above + power);
                _mm256_sra_epi32(_mm256_mullo_epi32(x, ninth), power)
            };
            let (a, b, c, d) = (exact(a, 3), exact(b, 2), exact(c, 1), exact(d, 1));
            let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (low2, high2) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            let (first, second) = (_mm256_unpacklo_epi64(low, low2), _mm256_unpackhi_epi64(low, low2));
            let (third, fourth) = (_mm256_unpacklo_epi64(high, high2), _mm256_unpackhi_epi64(high, high2));
            let all = [
                _mm256_permute2x128_si256::<0x20>(first, second),
                _mm256_permute2x128_si256::<0x20>(third, fourth),
                _mm256_permute2x128_si256::<0x31>(first, second),
                _mm256_permute2x128_si256::<0x31>(third, fourth),
            ];
            for (at, x) in (4 * t..).step_by(LANES).zip(all) {
                if at >= width {
                    break;
                }
                store_what_fits(&mut out[at..width], x);
            }
        }
    }
}
