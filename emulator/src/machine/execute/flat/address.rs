//! Addresses of FLAT, GLOBAL and SCRATCH instructions.

use crate::isa::{Encoding, Instruction, Source, sgpr};

use crate::machine::execute::lanes::near::{Near, largest, smallest};
use crate::machine::execute::lanes::{
    Place, Placed, Places, Want, add_register, all, check_alignment, highest, is_run, observe,
};
use crate::machine::execute::operands::{optional_vector, scalar};
use crate::machine::fault::Fault;
use crate::machine::group::{Group, Space};
use crate::machine::wave::{PRIVATE_APERTURE, SHARED_APERTURE, Wave, lanes_of};

/// What a lane's address is the sum of.
pub struct Address {
    segment: Encoding,
    /// Two registers of an address, or one of an offset of 32 bits.
    vector: Option<usize>,
    wide: bool,
    scalar: Option<u8>,
    /// Four bytes more for each lane.
    by_thread: bool,
    offset: i64,
}

impl Address {
    pub fn new(instruction: &Instruction, by_thread: bool) -> Result<Address, Box<Fault>> {
        let segment = instruction.encoding;
        let [vector, _, base, _] = instruction.sources;
        let scalar = match base.source {
            Source::None | Source::Scalar(sgpr::NULL) => None,
            _ => Some(scalar(instruction, base, if segment == Encoding::Scratch { 1 } else { 2 })?),
        };
        let wide = scalar.is_none() && segment != Encoding::Scratch;
        Ok(Address {
            segment,
            vector: optional_vector(instruction, vector, if wide { 2 } else { 1 })?,
            wide,
            scalar,
            by_thread,
            offset: i64::from(instruction.modifiers.memory.offset),
        })
    }

    /// The addresses; lanes that are not active have that of the first that is.
    #[inline(always)]
    fn addresses<const LANES: usize>(&self, wave: &Wave, mask: u64) -> [u64; LANES] {
        let base = self.scalar.map_or(0, |register| wave.scalar64(register));
        let mut addresses = [base.wrapping_add(self.offset as u64); LANES];
        let rows = wave.vector.rows::<LANES>();
        if let Some(vector) = self.vector {
            for (address, &low) in addresses.iter_mut().zip(&rows[vector]) {
                *address = address.wrapping_add(u64::from(low));
            }
            if self.wide {
                for (address, &high) in addresses.iter_mut().zip(&rows[vector + 1]) {
                    *address = address.wrapping_add(u64::from(high) << 32);
                }
            }
        }
        if self.by_thread {
            for (lane, address) in addresses.iter_mut().enumerate() {
                *address = address.wrapping_add(4 * lane as u64);
            }
        }
        if mask != all::<LANES>() {
            let first = addresses[mask.trailing_zeros() as usize];
            for (lane, address) in addresses.iter_mut().enumerate() {
                *address = if mask >> lane & 1 == 0 { first } else { *address };
            }
        }
        addresses
    }

    /// Offsets within each lane's scratch.
    #[inline(always)]
    fn scratch_offsets<const LANES: usize>(&self, wave: &Wave) -> [u32; LANES] {
        let base = self.scalar.map_or(0, |register| wave.scalar[usize::from(register)]);
        let mut offsets = [base.wrapping_add(self.offset as u32); LANES];
        add_register(&mut offsets, wave, self.vector);
        offsets
    }
}

impl Place for Address {
    const SHARED: bool = true;

    #[inline(always)]
    fn near<const LANES: usize>(
        &self,
        wave: &mut Wave,
        group: &mut Group<'_>,
        bytes: usize,
    ) -> Option<Near<LANES>> {
        let vector = self.vector.filter(|_| wave.exec() == all::<LANES>() && !group.is_observed())?;
        if self.by_thread || self.segment != Encoding::Global {
            return None;
        }
        let rows = wave.vector.rows::<LANES>();
        let mut offsets = rows[vector];
        let mut first = self.scalar.map_or(0, |register| wave.scalar64(register));
        if self.wide {
            let high = &rows[vector + 1];
            if high.iter().fold(0, |different, word| different | word ^ high[0]) != 0 {
                return None;
            }
            let lowest = smallest(&offsets);
            offsets.iter_mut().for_each(|offset| *offset -= lowest);
            first = u64::from(high[0]) << 32 | u64::from(lowest);
        }
        let first = first.wrapping_add(self.offset as u64);
        let end = first.checked_add(u64::from(largest(&offsets)) + bytes as u64)?;
        let range = wave.ranges.covering(group.memory, first, end)?;
        Some(Near { base: range.host.wrapping_add((first - range.start) as usize), offsets })
    }

    #[inline(always)]
    fn place<const LANES: usize>(
        &self,
        wave: &mut Wave,
        group: &mut Group<'_>,
        want: Want,
    ) -> Result<Placed<LANES>, Box<Fault>> {
        let mask = wave.exec();
        let places = if self.segment == Encoding::Scratch {
            let offsets = self.scratch_offsets::<LANES>(wave);
            scratch_places(wave, group, want, mask, &offsets)?
        } else {
            let addresses = self.addresses::<LANES>(wave, mask);
            let flat = self.segment == Encoding::Flat;
            global_places(wave, group, want, mask, &addresses, flat)?
        };
        Ok(Placed { places, mask })
    }
}

