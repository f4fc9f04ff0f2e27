//! Which registers an instruction reads and writes.

use crate::isa::{Instruction, Operand, Source, Special, sgpr};

/// Consecutive registers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    Vector { first: usize, count: usize },
    Scalar { first: usize, count: usize },
}

impl Span {
    /// The registers of an operand; `None` for a constant.
    pub fn of(operand: Operand) -> Option<Span> {
        let count = usize::from(operand.registers.max(1));
        match operand.source {
            Source::Vector(first) => Some(Span::Vector { first: first.into(), count }),
            Source::Scalar(sgpr::NULL) => None,
            Source::Scalar(first) => Some(Span::Scalar { first: first.into(), count }),
            _ => None,
        }
    }

    /// The name of a register of the span.
    pub fn name(register: usize, scalar: bool) -> String {
        match (scalar, register) {
            (true, 106) => "vcc_lo".to_owned(),
            (true, 107) => "vcc_hi".to_owned(),
            (true, 124) => "m0".to_owned(),
            (true, 126) => "exec_lo".to_owned(),
            (true, 127) => "exec_hi".to_owned(),
            (true, _) => format!("s{register}"),
            (false, 256..) => format!("a{}", register - 256),
            (false, _) => format!("v{register}"),
        }
    }
}

/// What an instruction reads in a wave of `lanes`. With 32 lanes a mask is one register, and `vcc_hi` is one of its own.
pub fn reads(instruction: &Instruction, lanes: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = instruction.sources.iter().filter_map(|operand| Span::of(*operand)).collect();
    let vcc_is_zero = |operand: &Operand| operand.source == Source::Special(Special::VccIsZero);
    if instruction.name.starts_with("s_cbranch_vcc") || instruction.sources.iter().any(vcc_is_zero) {
        spans.push(Span::Scalar { first: sgpr::VCC.into(), count: lanes / 32 });
    }
    if let Some(second) = &instruction.second {
        spans.extend(reads(second, lanes));
    }
    spans
}

/// What an instruction writes.
pub fn writes(instruction: &Instruction) -> Vec<Span> {
    let mut spans: Vec<Span> =
        instruction.destinations.iter().filter_map(|operand| Span::of(*operand)).collect();
    if let Some(second) = &instruction.second {
        spans.extend(writes(second));
    }
    spans
}
