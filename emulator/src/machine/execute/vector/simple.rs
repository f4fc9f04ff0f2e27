//! Operations that read registers and constants and write whole registers, for those who make machine code of them.

use crate::isa::{Encoding, Instruction, Source, sgpr};
use crate::machine::execute::check_registers;
use crate::machine::step::Setting;

use super::direct::Plain;
use super::{Operation, packed};

pub use super::MaskOutput;
pub use super::direct::Words;
pub use super::kernel::Placing;

/// What an operation reads and writes.
pub struct Simple {
    pub inputs: Vec<Operand>,
    /// The first register of the result, and where in it half of one goes.
    pub destination: Option<usize>,
    pub placing: Placing,
    /// The scalar register with a bit for each lane that is read.
    pub bits: Option<u8>,
    /// Where bits go; `None` also where nobody wants them.
    pub mask: Option<MaskOutput>,
}

/// A source with what modifiers make of its words.
#[derive(Clone, Copy)]
pub struct Operand {
    pub from: From,
    pub words: Words,
}

/// Where words come from.
#[derive(Clone, Copy)]
pub enum From {
    /// A vector register.
    Row(usize),
    /// A scalar register of 32 bits.
    Scalar(u8),
    Constant(u64),
}

/// `None` for operations that are not simple.
pub fn describe(instruction: &Instruction, setting: Setting) -> Option<Simple> {
    check_registers(instruction).ok()?;
    let operation = Operation::new(instruction, setting).ok()?;
    if operation.scalar || instruction.modifiers.clamp {
        return None;
    }
    let (destination, placing) = match &operation.output {
        Some(output) => output.plain().map(|(register, placing)| (Some(register), placing))?,
        None => (None, Placing::WHOLE),
    };
    let bits = match operation.bits {
        None => None,
        Some(Source::Scalar(register)) if register != sgpr::NULL => Some(register),
        Some(_) => return None,
    };
    let inputs = operation
        .inputs
        .iter()
        .map(|input| {
            let (from, words) = match input.plain()? {
                Plain::Row(register) => (From::Row(register), Words::SAME),
                Plain::Changed(register, words) => (From::Row(register), words),
                Plain::Constant(row) => {
                    let high = u64::from(row.0[setting.lanes]);
                    (From::Constant(u64::from(row.0[0]) | high << 32), Words::SAME)
                }
                Plain::Scalar(register) => (From::Scalar(register), Words::SAME),
            };
            Some(Operand { from, words })
        })
        .collect::<Option<Vec<_>>>()?;
    let mask = operation.mask.filter(|mask| !matches!(mask, MaskOutput::Register(sgpr::NULL)));
    Some(Simple { inputs, destination, placing, bits, mask })
}

/// The operations of an instruction, which all read before one writes: mostly itself.
pub fn halves(instruction: &Instruction) -> Vec<Instruction> {
    if instruction.encoding == Encoding::Vopd {
        let second = instruction.second.as_deref().cloned();
        return std::iter::once(instruction.clone()).chain(second).collect();
    }
    match packed::single(instruction.name) {
        Some(_) => packed::halves(instruction).into(),
        None => vec![instruction.clone()],
    }
}

impl MaskOutput {
    /// Whether EXEC is written.
    pub fn writes_exec(self) -> bool {
        match self {
            MaskOutput::Register(register) => register >= sgpr::EXEC,
            MaskOutput::Exec(_) => true,
        }
    }
}
