//! Device memory straight from the runtime.

use super::error::HipError;
use super::runtime::Device;

impl Device {
    /// Memory on the device, for whoever frees it.
    pub(super) fn malloc(&self, bytes: usize) -> Result<u64, HipError> {
        let _current = self.enter()?;
        let mut address = 0;
        // SAFETY: the out pointer is valid.
        let code = unsafe { (self.runtime.functions.malloc)(&mut address, bytes) };
        self.check("allocate device memory", code)?;
        Ok(address)
    }

    /// Frees what `malloc` gave, which no queued work uses any more.
    pub(super) fn free(&self, address: u64) {
        if let Ok(_current) = self.enter() {
            // SAFETY: the address came from `malloc`. A failure is the device's, and its next call tells.
            unsafe { (self.runtime.functions.free)(address) };
        }
    }
}
