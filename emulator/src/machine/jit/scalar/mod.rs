//! Code for operations of the scalar unit: a row for each operation. RAX holds the first source and the result, RCX the
//! second.

mod rows;

use iced_x86::{Code, Register};

use crate::isa::{Encoding, Instruction, Source, sgpr};

use super::assembler::at;
use super::emitter::{Emitter, SCC, scalar_memory};
use rows::{Operation, Row, Scc};

/// Makes the code, if there is a row for the instruction; nothing where there is none.
pub fn emit(e: &mut Emitter, instruction: &Instruction) -> bool {
    let done = match instruction.encoding {
        Encoding::Sopk => with_immediate(e, instruction),
        Encoding::Sop1 if instruction.name.contains("_saveexec_") => save_exec(e, instruction),
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc => plain(e, instruction),
        _ => None,
    };
    done.is_some()
}

fn plain(e: &mut Emitter, instruction: &Instruction) -> Option<()> {
    let [a, b, ..] = instruction.sources.map(|operand| operand.source);
    compute(e, rows::find(instruction.name)?, [a, b], instruction.destinations[0].source)
}

/// Operations of 16 bits in the instruction and a register, which is the destination, too: rows of other instructions.
fn with_immediate(e: &mut Emitter, instruction: &Instruction) -> Option<()> {
    let (operation, ty) = instruction.name.split_once("k_")?;
    let row = match operation {
        "s_mov" => rows::find("s_mov_b32")?,
        _ => rows::find(&format!("{operation}_{ty}"))?,
    };
    let value = match ty.ends_with("u32") {
        true => i32::from(instruction.modifiers.immediate as u16),
        false => i32::from(instruction.modifiers.immediate as i16),
    };
    let [destination, source] = [instruction.destinations[0].source, instruction.sources[0].source];
    let register = if destination == Source::None { source } else { destination };
    let value = Source::Integer(value);
    let sources = if row.has_one_source() { [value, Source::None] } else { [register, value] };
    compute(e, row, sources, destination)
}

/// EXEC goes to a register, and becomes what the operation makes of a source and EXEC.
fn save_exec(e: &mut Emitter, instruction: &Instruction) -> Option<()> {
    let (operation, ty) = instruction.name.split_once("_saveexec_")?;
    let (exec, source) = (Source::Scalar(sgpr::EXEC), instruction.sources[0].source);
    // Which of both is inverted.
    let (operation, sources) = match operation {
        "s_and_not0" => ("s_and_not1", [exec, source]),
        "s_or_not0" => ("s_or_not1", [exec, source]),
        operation => (operation, [source, exec]),
    };
    let row = rows::find(&format!("{operation}_{ty}"))?;
    let Source::Scalar(destination) = instruction.destinations[0].source else { return None };
    if destination >= sgpr::EXEC || !readable(source) {
        return None;
    }
    let wide = row.wide[0];
    load(e, Register::RDX, exec, wide);
    compute(e, row, sources, exec)?;
    store(e, Register::RDX, destination, wide);
    Some(())
}

fn compute(e: &mut Emitter, row: Row, [a, b]: [Source; 2], destination: Source) -> Option<()> {
    let destination = match destination {
        Source::Scalar(register) => Some(register),
        Source::None if matches!(row.operation, Operation::Compare) => None,
        _ => return None,
    };
    let two = !row.has_one_source();
    if !readable(a) || two && !readable(b) {
        return None;
    }
    let wide = row.wide;
    load(e, Register::RAX, a, wide[1]);
    if two {
        load(e, Register::RCX, b, wide[2]);
    }
    operate(e, row);
    if let Scc::Flag(code) = row.scc {
        e.set_scc(code);
    }
    if let Some(register) = destination {
        store(e, Register::RAX, register, wide[0]);
    }
    if let Scc::NotZero = row.scc {
        let code = if wide[0] { Code::Test_rm64_r64 } else { Code::Test_rm32_r32 };
        let register = sized(Register::RAX, wide[0]);
        e.assembler.two(code, register, register);
        e.set_scc(Code::Setne_rm8);
    }
    Some(())
}

