//! Calls from translated code to what instructions do otherwise.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::machine::fault::Fault;
use crate::machine::group::Group;
use crate::machine::step::Action;
use crate::machine::wave::Wave;

use super::memory::Access;

/// What translated code is given beside the wave.
#[repr(C)]
pub struct Context {
    /// A wave that executed more instructions leaves.
    pub limit: u64,
    pub stopped: Option<Stopped>,
}

/// Why translated code stopped.
pub struct Stopped {
    /// Of the block: its first instruction, in bytes, and the step.
    pub block: u64,
    pub step: usize,
    pub why: Why,
}

pub enum Why {
    Fault(Box<Fault>),
    /// A defect of the emulator, which goes on where no translated code is on the stack.
    Panic(Box<dyn Any + Send>),
}

/// An instruction that is called.
pub struct Call {
    /// What it does; it lives as long as the program's blocks.
    pub action: *const Action,
    pub block: u64,
    pub step: usize,
    /// Where it accesses memory, for functions that know how.
    pub access: Access,
    /// Instructions behind it that the same function serves.
    pub others: Vec<Call>,
}

// SAFETY: the pointer leads to an `Action`, which is `Sync` and is only read; nothing else in a call belongs to a thread.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

/// What translated code calls: 0, or 1 where it stopped.
pub type Function = unsafe extern "sysv64" fn(&Call, &mut Wave, &mut Group<'_>, &mut Context) -> u32;

/// Calls the instruction's action.
///
/// # Safety
///
/// The program that the action belongs to lives.
pub unsafe extern "sysv64" fn perform(
    call: &Call,
    wave: &mut Wave,
    group: &mut Group<'_>,
    context: &mut Context,
) -> u32 {
    // SAFETY: the caller promises that the program lives, and its blocks keep their actions as long.
    let action = unsafe { &*call.action };
    let why = match catch_unwind(AssertUnwindSafe(|| action(wave, group))) {
        Ok(Ok(())) => return 0,
        Ok(Err(fault)) => Why::Fault(fault),
        Err(panic) => Why::Panic(panic),
    };
    context.stopped = Some(Stopped { block: call.block, step: call.step, why });
    1
}
