//! Epilogues of channel-blocked outputs (NCHW4c of bytes, NCHW2c of bfloat16): sums of neighbouring channels become a dot
//! group, as the next convolution reads it.

use std::arch::x86_64::*;
use std::ops::Range;

use super::epilogue::{ANY, ChannelBlocked, Positions, Requantized, RoundedToBf16, TileEpilogue};
use super::requantize::{Limits, residual_part};
use crate::conv::common::avx512::Function;
use crate::gemm::SumVector;

/// Channels of a block of bytes.
const BYTES: usize = 4;
/// Channels of a block of bfloat16 numbers.
const PAIR: usize = 2;
/// Such numbers in a line of the cache.
const LINE: usize = 32;

impl TileEpilogue for ChannelBlocked<Requantized<'_>> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        positions: &Positions,
        sums: [[SumVector; V]; R],
    ) {
        let &Requantized { ref place, factors, zero, signed, residual } = &self.0;
        for (block, row) in sums.as_chunks::<BYTES>().0.iter().zip(rows.step_by(BYTES)) {
            let factors = &factors[row..row + BYTES];
            let range = place.block_range(BYTES, row, positions);
            // SAFETY: as the contract says; masks leave out what is not the output's. The residual has the outputs'
            // shape.
            unsafe {
                let out: *mut i32 = place.out.get(range.clone()).as_mut_ptr().cast();
                let Some(residual) = residual else {
                    for v in 0..V {
                        let bytes = interleaved(scaled(block, v, factors), zero, signed);
                        put::<LANES>(out, positions, v, bytes);
                    }
                    continue;
                };
                let data: *const i32 = residual.data[range].as_ptr().cast();
                let limits = Limits::new(zero, signed);
                // Signed bytes become unsigned ones, which are 128 more.
                let less = residual.zero + if signed { 128.0 } else { 0.0 };
                for v in 0..V {
                    let mut bytes = flip_signs(take::<LANES>(data, positions, v), signed);
                    let mut numbers = scaled(block, v, factors);
                    for x in &mut numbers {
                        let whole = _mm512_and_si512(bytes, _mm512_set1_epi32(0xff));
                        *x = residual_part(&residual, less, limits.apply(*x), whole);
                        bytes = _mm512_srli_epi32::<8>(bytes);
                    }
                    put::<LANES>(out, positions, v, interleaved(numbers, residual.result_zero, signed));
                }
            }
        }
    }
}

