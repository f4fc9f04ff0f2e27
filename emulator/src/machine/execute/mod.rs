//! What instructions do, by kind.

mod cross_lane;
mod dpp;
mod flat;
mod lanes;
mod lds;
mod matrix;
mod nothing;
pub mod operands;
mod scalar;
mod scalar_memory;
#[cfg(test)]
pub mod testing;
mod vector;

use crate::isa::{Encoding, Instruction, Operand, Source};

pub use nothing::does_nothing;
pub use scalar::check_float_mode;
pub use vector::simple;

use super::fault::Fault;
use super::registers::ROWS;
use super::step::{Action, Setting};

/// What an instruction does; an error for one that is not known here.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    check_registers(instruction)?;
    match instruction.encoding {
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp => {
            scalar::action(instruction, setting)
        }
        Encoding::Smem => scalar_memory::action(instruction, setting),
        Encoding::Ds => lds::action(instruction, setting),
        Encoding::Flat | Encoding::Global | Encoding::Scratch | Encoding::Buffer => {
            flat::action(instruction, setting)
        }
        Encoding::Vop1
        | Encoding::Vop2
        | Encoding::Vopc
        | Encoding::Vop3
        | Encoding::Vop3p
        | Encoding::Vopd => {
            if let Some(action) = matrix::action(instruction, setting)? {
                return Ok(action);
            }
            if let Some(action) = cross_lane::action(instruction, setting)? {
                return Ok(action);
            }
            vector::action(instruction, setting)
        }
    }
}

/// An error that says that an instruction is not known here.
fn unsupported(instruction: &Instruction) -> Box<Fault> {
    Fault::instruction(format!("the emulator does not have the instruction {}", instruction.name))
}

/// Registers that do not exist, so that no action needs to look again.
fn check_registers(instruction: &Instruction) -> Result<(), Box<Fault>> {
    let operands = instruction.destinations.iter().chain(&instruction.sources);
    for &Operand { source, registers } in operands {
        let end = match source {
            // Accumulation registers follow the others, and no operand is of both.
            Source::Vector(first) => {
                let first = usize::from(first);
                let end = first + usize::from(registers.max(1));
                if first < 256 && end > 256 || end > ROWS { Some(("vector", end)) } else { None }
            }
            Source::Scalar(first) => {
                let end = usize::from(first) + usize::from(registers.max(1));
                (end > 128).then_some(("scalar", end))
            }
            _ => None,
        };
        if let Some((kind, end)) = end {
            return Err(Fault::instruction(format!(
                "an operand of {} ends at {kind} register {end}, which does not exist",
                instruction.name
            )));
        }
    }
    Ok(())
}
