//! Device memory straight from the runtime.

use std::sync::PoisonError;

use super::error::HipError;
use super::runtime::Device;

/// `hipHostMallocPortable`: pinned for every device.
const PORTABLE: u32 = 1;

impl Device {
    /// Memory on the device, for whoever frees it, as long as the process then holds at most `share` bytes; else the
    /// outer `Err` is how much it holds.
    pub(super) fn malloc_within(&self, bytes: usize, share: u64) -> Result<Result<u64, HipError>, u64> {
        // Locked until the memory is counted, so that threads do not exceed the share together.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.total.saturating_add(bytes as u64) > share {
            return Err(held.total);
        }
        let given = self.malloc(bytes);
        if let Ok(address) = given {
            held.blocks.insert(address, bytes);
            held.total += bytes as u64;
        }
        Ok(given)
    }

    fn malloc(&self, bytes: usize) -> Result<u64, HipError> {
        let _current = self.enter()?;
        let mut address = 0;
        // SAFETY: the out pointer is valid.
        let code = unsafe { (self.runtime.functions.malloc)(&mut address, bytes) };
        self.check("allocate device memory", code)?;
        Ok(address)
    }

    /// Memory of the host that the device can copy from and to by itself; `None` when the runtime has none.
    pub(super) fn host_malloc(&self, bytes: usize) -> Result<Option<u64>, HipError> {
        let Some(allocate) = self.runtime.functions.host_malloc else { return Ok(None) };
        let _current = self.enter()?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { allocate(&mut address, bytes, PORTABLE) };
        self.check("allocate pinned host memory", code)?;
        Ok(Some(address.expose_provenance() as u64))
    }

    /// Frees what `host_malloc` gave, which no queued work uses any more.
    pub(super) fn host_free(&self, address: u64) {
        if let (Some(free), Ok(_current)) = (self.runtime.functions.host_free, self.enter()) {
            // SAFETY: the address came from `host_malloc`. A failure is the device's, and its next call tells.
            unsafe { free(std::ptr::with_exposed_provenance_mut(address as usize)) };
        }
    }

    /// Frees what `malloc_within` gave, which no queued work uses any more.
    pub(super) fn free(&self, address: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.blocks.remove(&address).unwrap_or(0);
        held.total -= bytes as u64;
        drop(held);
        if let Ok(_current) = self.enter() {
            // SAFETY: the address came from `malloc_within`. A failure is the device's, and its next call tells.
            unsafe { (self.runtime.functions.free)(address) };
        }
    }
}
