//! Moves to and from accumulation registers.

use crate::isa::{Instruction, Source};

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::step::Action;
use crate::machine::wave::lanes_of;

pub fn action(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let to = vector(instruction, instruction.destinations[0], 1)?;
    let operand = instruction.sources[0];
    if let Source::Vector(_) = operand.source {
        let from = vector(instruction, operand, 1)?;
        return Ok(Box::new(move |wave, _| {
            for lane in lanes_of(wave.exec()) {
                let value = wave.vector.get(from, lane);
                wave.vector.set(to, lane, value);
            }
            Ok(())
        }));
    }
    let source = operand.source;
    Ok(Box::new(move |wave, _| {
        let value = wave.read32(source)?;
        for lane in lanes_of(wave.exec()) {
            wave.vector.set(to, lane, value);
        }
        Ok(())
    }))
}
