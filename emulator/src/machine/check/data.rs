//! What stores take their data from.

use crate::isa::{Encoding, Instruction, Source};
use crate::machine::wave::Wave;

/// Where the data of a store is.
#[derive(Clone, Copy)]
pub struct Data {
    first: usize,
    registers: usize,
    /// The data begins in the upper half of the register.
    upper: bool,
}

impl Data {
    /// The data of a store or an atomic operation; DS has two of them.
    pub fn of(instruction: &Instruction) -> [Option<Data>; 2] {
        let [_, first, second, fourth] = instruction.sources;
        let data = match instruction.encoding {
            Encoding::Ds => [first, second],
            Encoding::Buffer => [fourth, fourth],
            Encoding::Flat | Encoding::Global | Encoding::Scratch => [first, first],
            _ => return [None; 2],
        };
        let upper = instruction.name.contains("_d16_hi_");
        data.map(|operand| match operand.source {
            Source::Vector(first) => {
                Some(Data { first: first.into(), registers: operand.registers.into(), upper })
            }
            _ => None,
        })
    }

    /// What a lane stores, and what follows in the registers.
    pub fn value(self, wave: &Wave, lane: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (i, word) in bytes.chunks_exact_mut(4).enumerate().take(self.registers) {
            let value = wave.vector.get(self.first + i, lane);
            let value = if self.upper { value >> 16 } else { value };
            word.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}
