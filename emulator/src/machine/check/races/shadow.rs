//! Who touched each byte of memory last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clock::{Clock, Record};
use crate::machine::group::AccessKind;

/// Bytes of a page of global memory.
pub const PAGE: u64 = 1024;

/// The last that wrote a place, and two that read it since.
#[derive(Clone, Copy, Default)]
struct Cell {
    write: Option<Record>,
    reads: [Option<Record>; 2],
    /// What was written, where that is known.
    value: Option<u32>,
}

/// Cells of consecutive bytes: one for each word until an access is not to whole words, then one for each byte.
pub struct Cells {
    cells: Vec<Cell>,
    by_byte: bool,
}

/// An access of one lane.
pub struct Touch<'a> {
    pub record: Record,
    pub kind: AccessKind,
    pub clock: &'a Clock,
    /// The bytes that are stored, if they are known.
    pub value: Option<[u8; 16]>,
}

/// Another access, with which there is a race.
pub struct Conflict {
    pub other: Record,
    pub other_writes: bool,
    /// The byte, from the first of the cells.
    pub byte: u64,
}

impl Cells {
    pub fn new() -> Cells {
        Cells { cells: Vec::new(), by_byte: false }
    }

    /// Nobody touched anything yet.
    pub fn clear(&mut self) {
        self.cells.clear();
    }

    /// An access to `bytes` bytes from `first` on. Gives the first conflict.
    pub fn touch(&mut self, first: u64, bytes: u64, touch: &Touch<'_>) -> Option<Conflict> {
        if !(self.by_byte || first.is_multiple_of(4) && bytes.is_multiple_of(4)) {
            self.split();
        }
        let size = if self.by_byte { 1 } else { 4 };
        let (begin, end) = ((first / size) as usize, ((first + bytes) / size) as usize);
        if self.cells.len() < end {
            self.cells.resize(end, Cell::default());
        }
        let mut conflict = None;
        for (index, cell) in self.cells[begin..end].iter_mut().enumerate() {
            let at = index * size as usize;
            let value = touch.value.and_then(|bytes| value(&bytes, at, size as usize));
            if let Some((other, other_writes)) = cell.touch(touch, value)
                && conflict.is_none()
            {
                conflict = Some(Conflict { other, other_writes, byte: first + at as u64 });
            }
        }
        conflict
    }

    fn split(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        self.cells = cells
            .into_iter()
            .flat_map(|cell| {
                (0..4).map(move |byte| Cell {
                    value: cell.value.map(|value| value >> (8 * byte) & 0xff),
                    ..cell
                })
            })
            .collect();
        self.by_byte = true;
    }
}

fn value(bytes: &[u8; 16], at: usize, size: usize) -> Option<u32> {
    let mut word = [0; 4];
    word[..size].copy_from_slice(bytes.get(at..at + size)?);
    Some(u32::from_le_bytes(word))
}

impl Cell {
    /// Records an access. Gives another one that is not ordered with it and that is a race with it.
    fn touch(&mut self, touch: &Touch<'_>, value: Option<u32>) -> Option<(Record, bool)> {
        let Touch { record, kind, clock, .. } = touch;
        let races = |other: &Record| !clock.knows(other) && !record.way.goes_with(other.way);
        let writes = *kind != AccessKind::Load;
        // Two stores of one value leave the same, whoever is first.
        let same = writes && value.is_some() && value == self.value;
        let mut conflict = self.write.filter(|write| races(write) && !same).map(|write| (write, true));
        if writes {
            conflict = conflict
                .or_else(|| self.reads.iter().flatten().find(|read| races(read)).map(|read| (*read, false)));
            *self = Cell { write: Some(*record), reads: [None; 2], value };
        } else {
            let known = |read: &Option<Record>| read.is_none_or(|read| clock.knows(&read));
            let slot = if known(&self.reads[0]) { 0 } else { 1 };
            self.reads[slot] = Some(*record);
        }
        conflict
    }
}

/// Cells of global memory, for all threads.
pub struct Pages {
    shards: Vec<Mutex<HashMap<u64, Cells>>>,
}

impl Pages {
    pub fn new() -> Pages {
        Pages { shards: (0..64).map(|_| Mutex::default()).collect() }
    }

    /// The pages among which that of an address is.
    pub fn shard(&self, address: u64) -> MutexGuard<'_, HashMap<u64, Cells>> {
        let shard = &self.shards[(address / PAGE) as usize % self.shards.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
