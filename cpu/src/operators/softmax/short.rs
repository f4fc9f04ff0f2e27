//! Short rows with AVX2, four at a time: what is done across lanes, the maximum, the sum and the division, is done for four
//! rows at once. For rows of 12 that takes most of the time otherwise. Rows of at most two vectors stay in registers.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use rten_simd::Isa;
use rten_simd::isa::Avx2Isa;
use rten_simd::ops::BitOps;

use crate::loops::avx2::{LEN, first};
use crate::loops::store::store_first;
use crate::loops::vector::exp_below_zero;

/// Elements of a row, at most.
pub(super) const LONGEST: usize = 256;
/// Rows that are normalised at a time.
pub(super) const ROWS: usize = 4;

/// Normalises so many times `ROWS` rows of up to `LONGEST` elements.
///
/// # Safety
/// The processor has AVX2 and FMA. `x` can be read and `y` written for so many rows; they are the same place or do not
/// overlap.
pub(super) unsafe fn rows(isa: Avx2Isa, x: *const f32, y: *mut f32, along: usize, groups: usize) {
    for i in 0..groups {
        let at = i * ROWS * along;
        // SAFETY: as the caller promises.
        unsafe {
            match along.div_ceil(LEN) {
                1 => group::<1>(isa, x.add(at), y.add(at), along),
                2 => group::<2>(isa, x.add(at), y.add(at), along),
                _ => longer(isa, x.add(at), y.add(at), along),
            }
        }
    }
}

/// # Safety
/// As of `rows`, for rows of up to `V` vectors and more than `V - 1`.
#[target_feature(enable = "avx2,fma")]
unsafe fn group<const V: usize>(isa: Avx2Isa, x: *const f32, y: *mut f32, along: usize) {
    let lowest = _mm256_set1_ps(f32::NEG_INFINITY);
    let last = (V - 1) * LEN;
    let mask = first(along - last);
    let mut rows = [[lowest; V]; ROWS];
    // Whole vectors do not reach beyond the last of these rows; what they have too much is the next row's, which is written
    // after this one.
    let whole = |r: usize| r * along + V * LEN <= ROWS * along;
    let mut largest = [lowest; ROWS];
    for r in 0..ROWS {
        // SAFETY: inside a row but for the last vector, which the mask or what is told above keeps inside the rows.
        unsafe {
            let from = x.add(r * along);
            let end = match whole(r) {
                true => _mm256_loadu_ps(from.add(last)),
                false => _mm256_maskload_ps(from.add(last), mask),
            };
            rows[r][V - 1] = _mm256_blendv_ps(lowest, end, _mm256_castsi256_ps(mask));
            if V > 1 {
                rows[r][0] = _mm256_loadu_ps(from);
            }
        }
        largest[r] = _mm256_max_ps(rows[r][0], rows[r][V - 1]);
    }
    let largest = parted(joined(largest, |a, b| _mm256_max_ps(a, b)));
    let mut sums = largest;
    for r in 0..ROWS {
        for x in &mut rows[r] {
            *x = exp_below_zero(isa, _mm256_sub_ps(*x, largest[r]).into()).0;
        }
        sums[r] = if V > 1 { _mm256_add_ps(rows[r][0], rows[r][V - 1]) } else { rows[r][0] };
    }
    let sums = joined(sums, |a, b| _mm256_add_ps(a, b));
    let inverse = parted(_mm256_div_ps(_mm256_set1_ps(1.0), sums));
    for r in 0..ROWS {
        // SAFETY: as above.
        unsafe {
            let to = y.add(r * along);
            if V > 1 {
                _mm256_storeu_ps(to, _mm256_mul_ps(rows[r][0], inverse[r]));
            }
            let end = _mm256_mul_ps(rows[r][V - 1], inverse[r]);
            match whole(r) {
                true => _mm256_storeu_ps(to.add(last), end),
                false => store_first(
                    isa,
                    end.into(),
                    to.add(last),
                    along - last,
                    isa.f32().first_n_mask(along - last),
                ),
            }
        }
    }
}

/// The same with exponentials in memory. Those in the output would lie beside what was stored by a mask, which cannot be loaded
/// again before it is in the cache.
///
/// # Safety
/// As of `rows`, for rows of at least a vector.
#[target_feature(enable = "avx2,fma")]
unsafe fn longer(isa: Avx2Isa, x: *const f32, y: *mut f32, along: usize) {
    let lowest = _mm256_set1_ps(f32::NEG_INFINITY);
    let end = along - along % LEN;
    let mask = first(along - end);
    let mut powers = [const { MaybeUninit::<f32>::uninit() }; ROWS * LONGEST];
    let powers = powers.as_mut_ptr().cast::<f32>();
    // SAFETY: `at + LEN` is not beyond `end`, and the mask has what follows; powers have room for so many rows.
    unsafe {
        let mut largest = [lowest; ROWS];
        for at in (0..end).step_by(LEN) {
            for (r, largest) in largest.iter_mut().enumerate() {
                *largest = _mm256_max_ps(*largest, _mm256_loadu_ps(x.add(r * along + at)));
            }
        }
        let mut last = [lowest; ROWS];
        for r in 0..ROWS {
            if end < along {
                let rest = _mm256_maskload_ps(x.add(r * along + end), mask);
                last[r] = _mm256_blendv_ps(lowest, rest, _mm256_castsi256_ps(mask));
            }
            largest[r] = _mm256_max_ps(largest[r], last[r]);
        }
        let largest = parted(joined(largest, |a, b| _mm256_max_ps(a, b)));
        let mut sums = largest;
        for r in 0..ROWS {
            last[r] = exp_below_zero(isa, _mm256_sub_ps(last[r], largest[r]).into()).0;
            let mut sum = last[r];
            for at in (0..end).step_by(LEN) {
                let x = _mm256_loadu_ps(x.add(r * along + at));
                let power = exp_below_zero(isa, _mm256_sub_ps(x, largest[r]).into()).0;
                _mm256_storeu_ps(powers.add(r * LONGEST + at), power);
                sum = _mm256_add_ps(sum, power);
            }
            sums[r] = sum;
        }
        let sums = joined(sums, |a, b| _mm256_add_ps(a, b));
        let inverse = parted(_mm256_div_ps(_mm256_set1_ps(1.0), sums));
        for r in 0..ROWS {
            let to = y.add(r * along);
            for at in (0..end).step_by(LEN) {
                let power = _mm256_loadu_ps(powers.add(r * LONGEST + at));
                _mm256_storeu_ps(to.add(at), _mm256_mul_ps(power, inverse[r]));
            }
            if end < along {
                let last = _mm256_mul_ps(last[r], inverse[r]);
                store_first(isa, last.into(), to.add(end), along - end, isa.f32().first_n_mask(along - end));
            }
        }
    }
}

/// What joins all lanes of each vector, one after the other, in both halves of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn joined([a, b, c, d]: [__m256; ROWS], join: impl Fn(__m256, __m256) -> __m256) -> __m256 {
    let low = join(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let high = join(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    let all = join(_mm256_shuffle_ps::<0x44>(low, high), _mm256_shuffle_ps::<0xee>(low, high));
    join(all, _mm256_permute2f128_ps::<0x01>(all, all))
}

/// The first four lanes, each in all lanes of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn parted(x: __m256) -> [__m256; ROWS] {
    [
        _mm256_permute_ps::<0x00>(x),
        _mm256_permute_ps::<0x55>(x),
        _mm256_permute_ps::<0xaa>(x),
        _mm256_permute_ps::<0xff>(x),
    ]
}
