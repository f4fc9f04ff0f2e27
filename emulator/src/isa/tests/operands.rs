//! What the text does not show: the order of operands, halves of registers, what atomics return.

use crate::isa::{Instruction, Operand, Source, Target, decode, sgpr};

fn instruction(target: &str, words: &[u32]) -> Instruction {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let target = Target::find(target).expect("a known target");
    decode(target, target.wave == 32, &code, 0).expect("an instruction")
}

fn vector(number: u16) -> Operand {
    Operand { source: Source::Vector(number), registers: 1 }
}

#[test]
fn high_halves_of_short_encodings_are_op_sel() {
    // v_add_f16 v4.h, v8.l, v12.h
    let add = instruction("gfx1100", &[0x6508_0000 | 128 << 17 | (128 + 12) << 9 | 0x108]);
    assert_eq!(add.name, "v_add_f16");
    assert_eq!(add.destinations[0], vector(4));
    assert_eq!(add.sources[..2], [vector(8), vector(12)]);
    assert_eq!(add.modifiers.op_sel, 0b1010);
}

#[test]
fn a_destination_that_is_read_is_the_last_source() {
    // v_fmac_f32 v4, v8, v12
    let fmac = instruction("gfx1100", &[0x2b << 25 | 4 << 17 | 12 << 9 | 0x108]);
    assert_eq!(fmac.sources[..3], [vector(8), vector(12), vector(4)]);
}

#[test]
fn carries_of_short_encodings_are_vcc() {
    // v_addc_co_u32 v4, vcc, v8, v12, vcc
    let add = instruction("gfx906", &[0x1c << 25 | 4 << 17 | 12 << 9 | 0x108]);
    let vcc = Operand { source: Source::Scalar(sgpr::VCC), registers: 2 };
    assert_eq!(add.name, "v_add_co_ci_u32");
    assert_eq!(add.destinations, [vector(4), vcc]);
    assert_eq!(add.sources[..3], [vector(8), vector(12), vcc]);
}

#[test]
fn old_comparisons_to_exec_write_a_mask_too() {
    let [mask, exec] = instruction("gfx906", &[0x7c00_0000 | 0x52 << 17 | 12 << 9 | 0x108]).destinations;
    assert_eq!([mask.source, exec.source], [Source::Scalar(sgpr::VCC), Source::Scalar(sgpr::EXEC)]);
    let [exec, none] = instruction("gfx1100", &[0x7c00_0000 | 0x92 << 17 | 12 << 9 | 0x108]).destinations;
    assert_eq!([exec.source, none.source], [Source::Scalar(sgpr::EXEC), Source::None]);
}

#[test]
fn m0_and_null_have_one_number_each() {
    for (target, code) in [("gfx906", 124), ("gfx1030", 124), ("gfx1100", 125), ("gfx1201", 125)] {
        // s_add_u32 s0, m0, s1
        let add = instruction(target, &[0x8000_0000 | 1 << 8 | code]);
        assert_eq!(add.sources[0].source, Source::Scalar(sgpr::M0), "{target}");
    }
}

#[test]
fn atomics_return_where_they_are_told_to() {
    // global_atomic_add v4, v[8:9], v12, off glc
    for (words, returns) in [([0xdd08_8000, 0x047f_0c08], false), ([0xdd09_8000, 0x047f_0c08], true)] {
        let add = instruction("gfx906", &words);
        assert_eq!(add.name, "global_atomic_add_u32");
        assert_eq!(add.modifiers.memory.returns, returns);
        assert_eq!(add.destinations[0].source == Source::None, !returns);
        assert_eq!(add.sources[1], vector(12));
    }
}
