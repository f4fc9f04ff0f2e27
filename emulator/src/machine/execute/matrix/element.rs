//! The elements of matrices, as registers hold them.

use crate::machine::numbers::{Fp8, bf16_to_f32, f16_to_f32, fp8_to_f32};

/// What an element of A or B is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F64,
    F32,
    /// `f32` with ten bits of mantissa.
    Xf32,
    F16,
    Bf16,
    Fp8,
    Bf8,
    I8,
    /// The instruction says whether they have signs.
    Iu8,
    Iu4,
}

impl Element {
    pub fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::Fp8 | Element::Bf8 | Element::I8 | Element::Iu8 => 8,
            Element::Iu4 => 4,
        }
    }
}

/// How elements are read: what the target and the instruction add.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub element: Element,
    /// Subnormal numbers of 16 bits count as 0.
    pub flush: bool,
    /// The formats of [`Element::Fp8`] and [`Element::Bf8`].
    pub formats: [Fp8; 2],
}

/// What a function makes of each word. Unlike `map` of arrays it is always compiled into its caller, for vector code.
#[inline(always)]
pub fn each<U: Copy + Default, const COUNT: usize>(words: &[u32; COUNT], f: impl Fn(u32) -> U) -> [U; COUNT] {
    let mut results = [U::default(); COUNT];
    for (result, &word) in results.iter_mut().zip(words) {
        *result = f(word);
    }
    results
}

/// All lanes' element number `index` of those that lie in `rows`, as floats.
#[inline(always)]
pub fn floats<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [f32; LANES] {
    let half = |word: u32| (word >> (16 * (index & 1))) as u16;
    let byte = |word: u32| (word >> (8 * (index & 3))) as u8;
    match reading.element {
        Element::F32 => each(&rows[index], f32::from_bits),
        Element::Xf32 => each(&rows[index], |word| f32::from_bits(round_to_xf32(word))),
        Element::F16 if reading.flush => each(&rows[index / 2], |word| {
            let bits = half(word);
            f16_to_f32(if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits })
        }),
        Element::F16 => each(&rows[index / 2], |word| number_of_half(half(word).into())),
        Element::Bf16 if reading.flush => each(&rows[index / 2], |word| flush(bf16_to_f32(half(word)))),
        Element::Bf16 => each(&rows[index / 2], |word| bf16_to_f32(half(word))),
        Element::Fp8 | Element::Bf8 => {
            let format = reading.formats[usize::from(reading.element == Element::Bf8)];
            each(&rows[index / 4], |word| fp8_to_f32(byte(word), format))
        }
        Element::F64 | Element::I8 | Element::Iu8 | Element::Iu4 => [0.0; LANES],
    }
}

/// A half as a float, in few steps. What is not a number stays so, but not always the same.
#[inline(always)]
pub fn number_of_half(bits: u32) -> f32 {
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    let magnitude = bits & 0x7fff;
    // Subnormal halves are subnormal here, too, until the exponent is set right.
    let finite = (f32::from_bits(magnitude << 13) * REBIAS).to_bits();
    let special = if magnitude >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(finite | special | (bits & 0x8000) << 16)
}

/// The same as integers, which have signs.
#[inline(always)]
pub fn integers<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [i32; LANES] {
    let bits = reading.element.bits() as u32;
    let in_word = (32 / bits).max(1) as usize;
    let (shift, cut) = (bits * (index % in_word) as u32, 32 - bits);
    each(&rows[index / in_word], |word| (word >> shift << cut) as i32 >> cut)
}

/// Zero with the sign of a number that is too small to be normal.
#[inline(always)]
pub fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// To the nearest of ten bits of mantissa, ties to even. AMD's documents do not say how the others are dropped.
#[inline(always)]
fn round_to_xf32(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff;
    if bits & 0x7f80_0000 == 0x7f80_0000 { bits } else { rounded }
}
