mod mfma;
mod wmma;

use crate::isa::{Encoding, Instruction};
use crate::machine::execute::testing::*;
use crate::machine::numbers::*;

use super::element::{Element, number_of_half};

/// Bits of an element and the number they stand for.
type Coded = (u64, f64);

/// A number that every format has, or any integer.
fn coded(element: Element, signed: bool, fnuz: bool, byte: u8) -> Coded {
    let small = f64::from(i32::from(byte % 9) - 4) / 2.0;
    let single = small as f32;
    let (fp8, bf8) = if fnuz { (Fp8::E4m3Fnuz, Fp8::E5m2Fnuz) } else { (Fp8::E4m3, Fp8::E5m2) };
    let bits = match element {
        Element::F64 => small.to_bits(),
        Element::F32 | Element::Xf32 => single.to_bits().into(),
        Element::F16 => f32_to_f16(single).into(),
        Element::Bf16 => f32_to_bf16(single).into(),
        Element::Fp8 => f32_to_fp8(single, fp8).into(),
        Element::Bf8 => f32_to_fp8(single, bf8).into(),
        Element::I8 | Element::Iu8 => {
            return (byte.into(), if signed { f64::from(byte as i8) } else { f64::from(byte) });
        }
        Element::Iu4 => {
            let nibble = byte & 15;
            let value = if signed { (nibble << 4) as i8 >> 4 } else { nibble as i8 };
            return (nibble.into(), value.into());
        }
    };
    (bits, small)
}

/// Where an element lies: its lane, and the bit in the lane's registers.
type Place = (usize, usize);

/// Puts bits of an element into a register.
fn put(bench: &mut Bench, first: usize, (lane, bit): Place, width: usize, bits: u64) {
    for (register, part, width) in parts(bit, width) {
        let old = bench.wave.vector.get(first + register, lane);
        let mask = (u64::MAX >> (64 - width)) as u32;
        let new = (bits >> (32 * part)) as u32 & mask;
        let shift = bit % 32;
        bench.wave.vector.set(first + register, lane, old & !(mask << shift) | new << shift);
    }
}

fn get(bench: &Bench, first: usize, (lane, bit): Place, width: usize) -> u64 {
    parts(bit, width).fold(0, |bits, (register, part, width)| {
        let word = u64::from(bench.wave.vector.get(first + register, lane)) >> (bit % 32);
        bits | (word & u64::MAX >> (64 - width)) << (32 * part)
    })
}

/// The registers that an element is in, with which of its words is there and how many bits.
fn parts(bit: usize, width: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..width.div_ceil(32)).map(move |part| (bit / 32 + part, part, width.min(32)))
}

/// The instruction `D = A * B + C` with A, B, C and D in registers of their own.
const A: usize = 0;
const B: usize = 20;
const C: usize = 64;
const D: usize = 320;

fn product(name: &'static str) -> Instruction {
    let registers = [A, B, C].map(|register| vector(register as u16, 1));
    instruction(name, Encoding::Vop3p, vector(D as u16, 1), &registers)
}

/// The result of an element of C and the products of a row and a column.
fn expected(c: f64, row: impl Iterator<Item = f64>, column: impl Iterator<Item = f64>) -> f64 {
    row.zip(column).fold(c, |sum, (a, b)| sum + a * b)
}

#[test]
fn accumulation_registers_are_moved() {
    let mut bench = Bench::new("gfx908", 64);
    bench.set_vector(1, |lane| lane as u32);
    bench.wave.set_exec(6);
    let write = instruction("v_accvgpr_write_b32", Encoding::Vop3p, vector(300, 1), &[vector(1, 1)]);
    bench.run(&write).unwrap();
    let read = instruction("v_accvgpr_read_b32", Encoding::Vop3p, vector(2, 1), &[vector(300, 1)]);
    bench.run(&read).unwrap();
    assert_eq!(bench.row(2)[..4], [0, 1, 2, 0]);
    let constant = instruction("v_accvgpr_write_b32", Encoding::Vop3p, vector(300, 1), &[integer(5)]);
    bench.run(&constant).unwrap();
    assert_eq!(bench.row(300)[..4], [0, 5, 5, 0]);
}

#[test]
fn halves_are_read_in_few_steps() {
    for bits in 0..=u16::MAX {
        let (short, long) = (number_of_half(bits.into()), f16_to_f32(bits));
        assert!(short.to_bits() == long.to_bits() || short.is_nan() && long.is_nan(), "{bits:#x}: {short}");
    }
}
