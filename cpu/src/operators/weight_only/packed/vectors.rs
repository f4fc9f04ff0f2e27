//! Vectors of dot products of integers, with the instructions that processors have for them.
//!
//! A lane of 32 bits has four bytes: numbers of the weight, unsigned and of up to 8 bits, and signed bytes of A from −127
//! to 127. Or it has a pair of 16 bits of each.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::tensor::f16;

/// The operations. `BITS` is the size of the weight's numbers; 8 bits are taken less `OFFSET`.
///
/// # Safety
/// All functions only inside a function that is compiled for the instructions; `load` and the like also ask for
/// memory of their vector's size.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
pub(super) trait Vectors: Copy {
    type Ints: Copy;
    type Floats: Copy;
    /// Lanes of a vector.
    const LANES: usize;
    /// What numbers of 8 bits are less than those of the weight.
    const OFFSET: f32;

    unsafe fn load(from: *const u32) -> Self::Ints;
    unsafe fn zero() -> Self::Ints;
    /// Plane `p` of words: fields of `BITS` bits.
    unsafe fn plane<const BITS: usize>(words: Self::Ints, p: usize) -> Self::Ints;
    /// The same four bytes in each lane.
    unsafe fn four(from: *const i8) -> Self::Ints;
    /// `sum + a · b` of the four bytes of each lane.
    unsafe fn dot<const BITS: usize>(sum: Self::Ints, weight: Self::Ints, a: Self::Ints) -> Self::Ints;
    /// Pair `p` of words: the fields of `BITS` bits that begin at `p · BITS` in each half of a word.
    unsafe fn pair<const BITS: usize>(words: Self::Ints, p: usize) -> Self::Ints;
    /// `sum + a · b` of the pair of each lane, the same one of A in all.
    unsafe fn dot_pair(sum: Self::Ints, weight: Self::Ints, a: *const i16) -> Self::Ints;
    unsafe fn add(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn to_floats(ints: Self::Ints) -> Self::Floats;
    unsafe fn load_floats(from: *const f32) -> Self::Floats;
    unsafe fn load_halves(from: *const f16) -> Self::Floats;
    unsafe fn store_floats(floats: Self::Floats, to: *mut f32);
    unsafe fn splat(x: f32) -> Self::Floats;
    unsafe fn multiply(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `c + a · b`
    unsafe fn multiply_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// `c − a · b`
    unsafe fn multiply_subtract(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    unsafe fn fetch(at: *const u32);
}

/// Sixteen lanes, AVX512_VNNI's `vpdpbusd`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512Vnni;

/// Eight lanes, AVX_VNNI's.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct AvxVnni;

/// Eight lanes; products of bytes are added in pairs of 16 bits, which none of these fills.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2;

// SAFETY (for all functions below): the caller is compiled for the instructions, and pointers are valid for a vector.
#[cfg(target_arch = "x86_64")]
impl Vectors for Avx512Vnni {
    type Ints = __m512i;
    type Floats = __m512;
    const LANES: usize = 16;
    const OFFSET: f32 = 0.0;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn plane<const BITS: usize>(words: __m512i, p: usize) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let shifted = match p * BITS {
                0 => words,
                2 => _mm512_srli_epi32::<2>(words),
                4 => _mm512_srli_epi32::<4>(words),
                _ => _mm512_srli_epi32::<6>(words),
            };
            if BITS == 8 { words } else { _mm512_and_si512(shifted, _mm512_set1_epi8((1 << BITS) - 1)) }
        }
    }

    #[inline(always)]
    unsafe fn four(from: *const i8) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn dot<const BITS: usize>(sum: __m512i, weight: __m512i, a: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_dpbusd_epi32(sum, weight, a) }
    }

