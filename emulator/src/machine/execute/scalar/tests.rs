//! Scalar instructions with random operands against a second description of them, after the pseudo-code of the ISA manuals.

mod reference;

use crate::isa::{Encoding, Operand, Source};
use crate::machine::execute::testing::random::Random;
use crate::machine::execute::testing::*;

use reference::{In, Reference, Scc};

/// How often each instruction runs.
const TRIALS: usize = 300;
const INTEGERS: &[u64] = &[
    0,
    1,
    2,
    31,
    32,
    63,
    64,
    0x7fff,
    0x8000,
    0xffff,
    0x10_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Rows of the tables that are checked by the tests of conversions and by answers of hardware.
const CHECKED_ELSEWHERE: &[&str] = &["_f32", "_f16", "_f32_i32", "_f32_u32"];

#[test]
fn results_are_those_of_the_manual() {
    let mut random = Random::new();
    for reference in reference::all() {
        for number in 0..TRIALS {
            check(&reference, &mut random, number);
        }
    }
}

#[test]
fn each_row_of_the_tables_has_a_reference() {
    let known: Vec<&str> = reference::all().iter().map(|reference| reference.name).collect();
    let is_missing =
        |name: &&&str| !known.contains(*name) && !CHECKED_ELSEWHERE.iter().any(|part| name.contains(part));
    let missing: Vec<_> = super::OPERATIONS.keys().filter(is_missing).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

fn value(random: &mut Random) -> u64 {
    if random.once_in(2) { random.pick(INTEGERS) } else { random.next() >> (8 * random.below(8)) }
}

/// An operand of 32 or 64 bits with its value.
fn source(random: &mut Random, bench: &mut Bench, register: u8, bits: u8) -> (Operand, u64) {
    let count = bits / 32;
    let cut = |value: u64| if bits == 32 { value & 0xffff_ffff } else { value };
    match random.below(4) {
        0 => {
            let integer = random.below(81) as i32 - 16;
            (Operand { source: Source::Integer(integer), registers: count }, cut(integer as i64 as u64))
        }
        1 if bits == 32 => {
            let literal = value(random) as u32;
            (Operand { source: Source::Literal(literal), registers: 1 }, literal.into())
        }
        _ => {
            let bits = value(random);
            bench.wave.set_scalar64(register, bits);
            (scalar(register, count), cut(bits))
        }
    }
}

fn check(reference: &Reference, random: &mut Random, number: usize) {
    let mut bench = Bench::new("gfx1201", 32);
    let [result, first, second] = reference.bits;
    let old = value(random);
    bench.wave.set_scalar64(20, old);
    let mut sources = Vec::new();
    let mut values = [0; 2];
    for (index, bits) in [first, second].into_iter().enumerate().filter(|&(_, bits)| bits > 0) {
        let (operand, value) = source(random, &mut bench, 4 + 4 * index as u8, bits);
        sources.push(operand);
        values[index] = value;
    }
    bench.wave.scc = random.once_in(2);
    let old = if result == 32 { old & 0xffff_ffff } else { old };
    let input = In { a: values[0], b: values[1], old, scc: bench.wave.scc };
    let destination = if result == 0 { NONE } else { scalar(20, result / 32) };
    bench.run(&instruction(reference.name, Encoding::Sop2, destination, &sources)).unwrap();
    let (expected, bit) = (reference.compute)(input);
    let expected = if result == 32 { expected as u32 as u64 } else { expected as u64 };
    let new = match result {
        0 => 0,
        32 => bench.wave.scalar[20].into(),
        _ => bench.wave.scalar64(20),
    };
    let what = format!("{} number {number} of {input:x?}", reference.name);
    if result > 0 {
        assert_eq!(new, expected, "{what}: {new:#x}, not {expected:#x}");
    }
    let scc = match reference.scc {
        Scc::Kept => input.scc,
        Scc::NotZero => expected != 0,
        Scc::Bit => bit,
    };
    assert_eq!(bench.wave.scc, scc, "{what}: SCC");
}
