//! Epilogues of outputs that lie channel by channel (NCHW).

use std::arch::x86_64::*;
use std::ops::Range;

use super::epilogue::{ANY, Positions, RawSums, Requantized, RoundedToBf16, TileEpilogue};
use super::requantize::{Limits, residual_part};
use crate::conv::common::avx512::Function;
use crate::gemm::SumVector;

/// Runs a block for each row of a tile that is there, with its number and its sums. A block, as a closure may be
/// compiled for other processors.
macro_rules! each_row {
    ($all:ident, $rows:ident, |$row:ident, $sums:ident| $block:block) => {
        for (r, $sums) in $all.into_iter().enumerate() {
            if r < $rows.len() {
                let $row = $rows.start + r;
                $block
            }
        }
    };
}

/// Runs a block for each vector of sums that is the output's: with its number, that of outputs before it, a mask of
/// as many lanes as are outputs, and the sums in these.
macro_rules! each_vector {
    ($all:ident, $positions:ident, $lanes:ident, |$v:pat_param, $before:pat_param, $mask:pat_param, $sums:pat_param| $block:block) => {
        for (v, &sums) in $all.iter().enumerate() {
            let (before, mask) = $positions.place::<$lanes>(v);
            let sums =
                if $lanes == ANY { _mm512_maskz_compress_epi32($positions.lanes(v), sums) } else { sums };
            let ($v, $before, $mask, $sums) = (v, before, mask, sums);
            $block
        }
    };
}

impl TileEpilogue for RawSums<'_> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        positions: &Positions,
        sums: [[SumVector; V]; R],
    ) {
        // SAFETY: as the contract says; masks leave out what is not the output's.
        unsafe {
            each_row!(sums, rows, |row, sums| {
                let out = self.0.out.get(self.0.range(row, positions)).as_mut_ptr();
                each_vector!(sums, positions, LANES, |_, before, mask, sums| {
                    _mm512_mask_storeu_epi32(out.add(before).cast(), mask, sums);
                });
            });
        }
    }
}

impl TileEpilogue for Requantized<'_> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        positions: &Positions,
        sums: [[SumVector; V]; R],
    ) {
        let &Requantized { ref place, factors, zero, signed, residual } = self;
        // SAFETY: as the contract says; masks leave out what is not the output's. The residual has the outputs' shape.
        unsafe {
            let limits = Limits::new(zero, signed);
            each_row!(sums, rows, |row, sums| {
                let range = place.range(row, positions);
                let out = place.out.get(range.clone()).as_mut_ptr();
                let factor = _mm512_set1_ps(factors[row]);
                match residual {
                    None => each_vector!(sums, positions, LANES, |_, before, mask, sums| {
                        let x = limits.apply(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), factor));
                        store_bytes(out.add(before), mask, x, zero);
                    }),
                    Some(residual) => {
                        let data = residual.data[range].as_ptr();
                        let then = Limits::new(residual.result_zero, signed);
                        each_vector!(sums, positions, LANES, |_, before, mask, sums| {
                            let x = limits.apply(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), factor));
                            let bytes = _mm_maskz_loadu_epi8(mask, data.add(before).cast());
                            let whole = if signed {
                                _mm512_cvtepi8_epi32(bytes)
                            } else {
                                _mm512_cvtepu8_epi32(bytes)
                            };
                            let y = residual_part(&residual, residual.zero, x, whole);
                            store_bytes(out.add(before), mask, then.apply(y), residual.result_zero);
                        });
                    }
                }
            });
        }
    }
}

impl<F: Function> TileEpilogue for RoundedToBf16<'_, F> {
    const SHORT: bool = F::SHORT;

    #[inline(always)]
    unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        positions: &Positions,
        sums: [[SumVector; V]; R],
    ) {
        let RoundedToBf16 { place, residual, function } = self;
        // SAFETY: as the contract says; masks leave out what is not the output's. The residual has the outputs' shape.
        unsafe {
            each_row!(sums, rows, |row, sums| {
                let range = place.range(row, positions);
                let residual = residual.map(|residual| residual[range.clone()].as_ptr());
                let out = place.out.get(range).as_mut_ptr();
                let mut floats = [_mm512_setzero_ps(); V];
                each_vector!(sums, positions, LANES, |v, before, mask, sums| {
                    floats[v] = _mm512_castsi512_ps(sums);
                    if let Some(residual) = residual {
                        let from = residual.add(before).cast();
                        let halves = match mask {
                            0xffff => _mm256_loadu_si256(from),
                            _ => _mm256_maskz_loadu_epi16(mask, from.cast()),
                        };
                        let x = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves));
                        floats[v] = _mm512_add_ps(floats[v], _mm512_castsi512_ps(x));
                    }
                });
                let floats = function.eval(floats);
                for (v, x) in floats.into_iter().enumerate() {
                    let (before, mask) = positions.place::<LANES>(v);
                    let halves = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x));
                    let to = out.add(before).cast();
                    match mask {
                        0xffff => _mm256_storeu_si256(to, halves),
                        _ => _mm256_mask_storeu_epi16(to.cast(), mask, halves),
                    }
                }
            });
        }
    }
}

/// Rounds to nearest even, and adds the zero point.
///
/// # Safety
/// As of `TileEpilogue::tile`; `out` must be valid for what is in the mask.
#[inline(always)]
unsafe fn store_bytes(out: *mut u8, mask: u16, x: __m512, zero: i32) {
    // SAFETY: as the caller promises.
    unsafe {
        let bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(zero)));
        match mask {
            0xffff => _mm_storeu_si128(out.cast(), bytes),
            _ => _mm_mask_storeu_epi8(out.cast(), mask, bytes),
        }
    }
}
