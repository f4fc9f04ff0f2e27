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

pub use modes::check_float_mode;

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
    run: Run,
}

/// From what is read to the result and what may become SCC.
type Run = fn(Values) -> (u64, bool);

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
fn one(bits: [u8; 2], scc: Scc, run: Run) -> Operation {
    Operation { bits: [bits[0], bits[1], 0], scc, run }
}

fn two(bits: [u8; 3], scc: Scc, run: Run) -> Operation {
    Operation { bits, scc, run }
}

fn compute(instruction: &Instruction, operation: Operation) -> Action {
    let [first, second, third] =
        [instruction.sources[0].source, instruction.sources[1].source, instruction.sources[2].source];
    let destination = instruction.destinations[0].source;
    // The multiply-adds of floats read a third one in the place of the old value.
    let old = if third == Source::None { destination } else { third };
    let bits = operation.bits;
    let (a, b, old) = (Input::new(first, bits[1]), Input::new(second, bits[2]), Input::new(old, bits[0]));
    Box::new(move |wave, _| {
        let values = Values { a: a.read(wave)?, b: b.read(wave)?, old: old.read(wave)?, scc: wave.scc };
        let (result, scc) = (operation.run)(values);
        write(wave, destination, result, bits[0]);
        match operation.scc {
            Scc::Stays => {}
            Scc::NotZero => wave.scc = if bits[0] == 32 { result as u32 != 0 } else { result != 0 },
            Scc::Result => wave.scc = scc,
        }
        Ok(())
    })
}

/// A source made ready.
enum Input {
    Constant(u64),
    Register(u8),
    Registers(u8),
    /// What only the wave knows, and its bits.
    Other(Source, u8),
}

impl Input {
    fn new(source: Source, bits: u8) -> Input {
        match (source, bits) {
            (_, 0) => Input::Constant(0),
            (Source::Scalar(register), 32) => Input::Register(register & 127),
            (Source::Scalar(register), _) => Input::Registers(register),
            (Source::Integer(value), 32) => Input::Constant(u64::from(value as u32)),
            (Source::Literal(value), _) => Input::Constant(u64::from(value)),
            _ => Input::Other(source, bits),
        }
    }

    #[inline(always)]
    fn read(&self, wave: &Wave) -> Result<u64, Box<Fault>> {
        match *self {
            Input::Constant(value) => Ok(value),
            Input::Register(register) => Ok(u64::from(wave.scalar[usize::from(register)])),
            Input::Registers(register) => Ok(wave.scalar64(register)),
            Input::Other(source, 32) => wave.read32(source).map(u64::from),
            Input::Other(source, _) => wave.read64(source),
        }
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
