//! The instruction set: targets, instructions and how they are encoded.

mod instruction;
mod target;

pub use instruction::{Dpp, Encoding, Instruction, Memory, Modifiers, Operand, Sdwa, Source, Special, sgpr};
pub use target::{Generation, Target};
