//! All allocations, ordered by their addresses.

use std::collections::BTreeMap;

use super::{Allocation, Kind};

pub(super) struct Table {
    by_start: BTreeMap<u64, Allocation>,
    /// Bytes of [`Kind::Device`] that are live.
    pub used: u64,
    /// The first device address that was never given.
    next: u64,
    end: u64,
}

/// Bytes between two allocations that belong to none, so that a small overrun is seen.
const GAP: u64 = 256;

impl Table {
    pub fn new(next: u64, end: u64) -> Table {
        Table { by_start: BTreeMap::new(), used: 0, next, end }
    }

    /// A device address that was never given before.
    pub fn next_address(&mut self, size: u64, alignment: u64) -> Result<u64, String> {
        let start = self.next.next_multiple_of(alignment);
        match start.checked_add(size).and_then(|end| end.checked_add(GAP)) {
            Some(next) if next <= self.end => {
                self.next = next;
                Ok(start)
            }
            _ => Err(format!("{size} bytes do not fit into what is left of the address space")),
        }
    }

    pub fn insert(&mut self, allocation: Allocation) {
        self.by_start.insert(allocation.start, allocation);
    }

    pub fn at(&mut self, start: u64) -> Option<&mut Allocation> {
        self.by_start.get_mut(&start)
    }

    pub fn remove(&mut self, start: u64) {
        self.by_start.remove(&start);
    }

    pub fn remove_kind(&mut self, kind: Kind, from: u64, to: u64) {
        let starts: Vec<u64> = self
            .by_start
            .range(from..to)
            .filter(|(_, it)| it.kind == kind)
            .map(|(start, _)| *start)
            .collect();
        for start in starts {
            self.by_start.remove(&start);
        }
    }

    pub fn containing(&self, address: u64) -> Option<&Allocation> {
        let (_, found) = self.by_start.range(..=address).next_back()?;
        (address - found.start < found.size).then_some(found)
    }

    pub fn overlapping(&self, start: u64, size: u64) -> Option<&Allocation> {
        self.containing(start).or_else(|| Some(self.by_start.range(start..start + size).next()?.1))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Allocation> {
        self.by_start.values()
    }

    /// The end of a sentence about an address that is in no allocation.
    pub fn describe_unmapped(&self, address: u64, on_device: bool) -> String {
        if address == 0 {
            return "a null pointer".to_owned();
        }
        if address < 1 << 16 {
            return format!("{address} bytes behind a null pointer");
        }
        let before = self.by_start.range(..address).next_back().map(|(_, it)| it);
        let after = self.by_start.range(address..).next().map(|(_, it)| it);
        let behind =
            before.map(|it| (address - (it.start + it.size), it)).filter(|(far, _)| on_device || *far < 4096);
        let ahead = after.map(|it| (it.start - address, it)).filter(|(far, _)| on_device || *far < 4096);
        match (behind, ahead) {
            (Some((far, it)), other) if other.is_none_or(|(distance, _)| far <= distance) => {
                format!("{far} bytes behind the allocation of {} bytes at {:#x}", it.size, it.start)
            }
            (_, Some((far, it))) => {
                format!("{far} bytes before the allocation of {} bytes at {:#x}", it.size, it.start)
            }
            _ if on_device => "a device address that was never allocated".to_owned(),
            _ => "no device memory: a host pointer or a wrong address".to_owned(),
        }
    }
}
