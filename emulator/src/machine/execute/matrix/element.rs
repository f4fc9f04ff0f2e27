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
    pub signed: bool,
    /// The formats of [`Element::Fp8`] and [`Element::Bf8`].
    pub formats: [Fp8; 2],
}

/// All lanes' element number `index` of those that lie in `rows`, as floats.
#[inline(always)]
pub fn floats<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [f32; LANES] {
    let half = |word: u32| (word >> (16 * (index & 1))) as u16;
    let byte = |word: u32| (word >> (8 * (index & 3))) as u8;
    match reading.element {
        Element::F32 => rows[index].map(f32::from_bits),
        Element::Xf32 => rows[index].map(|word| f32::from_bits(round_to_xf32(word))),
        Element::F16 if reading.flush => rows[index / 2].map(|word| {
            let bits = half(word);
            f16_to_f32(if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits })
        }),
        Element::F16 => rows[index / 2].map(|word| f16_to_f32(half(word))),
        Element::Bf16 if reading.flush => rows[index / 2].map(|word| flush(bf16_to_f32(half(word)))),
        Element::Bf16 => rows[index / 2].map(|word| bf16_to_f32(half(word))),
        Element::Fp8 | Element::Bf8 => {
            let format = reading.formats[usize::from(reading.element == Element::Bf8)];
            rows[index / 4].map(|word| fp8_to_f32(byte(word), format))
        }
        Element::F64 | Element::I8 | Element::Iu8 | Element::Iu4 => [0.0; LANES],
    }
}

/// The same as integers.
#[inline(always)]
pub fn integers<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [i32; LANES] {
    let bits = reading.element.bits() as u32;
    let in_word = (32 / bits).max(1) as usize;
    let (row, shift) = (&rows[index / in_word], bits * (index % in_word) as u32);
    let cut = 32 - bits;
    if reading.signed {
        row.map(|word| (word >> shift << cut) as i32 >> cut)
    } else {
        row.map(|word| (word >> shift << cut >> cut) as i32)
    }
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
