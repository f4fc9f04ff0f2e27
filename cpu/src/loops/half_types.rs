//! Runs of float16 and bfloat16 to and from f32, with the machine's vectors.
//!
//! rten-simd has a float16 of its own; it and the half crate's are both an integer of 16 bits in memory.

use half::slice::HalfFloatSliceExt;
use rten_simd::ops::{BitOps, Extend, NarrowSaturate};
use rten_simd::{Isa, SimdOp};

use crate::tensor::{bf16, f16};

use super::simd::{Loop, widest};
use crate::isa::Dispatch;

/// Rounds to nearest even; `from` and `to` are equally long.
pub(crate) fn narrow(from: &[f32], to: &mut [f16]) {
    Narrow { from, to }.widest();
}

/// `from` and `to` are equally long.
pub(crate) fn widen(from: &[f16], to: &mut [f32]) {
    Widen { from, to }.widest();
}

/// Rounds to nearest even; `from` and `to` are equally long.
pub(crate) fn narrow_bfloat16(from: &[f32], to: &mut [bf16]) {
    widest(NarrowBfloat16 { from, to });
}

/// `from` and `to` are equally long.
pub(crate) fn widen_bfloat16(from: &[bf16], to: &mut [f32]) {
    widest(WidenBfloat16 { from, to });
}

/// A bfloat16 number as `f32`. The half crate's function has a branch for NaN, which keeps loops from becoming vector
/// code; so has that of the other direction.
#[inline(always)]
pub(crate) fn widened(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// The bits of the nearest bfloat16 number, ties to even, of those of an `f32`; a NaN stays one.
#[inline(always)]
pub(crate) fn bfloat16_bits(bits: u32) -> u16 {
    let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { nearest }) as u16
}

/// The nearest bfloat16 number.
#[inline(always)]
pub(crate) fn narrowed(x: f32) -> bf16 {
    bf16::from_bits(bfloat16_bits(x.to_bits()))
}

struct NarrowBfloat16<'a> {
    from: &'a [f32],
    to: &'a mut [bf16],
}

impl Loop for NarrowBfloat16<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.from).for_each(|(y, x)| *y = narrowed(*x));
    }
}

struct WidenBfloat16<'a> {
    from: &'a [bf16],
    to: &'a mut [f32],
}

impl Loop for WidenBfloat16<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.from).for_each(|(y, &x)| *y = widened(x));
    }
}

struct Narrow<'a> {
    from: &'a [f32],
    to: &'a mut [f16],
}

impl SimdOp for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (wide, half) = (isa.f32(), isa.f16());
        let step = wide.len();
        let mut to = self.to.chunks_exact_mut(2 * step);
        let mut from = self.from.chunks_exact(2 * step);
        for (to, from) in to.by_ref().zip(from.by_ref()) {
            let (low, high) = (wide.load(&from[..step]), wide.load(&from[step..]));
            // SAFETY: `to` holds as many elements as the vector, each of 16 bits as in both crates' types.
            unsafe { half.store_ptr(wide.narrow_saturate(low, high), to.as_mut_ptr().cast()) };
        }
        to.into_remainder().convert_from_f32_slice(from.remainder());
    }
}

struct Widen<'a> {
    from: &'a [f16],
    to: &'a mut [f32],
}

impl SimdOp for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (wide, half) = (isa.f32(), isa.f16());
        let step = wide.len();
        let mut to = self.to.chunks_exact_mut(2 * step);
        let mut from = self.from.chunks_exact(2 * step);
        for (to, from) in to.by_ref().zip(from.by_ref()) {
            // SAFETY: `from` holds as many elements as the vector, each of 16 bits as in both crates' types.
            let x = unsafe { half.load_ptr(from.as_ptr().cast()) };
            wide.store(half.extend_low(x), &mut to[..step]);
            wide.store(half.extend_high(x), &mut to[step..]);
        }
        from.remainder().convert_to_f32_slice(to.into_remainder());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the half crate converts one number at a time.
    #[test]
    fn every_number_and_every_length() {
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut wide = vec![0.0; all.len()];
        widen(&all, &mut wide);
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(all.iter().zip(&wide).all(|(&h, &w)| same(h.to_f32(), w)));
        let all: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        widen_bfloat16(&all, &mut wide);
        assert!(all.iter().zip(&wide).all(|(&h, &w)| same(h.to_f32(), w)));
        let numbers: Vec<f32> = (0..100_003u32).map(|i| f32::from_bits(i.wrapping_mul(42_949))).collect();
        let (mut halves, mut bfloat16s) = (vec![f16::ZERO; numbers.len()], vec![bf16::ZERO; numbers.len()]);
        for length in [0, 1, 15, 33, 100, numbers.len()] {
            narrow(&numbers[..length], &mut halves[..length]);
            let equal = |(&x, &h): (&f32, &f16)| same(f16::from_f32(x).to_f32(), h.to_f32());
            assert!(numbers[..length].iter().zip(&halves).all(equal));
            narrow_bfloat16(&numbers[..length], &mut bfloat16s[..length]);
            let equal = |(&x, &h): (&f32, &bf16)| same(bf16::from_f32(x).to_f32(), h.to_f32());
            assert!(numbers[..length].iter().zip(&bfloat16s).all(equal));
        }
    }
}
