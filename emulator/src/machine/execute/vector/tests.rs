//! Vector instructions against a second description of them, with random operands.

mod blocks;
mod divisions;
mod instructions;
mod operands;
mod reference;
mod values;

use crate::isa::{Encoding, Instruction, Source};
use crate::machine::execute::testing::random::Random;
use crate::machine::execute::testing::*;

use instructions::Trial;
use reference::{Exactness, In, Kind, Reference};

/// How often each instruction runs.
const TRIALS: usize = 60;

/// Rows of the tables that are checked elsewhere: against hardware's answers or against all values of their type.
const CHECKED_ELSEWHERE: &[&str] = &[
    "v_accvgpr_",
    "v_cvt_f32_bf",
    "v_cvt_f32_fp8",
    "v_cvt_nearest_",
    "v_cvt_norm_",
    "v_cvt_pk_bf",
    "v_cvt_pk_f16_f32",
    "v_cvt_pk_f32_",
    "v_cvt_pk_fp8_",
    "v_cvt_pk_norm_",
    "v_div_",
    "v_dot",
    "v_ldexp_f64",
    "v_mov_b64",
    "v_prng_b32",
    "v_s_",
    "v_sin_",
    "v_cos_",
    "v_trig_preop_f64",
];

#[test]
fn results_are_those_of_the_manual() {
    let mut random = Random::new();
    let mut wrong = Vec::new();
    for reference in reference::all() {
        let results: Vec<_> = (0..TRIALS).map(|number| check(&reference, &mut random, number)).collect();
        wrong.extend(results.into_iter().find_map(Result::err));
    }
    assert!(wrong.is_empty(), "{} instructions\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn powers_of_two_leave_infinities() {
    for exponent in [-25_138, -1075, 0, 32_767] {
        let mut bench = Bench::new("gfx1100", 32);
        bench.set_vector(0, |_| 0x7c00);
        bench.set_vector(2, |_| exponent as u32);
        bench
            .run(&instruction("v_ldexp_f16", Encoding::Vop3, vector(4, 1), &[vector(0, 1), vector(2, 1)]))
            .unwrap();
        assert_eq!(bench.row(4)[0] & 0xffff, 0x7c00, "{exponent}");
    }
}

#[test]
fn only_vop3p_chooses_halves() {
    // (1, 2) times (2, 3) plus 0.
    for (encoding, expected) in [(Encoding::Vop3, 0x4800), (Encoding::Vop3p, 0x4400)] {
        let mut bench = Bench::new("gfx1100", 32);
        bench.set_vector(0, |_| 0x4000_3c00);
        bench.set_vector(1, |_| 0x4200_4000);
        bench.set_vector(2, |_| 0);
        let sources = [vector(0, 1), vector(1, 1), vector(2, 1)];
        // With OP_SEL and OP_SEL_HI of 0 both products are of the low halves.
        bench.run(&instruction("v_dot2_f16_f16", encoding, vector(4, 1), &sources)).unwrap();
        assert_eq!(bench.row(4)[0] & 0xffff, expected, "{encoding:?}");
    }
}

#[test]
fn each_row_of_the_tables_has_a_reference() {
    let known: Vec<String> = reference::all().into_iter().map(|reference| reference.name).collect();
    let missing: Vec<&str> = super::tables::names()
        .filter(|name| !known.iter().any(|known| known == name))
        .filter(|name| !CHECKED_ELSEWHERE.iter().any(|start| name.starts_with(start)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// An error that says what is wrong in which lane.
fn check(reference: &Reference, random: &mut Random, number: usize) -> Result<(), String> {
    let Trial { mut bench, instruction, .. } = Trial::new(reference, random);
    let what = format!(
        "{} number {number} on {}: {:?} {:?}",
        reference.name, bench.target.name, instruction.sources, instruction.modifiers
    );
    let lanes = bench.wave.lanes;
    let exec = bench.wave.exec();
    let inputs: Vec<Option<In>> = (0..lanes)
        .map(|lane| operands::read(&bench, reference, &instruction, lane).filter(|_| exec >> lane & 1 == 1))
        .collect();
    let old = destination(&bench, reference, &instruction);
    bench.run(&instruction).map_err(|error| format!("{what}: {error}"))?;
    let new = destination(&bench, reference, &instruction);
    let mut mask = 0;
    for lane in 0..lanes {
        let (expected, bit) = match inputs[lane] {
            None => (old.as_ref().map(|old| old[lane]), false),
            Some(input) => {
                let (bits, bit) = compute(reference, &instruction, input);
                let kind = reference.output;
                let target = bench.target.generation;
                let written = |kind| {
                    let old = old.as_ref().map_or(0, |old| old[lane]);
                    operands::written(bits, old, kind, &instruction.modifiers, target)
                };
                (kind.map(written), bit)
            }
        };
        mask |= u64::from(bit) << lane;
        if let (Some(new), Some(expected), Some(kind)) = (&new, expected, reference.output) {
            let same = agree(new[lane], expected, kind, reference.exactness);
            let input = inputs[lane];
            if !same {
                return Err(format!(
                    "{what}: lane {lane} has {:#x}, not {expected:#x}, of {input:x?}",
                    new[lane]
                ));
            }
        }
    }
    if reference.writes_bits {
        let index = usize::from(reference.output.is_some());
        let Source::Scalar(register) = instruction.destinations[index].source else { return Ok(()) };
        let new = bench.wave.mask(register);
        if new != mask {
            return Err(format!("{what}: the mask is {new:#x}, not {mask:#x}"));
        }
    }
    Ok(())
}

/// What an instruction's destination holds, by lane.
fn destination(bench: &Bench, reference: &Reference, instruction: &Instruction) -> Option<Vec<u64>> {
    let kind = reference.output?;
    let Source::Vector(register) = instruction.destinations[0].source else { return None };
    let register = usize::from(register);
    let word = |lane: usize, index: usize| u64::from(bench.row(register + index)[lane]) << (32 * index);
    let words = usize::from(kind.registers());
    Some((0..bench.wave.lanes).map(|lane| (0..words).map(|index| word(lane, index)).sum()).collect())
}

/// The result of a lane, before it is put into its register.
fn compute(reference: &Reference, instruction: &Instruction, input: In) -> (u64, bool) {
    let modifiers = &instruction.modifiers;
    let run = match &reference.clamped {
        Some(clamped) if modifiers.clamp => clamped,
        _ => &reference.compute,
    };
    let clamp = modifiers.clamp && reference.clamped.is_none();
    let finish = |bits: u64, kind: Kind| if clamp { operands::clamped(bits, kind) } else { bits };
    match reference.output {
        Some(kind) if kind.is_packed() => {
            let half = |high: bool| {
                let bits = run(operands::halves(input, reference, modifiers, high)).0;
                finish(bits, kind) & 0xffff
            };
            (half(false) | half(true) << 16, false)
        }
        Some(kind) => {
            let (bits, bit) = run(input);
            let width = 64 / (3 - u32::from(kind.registers()));
            (finish(bits, kind) & u64::MAX >> (64 - width), bit)
        }
        None => run(input),
    }
}

/// Whether a register has what is expected. One NaN is as good as another.
fn agree(new: u64, expected: u64, kind: Kind, exactness: Exactness) -> bool {
    if new == expected {
        return true;
    }
    let infinity = match kind {
        Kind::F64 => 0x7ff0_0000_0000_0000,
        Kind::F32 => 0x7f80_0000,
        _ => 0x7c00,
    };
    let sign = match kind {
        Kind::F64 => 1 << 63,
        Kind::F32 => 1 << 31,
        _ => 1 << 15,
    };
    let same = |new: u64, expected: u64| {
        let (a, b) = (new & !sign, expected & !sign);
        let near = match exactness {
            Exactness::Exact => new == expected,
            Exactness::Units(units) => new & sign == expected & sign && a.abs_diff(b) <= units,
        };
        near || a > infinity && b > infinity
    };
    match kind {
        Kind::F16 | Kind::PackedF16 => {
            same(new & 0xffff, expected & 0xffff) && same(new >> 16, expected >> 16)
        }
        Kind::F32 | Kind::F64 => same(new, expected),
        _ => false,
    }
}
