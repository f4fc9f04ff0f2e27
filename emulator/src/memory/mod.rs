//! The device's address space. A device address is not an address of the host's memory, so that a host program that
//! follows one stops.

/// An allocation as the machine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// Device addresses: the first, and the first behind it.
    pub start: u64,
    pub end: u64,
    /// Where `start` lies in the host's memory.
    pub host: *mut u8,
}

/// All allocations. Threads may share it.
pub struct Memory {}

impl Memory {
    /// The allocation that an address lies in, or what is known about the address, as the end of a sentence
    /// ("12 bytes behind the allocation of 256 bytes at 0x…", "in an allocation that was freed", "a null pointer").
    pub fn find(&self, address: u64) -> Result<Range, String> {
        let _ = address;
        Err("memory is not there yet".to_owned())
    }
}
