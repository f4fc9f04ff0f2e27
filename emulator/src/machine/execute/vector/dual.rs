//! VOPD: two operations that read before either of them writes.

use crate::isa::Instruction;
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

use super::{Operation, RESULT, SECOND_RESULT, execute};

pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let Some(second) = &instruction.second else {
        return Err(Fault::instruction(format!("{} has no second half", instruction.name)));
    };
    let (x, y) = (Operation::new(instruction, setting)?, Operation::new(second, setting)?);
    // Where the second does not read what the first writes, one may follow the other.
    let independent =
        second.sources.iter().all(|operand| operand.source != instruction.destinations[0].source);
    if !independent || instruction.modifiers.dpp.is_some() {
        return Ok(both(x, y));
    }
    let (x, y) = (execute(x, setting), execute(y, setting));
    Ok(Box::new(move |wave, group| {
        x(wave, group)?;
        y(wave, group)
    }))
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
