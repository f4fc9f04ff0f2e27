//! Operations with an immediate, and those that save EXEC.

use iced_x86::{Code, Register};

use crate::isa::{Instruction, Source, sgpr};

use super::super::emitter::Emitter;
use super::{load, readable, sized, store, store_from};

const SCC_CONDITIONS: [(&str, Code); 10] = [
    ("eq_i32", Code::Sete_rm8),
    ("lg_i32", Code::Setne_rm8),
    ("gt_i32", Code::Setg_rm8),
    ("ge_i32", Code::Setge_rm8),
    ("lt_i32", Code::Setl_rm8),
    ("le_i32", Code::Setle_rm8),
    ("gt_u32", Code::Seta_rm8),
    ("ge_u32", Code::Setae_rm8),
    ("lt_u32", Code::Setb_rm8),
    ("le_u32", Code::Setbe_rm8),
];

/// Operations with an immediate of 16 bits.
pub fn immediate(e: &mut Emitter, instruction: &Instruction) -> bool {
    let value = i32::from(instruction.modifiers.immediate as i16);
    let register = match (instruction.destinations[0].source, instruction.sources[0].source) {
        (Source::Scalar(register), _) | (Source::None, Source::Scalar(register)) => register,
        _ => return false,
    };
    if let Some(comparison) = instruction.name.strip_prefix("s_cmpk_") {
        let name = match comparison {
            "eq_u32" => "eq_i32",
            "lg_u32" => "lg_i32",
            other => other,
        };
        let Some(&(_, code)) = SCC_CONDITIONS.iter().find(|(known, _)| *known == name) else { return false };
        let value = if comparison.ends_with("u32") { value & 0xffff } else { value };
        load(e, Register::RAX, Source::Scalar(register), false);
        e.assembler.immediate(Code::Cmp_rm32_imm32, Register::EAX, value);
        e.set_scc(code);
        return true;
    }
    match instruction.name {
        "s_movk_i32" => e.assembler.immediate(Code::Mov_r32_imm32, Register::EAX, value),
        "s_addk_i32" | "s_addk_co_i32" => {
            load(e, Register::RAX, Source::Scalar(register), false);
            e.assembler.immediate(Code::Add_rm32_imm32, Register::EAX, value);
            e.set_scc(Code::Seto_rm8);
        }
        "s_mulk_i32" => {
            load(e, Register::RAX, Source::Scalar(register), false);
            e.assembler.immediate(Code::Mov_r32_imm32, Register::ECX, value);
            e.assembler.two(Code::Imul_r32_rm32, Register::EAX, Register::ECX);
        }
        _ => return false,
    }
    store(e, register, false);
    true
}

/// EXEC goes to a register, and changes.
pub fn save_exec(e: &mut Emitter, instruction: &Instruction) -> bool {
    let (name, wide) = match (instruction.name.strip_suffix("_b32"), instruction.name.strip_suffix("_b64")) {
        (Some(name), _) => (name, false),
        (_, Some(name)) => (name, true),
        _ => return false,
    };
    let (codes, inverts_source, inverts_exec) = match name {
        "s_and_saveexec" => ([Code::And_r32_rm32, Code::And_r64_rm64], false, false),
        "s_or_saveexec" => ([Code::Or_r32_rm32, Code::Or_r64_rm64], false, false),
        "s_xor_saveexec" => ([Code::Xor_r32_rm32, Code::Xor_r64_rm64], false, false),
        "s_and_not0_saveexec" | "s_andn1_saveexec" => ([Code::And_r32_rm32, Code::And_r64_rm64], true, false),
        "s_and_not1_saveexec" | "s_andn2_saveexec" => ([Code::And_r32_rm32, Code::And_r64_rm64], false, true),
        _ => return false,
    };
    let (source, Source::Scalar(destination)) =
        (instruction.sources[0].source, instruction.destinations[0].source)
    else {
        return false;
    };
    if !readable(source) {
        return false;
    }
    let (a, b, old) = (sized(Register::RAX, wide), sized(Register::RCX, wide), sized(Register::RDX, wide));
    let (code, not) = if wide { (codes[1], Code::Not_rm64) } else { (codes[0], Code::Not_rm32) };
    load(e, Register::RAX, source, wide);
    load(e, Register::RCX, Source::Scalar(sgpr::EXEC), wide);
    e.assembler.two(if wide { Code::Mov_r64_rm64 } else { Code::Mov_r32_rm32 }, old, b);
    if inverts_source {
        e.assembler.one(not, a);
    }
    if inverts_exec {
        e.assembler.one(not, b);
    }
    e.assembler.two(code, a, b);
    e.set_scc(Code::Setne_rm8);
    store_from(e, Register::RDX, destination, wide);
    store(e, sgpr::EXEC, wide);
    true
}
