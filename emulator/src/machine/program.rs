//! The code of a code object, decoded block by block when it is first reached.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use crate::isa::{Instruction, Target, decode};

use super::fault::{Fault, FaultKind};
use super::step::{Action, Setting, ends_block, prepare, stop};

/// Instructions are at least this long and begin at its multiples. In bytes.
pub const WORD: u64 = 4;

/// A block that is longer is cut, so that code without a branch is not decoded to its end at once.
const LONGEST_BLOCK: usize = 512;

/// The code of a loaded code object.
pub struct Program {
    pub target: Target,
    /// Device address of the first byte.
    pub base: u64,
    code: Vec<u8>,
    /// By the word that they begin at, for waves of 32 and of 64 lanes.
    blocks: [OnceLock<Vec<OnceLock<Block>>>; 2],
    #[cfg(all(target_arch = "x86_64", unix))]
    pub translations: super::jit::Translations,
}

/// Instructions that are executed one after the other.
pub struct Block {
    /// `None` for an instruction that does nothing here.
    pub actions: Vec<Option<Action>>,
    /// What the actions do, apart from them: it is only needed for messages and for those who watch.
    pub instructions: Vec<Instruction>,
    /// Where the code behind it begins, in bytes from the beginning of the code.
    pub end: u64,
    /// How often it was interpreted.
    pub runs: AtomicU32,
}

impl Program {
    pub fn new(target: Target, base: u64, code: Vec<u8>) -> Program {
        Program {
            target,
            base,
            code,
            blocks: [OnceLock::new(), OnceLock::new()],
            #[cfg(all(target_arch = "x86_64", unix))]
            translations: super::jit::Translations::default(),
        }
    }

    /// A program that is one block, which was decoded.
    #[cfg(test)]
    pub fn of(target: Target, lanes: usize, instructions: &[Instruction]) -> Program {
        let mut instructions = instructions.to_vec();
        let mut end = 0;
        for instruction in &mut instructions {
            instruction.offset = end;
            end += u64::from(instruction.size);
        }
        let program = Program::new(target, 0, vec![0; end as usize]);
        let setting = Setting { target, lanes, base: 0 };
        let actions = instructions.iter().map(|it| prepare(it, setting)).collect();
        let block = Block { actions, instructions, end, runs: AtomicU32::new(0) };
        let blocks =
            std::iter::once(OnceLock::from(block)).chain((1..program.words()).map(|_| OnceLock::new()));
        assert!(program.blocks[lanes / 64].set(blocks.collect()).is_ok());
        program
    }

    /// Words of code.
    pub fn words(&self) -> usize {
        self.code.len().div_ceil(WORD as usize)
    }

    /// The block that begins at `pc`, if it was reached before.
    pub fn known_block(&self, pc: u64, lanes: usize) -> Option<&Block> {
        let index = usize::try_from(pc / WORD).ok().filter(|_| pc.is_multiple_of(WORD))?;
        self.blocks[lanes / 64].get()?.get(index)?.get()
    }

    /// The block that begins at `pc`, in bytes from the beginning of the code.
    pub fn block(&self, pc: u64, lanes: usize) -> Result<&Block, Box<Fault>> {
        let blocks =
            self.blocks[lanes / 64].get_or_init(|| (0..self.words()).map(|_| OnceLock::new()).collect());
        let index = usize::try_from(pc / WORD).unwrap_or(usize::MAX);
        match blocks.get(index) {
            Some(block) if pc.is_multiple_of(WORD) => Ok(block.get_or_init(|| self.decode(pc, lanes))),
            _ => Err(Fault::instruction(format!(
                "the wave went on at byte {pc:#x} of a code of {} bytes",
                self.code.len()
            ))),
        }
    }

    fn decode(&self, begin: u64, lanes: usize) -> Block {
        let setting = Setting { target: self.target, lanes, base: self.base };
        let (actions, instructions) = (Vec::new(), Vec::new());
        let mut block = Block { actions, instructions, end: begin, runs: AtomicU32::new(0) };
        while block.actions.len() < LONGEST_BLOCK {
            let instruction = match decode(self.target, lanes == 32, &self.code, block.end) {
                Ok(instruction) => instruction,
                Err(error) => {
                    block.push_unknown(error.to_string());
                    break;
                }
            };
            block.end += u64::from(instruction.size);
            block.actions.push(prepare(&instruction, setting));
            let ends = ends_block(&instruction);
            block.instructions.push(instruction);
            if ends {
                break;
            }
        }
        block
    }
}

impl Block {
    /// An action that stops because there is no instruction.
    fn push_unknown(&mut self, message: String) {
        self.actions.push(Some(stop(Fault { kind: FaultKind::IllegalInstruction, message })));
        self.instructions.push(Instruction::unknown(self.end));
    }
}
