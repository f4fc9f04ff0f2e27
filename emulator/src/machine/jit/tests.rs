//! Translated code beside the interpreter. Instructions one by one are compared in `execute/testing.rs`, for all tests of
//! instructions, and blocks in `execute/vector/tests/blocks.rs`.

mod accesses;

use crate::isa::{Encoding, Instruction, Target};
use crate::machine::group::Group;
use crate::machine::program::Program;
use crate::machine::wave::Wave;

use super::{Why, is_possible, run};

/// Runs instructions as a block of translated code; the error where one stopped. `None` where nothing can be translated.
pub fn run_translated(
    target: Target,
    instructions: &[Instruction],
    wave: &mut Wave,
    group: &mut Group<'_>,
) -> Option<Result<(), String>> {
    if !is_possible() {
        return None;
    }
    let program = Program::of(target, wave.lanes, instructions);
    program.translations.translate(&program, 0, wave.lanes);
    let code = program.translations.find(0, wave.lanes).expect("code for the block");
    // SAFETY: the code was found in the program, for waves of as many lanes.
    let done = unsafe { run(wave, group, u64::MAX, code) };
    Some(done.map_err(|stopped| match stopped.why {
        Why::Fault(fault) => fault.to_string(),
        Why::Panic(_) => "a panic".to_owned(),
    }))
}

/// The end of a kernel.
pub fn end_of_kernel() -> Instruction {
    let mut end = Instruction::unknown(0);
    (end.name, end.encoding) = ("s_endpgm", Encoding::Sopp);
    end
}
