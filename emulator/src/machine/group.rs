//! A workgroup: what its waves share.

use crate::isa::Target;
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
    /// Told of each access to memory, when somebody wants to know.
    pub observer: Option<Box<dyn Observer + 'a>>,
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

/// Watches what waves do: checks and counters.
pub trait Observer {
    /// Before the access is made.
    fn access(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>>;
}

impl Group<'_> {
    /// Tells the observer, if there is one.
    pub fn observe(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        match &mut self.observer {
            Some(observer) => observer.access(wave, access),
            None => Ok(()),
        }
    }
}
