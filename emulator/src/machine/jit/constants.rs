//! Constants that translated code reads.

use std::collections::HashMap;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::assembler::at;
use super::cache::{Zmm, zmm};
use super::emitter::Emitter;

/// How many words a region has at most.
const MOST: usize = 4096;

/// The words, and where each constant begins. R15 leads to the first.
pub struct Constants {
    words: Box<[u32]>,
    used: usize,
    found: HashMap<Vec<u32>, usize>,
}

impl Constants {
    pub fn new() -> Constants {
        Constants { words: vec![0; MOST].into_boxed_slice(), used: 0, found: HashMap::new() }
    }

    /// The first word of a constant; `None` where there is no room for it.
    pub fn place(&mut self, constant: &[u32]) -> Option<usize> {
        if let Some(&found) = self.found.get(constant) {
            return Some(found);
        }
        let first = self.used;
        self.words.get_mut(first..first + constant.len())?.copy_from_slice(constant);
        self.used += constant.len();
        self.found.insert(constant.to_vec(), first);
        Some(first)
    }

    pub fn address(&self) -> u64 {
        self.words.as_ptr().expose_provenance() as u64
    }

    pub fn into_words(self) -> Box<[u32]> {
        self.words
    }
}

/// Where a constant lies that begins with this word.
pub fn constant_memory(first: usize) -> MemoryOperand {
    at(Register::R15, 4 * first)
}

/// Operations with a constant in all lanes, which need no register for it.
impl Emitter {
    fn broadcast(&mut self, value: u32) -> MemoryOperand {
        let mut memory = constant_memory(self.constant_place(&[value]));
        memory.is_broadcast = true;
        memory
    }

    pub fn with_constant(&mut self, code: Code, to: Zmm, a: Zmm, value: u32) {
        let memory = self.broadcast(value);
        self.assembler.add(Instruction::with3(code, zmm(to), zmm(a), memory));
    }

    pub fn compare_constant(&mut self, code: Code, to: Register, a: Zmm, value: u32, predicate: u32) {
        let memory = self.broadcast(value);
        self.assembler.add(Instruction::with4(code, to, zmm(a), memory, predicate));
    }

    /// Lanes of a mask, or all where there is none, become a constant.
    pub fn set_lanes(&mut self, mask: Register, to: Zmm, value: u32) {
        let memory = constant_memory(self.constant_place(&[value]));
        let code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        self.assembler.add(Instruction::with2(code, zmm(to), memory).map(|mut it| {
            it.set_op_mask(mask);
            it
        }));
    }
}