fn operate(e: &mut Emitter, row: Row) {
    let wide = row.wide[0];
    let (a, b) = (sized(Register::RAX, wide), sized(Register::RCX, wide));
    let not = if wide { Code::Not_rm64 } else { Code::Not_rm32 };
    match row.operation {
        Operation::Move => {}
        Operation::Two(code) => e.assembler.two(code, a, b),
        Operation::Inverted(code) => {
            e.assembler.two(code, a, b);
            e.assembler.one(not, a);
        }
        Operation::Without(code) => {
            e.assembler.one(not, b);
            e.assembler.two(code, a, b);
        }
        Operation::Not => e.assembler.one(not, a),
        Operation::Shift(code) => e.assembler.two(code, a, Register::CL),
        Operation::ShiftedSum(by) => {
            e.assembler.immediate(Code::Shl_rm64_imm8, Register::RAX, by);
            e.assembler.two(Code::Add_r64_rm64, Register::RAX, Register::RCX);
            // The carry is what is above: shifted in from below, then 1 is the lowest that is above 0.
            e.assembler.two(Code::Mov_r64_rm64, Register::RCX, Register::RAX);
            e.assembler.immediate(Code::Shr_rm64_imm8, Register::RCX, 32);
            e.assembler.one(Code::Neg_rm64, Register::RCX);
        }
        Operation::Carry(code) => {
            e.assembler.load(Code::Movzx_r32_rm8, Register::EDX, at(Register::RBX, SCC));
            // Whose negation has a carry where it is not 0.
            e.assembler.one(Code::Neg_rm32, Register::EDX);
            e.assembler.two(code, a, b);
        }
        Operation::Compare => {
            let code = if wide { Code::Cmp_r64_rm64 } else { Code::Cmp_r32_rm32 };
            e.assembler.two(code, a, b);
        }
        Operation::Select => {
            e.assembler.memory_immediate(Code::Cmp_rm8_imm8, at(Register::RBX, SCC), 0);
            let code = if wide { Code::Cmove_r64_rm64 } else { Code::Cmove_r32_rm32 };
            e.assembler.two(code, a, b);
        }
        Operation::Bound(code) => {
            e.assembler.two(Code::Cmp_r32_rm32, a, b);
            e.assembler.two(code, a, b);
        }
        Operation::MultiplyHigh => {
            e.assembler.two(Code::Imul_r64_rm64, Register::RAX, Register::RCX);
            e.assembler.immediate(Code::Shr_rm64_imm8, Register::RAX, 32);
        }
        Operation::Extend(code) => {
            let from = if code == Code::Movsx_r32_rm8 { Register::AL } else { Register::AX };
            e.assembler.two(code, a, from);
        }
    }
}

fn readable(source: Source) -> bool {
    !matches!(source, Source::Special(_) | Source::Vector(_))
}

fn sized(register: Register, wide: bool) -> Register {
    match (wide, register) {
        (true, _) => register,
        (_, Register::RAX) => Register::EAX,
        (_, Register::RCX) => Register::ECX,
        _ => Register::EDX,
    }
}

/// Reads an operand as [`Wave::read32`] and [`Wave::read64`] do; 32 bits are extended by zeros.
///
/// [`Wave::read32`]: crate::machine::wave::Wave::read32
/// [`Wave::read64`]: crate::machine::wave::Wave::read64
fn load(e: &mut Emitter, to: Register, source: Source, wide: bool) {
    let value = match (source, wide) {
        (Source::Scalar(sgpr::NULL), true) => 0,
        (Source::Scalar(register), _) => {
            let code = if wide { Code::Mov_r64_rm64 } else { Code::Mov_r32_rm32 };
            return e.assembler.load(code, sized(to, wide), scalar_memory(register));
        }
        (Source::Integer(value), true) => i64::from(value) as u64,
        (Source::Integer(value), false) => u64::from(value as u32),
        (Source::Float(value), true) => value.to_bits(),
        (Source::Float(value), false) => u64::from((value as f32).to_bits()),
        (Source::Literal(value), _) => u64::from(value),
        _ => 0,
    };
    match u32::try_from(value) {
        Ok(value) => e.assembler.immediate(Code::Mov_r32_imm32, sized(to, false), value as i32),
        Err(_) => e.assembler.constant(to, value),
    }
}

fn store(e: &mut Emitter, from: Register, register: u8, wide: bool) {
    if register == sgpr::NULL {
        return;
    }
    let code = if wide { Code::Mov_rm64_r64 } else { Code::Mov_rm32_r32 };
    e.assembler.store(code, scalar_memory(register), sized(from, wide));
    e.forget_scalar(register);
    if wide {
        e.forget_scalar(register + 1);
    }
}
