//! Single lanes, to and from scalar registers.

use crate::isa::{Instruction, Source};

use crate::machine::execute::operands::{scalar, vector};
use crate::machine::fault::Fault;
use crate::machine::step::Action;
use crate::machine::wave::Wave;

/// V_READFIRSTLANE: the first active lane; lane 0 where none is active.
pub fn read_first(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let from = checked(instruction)?;
    let to = scalar(instruction, instruction.destinations[0], 1)?;
    Ok(Box::new(move |wave, _| {
        let lane = wave.exec().trailing_zeros() as usize % 64;
        let value = value(wave, from, lane)?;
        wave.set_scalar(to, value);
        Ok(())
    }))
}

/// V_READLANE: the lane may be one that is not active.
pub fn read(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let from = checked(instruction)?;
    let lane = instruction.sources[1].source;
    let to = scalar(instruction, instruction.destinations[0], 1)?;
    Ok(Box::new(move |wave, _| {
        let lane = wave.read32(lane)? as usize % wave.lanes;
        let value = value(wave, from, lane)?;
        wave.set_scalar(to, value);
        Ok(())
    }))
}

/// V_WRITELANE: the lane may be one that is not active.
pub fn write(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let [value, lane, ..] = instruction.sources.map(|operand| operand.source);
    let to = vector(instruction, instruction.destinations[0], 1)?;
    Ok(Box::new(move |wave, _| {
        let lane = wave.read32(lane)? as usize % wave.lanes;
        let value = wave.read32(value)?;
        wave.vector.set(to, lane, value);
        Ok(())
    }))
}

/// The first source, whose register exists.
fn checked(instruction: &Instruction) -> Result<Source, Box<Fault>> {
    let operand = instruction.sources[0];
    if let Source::Vector(_) = operand.source {
        vector(instruction, operand, 1)?;
    }
    Ok(operand.source)
}

fn value(wave: &Wave, source: Source, lane: usize) -> Result<u32, Box<Fault>> {
    match source {
        Source::Vector(register) => Ok(wave.vector.get(usize::from(register), lane)),
        other => wave.read32(other),
    }
}
