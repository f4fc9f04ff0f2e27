//! Operations of the scalar unit.

mod arithmetic;
mod bits;
mod comparisons;
mod control;
mod exec;
mod floats;
mod immediates;
mod indexed;
mod modes;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::isa::{Instruction, Source};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::Wave;

use super::unsupported;

/// What a scalar instruction computes.
#[derive(Clone, Copy)]
struct Operation {
    /// Bits of the result and of the sources: 0, 32 or 64. Those of the second are 0 where there is none.
    bits: [u8; 3],
    scc: Scc,
    run: fn(Values) -> (u64, bool),
}

/// What a scalar instruction reads. Values of 32 bits are extended by zeros.
#[derive(Clone, Copy)]
struct Values {
    a: u64,
    b: u64,
    /// What the destination holds.
    old: u64,
    scc: bool,
}

/// What becomes of SCC.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scc {
    Stays,
    /// Whether the result is not 0.
    NotZero,
    /// What the operation says.
    Result,
}

type Row = (&'static str, Operation);

static OPERATIONS: LazyLock<HashMap<&'static str, Operation>> = LazyLock::new(|| {
    [arithmetic::rows(), bits::rows(), comparisons::rows(), floats::rows()].into_iter().flatten().collect()
});

/// What a scalar instruction does.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    if let Some(operation) = OPERATIONS.get(instruction.name) {
        return Ok(compute(instruction, *operation));
    }
    let kinds =
        [control::action, exec::action, floats::action, immediates::action, indexed::action, modes::action];
    for kind in kinds {
        if let Some(action) = kind(instruction, setting)? {
            return Ok(action);
        }
    }
    Err(unsupported(instruction))
}

/// Those whose result is a value, with one or two sources.
fn one(bits: [u8; 2], scc: Scc, run: fn(Values) -> (u64, bool)) -> Operation {
    Operation { bits: [bits[0], bits[1], 0], scc, run }
}

fn two(bits: [u8; 3], scc: Scc, run: fn(Values) -> (u64, bool)) -> Operation {
    Operation { bits, scc, run }
}

fn compute(instruction: &Instruction, operation: Operation) -> Action {
    let [first, second, third] =
        [instruction.sources[0].source, instruction.sources[1].source, instruction.sources[2].source];
    let destination = instruction.destinations[0].source;
    // The multiply-adds of floats read a third one in the place of the old value.
    let old = if third == Source::None { destination } else { third };
    Box::new(move |wave, _| {
        let values = Values {
            a: read(wave, first, operation.bits[1])?,
            b: read(wave, second, operation.bits[2])?,
            old: read(wave, old, operation.bits[0])?,
            scc: wave.scc,
        };
        let (result, scc) = (operation.run)(values);
        write(wave, destination, result, operation.bits[0]);
        match operation.scc {
            Scc::Stays => {}
            Scc::NotZero => wave.scc = if operation.bits[0] == 32 { result as u32 != 0 } else { result != 0 },
            Scc::Result => wave.scc = scc,
        }
        Ok(())
    })
}

fn read(wave: &Wave, source: Source, bits: u8) -> Result<u64, Box<Fault>> {
    match bits {
        0 => Ok(0),
        32 => wave.read32(source).map(u64::from),
        _ => wave.read64(source),
    }
}

fn write(wave: &mut Wave, destination: Source, value: u64, bits: u8) {
    match (destination, bits) {
        (Source::Scalar(register), 32) => wave.set_scalar(register, value as u32),
        (Source::Scalar(register), 64) => wave.set_scalar64(register, value),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
