//! The elements of C and D of a WMMA.

use crate::machine::numbers::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// What an element is, and how products are added to it.
pub trait Sum: Send + Sync + 'static {
    /// The bits of an element in a register.
    const BITS: u32 = 32;
    const FLOAT: bool = true;

    /// What the products are added to, from the bits of an element of C.
    fn start(c: u32) -> f32;

    /// The bits of an element of D.
    fn finish(sum: f32, c: u32, saturate: bool) -> u32;

    /// The bits of a constant in place of C.
    fn constant(value: f32) -> u32 {
        Self::finish(value, 0, false)
    }
}

pub struct F32;
pub struct F16;
pub struct Bf16;
/// The products are integers of at most 8 bits: their sum is exact in `f32`.
pub struct I32;

impl Sum for F32 {
    #[inline(always)]
    fn start(c: u32) -> f32 {
        f32::from_bits(c)
    }

    #[inline(always)]
    fn finish(sum: f32, _: u32, _: bool) -> u32 {
        sum.to_bits()
    }
}

impl Sum for F16 {
    const BITS: u32 = 16;

    #[inline(always)]
    fn start(c: u32) -> f32 {
        f16_to_f32(c as u16)
    }

    #[inline(always)]
    fn finish(sum: f32, _: u32, _: bool) -> u32 {
        f32_to_f16(sum).into()
    }
}

impl Sum for Bf16 {
    const BITS: u32 = 16;

    #[inline(always)]
    fn start(c: u32) -> f32 {
        bf16_to_f32(c as u16)
    }

    #[inline(always)]
    fn finish(sum: f32, _: u32, _: bool) -> u32 {
        f32_to_bf16(sum).into()
    }
}

impl Sum for I32 {
    const FLOAT: bool = false;

    #[inline(always)]
    fn start(_: u32) -> f32 {
        0.0
    }

    #[inline(always)]
    fn finish(sum: f32, c: u32, saturate: bool) -> u32 {
        // SAFETY: the sum of 32 products of bytes is an integer far within the bounds of `i32`.
        let sum: i32 = unsafe { sum.to_int_unchecked() };
        let c = c as i32;
        (if saturate { c.saturating_add(sum) } else { c.wrapping_add(sum) }) as u32
    }

    fn constant(value: f32) -> u32 {
        value.to_bits()
    }
}
