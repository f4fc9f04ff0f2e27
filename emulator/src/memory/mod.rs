//! The device's address space. A device address is not an address of the host's memory, so that a host program that
//! follows one stops.

mod allocation;
mod region;
mod table;
mod undefined;

#[cfg(test)]
mod tests;

pub use allocation::{Allocation, Kind, State};

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use region::Region;
use table::Table;
use undefined::Undefined;

/// An allocation as the machine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// Device addresses: the first, and the first behind it.
    pub start: u64,
    pub end: u64,
    /// Where `start` lies in the host's memory.
    pub host: *mut u8,
}

/// What a device's memory is like.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes that allocations of [`Kind::Device`] may take together.
    pub limit: u64,
    /// Whether new memory is filled with 0xff, which is a NaN in every floating-point type.
    pub poison: bool,
    /// Bytes of address space. Addresses are used again only when all were given, so this is much more than `limit`.
    pub address_space: u64,
    /// Whether it is known which bytes of the device's memory nobody wrote.
    pub track_undefined: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { limit: 24 << 30, poison: true, address_space: 4 << 40, track_undefined: false }
    }
}

/// Why there is no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The limit, or the host's memory.
    OutOfMemory(String),
    /// The address is not one that the call can be for.
    Invalid(String),
    /// Host memory that is registered or allocated already.
    AlreadyRegistered(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::OutOfMemory(text) | Error::Invalid(text) | Error::AlreadyRegistered(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for Error {}

/// All allocations. Threads may share it.
pub struct Memory {
    region: Region,
    settings: Settings,
    table: RwLock<Table>,
    undefined: Option<Undefined>,
}

/// Where the arguments of the running launch lie, from the start of the region, and how much room there is.
const LAUNCH_OFFSET: u64 = 1 << 16;
const LAUNCH_ROOM: u64 = 1 << 20;
/// More of a new allocation is not filled with poison: it would take the host's memory.
const POISON_LIMIT: u64 = 256 << 20;
const PAGE: u64 = 4096;

impl Memory {
    pub fn new(settings: Settings) -> Result<Memory, Error> {
        let region = Region::reserve(settings.address_space).map_err(Error::OutOfMemory)?;
        let table = Table::new(region.start() + LAUNCH_OFFSET + LAUNCH_ROOM, region.end());
        let undefined = match settings.track_undefined {
            true => Some(Undefined::new(region.start(), region.end()).map_err(Error::OutOfMemory)?),
            false => None,
        };
        Ok(Memory { region, settings, table: RwLock::new(table), undefined })
    }

    /// The allocation that an address lies in, or what is known about the address, as the end of a sentence
    /// ("12 bytes behind the allocation of 256 bytes at 0x…", "in an allocation that was freed", "a null pointer").
    pub fn find(&self, address: u64) -> Result<Range, String> {
        let table = self.read();
        match table.containing(address) {
            Some(found) if found.state == State::Live => {
                Ok(Range { start: found.start, end: found.start + found.size, host: found.host as *mut u8 })
            }
            Some(found) => Err(found.why_not_live(address)),
            None => Err(table.describe_unmapped(address, self.region.contains(address))),
        }
    }

    /// What an address lies in, freed memory included.
    pub fn lookup(&self, address: u64) -> Option<Allocation> {
        self.read().containing(address).cloned()
    }

    /// New memory at a device address.
    pub fn allocate(&self, size: u64, kind: Kind) -> Result<u64, Error> {
        let start = self.reserve(size, kind, false)?;
        self.set_live(start)?;
        Ok(start)
    }

    /// A device address for a graph. There is memory from [`Memory::set_live`] on, until it is freed, again and again.
    pub fn reserve_for_graph(&self, size: u64) -> Result<u64, Error> {
        self.reserve(size, Kind::Device, true)
    }

    fn reserve(&self, size: u64, kind: Kind, of_graph: bool) -> Result<u64, Error> {
        let mut table = self.write();
        if kind == Kind::Device && size > self.settings.limit.saturating_sub(table.used) {
            return Err(Error::OutOfMemory(format!(
                "{size} bytes do not fit: {} of {} bytes are in use",
                table.used, self.settings.limit
            )));
        }
        let alignment = if size >= 1 << 16 || kind == Kind::Code { PAGE } else { 256 };
        let start = table.next_address(size, alignment).map_err(Error::OutOfMemory)?;
        let host = self.region.host_address(start);
        table.insert(Allocation { start, size, kind, state: State::Reserved, flags: 0, of_graph, host });
        Ok(start)
    }

    /// Gives memory to a reserved address; of live memory nothing changes.
    pub fn set_live(&self, start: u64) -> Result<(), Error> {
        let mut table = self.write();
        let limit = self.settings.limit;
        let used = table.used;
        let found =
            table.at(start).ok_or_else(|| Error::Invalid(format!("no allocation begins at {start:#x}")))?;
        if found.state == State::Live {
            return Ok(());
        }
        let (size, kind) = (found.size, found.kind);
        if kind == Kind::Device && size > limit.saturating_sub(used) {
            return Err(Error::OutOfMemory(format!(
                "{size} bytes do not fit: {used} of {limit} bytes are in use"
            )));
        }
        found.state = State::Live;
        if kind == Kind::Device {
            table.used += size;
            if self.settings.poison {
                self.region.fill(start, size.min(POISON_LIMIT), 0xff);
            }
            if let Some(undefined) = &self.undefined {
                undefined.set(start, size.min(POISON_LIMIT), true);
            }
        }
        Ok(())
    }

    /// Host memory that the device can use at the same address.
    pub fn allocate_host(&self, size: u64, kind: Kind, flags: u32) -> Result<u64, Error> {
        let start = region::map_host(size).map_err(Error::OutOfMemory)?;
        self.write().insert(Allocation {
            start,
            size,
            kind,
            state: State::Live,
            flags,
            of_graph: false,
            host: start,
        });
        Ok(start)
    }

    /// Makes memory of the program's own usable at the same address.
    pub fn register(&self, start: u64, size: u64, flags: u32) -> Result<(), Error> {
        let mut table = self.write();
        if start.checked_add(size).is_none() || self.region.contains(start) {
            return Err(Error::Invalid(format!("{size} bytes at {start:#x} are not host memory")));
        }
        if let Some(other) = table.overlapping(start, size) {
            return Err(Error::AlreadyRegistered(format!(
                "{size} bytes at {start:#x} overlap the allocation of {} bytes at {:#x}",
                other.size, other.start
            )));
        }
        let kind = Kind::Registered;
        table.insert(Allocation {
            start,
            size,
            kind,
            state: State::Live,
            flags,
            of_graph: false,
            host: start,
        });
        Ok(())
    }

    /// Frees the allocation that begins at `start`, if it is live and one of `kinds`.
    pub fn free(&self, start: u64, kinds: &[Kind]) -> Result<Allocation, Error> {
        let mut table = self.write();
        let Some(found) = table.at(start) else {
            let inside = table.containing(start).map(Allocation::interior);
            return Err(Error::Invalid(format!(
                "no allocation begins at {start:#x}{}",
                inside.unwrap_or_default()
            )));
        };
        if found.state != State::Live {
            return Err(Error::Invalid(format!("{start:#x} is {}", found.why_not_live(start))));
        }
        if !kinds.contains(&found.kind) {
            return Err(Error::Invalid(format!(
                "{start:#x} is {}, which another call frees",
                found.kind.text()
            )));
        }
        let freed = found.clone();
        match freed.kind {
            Kind::Device | Kind::Code => {
                if freed.of_graph {
                    found.state = State::Reserved;
                } else {
                    table.set_freed(start);
                }
                if freed.kind == Kind::Device {
                    table.used -= freed.size;
                }
                self.region.give_back(freed.start, freed.size);
                self.define(freed.start, freed.size);
            }
            Kind::Host | Kind::Managed => {
                table.remove(start);
                region::unmap_host(start, freed.size);
            }
            Kind::Registered | Kind::Launch => {
                table.remove(start);
            }
        }
        Ok(freed)
    }

    /// Puts the arguments of a launch and its packet where the device sees them, in place of those of the launch
    /// before. Gives their addresses.
    pub fn place_launch(
        &self,
        arguments: &[u8],
        packet: impl FnOnce(u64) -> [u8; 64],
    ) -> Result<(u64, u64), Error> {
        let arguments_at = self.region.start() + LAUNCH_OFFSET;
        let size = arguments.len() as u64;
        if size > LAUNCH_ROOM / 2 {
            return Err(Error::OutOfMemory(format!(
                "{size} bytes of arguments, at most {} are possible",
                LAUNCH_ROOM / 2
            )));
        }
        let packet_at = arguments_at + size.next_multiple_of(256) + 256;
        let mut table = self.write();
        table.remove_kind(Kind::Launch, arguments_at, arguments_at + LAUNCH_ROOM);
        for (start, bytes) in [(arguments_at, arguments), (packet_at, &packet(arguments_at)[..])] {
            let host = self.region.write(start, bytes);
            let size = bytes.len() as u64;
            table.insert(Allocation {
                start,
                size,
                kind: Kind::Launch,
                state: State::Live,
                flags: 0,
                of_graph: false,
                host,
            });
        }
        Ok((arguments_at, packet_at))
    }

    /// Whether an address is one that only the device can use, mapped or not.
    pub fn is_device_address(&self, address: u64) -> bool {
        self.region.contains(address)
    }

    /// Whether it is known which bytes nobody wrote.
    pub fn tracks_undefined(&self) -> bool {
        self.undefined.is_some()
    }

    /// These bytes were written.
    pub fn define(&self, address: u64, bytes: u64) {
        if let Some(undefined) = &self.undefined {
            undefined.set(address, bytes, false);
        }
    }

    /// These bytes were copied.
    pub fn copy_definedness(&self, to: u64, from: u64, bytes: u64) {
        let Some(undefined) = &self.undefined else { return };
        let states: Vec<bool> = (0..bytes).map(|i| undefined.get(from + i)).collect();
        states.into_iter().enumerate().for_each(|(i, state)| undefined.set(to + i as u64, 1, state));
    }

    /// Whether nobody wrote this byte.
    pub fn is_undefined(&self, address: u64) -> bool {
        self.undefined.as_ref().is_some_and(|undefined| undefined.get(address))
    }

    /// Bytes in use by the program, and the limit.
    pub fn usage(&self) -> (u64, u64) {
        (self.read().used, self.settings.limit)
    }

    /// What was not freed, of the kinds that a program frees itself.
    pub fn live(&self) -> Vec<Allocation> {
        let kinds = [Kind::Device, Kind::Host, Kind::Managed, Kind::Registered];
        self.read().iter().filter(|it| it.state == State::Live && kinds.contains(&it.kind)).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}
