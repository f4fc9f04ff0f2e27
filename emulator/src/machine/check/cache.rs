//! What a check knows of each instruction, found out when the instruction is first reached.

use std::rc::Rc;

use crate::isa::Instruction;

/// Something for each instruction of a program.
pub struct Cache<T> {
    /// By the word that the instruction begins at.
    rows: Vec<Option<Rc<T>>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache { rows: Vec::new() }
    }
}

impl<T> Cache<T> {
    /// What is known; `make` finds it out.
    pub fn get(&mut self, instruction: &Instruction, make: impl FnOnce() -> T) -> Rc<T> {
        let at = (instruction.offset / 4) as usize;
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, || None);
        }
        Rc::clone(self.rows[at].get_or_insert_with(|| Rc::new(make())))
    }
}
