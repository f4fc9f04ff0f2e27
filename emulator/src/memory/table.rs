//! All allocations, ordered by their addresses.

use std::collections::{BTreeMap, VecDeque};

use super::{Allocation, Kind, State};

pub(super) struct Table {
    by_start: BTreeMap<u64, Allocation>,
    /// Bytes of [`Kind::Device`] that are live.
    pub used: u64,
    /// Device addresses, and the first that was never given.
    start: u64,
    next: u64,
    end: u64,
    /// Freed allocations, for messages, oldest first.
    freed: VecDeque<u64>,
}

/// How many freed allocations are remembered.
const MOST_FREED: usize = 1 << 16;

/// Bytes between two allocations that belong to none, so that a small overrun is seen.
const GAP: u64 = 256;

impl Table {
    pub fn new(next: u64, end: u64) -> Table {
        Table { by_start: BTreeMap::new(), used: 0, start: next, next, end, freed: VecDeque::new() }
    }

    /// A device address that was never given before, as long as there are any.
    pub fn next_address(&mut self, size: u64, alignment: u64) -> Result<u64, String> {
        let start = self.next.next_multiple_of(alignment);
        if let Some(next) = self.end_of(start, size, self.end) {
            self.next = next;
            return Ok(start);
        }
        let start = self.address_between(size, alignment);
        start.ok_or_else(|| format!("{size} bytes do not fit into what is left of the address space"))
    }

    /// Where an allocation and the gap behind it end, if that is not behind `limit`.
    fn end_of(&self, start: u64, size: u64, limit: u64) -> Option<u64> {
        start.checked_add(size)?.checked_add(GAP).filter(|end| *end <= limit)
    }

    /// An address in a place whose allocations were all freed.
    fn address_between(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let mut start = self.start;
        let mut found = None;
        let taken = self.by_start.range(self.start..self.end).filter(|(_, it)| it.state != State::Freed);
        for (&next, allocation) in taken {
            if self.end_of(start, size, next).is_some() {
                found = Some(start);
                break;
            }
            start = (next + allocation.size + GAP).next_multiple_of(alignment);
        }
        let start = found.or_else(|| self.end_of(start, size, self.end).map(|_| start))?;
        let forgotten: Vec<u64> = self.by_start.range(start..start + size).map(|(at, _)| *at).collect();
        let before = self.by_start.range(..start).next_back().filter(|(at, it)| *at + it.size > start);
        for at in before.map(|(at, _)| *at).into_iter().chain(forgotten) {
            self.by_start.remove(&at);
        }
        Some(start)
    }

    /// Remembers that an allocation was freed. The oldest are forgotten.
    pub fn set_freed(&mut self, start: u64) {
        if let Some(found) = self.by_start.get_mut(&start) {
            found.state = State::Freed;
            self.freed.push_back(start);
        }
        if self.freed.len() > MOST_FREED
            && let Some(oldest) = self.freed.pop_front()
            && self.by_start.get(&oldest).is_some_and(|it| it.state == State::Freed)
        {
            self.by_start.remove(&oldest);
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
