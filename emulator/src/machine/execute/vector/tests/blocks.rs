//! Blocks of random instructions, by the interpreter and as translated code.

use crate::isa::{Encoding, Instruction};
use crate::machine::execute::testing::random::Random;
use crate::machine::execute::testing::*;

use super::instructions::Trial;
use super::reference::{self, Kind, Reference};
use super::values::value;

const BLOCKS: usize = 1500;

#[test]
fn translated_blocks_do_the_same() {
    if !crate::machine::translates() {
        println!("no machine code is made here (it needs AVX-512): blocks are interpreted alone");
    }
    let mut random = Random::new();
    let references: Vec<Reference> = reference::all().into_iter().filter(is_usual).collect();
    let run: usize = (0..BLOCKS).map(|_| block(&references, &mut random)).sum();
    assert!(run > 6 * BLOCKS, "blocks of {} instructions in the mean", run / BLOCKS);
}

/// As compilers write them, carries often go nowhere.
fn trial(reference: &Reference, random: &mut Random) -> Trial {
    let mut trial = Trial::new(reference, random);
    if reference.output.is_some() && reference.writes_bits && random.once_in(2) {
        trial.instruction.destinations[1] = NULL;
    }
    trial
}

/// A row that no operands fit would not be noticed otherwise.
#[test]
#[cfg(all(target_arch = "x86_64", unix))]
fn each_row_of_translated_code_is_used() {
    use crate::machine::jit;
    let mut random = Random::new();
    let references = reference::all();
    let unused: Vec<&str> = jit::vector_rows()
        .filter(|name| !NO_REFERENCE.contains(name))
        .filter(|name| {
            let reference = references.iter().find(|it| it.name == **name);
            let reference = reference.unwrap_or_else(|| panic!("no reference for {name}"));
            !(0..500).any(|_| {
                let trial = trial(reference, &mut random);
                jit::is_translated(&trial.instruction, trial.bench.setting())
            })
        })
        .collect();
    assert_eq!(unused, Vec::<&str>::new());
}

/// Rows of instructions that the references do not have.
#[cfg(all(target_arch = "x86_64", unix))]
const NO_REFERENCE: &[&str] = &[
    "v_accvgpr_read_b32",
    "v_accvgpr_write_b32",
    "v_accvgpr_mov_b32",
    "v_mov_b64",
    // In `divisions.rs`.
    "v_div_scale_f32",
    "v_div_fmas_f32",
    "v_div_fixup_f32",
];

/// Those of 32 and 64 bits are more often in kernels, and have rows of their own.
fn is_usual(reference: &Reference) -> bool {
    ["_f32", "_u32", "_i32", "_b32", "_b64", "_u24"].iter().any(|end| reference.name.ends_with(end))
}

/// How many instructions were compared.
fn block(references: &[Reference], random: &mut Random) -> usize {
    let first = trial(&references[random.below(references.len())], random);
    let mut bench = first.bench;
    let mut instructions = vec![first.instruction];
    let count = 1 + random.below(24);
    while instructions.len() < count {
        if random.once_in(4) {
            instructions.push(scalar_instruction(random, bench.wave.lanes));
            continue;
        }
        let other = trial(&references[random.below(references.len())], random);
        if other.bench.target == bench.target && other.bench.wave.lanes == bench.wave.lanes {
            instructions.push(other.instruction);
        }
    }
    for register in 0..48 {
        let kind = random.pick(&[Kind::F32, Kind::B32]);
        for lane in 0..bench.wave.lanes {
            bench.wave.vector.set(register, lane, value(random, kind) as u32);
        }
    }
    for register in 0..48 {
        bench.wave.set_scalar(register, value(random, Kind::B32) as u32);
    }
    bench.run_block(&instructions)
}

/// What scalar code does between: masks, EXEC, sums.
fn scalar_instruction(random: &mut Random, lanes: usize) -> Instruction {
    const EXEC: u8 = crate::isa::sgpr::EXEC;
    let wide = lanes == 64;
    let (registers, size) = if wide { (2, "b64") } else { (1, "b32") };
    let mask = |register| scalar(register, registers);
    let name = |wide_name, narrow_name| if size == "b64" { wide_name } else { narrow_name };
    let any = scalar(4 * random.below(11) as u8, registers);
    match random.below(7) {
        0 => instruction(name("s_mov_b64", "s_mov_b32"), Encoding::Sop1, mask(EXEC), &[integer(-1)]),
        1 => instruction(name("s_and_saveexec_b64", "s_and_saveexec_b32"), Encoding::Sop1, mask(36), &[any]),
        2 => instruction(name("s_or_b64", "s_or_b32"), Encoding::Sop2, mask(EXEC), &[mask(EXEC), any]),
        3 => instruction(name("s_xor_b64", "s_xor_b32"), Encoding::Sop2, mask(36), &[mask(EXEC), any]),
        4 => instruction("s_add_u32", Encoding::Sop2, scalar(8, 1), &[scalar(4, 1), scalar(12, 1)]),
        5 => instruction("s_addc_u32", Encoding::Sop2, scalar(12, 1), &[scalar(8, 1), integer(7)]),
        _ => instruction(name("s_cselect_b64", "s_cselect_b32"), Encoding::Sop2, mask(30), &[any, mask(34)]),
    }
}
