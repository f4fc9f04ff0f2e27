//! Which registers an instruction's operands are, checked when the instruction is made ready.

use crate::isa::{Instruction, Operand, Source};
use crate::machine::fault::Fault;
use crate::machine::registers::ROWS;

/// Where the accumulation registers begin.
const ACCUMULATION: usize = 256;

/// The first of `count` vector registers.
pub fn vector(instruction: &Instruction, operand: Operand, count: usize) -> Result<usize, Box<Fault>> {
    let Source::Vector(first) = operand.source else {
        return Err(wrong(instruction, operand, "a vector register"));
    };
    let (first, end) = (usize::from(first), usize::from(first) + count);
    if end > ROWS || first < ACCUMULATION && end > ACCUMULATION {
        let what = format!("{count} vector registers from {first} on, which do not exist");
        return Err(Fault::instruction(format!("{} uses {what}", instruction.name)));
    }
    Ok(first)
}

/// As [`vector`]; `None` where there is no operand.
pub fn optional_vector(
    instruction: &Instruction,
    operand: Operand,
    count: usize,
) -> Result<Option<usize>, Box<Fault>> {
    match operand.source {
        Source::None => Ok(None),
        _ => vector(instruction, operand, count).map(Some),
    }
}

/// The first of `count` scalar registers.
pub fn scalar(instruction: &Instruction, operand: Operand, count: usize) -> Result<u8, Box<Fault>> {
    let Source::Scalar(first) = operand.source else {
        return Err(wrong(instruction, operand, "a scalar register"));
    };
    if usize::from(first) + count > 128 {
        let what = format!("{count} scalar registers from {first} on, which do not exist");
        return Err(Fault::instruction(format!("{} uses {what}", instruction.name)));
    }
    Ok(first)
}

fn wrong(instruction: &Instruction, operand: Operand, wanted: &str) -> Box<Fault> {
    Fault::instruction(format!("{} has {:?} where {wanted} is needed", instruction.name, operand.source))
}
