//! Calls from translated code to what instructions do otherwise.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use iced_x86::{Code, Instruction, Register};

use crate::machine::fault::Fault;
use crate::machine::group::Group;
use crate::machine::step::Action;
use crate::machine::wave::Wave;

use super::assembler::{Assembler, Label};
use super::inline::Place;
use super::memory::Access;

/// How many places translated code knows at once.
pub const PLACES: usize = 8;

/// What translated code is given beside the wave.
#[repr(C)]
pub struct Context {
    /// A wave that executed more instructions leaves.
    pub limit: u64,
    pub stopped: Option<Stopped>,
    /// The workgroup's LDS.
    pub lds: *mut u8,
    pub lds_bytes: u64,
    /// What code has found out of places in memory. It writes each before it reads it.
    pub places: MaybeUninit<[Place; PLACES]>,
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
// SAFETY: threads that share a call only read it, and the `Action` that its pointer leads to is `Sync`.
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

/// Code that calls a function, and leaves where it stopped.
pub fn emit_call(assembler: &mut Assembler, function: Function, call: *const Call, exit: Label) {
    assembler.add(Ok(Instruction::with(Code::VEX_Vzeroupper)));
    assembler.constant(Register::RDI, call.expose_provenance() as u64);
    assembler.two(Code::Mov_r64_rm64, Register::RSI, Register::RBX);
    assembler.two(Code::Mov_r64_rm64, Register::RDX, Register::R14);
    assembler.two(Code::Mov_r64_rm64, Register::RCX, Register::R13);
    assembler.constant(Register::RAX, function as usize as u64);
    assembler.one(Code::Call_rm64, Register::RAX);
    assembler.two(Code::Test_rm32_r32, Register::EAX, Register::EAX);
    assembler.jump(Code::Jne_rel32_64, exit);
}
