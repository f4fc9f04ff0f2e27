//! V_MOVREL: moves between vector registers whose numbers M0 adds to.

use crate::isa::{Instruction, Source, sgpr};

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::registers::ROWS;
use crate::machine::step::Action;
use crate::machine::wave::lanes_of;

/// What M0 adds to the number of the source and of the destination.
fn amounts(name: &str, m0: usize) -> (usize, usize) {
    match name {
        "v_movrels_b32" => (m0, 0),
        "v_movreld_b32" => (0, m0),
        "v_movrelsd_2_b32" => (m0 & 0x3ff, m0 >> 16 & 0x3ff),
        _ => (m0, m0),
    }
}

pub fn action(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let name = instruction.name;
    let to = vector(instruction, instruction.destinations[0], 1)?;
    let from = instruction.sources[0];
    if let Source::Vector(_) = from.source {
        vector(instruction, from, 1)?;
    }
    let source = from.source;
    Ok(Box::new(move |wave, _| {
        let (more_from, more_to) = amounts(name, wave.scalar[usize::from(sgpr::M0)] as usize);
        let to = moved(to, more_to)?;
        let from = match source {
            Source::Vector(register) => Some(moved(usize::from(register), more_from)?),
            _ => None,
        };
        for lane in lanes_of(wave.exec()) {
            let value = match from {
                Some(register) => wave.vector.get(register, lane),
                None => wave.read32(source)?,
            };
            wave.vector.set(to, lane, value);
        }
        Ok(())
    }))
}

fn moved(register: usize, amount: usize) -> Result<usize, Box<Fault>> {
    match register.checked_add(amount) {
        Some(moved) if moved < ROWS / 2 => Ok(moved),
        _ => Err(Fault::instruction(format!(
            "M0 adds {amount} to vector register {register}, which leads nowhere"
        ))),
    }
}
