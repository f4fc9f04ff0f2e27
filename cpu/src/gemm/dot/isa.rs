//! The processor's dot products. What fills 32 bits, four bytes or two bfloat16 numbers, is a *dot group*: one
//! instruction multiplies and sums sixteen of them.
//!
//! `K_TILE` is the numbers of a group (`DotGroup::COUNT`). Packed operands have these shapes: a left one
//! `[M, K / K_TILE]` groups, a right one panels of `[K / K_TILE, COLUMNS]` groups. Missing numbers are 0.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::tile_product::TileProduct;
#[cfg(target_arch = "x86_64")]
use super::tile_product::multiply_tiles;
#[cfg(target_arch = "x86_64")]
use crate::isa::{has_beyond_avx512, has_tiles, is_intel};

/// Columns of a right operand's panel: two vectors.
pub(crate) const COLUMNS: usize = 32;
/// Dot groups, or their sums, in a vector.
pub(crate) const VECTOR: usize = 16;
/// Rows of a strip of a left operand that vectors are multiplied with at a time: with two vectors of columns 24 of the 32
/// registers hold sums, two the right operand. Tiles have `amx::STRIP` rows.
pub(super) const STRIP: usize = 12;

/// Sums in a register: of `i32` or of `f32`, as the group says.
#[cfg(target_arch = "x86_64")]
pub(crate) type SumVector = __m512i;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) type SumVector = [u32; VECTOR];

/// What a dot group holds, and the instructions for it.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
pub(crate) trait DotGroup: Send + Sync + 'static {
    /// Numbers in a group.
    const COUNT: usize;

    /// Whether the processor has the instructions.
    fn available() -> bool;

    /// Runs a micro-kernel that is compiled for these instructions.
    ///
    /// # Safety
    /// `available()`, and what the micro-kernel asks for.
    unsafe fn run<K: MicroKernel>(kernel: K) -> K::Output;

    /// `sum + a · b`: the dot product of each group of `a` and `b`.
    ///
    /// # Safety
    /// Only inside `run` of this type.
    unsafe fn dot(sum: SumVector, a: SumVector, b: SumVector) -> SumVector;

    /// Adds sums.
    ///
    /// # Safety
    /// Only inside `run` of this type.
    unsafe fn add(a: SumVector, b: SumVector) -> SumVector;

    /// Computes a product by tiles, see `tile_product`.
    ///
    /// # Safety
    /// `has_tiles()`, and what `TileProduct` asks for.
    unsafe fn tile_product(product: &TileProduct);

    /// The same, with weights on the left and an image on the right: signed bytes times unsigned ones.
    ///
    /// # Safety
    /// As of `tile_product`.
    unsafe fn weight_tile_product(product: &TileProduct);
}

/// A function of dot products that is compiled once for each kind of group.
pub(crate) trait MicroKernel {
    type Output;

    /// To be `#[inline(always)]`, as all that it calls: the instructions are those of the function around it.
    ///
    /// # Safety
    /// Only inside `DotGroup::run` of this `D`. Besides, what the type of the micro-kernel says.
    unsafe fn run<D: DotGroup>(self) -> Self::Output;
}

/// What functions do on a processor that has no dot products, where nobody may call them.
pub(crate) fn missing<T, R>(_arguments: T) -> R {
    unreachable!("dot products on a processor without them")
}

/// Four bytes: unsigned ones in left operands and images, signed ones in right operands and weights. Sums are of `i32`
/// (AVX512_VNNI's `vpdpbusd`).
pub(crate) struct Int8x4;

/// Two bfloat16 numbers, the first in the lower half. Sums are of `f32` (AVX512_BF16's `vdpbf16ps`); those of pairs
/// are rounded to nearest even, and what is smaller than the smallest normal number counts as zero.
pub(crate) struct Bf16Pair;

#[cfg(target_arch = "x86_64")]
impl DotGroup for Int8x4 {
    const COUNT: usize = 4;

    fn available() -> bool {
        has_beyond_avx512!("avx512vnni")
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn run<K: MicroKernel>(kernel: K) -> K::Output {
        // SAFETY: this is `run`; the rest is the caller's promise.
        unsafe { kernel.run::<Self>() }
    }

    #[inline(always)]
    unsafe fn dot(sum: SumVector, a: SumVector, b: SumVector) -> SumVector {
        // SAFETY: inside `run` the processor has the instruction.
        unsafe { _mm512_dpbusd_epi32(sum, a, b) }
    }

    #[inline(always)]
    unsafe fn add(a: SumVector, b: SumVector) -> SumVector {
        // SAFETY: as in `dot`.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(never)]
    unsafe fn tile_product(product: &TileProduct) {
        // SAFETY: as the caller promises.
        unsafe { multiply_tiles!("tdpbusd", product) }
    }

    #[inline(never)]
    unsafe fn weight_tile_product(product: &TileProduct) {
        // SAFETY: as the caller promises.
        unsafe { multiply_tiles!("tdpbsud", product) }
    }
}

#[cfg(target_arch = "x86_64")]
impl DotGroup for Bf16Pair {
    const COUNT: usize = 2;

    /// Where tiles do most of the work, or the instruction is fast: Intel's takes longer than the products in `f32` that it
    /// replaces.
    fn available() -> bool {
        has_beyond_avx512!("avx512bf16") && (has_tiles() || !is_intel())
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn run<K: MicroKernel>(kernel: K) -> K::Output {
        // SAFETY: this is `run`; the rest is the caller's promise.
        unsafe { kernel.run::<Self>() }
    }

    #[inline(always)]
    unsafe fn dot(sum: SumVector, a: SumVector, b: SumVector) -> SumVector {
        // SAFETY: inside `run` the processor has the instruction; vectors of pairs are as long.
        unsafe {
            let pairs = |x: __m512i| std::mem::transmute::<__m512i, __m512bh>(x);
            _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(sum), pairs(a), pairs(b)))
        }
    }

    #[inline(always)]
    unsafe fn add(a: SumVector, b: SumVector) -> SumVector {
        // SAFETY: as in `dot`.
        unsafe { _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b))) }
    }

    #[inline(never)]
    unsafe fn tile_product(product: &TileProduct) {
        // SAFETY: as the caller promises.
        unsafe { multiply_tiles!("tdpbf16ps", product) }
    }

    unsafe fn weight_tile_product(product: &TileProduct) {
        // SAFETY: as the caller promises.
        unsafe { Self::tile_product(product) }
    }
}

/// Other architectures have none.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! without {
    ($($group:ident => $count:literal),*) => {$(
        impl DotGroup for $group {
            const COUNT: usize = $count;

            fn available() -> bool {
                false
            }

            unsafe fn run<K: MicroKernel>(kernel: K) -> K::Output {
                // SAFETY: nobody comes here.
                unsafe { kernel.run::<Self>() }
            }

            unsafe fn dot(sum: SumVector, a: SumVector, b: SumVector) -> SumVector {
                missing((sum, a, b))
            }

            unsafe fn add(a: SumVector, b: SumVector) -> SumVector {
                missing((a, b))
            }

            unsafe fn tile_product(product: &TileProduct) {
                missing(product)
            }

            unsafe fn weight_tile_product(product: &TileProduct) {
                missing(product)
            }
        }
    )*};
}
#[cfg(not(target_arch = "x86_64"))]
without!(Int8x4 => 4, Bf16Pair => 2);