/// Lanes' places in their own scratch.
#[inline(always)]
pub fn scratch_places<const LANES: usize>(
    wave: &mut Wave,
    group: &mut Group<'_>,
    want: Want,
    mask: u64,
    offsets: &[u32; LANES],
) -> Result<Places<LANES>, Box<Fault>> {
    if group.is_observed() {
        observe(wave, group, Space::Scratch, want, mask, &offsets.map(u64::from))?;
    }
    let size = wave.scratch_size as usize;
    if highest(offsets, mask) as usize + want.bytes > size {
        return Err(outside_of_scratch(wave, want, mask, offsets));
    }
    let first = wave.scratch.as_mut_ptr();
    let pointer = |lane: usize| first.wrapping_add(lane * size + offsets[lane] as usize);
    Ok(Places::Each(std::array::from_fn(pointer)))
}

#[cold]
fn outside_of_scratch<const LANES: usize>(
    wave: &Wave,
    want: Want,
    mask: u64,
    offsets: &[u32; LANES],
) -> Box<Fault> {
    let (bytes, size) = (want.bytes, wave.scratch_size);
    let outside = |&lane: &usize| offsets[lane] as usize + bytes > size as usize;
    let lane = lanes_of(mask).find(outside).unwrap_or(0);
    let at = offsets[lane];
    Fault::address(format!("{bytes} bytes at byte {at} of a scratch of {size} bytes, lane {lane}"))
}

/// Lanes' places in the device's memory and, of flat addresses, in LDS and scratch. Lanes that are not in the mask have
/// the address of one that is.
#[inline(always)]
pub fn global_places<const LANES: usize>(
    wave: &mut Wave,
    group: &mut Group<'_>,
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
    flat: bool,
) -> Result<Places<LANES>, Box<Fault>> {
    check_alignment(want, mask, addresses)?;
    let run = is_run(addresses, mask, want.bytes);
    let (mut first, mut last) = (addresses[0], addresses[LANES - 1]);
    if !run {
        for &address in addresses {
            first = first.min(address);
            last = last.max(address);
        }
    }
    if !(flat && is_aperture(first))
        && let Some(end) = last.checked_add(want.bytes as u64)
        && let Some(range) = wave.ranges.covering(group.memory, first, end)
    {
        observe(wave, group, Space::Global, want, mask, addresses)?;
        let base = range.host.wrapping_sub(range.start as usize);
        if run {
            return Ok(Places::Run(base.wrapping_add(first as usize)));
        }
        let pointer = |lane: usize| base.wrapping_add(addresses[lane] as usize);
        return Ok(Places::Each(std::array::from_fn(pointer)));
    }
    separate_places(wave, group, want, mask, addresses, flat)
}

/// Whether an address leads to LDS or scratch.
fn is_aperture(address: u64) -> bool {
    let high = (address >> 32) as u32;
    high == SHARED_APERTURE || high == PRIVATE_APERTURE
}

/// The same where lanes use several allocations or kinds of memory.
#[cold]
fn separate_places<const LANES: usize>(
    wave: &mut Wave,
    group: &mut Group<'_>,
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
    flat: bool,
) -> Result<Places<LANES>, Box<Fault>> {
    let mut pointers = [std::ptr::null_mut(); LANES];
    for lane in lanes_of(mask) {
        let address = addresses[lane];
        let pointer = match (address >> 32) as u32 {
            SHARED_APERTURE if flat => lds_pointer(group, address as u32, want.bytes),
            PRIVATE_APERTURE if flat => scratch_pointer(wave, address as u32, want.bytes, lane),
            _ => wave.ranges.host(group.memory, address, want.bytes as u64),
        };
        pointers[lane] = pointer.map_err(|fault| fault.at(format_args!("lane {lane}")))?;
    }
    if group.is_observed() {
        observe_separate(wave, group, want, mask, addresses, flat)?;
    }
    Ok(Places::Each(pointers))
}

fn lds_pointer(group: &mut Group<'_>, offset: u32, bytes: usize) -> Result<*mut u8, Box<Fault>> {
    let (at, size) = (offset as usize, group.lds.len());
    match group.lds.get_mut(at..at + bytes) {
        Some(place) => Ok(place.as_mut_ptr()),
        None => Err(Fault::address(format!("{bytes} bytes at byte {at} of an LDS of {size} bytes"))),
    }
}

fn scratch_pointer(wave: &mut Wave, offset: u32, bytes: usize, lane: usize) -> Result<*mut u8, Box<Fault>> {
    let (at, size) = (offset as usize, wave.scratch_size as usize);
    if at + bytes > size {
        return Err(Fault::address(format!("{bytes} bytes at byte {at} of a scratch of {size} bytes")));
    }
    Ok(wave.scratch[lane * size + at..].as_mut_ptr())
}

/// Tells the observer of the accesses to each kind of memory.
fn observe_separate<const LANES: usize>(
    wave: &Wave,
    group: &mut Group<'_>,
    want: Want,
    mask: u64,
    addresses: &[u64; LANES],
    flat: bool,
) -> Result<(), Box<Fault>> {
    let of = |aperture: u32| {
        let inside = |&lane: &usize| flat && (addresses[lane] >> 32) as u32 == aperture;
        lanes_of(mask).filter(inside).fold(0, |lanes, lane| lanes | 1 << lane)
    };
    let (shared, private) = (of(SHARED_APERTURE), of(PRIVATE_APERTURE));
    let offsets = addresses.map(|address| address & 0xffff_ffff);
    observe(wave, group, Space::Global, want, mask & !shared & !private, addresses)?;
    observe(wave, group, Space::Lds, want, shared, &offsets)?;
    observe(wave, group, Space::Scratch, want, private, &offsets)
}
