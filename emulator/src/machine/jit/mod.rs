//! Machine code of the host in place of the interpreter.
//!
//! Blocks that were executed often are translated, together with those they jump to. Registers stay in the wave's memory;
//! what an instruction computes is found in registers of the host by those behind it. An instruction without a row in the
//! tables is a call of what the interpreter does. Nothing is translated for waves that somebody watches, and none that are
//! interrupted anywhere.

mod assembler;
mod cache;
mod call;
mod codes;
mod constants;
mod emitter;
mod enter;
mod inline;
mod memory;
mod pages;
mod region;
mod scalar;
mod step;
mod vector;

#[cfg(test)]
pub mod tests;

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use super::group::Group;
use super::native::has_avx512;
use super::program::{Program, WORD};
use super::wave::Wave;

pub use call::{Context, Stopped, Why};

use region::Region;

/// The code of a program that was translated.
#[derive(Default)]
pub struct Translations {
    /// For waves of 32 and of 64 lanes: where the code of a block is, by the word that its instructions begin at; 0 where
    /// there is none.
    tables: [OnceLock<Box<[AtomicUsize]>>; 2],
    regions: Mutex<Vec<Region>>,
}

/// Whether this processor and this system can run translated code.
pub fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| has_avx512() && enter::is_possible())
}

/// The names of vector instructions that have rows.
#[cfg(test)]
pub fn vector_rows() -> impl Iterator<Item = &'static str> {
    vector::names()
}

/// Whether a vector instruction becomes machine code with these operands.
#[cfg(test)]
pub fn is_translated(instruction: &crate::isa::Instruction, setting: super::step::Setting) -> bool {
    vector::plan(instruction, setting).is_some()
}

impl Translations {
    /// Where the code of the block at `pc` is.
    pub fn find(&self, pc: u64, lanes: usize) -> Option<usize> {
        let place = self.tables[lanes / 64].get()?.get((pc / WORD) as usize)?;
        let found = place.load(Ordering::Acquire);
        (found != 0 && pc.is_multiple_of(WORD)).then_some(found)
    }

    /// How many blocks were translated.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.regions.lock().expect("no thread panicked").iter().map(|region| region.entries.len()).sum()
    }

    /// Translates the block at `pc` and those behind it. Where it cannot be, it is interpreted as before.
    pub fn translate(&self, program: &Program, pc: u64, lanes: usize) {
        let mut regions = match self.regions.try_lock() {
            Ok(regions) => regions,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread translates meanwhile.
            Err(TryLockError::WouldBlock) => return,
        };
        if self.find(pc, lanes).is_some() {
            return;
        }
        let table = self.tables[lanes / 64]
            .get_or_init(|| (0..program.words()).map(|_| AtomicUsize::new(0)).collect());
        let Ok(region) = region::translate(program, pc, lanes, table) else { return };
        for &(begin, address) in &region.entries {
            if let Some(place) = table.get((begin / WORD) as usize) {
                place.store(address, Ordering::Release);
            }
        }
        regions.push(region);
    }
}

/// Runs translated code of a wave, from the block whose code is there, until it leaves.
///
/// # Safety
///
/// [`Translations::find`] of the program that the wave runs gave the code, for as many lanes as the wave has.
pub unsafe fn run(wave: &mut Wave, group: &mut Group<'_>, limit: u64, code: usize) -> Result<(), Stopped> {
    let (lds, lds_bytes) = (group.lds.as_mut_ptr(), group.lds.len() as u64);
    let mut context = Context { limit, stopped: None, lds, lds_bytes, places: MaybeUninit::uninit() };
    // SAFETY: the caller promises what `enter` asks for.
    unsafe { enter::enter(wave, group, &mut context, code) };
    match context.stopped {
        None => Ok(()),
        Some(stopped) => Err(stopped),
    }
}
