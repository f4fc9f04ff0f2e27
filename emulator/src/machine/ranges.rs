//! From device addresses to the host's memory.

use crate::memory::{Memory, Range};

use super::fault::Fault;

/// The allocations that a wave used last.
#[derive(Clone, Copy)]
pub struct Ranges {
    pub last: [Range; 4],
    next: usize,
}

impl Default for Ranges {
    fn default() -> Ranges {
        // No address lies in an empty range.
        Ranges { last: [Range { start: 1, end: 1, host: std::ptr::null_mut() }; 4], next: 0 }
    }
}

impl Ranges {
    /// Whether none was used.
    pub fn is_empty(&self) -> bool {
        self.last[0].host.is_null()
    }

    /// Where the bytes from `address` on lie in the host's memory; an error that says what is there instead.
    #[inline]
    pub fn host(&mut self, memory: &Memory, address: u64, bytes: u64) -> Result<*mut u8, Box<Fault>> {
        let range = self.range(memory, address, bytes)?;
        Ok(range.host.wrapping_add((address - range.start) as usize))
    }

    /// A range that holds all the bytes from `first` to `end`, if one of the last does or memory knows it.
    #[inline(always)]
    pub fn covering(&mut self, memory: &Memory, first: u64, end: u64) -> Option<Range> {
        self.range(memory, first, end.checked_sub(first)?).ok()
    }

    #[inline(always)]
    fn range(&mut self, memory: &Memory, address: u64, bytes: u64) -> Result<Range, Box<Fault>> {
        let holds =
            |range: &&Range| address >= range.start && address < range.end && bytes <= range.end - address;
        match self.last.iter().find(holds) {
            Some(range) => Ok(*range),
            None => self.another(memory, address, bytes),
        }
    }

    /// Asks memory, and forgets the range that was asked for first.
    #[cold]
    fn another(&mut self, memory: &Memory, address: u64, bytes: u64) -> Result<Range, Box<Fault>> {
        let range = memory
            .find(address)
            .map_err(|what| Fault::address(format!("{bytes} bytes at {address:#x} are {what}")))?;
        if bytes > range.end - address {
            return Err(Fault::address(format!(
                "{bytes} bytes at {address:#x} cross the end of the allocation of {} bytes at {:#x}",
                range.end - range.start,
                range.start
            )));
        }
        self.last[self.next] = range;
        self.next = (self.next + 1) % self.last.len();
        Ok(range)
    }
}
