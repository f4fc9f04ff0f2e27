pub mod dpp;
use crate::isa::Instruction;

use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

pub fn action(instruction: &Instruction, setting: Setting) -> Result<Option<Action>, Box<Fault>> {
    let _ = (instruction, setting);
    Ok(None)
}
