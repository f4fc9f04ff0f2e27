//! Elements of neighbouring channels interleaved into vectors of dot groups.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use crate::gemm::VECTOR;
use crate::gemm::{Bf16Pair, DotGroup, Int8x4, SumVector, missing};
use crate::tensor::{Element, bf16};

/// An element of an image that goes into dot groups.
pub(crate) trait Interleave: Element {
    type Group: DotGroup;

    fn bits(self) -> u32;

    /// Dot groups of `count` elements of each line, every `STRIDE`-th (first or second) from there on; the others of the
    /// vector are 0.
    ///
    /// # Safety
    /// As of `TileEpilogue::tile`; the elements must be valid.
    unsafe fn interleave<const STRIDE: usize>(lines: [*const Self; 4], count: usize) -> SumVector {
        missing((lines, count))
    }
}

/// Writes the first dot groups of a vector.
///
/// # Safety
/// As of `TileEpilogue::tile`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn store(dot_groups: SumVector, flip: u32, present: u32, out: &mut [u32]) {
    // SAFETY: as the caller promises; the mask has as many dot groups as `out`.
    unsafe {
        let dot_groups = _mm512_xor_si512(dot_groups, _mm512_set1_epi32(flip as i32));
        let dot_groups = _mm512_and_si512(dot_groups, _mm512_set1_epi32(present as i32));
        match out.len() {
            VECTOR => _mm512_storeu_si512(out.as_mut_ptr().cast(), dot_groups),
            count => _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), first(count), dot_groups),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn store(dot_groups: SumVector, flip: u32, present: u32, out: &mut [u32]) {
    missing((dot_groups, flip, present, out))
}

/// A mask of the first `count` of sixteen.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first(count: usize) -> u16 {
    !0 >> (VECTOR - count)
}

/// The same of every second of 32, from the first on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_of_pairs(count: usize) -> u32 {
    0x5555_5555 & (!0 >> (2 * (VECTOR - count)))
}

impl Interleave for u8 {
    type Group = Int8x4;

    fn bits(self) -> u32 {
        self.into()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn interleave<const STRIDE: usize>(lines: [*const u8; 4], count: usize) -> SumVector {
        // SAFETY: as the caller promises; masks leave out what is not asked for.
        unsafe {
            let [a, b, c, d] = lines;
            let (a, b) = (bytes::<STRIDE>(a, count), bytes::<STRIDE>(b, count));
            let (c, d) = (bytes::<STRIDE>(c, count), bytes::<STRIDE>(d, count));
            let all = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            let all = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(all, c), d);
            // Four bytes of each line side by side, then the bytes of each dot group.
            let fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, all), _mm512_broadcast_i32x4(turn))
        }
    }
}

/// The bytes of a line.
///
/// # Safety
/// As of `Interleave::interleave`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn bytes<const STRIDE: usize>(line: *const u8, count: usize) -> __m128i {
    // SAFETY: as the caller promises.
    unsafe {
        match STRIDE {
            1 => _mm_maskz_loadu_epi8(first(count), line.cast()),
            _ => _mm256_cvtepi16_epi8(_mm256_maskz_loadu_epi8(first_of_pairs(count), line.cast())),
        }
    }
}

impl Interleave for bf16 {
    type Group = Bf16Pair;

    fn bits(self) -> u32 {
        self.to_bits().into()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn interleave<const STRIDE: usize>(lines: [*const bf16; 4], count: usize) -> SumVector {
        // SAFETY: as the caller promises.
        unsafe {
            let [even, odd, ..] = lines;
            let (even, odd) = (halves::<STRIDE>(even, count), halves::<STRIDE>(odd, count));
            _mm512_or_si512(even, _mm512_slli_epi32::<16>(odd))
        }
    }
}

/// The halves of a line, each in the lower half of a dot group.
///
/// # Safety
/// As of `Interleave::interleave`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves<const STRIDE: usize>(line: *const bf16, count: usize) -> __m512i {
    // SAFETY: as the caller promises; masks leave out what is not asked for.
    unsafe {
        match STRIDE {
            1 => _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(count), line.cast())),
            _ => _mm512_maskz_loadu_epi16(first_of_pairs(count), line.cast()),
        }
    }
}
