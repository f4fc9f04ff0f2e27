//! Why machine code has no meaning.

use std::error::Error;
use std::fmt;

/// Bytes that are not an instruction which the tables have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Bytes from the beginning of the code.
    pub offset: u64,
    /// The first word, where the code does not end before.
    pub word: Option<u32>,
    /// The target's name.
    pub target: &'static str,
    /// The encoding and the opcode, if they are known, and what is wrong.
    pub reason: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "no instruction of {} at offset {:#x}", self.target, self.offset)?;
        if let Some(word) = self.word {
            write!(formatter, ", word {word:#010x}")?;
        }
        write!(formatter, ": {}", self.reason)
    }
}

impl Error for DecodeError {}
