//! The instruction set: targets, instructions and how they are encoded.

mod decode;
mod instruction;
pub mod tables;
mod target;
#[cfg(test)]
mod tests;
mod text;

pub use decode::{DecodeError, decode};
pub use instruction::{Dpp, Encoding, Instruction, Memory, Modifiers, Operand, Sdwa, Source, Special, sgpr};
pub use target::{Generation, Target};
pub use text::text;
