//! Faults on demand: the n-th call of a kind fails, so that a program's own handling of errors can be tested.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Runtime;
use super::call::Failure;
use super::errors::HipError;

/// Calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Alloc,
    Copy,
    Launch,
    Event,
    Stream,
    Module,
}

/// Which call of a kind fails; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailAt {
    kind: CallKind,
    number: u64,
}

/// In the order of the enumeration: name, error.
const KINDS: &[(CallKind, &str, HipError)] = &[
    (CallKind::Alloc, "alloc", HipError::OUT_OF_MEMORY),
    (CallKind::Copy, "copy", HipError::UNKNOWN),
    (CallKind::Launch, "launch", HipError::LAUNCH_OUT_OF_RESOURCES),
    (CallKind::Event, "event", HipError::OUT_OF_MEMORY),
    (CallKind::Stream, "stream", HipError::OUT_OF_MEMORY),
    (CallKind::Module, "module", HipError::SHARED_OBJECT_INIT_FAILED),
];

/// How many calls of each kind there were.
#[derive(Default)]
pub struct Counters([AtomicU64; KINDS.len()]);

impl FailAt {
    /// `alloc:3,copy:2`; `None` if that is not understood.
    pub fn parse(text: &str) -> Option<Vec<FailAt>> {
        text.split(',')
            .map(|part| {
                let (name, number) = part.split_once(':')?;
                let &(kind, ..) = KINDS.iter().find(|(_, known, _)| *known == name.trim())?;
                let number = number.trim().parse().ok().filter(|number| *number > 0)?;
                Some(FailAt { kind, number })
            })
            .collect()
    }
}

impl Runtime {
    /// Counts a call; the error if it is one that shall fail.
    pub fn count(&self, kind: CallKind) -> Result<(), Failure> {
        let number = self.calls.0[kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        if !self.options.fail_at.contains(&FailAt { kind, number }) {
            return Ok(());
        }
        let (_, name, error) = KINDS[kind as usize];
        Err(Failure::new(error, format!("call {number} of kind {name} fails on demand (AMDEMU_FAIL)")))
    }
}
