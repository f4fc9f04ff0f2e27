use crate::isa::Instruction;

use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

use super::unsupported;

pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let _ = setting;
    Err(unsupported(instruction))
}
