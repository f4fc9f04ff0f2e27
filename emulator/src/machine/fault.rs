//! Why a kernel stops before its end.

use std::fmt;

/// What stopped a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// A sentence with the address, the lane and the sizes. Where it happened is added behind it by those who know:
    /// the instruction, wave, workgroup and kernel.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An instruction that is unknown, or that cannot be executed.
    IllegalInstruction,
    /// An access outside all allocations, misaligned, or to freed memory.
    IllegalAddress,
    /// More instructions than allowed, or waves that wait for each other.
    Timeout,
    /// A check found a mistake: a race, a missing wait, an uninitialised value.
    Check,
}

impl Fault {
    pub fn instruction(message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { kind: FaultKind::IllegalInstruction, message: message.into() })
    }

    pub fn address(message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { kind: FaultKind::IllegalAddress, message: message.into() })
    }

    pub fn timeout(message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { kind: FaultKind::Timeout, message: message.into() })
    }

    pub fn check(message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { kind: FaultKind::Check, message: message.into() })
    }

    /// The same with more of where it happened.
    pub fn at(mut self: Box<Fault>, place: impl fmt::Display) -> Box<Fault> {
        self.message = format!("{}, {place}", self.message);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
