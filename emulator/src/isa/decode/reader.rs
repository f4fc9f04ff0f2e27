//! The words of one instruction.

use super::DecodeError;
use crate::isa::tables::{Entry, by_opcode};
use crate::isa::{Encoding, Generation, Instruction, Modifiers, Operand, Target};

/// Up to 96 bits of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Fields(u128);

impl Fields {
    /// `count` bits, the lowest of which is `first`.
    pub fn get(self, first: u32, count: u32) -> u32 {
        (self.0 >> first) as u32 & u32::MAX.checked_shr(32 - count).unwrap_or(0)
    }

    pub fn bit(self, index: u32) -> bool {
        self.get(index, 1) != 0
    }

    pub fn byte(self, first: u32) -> u8 {
        self.get(first, 8) as u8
    }

    /// A number with a sign.
    pub fn signed(self, first: u32, count: u32) -> i32 {
        let shift = 32 - count;
        ((self.get(first, count) << shift) as i32) >> shift
    }
}

/// Reads one instruction from the front.
pub(super) struct Reader<'a> {
    pub target: Target,
    pub wave32: bool,
    pub offset: u64,
    pub first: u32,
    /// From the instruction's first byte.
    code: &'a [u8],
    words: usize,
    literal: Option<u32>,
}

impl<'a> Reader<'a> {
    pub fn new(target: Target, wave32: bool, code: &'a [u8], offset: u64) -> Result<Reader<'a>, DecodeError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = code.get(start..).unwrap_or_default();
        let mut reader = Reader { target, wave32, offset, first: 0, code: rest, words: 0, literal: None };
        match reader.word() {
            Ok(word) => {
                reader.first = word;
                Ok(reader)
            }
            Err(error) => Err(DecodeError { word: None, ..error }),
        }
    }

    pub fn generation(&self) -> Generation {
        self.target.generation
    }

    /// Whether GFX90A's accumulation registers can be operands of memory instructions.
    pub fn has_unified_registers(&self) -> bool {
        matches!(self.generation(), Generation::Gfx90a | Generation::Gfx940)
    }

    pub fn error(&self, reason: String) -> DecodeError {
        DecodeError { offset: self.offset, word: Some(self.first), target: self.target.name, reason }
    }

    /// The next word.
    pub fn word(&mut self) -> Result<u32, DecodeError> {
        let at = 4 * self.words;
        let bytes: Option<&[u8; 4]> = self.code.get(at..).and_then(|rest| rest.first_chunk());
        let Some(bytes) = bytes else {
            return Err(self.error(format!("the code ends {} bytes behind that offset", self.code.len())));
        };
        self.words += 1;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// The first word and `more` behind it.
    pub fn fields(&mut self, more: u32) -> Result<Fields, DecodeError> {
        let mut bits = u128::from(self.first);
        for index in 1..=more {
            bits |= u128::from(self.word()?) << (32 * index);
        }
        Ok(Fields(bits))
    }

    /// One word as fields.
    pub fn extra(&mut self) -> Result<Fields, DecodeError> {
        Ok(Fields(u128::from(self.word()?)))
    }

    /// The literal, which all operands that want one share.
    pub fn literal(&mut self) -> Result<u32, DecodeError> {
        if let Some(literal) = self.literal {
            return Ok(literal);
        }
        let literal = self.word()?;
        self.literal = Some(literal);
        Ok(literal)
    }

    pub fn entry(&self, encoding: Encoding, opcode: u32) -> Result<&'static Entry, DecodeError> {
        let entry =
            u16::try_from(opcode).ok().and_then(|opcode| by_opcode(encoding, self.generation(), opcode));
        entry.ok_or_else(|| {
            let name = format!("{encoding:?}").to_uppercase();
            self.error(format!("{name} has no opcode {opcode:#x} there"))
        })
    }

    /// The instruction, after all its words have been read.
    pub fn instruction(
        &self,
        name: &'static str,
        encoding: Encoding,
        destinations: [Operand; 2],
        sources: [Operand; 4],
        modifiers: Modifiers,
    ) -> Instruction {
        let size = (4 * self.words) as u8;
        Instruction {
            name,
            encoding,
            offset: self.offset,
            size,
            destinations,
            sources,
            modifiers,
            second: None,
        }
    }
}