    #[inline(always)]
    unsafe fn pair<const BITS: usize>(words: __m512i, p: usize) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let shifted = match p * BITS {
                0 => words,
                2 => _mm512_srli_epi16::<2>(words),
                4 => _mm512_srli_epi16::<4>(words),
                6 => _mm512_srli_epi16::<6>(words),
                8 => _mm512_srli_epi16::<8>(words),
                10 => _mm512_srli_epi16::<10>(words),
                12 => _mm512_srli_epi16::<12>(words),
                _ => _mm512_srli_epi16::<14>(words),
            };
            _mm512_and_si512(shifted, _mm512_set1_epi16((1 << BITS) - 1))
        }
    }

    #[inline(always)]
    unsafe fn dot_pair(sum: __m512i, weight: __m512i, a: *const i16) -> __m512i {
        // SAFETY: see above.
        unsafe { add_products_of_pairs(sum, weight, a) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn to_floats(ints: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(ints) }
    }

    #[inline(always)]
    unsafe fn load_floats(from: *const f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_halves(from: *const f16) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_floats(floats: __m512, to: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to, floats) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn multiply_subtract(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn fetch(at: *const u32) {
        // SAFETY: fetching may name any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

/// `vpdpwssd` with a pair from memory. The compiler makes three instructions of it where the intrinsic function is used, as
/// additions then wait for one another for a shorter time; the processor computes half as many products so.
///
/// # Safety
/// The processor has the instruction, and a pair lies at `a`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
unsafe fn add_products_of_pairs(mut sum: __m512i, weight: __m512i, a: *const i16) -> __m512i {
    // SAFETY: the caller's promise; only the pair is read.
    unsafe {
        std::arch::asm!(
            "vpdpwssd {sum}, {weight}, dword ptr [{a}]{{1to16}}",
            sum = inout(zmm_reg) sum,
            weight = in(zmm_reg) weight,
            a = in(reg) a,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    sum
}

/// The vectors of eight lanes differ in their dot products alone.
#[cfg(target_arch = "x86_64")]
macro_rules! eight_lanes {
    ($vectors:ident, $offset:literal, $dot:item, $dot_pair:item) => {
        impl Vectors for $vectors {
            type Ints = __m256i;
            type Floats = __m256;
            const LANES: usize = 8;
            const OFFSET: f32 = $offset;

            #[inline(always)]
            unsafe fn load(from: *const u32) -> __m256i {
                // SAFETY: see above.
                unsafe { _mm256_loadu_si256(from.cast()) }
            }

            #[inline(always)]
            unsafe fn zero() -> __m256i {
                // SAFETY: see above.
                unsafe { _mm256_setzero_si256() }
            }

            #[inline(always)]
            unsafe fn plane<const BITS: usize>(words: __m256i, p: usize) -> __m256i {
                // SAFETY: see above.
                unsafe {
                    let shifted = match p * BITS {
                        0 => words,
                        2 => _mm256_srli_epi32::<2>(words),
                        4 => _mm256_srli_epi32::<4>(words),
                        _ => _mm256_srli_epi32::<6>(words),
                    };
                    match BITS {
                        8 if $offset == 0.0 => words,
                        8 => _mm256_xor_si256(words, _mm256_set1_epi8(-128)),
                        _ => _mm256_and_si256(shifted, _mm256_set1_epi8((1 << BITS) - 1)),
                    }
                }
            }

            #[inline(always)]
            unsafe fn four(from: *const i8) -> __m256i {
                // SAFETY: see above.
                unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
            }

            #[inline(always)]
            $dot

            #[inline(always)]
            unsafe fn pair<const BITS: usize>(words: __m256i, p: usize) -> __m256i {
                // SAFETY: see above.
                unsafe {
                    let shifted = match p * BITS {
                        0 => words,
                        2 => _mm256_srli_epi16::<2>(words),
                        4 => _mm256_srli_epi16::<4>(words),
                        6 => _mm256_srli_epi16::<6>(words),
                        8 => _mm256_srli_epi16::<8>(words),
                        10 => _mm256_srli_epi16::<10>(words),
                        12 => _mm256_srli_epi16::<12>(words),
                        _ => _mm256_srli_epi16::<14>(words),
                    };
                    _mm256_and_si256(shifted, _mm256_set1_epi16((1 << BITS) - 1))
                }
            }

            #[inline(always)]
            $dot_pair

            #[inline(always)]
            unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: see above.
                unsafe { _mm256_add_epi32(a, b) }
            }

            #[inline(always)]
            unsafe fn to_floats(ints: __m256i) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_cvtepi32_ps(ints) }
            }

            #[inline(always)]
            unsafe fn load_floats(from: *const f32) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_loadu_ps(from) }
            }

            #[inline(always)]
            unsafe fn load_halves(from: *const f16) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
            }

            #[inline(always)]
            unsafe fn store_floats(floats: __m256, to: *mut f32) {
                // SAFETY: see above.
                unsafe { _mm256_storeu_ps(to, floats) }
            }

            #[inline(always)]
            unsafe fn splat(x: f32) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_set1_ps(x) }
            }

            #[inline(always)]
            unsafe fn multiply(a: __m256, b: __m256) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_mul_ps(a, b) }
            }

            #[inline(always)]
            unsafe fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_fmadd_ps(a, b, c) }
            }

            #[inline(always)]
            unsafe fn multiply_subtract(a: __m256, b: __m256, c: __m256) -> __m256 {
                // SAFETY: see above.
                unsafe { _mm256_fnmadd_ps(a, b, c) }
            }

            #[inline(always)]
            unsafe fn fetch(at: *const u32) {
                // SAFETY: fetching may name any address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
eight_lanes!(
    AvxVnni,
    0.0,
    unsafe fn dot<const BITS: usize>(sum: __m256i, weight: __m256i, a: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_dpbusd_avx_epi32(sum, weight, a) }
    },
    unsafe fn dot_pair(sum: __m256i, weight: __m256i, a: *const i16) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_dpwssd_avx_epi32(sum, weight, Self::four(a.cast())) }
    }
);

#[cfg(target_arch = "x86_64")]
eight_lanes!(
    Avx2,
    128.0,
    unsafe fn dot<const BITS: usize>(sum: __m256i, weight: __m256i, a: __m256i) -> __m256i {
        // SAFETY: see above. Of numbers of 8 bits, which are signed here, the sign goes over to A: two products are at
        // most 2 · 128 · 127, which 16 bits hold.
        unsafe {
            let pairs = match BITS {
                8 => _mm256_maddubs_epi16(_mm256_abs_epi8(weight), _mm256_sign_epi8(a, weight)),
                _ => _mm256_maddubs_epi16(weight, a),
            };
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    },
    unsafe fn dot_pair(sum: __m256i, weight: __m256i, a: *const i16) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(weight, Self::four(a.cast()))) }
    }
);
