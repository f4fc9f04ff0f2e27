//! Accesses to memory by all lanes of a wave, wherever the memory is.

pub mod atomic;
pub mod copy;
pub mod element;
pub mod near;
pub mod operation;
pub mod transfer;

use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Group, Space};
use crate::machine::wave::{Wave, lanes_of};

use near::Near;

/// Where the elements of the lanes lie in the host's memory.
pub enum Places<const LANES: usize> {
    /// All lanes are active, and each lane's element lies behind that of the lane before.
    Run(*mut u8),
    /// Anywhere; pointers of lanes that are not active mean nothing.
    Each([*mut u8; LANES]),
}

impl<const LANES: usize> Places<LANES> {
    /// A lane's pointer; `bytes` is the size of an element.
    #[inline(always)]
    pub fn pointer(&self, lane: usize, bytes: usize) -> *mut u8 {
        match self {
            Places::Run(first) => first.wrapping_add(lane * bytes),
            Places::Each(pointers) => pointers[lane],
        }
    }
}

/// Whether all lanes are active and each lane's element lies behind that of the lane before.
#[inline(always)]
pub fn is_run<const LANES: usize>(addresses: &[u64; LANES], mask: u64, bytes: usize) -> bool {
    let mut different = 0;
    for (lane, address) in addresses.iter().enumerate() {
        different |= address ^ addresses[0].wrapping_add((lane * bytes) as u64);
    }
    different == 0 && mask == all::<LANES>()
}

/// What an instruction is about to do.
#[derive(Clone, Copy)]
pub struct Want {
    /// Bytes of an element.
    pub bytes: usize,
    pub kind: AccessKind,
}

/// The places of some lanes.
pub struct Placed<const LANES: usize> {
    pub places: Places<LANES>,
    /// The lanes whose places lead to as many bytes as were wanted.
    pub mask: u64,
}

/// How an instruction finds the elements of its lanes.
pub trait Place: Send + Sync + 'static {
    /// Whether other threads may use the same memory.
    const SHARED: bool;

    /// The short way: where the elements lie when all lanes are active, nobody watches, and they lie near each other.
    /// `None` says nothing; then [`Place::place`] is to be asked.
    fn near<const LANES: usize>(
        &self,
        _wave: &mut Wave,
        _group: &mut Group<'_>,
        _bytes: usize,
    ) -> Option<Near<LANES>> {
        None
    }

    /// Looks all active lanes up and checks them. Lanes that are active and not in the mask load 0 and store nothing.
    /// There is at least one active lane.
    fn place<const LANES: usize>(
        &self,
        wave: &mut Wave,
        group: &mut Group<'_>,
        want: Want,
    ) -> Result<Placed<LANES>, Box<Fault>>;
}

/// Adds a register, or nothing, to the lanes' offsets.
#[inline(always)]
pub fn add_register<const LANES: usize>(offsets: &mut [u32; LANES], wave: &Wave, register: Option<usize>) {
    if let Some(register) = register {
        for (offset, &more) in offsets.iter_mut().zip(&wave.vector.rows::<LANES>()[register]) {
            *offset = offset.wrapping_add(more);
        }
    }
}

/// A bit for each lane.
pub const fn all<const LANES: usize>() -> u64 {
    u64::MAX >> (64 - LANES)
}

/// Tells the observer of an access, if there is one.
#[inline(always)]
pub fn observe<const LANES: usize>(
    wave: &Wave,
    group: &mut Group<'_>,
    space: Space,
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
) -> Result<(), Box<Fault>> {
    if !group.is_observed() || mask == 0 {
        return Ok(());
    }
    let mut all = [0; 64];
    all[..LANES].copy_from_slice(addresses);
    let access = Access { space, kind: want.kind, bytes: want.bytes as u32, mask, addresses: &all };
    group.observe(wave, &access)
}

/// An error for the first lane whose atomic operation is not aligned to its size.
pub fn check_alignment<const LANES: usize>(
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
) -> Result<(), Box<Fault>> {
    if want.kind != AccessKind::Atomic {
        return Ok(());
    }
    let bytes = want.bytes as u64;
    match lanes_of(mask).find(|&lane| !addresses[lane].is_multiple_of(bytes)) {
        Some(lane) => Err(Fault::address(format!(
            "an atomic operation on {bytes} bytes at {:#x}, which is not a multiple of {bytes}, by lane {lane}",
            addresses[lane]
        ))),
        None => Ok(()),
    }
}

/// The highest of the active lanes' offsets.
#[inline(always)]
pub fn highest<const LANES: usize>(offsets: &[u32; LANES], mask: u64) -> u32 {
    if mask == all::<LANES>() {
        offsets.iter().fold(0, |highest, &offset| highest.max(offset))
    } else {
        lanes_of(mask).fold(0, |highest, lane| highest.max(offsets[lane]))
    }
}
