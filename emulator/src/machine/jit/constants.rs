//! Constants that translated code reads.

use std::collections::HashMap;

use iced_x86::{MemoryOperand, Register};

use super::assembler::at;

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
