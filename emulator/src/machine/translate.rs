//! From device addresses to the host's memory.

use crate::memory::{Memory, Range};

use super::fault::Fault;

/// The allocations that a wave used last.
pub struct Ranges {
    last: [Range; 4],
    next: usize,
}

impl Default for Ranges {
    fn default() -> Ranges {
        // No address lies in an empty range.
        Ranges { last: [Range { start: 1, end: 1, host: std::ptr::null_mut() }; 4], next: 0 }
    }
}

impl Ranges {
    /// Where the bytes from `address` on lie in the host's memory; an error that says what is there instead.
    #[inline]
    pub fn host(&mut self, memory: &Memory, address: u64, bytes: u64) -> Result<*mut u8, Box<Fault>> {
        let range = &self.last[0];
        if address >= range.start && address < range.end && bytes <= range.end - address {
            return Ok(range.host.wrapping_add((address - range.start) as usize));
        }
        self.host_of_another(memory, address, bytes)
    }

    /// A range that holds all the bytes from `first` to `end`, if one of the last does or memory knows it.
    pub fn covering(&mut self, memory: &Memory, first: u64, end: u64) -> Option<Range> {
        self.host(memory, first, end.checked_sub(first)?).ok()?;
        Some(self.last[0])
    }

    #[cold]
    fn host_of_another(&mut self, memory: &Memory, address: u64, bytes: u64) -> Result<*mut u8, Box<Fault>> {
        if let Some(found) = (1..self.last.len()).find(|&i| {
            let range = &self.last[i];
            address >= range.start && address < range.end && bytes <= range.end - address
        }) {
            self.last.swap(0, found);
        } else {
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
            self.next = self.next % (self.last.len() - 1) + 1;
            self.last[self.next] = self.last[0];
            self.last[0] = range;
        }
        let range = &self.last[0];
        Ok(range.host.wrapping_add((address - range.start) as usize))
    }
}
