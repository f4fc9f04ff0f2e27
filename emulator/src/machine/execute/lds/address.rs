//! Addresses in LDS.

use crate::isa::{Instruction, sgpr};

use crate::machine::execute::lanes::near::{Near, largest};
use crate::machine::execute::lanes::{Place, Placed, Places, Want, all, check_alignment, is_run, observe};
use crate::machine::execute::operands::{optional_vector, vector};
use crate::machine::fault::Fault;
use crate::machine::group::{AccessKind, Group, Space};
use crate::machine::wave::{Wave, lanes_of};

/// What a lane's byte in LDS is the sum of.
pub struct Address {
    vector: Option<usize>,
    /// M0, and four bytes more for each lane.
    by_thread: bool,
    offset: u64,
}

impl Address {
    pub fn new(instruction: &Instruction, by_thread: bool) -> Result<Address, Box<Fault>> {
        let offset = instruction.modifiers.memory.offset.max(0) as u64;
        let operand = instruction.sources[0];
        // Those by thread have no address; what stands in its place is the data of a store.
        let vector = if by_thread { None } else { Some(vector(instruction, operand, 1)?) };
        Ok(Address { vector, by_thread, offset })
    }

    /// The same register with another offset, in bytes.
    pub fn with_offset(instruction: &Instruction, offset: u64) -> Result<Address, Box<Fault>> {
        let vector = optional_vector(instruction, instruction.sources[0], 1)?;
        Ok(Address { vector, by_thread: false, offset })
    }
}

impl Place for Address {
    const SHARED: bool = false;

    #[inline(always)]
    fn near<const LANES: usize>(
        &self,
        wave: &mut Wave,
        group: &mut Group<'_>,
        bytes: usize,
    ) -> Option<Near<LANES>> {
        let vector = self.vector.filter(|_| wave.exec() == all::<LANES>() && !group.is_observed())?;
        let offsets = wave.vector.rows::<LANES>()[vector];
        let end = u64::from(largest(&offsets)) + self.offset + bytes as u64;
        let base = group.lds.as_mut_ptr().wrapping_add(self.offset as usize);
        (!self.by_thread && end <= group.lds.len() as u64).then_some(Near { base, offsets })
    }

    #[inline(always)]
    fn place<const LANES: usize>(
        &self,
        wave: &mut Wave,
        group: &mut Group<'_>,
        want: Want,
    ) -> Result<Placed<LANES>, Box<Fault>> {
        let mask = wave.exec();
        let mut base = self.offset;
        if self.by_thread {
            base += u64::from(wave.scalar[usize::from(sgpr::M0)] & 0xffff);
        }
        let mut addresses = [base; LANES];
        if let Some(vector) = self.vector {
            for (address, &low) in addresses.iter_mut().zip(&wave.vector.rows::<LANES>()[vector]) {
                *address += u64::from(low);
            }
        }
        if self.by_thread {
            for (lane, address) in addresses.iter_mut().enumerate() {
                *address += 4 * lane as u64;
            }
        }
        let places = places(wave, group, want, mask, &addresses)?;
        Ok(Placed { places, mask })
    }
}

#[inline(always)]
fn places<const LANES: usize>(
    wave: &mut Wave,
    group: &mut Group<'_>,
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
) -> Result<Places<LANES>, Box<Fault>> {
    observe(wave, group, Space::Lds, want, mask, addresses)?;
    if want.kind == AccessKind::Atomic {
        check_alignment(want, mask, addresses)?;
    }
    let run = is_run(addresses, mask, want.bytes);
    let highest = if run {
        addresses[LANES - 1]
    } else if mask == all::<LANES>() {
        addresses.iter().fold(0, |highest, &address| highest.max(address))
    } else {
        lanes_of(mask).fold(0, |highest, lane| highest.max(addresses[lane]))
    };
    if highest + want.bytes as u64 > group.lds.len() as u64 {
        return Err(outside(group, want, mask, addresses));
    }
    let first = group.lds.as_mut_ptr();
    if run {
        return Ok(Places::Run(first.wrapping_add(addresses[0] as usize)));
    }
    let pointer = |lane: usize| first.wrapping_add(addresses[lane] as usize);
    Ok(Places::Each(std::array::from_fn(pointer)))
}

#[cold]
fn outside<const LANES: usize>(
    group: &Group<'_>,
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
) -> Box<Fault> {
    let (bytes, size) = (want.bytes, group.lds.len());
    let lane = lanes_of(mask).find(|&lane| addresses[lane] + bytes as u64 > size as u64).unwrap_or(0);
    let at = addresses[lane];
    Fault::address(format!("{bytes} bytes at byte {at} of an LDS of {size} bytes, lane {lane}"))
}
