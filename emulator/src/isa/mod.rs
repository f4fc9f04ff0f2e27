//! The instruction set: targets, instructions and how they are encoded.

mod decode;
mod instruction;
pub mod tables;
mod target;

pub use decode::{DecodeError, decode};
pub use instruction::{Dpp, Encoding, Instruction, Memory, Modifiers, Operand, Sdwa, Source, Special, sgpr};
pub use target::{Generation, Target};

// To be replaced by the decoder and the text.
pub struct DecodeError;
impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no decoder yet")
    }
}
pub fn decode(_: Target, _: bool, _: &[u8], _: u64) -> Result<Instruction, DecodeError> {
    Err(DecodeError)
}
pub fn text(instruction: &Instruction, _: Target) -> String {
    instruction.name.to_owned()
}
