//! Which bytes of the device's memory nobody wrote yet.

use std::sync::atomic::{AtomicU8, Ordering};

use super::region::{map_sparse, unmap_host};

/// A bit for each byte of a part of the device's addresses: set where the byte is not defined.
pub(super) struct Undefined {
    first: u64,
    /// In bytes of the bits.
    size: u64,
    bits: u64,
}

impl Undefined {
    /// For the addresses from `first` to `end`. All bytes are defined.
    pub fn new(first: u64, end: u64) -> Result<Undefined, String> {
        let size = (end - first).div_ceil(8);
        Ok(Undefined { first, size, bits: map_sparse(size)? })
    }

    pub fn set(&self, address: u64, bytes: u64, undefined: bool) {
        self.each(address, bytes, |byte, mask| {
            if undefined {
                byte.fetch_or(mask, Ordering::Relaxed);
            } else if byte.load(Ordering::Relaxed) & mask != 0 {
                byte.fetch_and(!mask, Ordering::Relaxed);
            }
        });
    }

    /// Whether a byte is not defined. Those of other addresses are.
    pub fn get(&self, address: u64) -> bool {
        let mut found = false;
        self.each(address, 1, |byte, mask| found = byte.load(Ordering::Relaxed) & mask != 0);
        found
    }

    /// Calls a function with each byte of bits and those of its bits that are meant.
    fn each(&self, address: u64, bytes: u64, mut function: impl FnMut(&AtomicU8, u8)) {
        let Some(mut at) = address.checked_sub(self.first) else { return };
        let end = (at + bytes).min(self.size * 8);
        while at < end {
            let next = end.min((at / 8 + 1) * 8);
            let mask = ((1_u32 << (next - at)) - 1) << (at % 8);
            // SAFETY: `at / 8` is below the mapping's size, the mapping lives as long as `self`, and all use of it is by
            // atomic operations.
            let byte = unsafe { AtomicU8::from_ptr((self.bits + at / 8) as *mut u8) };
            function(byte, mask as u8);
            at = next;
        }
    }
}

impl Drop for Undefined {
    fn drop(&mut self) {
        unmap_host(self.bits, self.size);
    }
}
