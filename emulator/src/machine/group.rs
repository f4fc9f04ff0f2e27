//! A workgroup: what its waves share.

use crate::isa::{Instruction, Target};
use crate::memory::Memory;

use super::fault::Fault;
use super::wave::Wave;

/// What the waves of a workgroup share while they run.
pub struct Group<'a> {
    pub target: Target,
    pub memory: &'a Memory,
    /// Its coordinates in the grid.
    pub id: [u32; 3],
    pub lds: Vec<u8>,
    /// Told of what waves do, when somebody wants to know.
    pub observers: Vec<Box<dyn Observer + 'a>>,
    /// Whether one of them watches this workgroup; all are told then.
    pub observed: bool,
}

/// Which memory an access is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Lds,
    Scratch,
    /// Through the scalar cache; the first lane stands for the wave.
    Scalar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

/// One instruction's access to memory, of all its lanes.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    pub space: Space,
    pub kind: AccessKind,
    /// Bytes of each lane.
    pub bytes: u32,
    /// Lanes that take part.
    pub mask: u64,
    /// Where, by lane: device addresses, or offsets in LDS or in a lane's scratch.
    pub addresses: &'a [u64; 64],
}

/// Watches the waves of one workgroup after the other: checks and counters. An error stops the kernel.
pub trait Observer {
    /// Whether the workgroup of this number is to be watched. Where no observer watches, waves run as fast as without.
    fn watches(&mut self, _number: u64) -> bool {
        true
    }

    /// A workgroup begins; its waves are ready.
    fn begin(&mut self, _group: [u32; 3], _waves: &[Wave]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    /// Before an instruction is executed.
    fn before(&mut self, _wave: &Wave, _instruction: &Instruction) -> Result<(), Box<Fault>> {
        Ok(())
    }

    /// Before an instruction reads or writes memory.
    fn access(&mut self, _wave: &Wave, _access: &Access<'_>) -> Result<(), Box<Fault>> {
        Ok(())
    }

    /// After an instruction was executed.
    fn after(&mut self, _wave: &Wave, _instruction: &Instruction) -> Result<(), Box<Fault>> {
        Ok(())
    }

    /// All waves wait at a barrier or have ended; those that wait go on.
    fn barrier(&mut self, _waves: &[Wave]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    /// All waves have ended.
    fn end(&mut self, _waves: &[Wave]) -> Result<(), Box<Fault>> {
        Ok(())
    }
}

/// What observers of a launch have in common. Each thread that runs workgroups has an observer of its own.
pub trait Watch: Sync {
    fn observer(&self) -> Box<dyn Observer + '_>;
}

impl Group<'_> {
    /// Whether anybody wants to know of accesses.
    pub fn is_observed(&self) -> bool {
        self.observed
    }

    /// Tells the observers.
    pub fn observe(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        self.observers.iter_mut().try_for_each(|observer| observer.access(wave, access))
    }
}
