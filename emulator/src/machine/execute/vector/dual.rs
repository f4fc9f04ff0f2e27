//! VOPD: two operations that read before either of them writes.

use crate::isa::Instruction;
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

use super::{Operation, RESULT, SECOND_RESULT};

pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let Some(second) = &instruction.second else {
        return Err(Fault::instruction(format!("{} has no second half", instruction.name)));
    };
    Ok(both(Operation::new(instruction, setting)?, Operation::new(second, setting)?))
}

/// Two operations at once.
pub fn both(x: Operation, y: Operation) -> Action {
    Box::new(move |wave, _| {
        let first = x.compute(wave, RESULT)?;
        if let Some(written) = y.compute(wave, SECOND_RESULT)? {
            y.write(wave, SECOND_RESULT, written);
        }
        if let Some(written) = first {
            x.write(wave, RESULT, written);
        }
        Ok(())
    })
}
