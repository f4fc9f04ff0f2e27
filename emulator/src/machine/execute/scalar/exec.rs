//! Operations that save EXEC and change it.

use crate::isa::{Instruction, Source, sgpr};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

type Operation = fn(u64, u64) -> u64;

/// From the source and EXEC to the new EXEC: what stands between `s_` and `_saveexec` or `_wrexec`.
const OPERATIONS: [(&str, Operation); 12] = [
    ("and", |a, exec| a & exec),
    ("or", |a, exec| a | exec),
    ("xor", |a, exec| a ^ exec),
    ("nand", |a, exec| !(a & exec)),
    ("nor", |a, exec| !(a | exec)),
    ("xnor", |a, exec| !(a ^ exec)),
    ("and_not0", |a, exec| !a & exec),
    ("and_not1", |a, exec| a & !exec),
    ("or_not0", |a, exec| !a | exec),
    ("or_not1", |a, exec| a | !exec),
    ("andn1", |a, exec| !a & exec),
    ("andn2", |a, exec| a & !exec),
];

/// `None` for other instructions.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Option<Action>, Box<Fault>> {
    let Some(name) = instruction.name.strip_prefix("s_") else { return Ok(None) };
    let (name, wide) = match (name.strip_suffix("_b32"), name.strip_suffix("_b64")) {
        (Some(name), _) => (name, false),
        (_, Some(name)) => (name, true),
        _ => return Ok(None),
    };
    // The result is EXEC in both; the register gets EXEC before, or after.
    let (name, after) = match (name.strip_suffix("_saveexec"), name.strip_suffix("_wrexec")) {
        (Some(name), _) => (name, false),
        (_, Some(name)) => (name, true),
        _ => return Ok(None),
    };
    let Some(&(_, operation)) = OPERATIONS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    let (source, destination) = (instruction.sources[0].source, instruction.destinations[0].source);
    Ok(Some(Box::new(move |wave, _| {
        let (a, exec) = if wide {
            (wave.read64(source)?, wave.scalar64(sgpr::EXEC))
        } else {
            (u64::from(wave.read32(source)?), u64::from(wave.scalar[usize::from(sgpr::EXEC)]))
        };
        let result = operation(a, exec) & if wide { u64::MAX } else { u64::from(u32::MAX) };
        let saved = if after { result } else { exec };
        for (register, value) in [(destination, saved), (Source::Scalar(sgpr::EXEC), result)] {
            match register {
                Source::Scalar(register) if wide => wave.set_scalar64(register, value),
                Source::Scalar(register) => wave.set_scalar(register, value as u32),
                _ => {}
            }
        }
        wave.scc = result != 0;
        Ok(())
    })))
}