impl<F: Function> TileEpilogue for ChannelBlocked<RoundedToBf16<'_, F>> {
    const SHORT: bool = F::SHORT;

    fn fetch(&self, rows: Range<usize>, positions: &Positions) {
        let RoundedToBf16 { place, residual, .. } = &self.0;
        for row in rows.step_by(PAIR) {
            let range = place.block_range(PAIR, row, positions);
            let out = place.out.start();
            for at in range.clone().step_by(LINE).chain([range.end.saturating_sub(1)]) {
                // SAFETY: every processor with AVX-512 has the instructions, and they read nothing.
                unsafe {
                    _mm_prefetch::<_MM_HINT_ET0>(out.wrapping_add(at).cast());
                    if let Some(residual) = residual {
                        _mm_prefetch::<_MM_HINT_T0>(residual.as_ptr().wrapping_add(at).cast());
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        positions: &Positions,
        sums: [[SumVector; V]; R],
    ) {
        let RoundedToBf16 { place, residual, function } = &self.0;
        for (block, row) in sums.as_chunks::<PAIR>().0.iter().zip(rows.step_by(PAIR)) {
            let range = place.block_range(PAIR, row, positions);
            let residual = residual.map(|residual| residual[range.clone()].as_ptr());
            // SAFETY: as above.
            unsafe {
                let out = place.out.get(range).as_mut_ptr();
                let mut halves = [[_mm512_setzero_ps(); V]; PAIR];
                for v in 0..V {
                    let mut added = match residual {
                        Some(residual) => take::<LANES>(residual.cast(), positions, v),
                        None => _mm512_setzero_si512(),
                    };
                    // The second one's half lies where it is in a float.
                    for (half, sums) in halves.iter_mut().zip(block).rev() {
                        half[v] = _mm512_castsi512_ps(sums[v]);
                        if residual.is_some() {
                            let upper = _mm512_and_si512(added, _mm512_set1_epi32(!0xffff));
                            half[v] = _mm512_add_ps(half[v], _mm512_castsi512_ps(upper));
                            added = _mm512_slli_epi32::<16>(added);
                        }
                    }
                }
                let [first, second] = halves;
                let (first, second) = (function.eval(first), function.eval(second));
                for (v, (first, second)) in first.into_iter().zip(second).enumerate() {
                    // All halves of the first, then those of the second.
                    let apart = _mm512_cvtne2ps_pbh(second, first);
                    let apart = std::mem::transmute::<__m512bh, __m512i>(apart);
                    let pairs = _mm512_permutexvar_epi16(_mm512_loadu_si512(BESIDE.as_ptr().cast()), apart);
                    put::<LANES>(out.cast(), positions, v, pairs);
                }
            }
        }
    }
}

/// The halves of two vectors beside each other.
const BESIDE: [u16; 32] = {
    let mut at = [0; 32];
    let mut i = 0;
    while i < 32 {
        at[i] = (i / 2 + i % 2 * 16) as u16;
        i += 1;
    }
    at
};

/// The sums of a vector times the factor of each channel.
///
/// # Safety
/// As of `TileEpilogue::tile`.
#[inline(always)]
unsafe fn scaled<const V: usize>(
    block: &[[SumVector; V]; BYTES],
    v: usize,
    factors: &[f32],
) -> [__m512; BYTES] {
    // SAFETY: as the caller promises.
    unsafe {
        let mut numbers = [_mm512_setzero_ps(); BYTES];
        for (j, x) in numbers.iter_mut().enumerate() {
            *x = _mm512_mul_ps(_mm512_cvtepi32_ps(block[j][v]), _mm512_set1_ps(factors[j]));
        }
        numbers
    }
}

/// The numbers of each channel as interleaved bytes: rounded to nearest even, shifted and limited. NaN is the least.
///
/// # Safety
/// As of `TileEpilogue::tile`.
#[inline(always)]
unsafe fn interleaved(x: [__m512; BYTES], zero: i32, signed: bool) -> __m512i {
    // SAFETY: as the caller promises.
    unsafe {
        let zero = _mm512_set1_epi16((zero + if signed { 128 } else { 0 }) as i16);
        let high = _mm512_set1_ps(i16::MAX.into());
        let mut whole = [_mm512_setzero_si512(); BYTES];
        for (whole, x) in whole.iter_mut().zip(x) {
            // NaN goes through, to the least integer.
            *whole = _mm512_cvtps_epi32(_mm512_min_ps(high, x));
        }
        let [a, b, c, d] = whole;
        let ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero);
        let cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero);
        // Of each 128 bits: four bytes of every channel; then the bytes of each dot group.
        let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let bytes = _mm512_shuffle_epi8(_mm512_packus_epi16(ab, cd), _mm512_broadcast_i32x4(order));
        flip_signs(bytes, signed)
    }
}

/// Signed bytes as unsigned ones that are 128 more, and back.
///
/// # Safety
/// As of `TileEpilogue::tile`.
#[inline(always)]
unsafe fn flip_signs(bytes: __m512i, signed: bool) -> __m512i {
    // SAFETY: as the caller promises.
    unsafe { if signed { _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)) } else { bytes } }
}

/// Reads the dot groups of a vector that are the output's, to the lanes that they are computed in.
///
/// # Safety
/// As of `TileEpilogue::tile`; `from` must be valid for what is in the mask.
#[inline(always)]
unsafe fn take<const LANES: u8>(from: *const i32, positions: &Positions, v: usize) -> __m512i {
    let (before, mask) = positions.place::<LANES>(v);
    // SAFETY: as the caller promises.
    unsafe {
        let groups = _mm512_maskz_loadu_epi32(mask, from.add(before));
        match LANES {
            ANY => _mm512_maskz_expand_epi32(positions.lanes(v), groups),
            _ => groups,
        }
    }
}

/// Writes the dot groups of a vector that are the output's.
///
/// # Safety
/// As of `TileEpilogue::tile`; `out` must be valid for what is in the mask.
#[inline(always)]
unsafe fn put<const LANES: u8>(out: *mut i32, positions: &Positions, v: usize, groups: __m512i) {
    let (before, mask) = positions.place::<LANES>(v);
    // SAFETY: as the caller promises.
    unsafe {
        let groups = match LANES {
            ANY => _mm512_maskz_compress_epi32(positions.lanes(v), groups),
            _ => groups,
        };
        match mask {
            0xffff => _mm512_storeu_si512(out.add(before).cast(), groups),
            _ => _mm512_mask_storeu_epi32(out.add(before), mask, groups),
        }
    }
}
