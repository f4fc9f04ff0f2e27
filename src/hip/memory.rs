//! Memory straight from the runtime: on the device, and pinned on the host.

use std::ptr::NonNull;
use std::sync::Arc;

use super::error::HipError;
use super::runtime::Device;

/// Device memory of its own; freed when dropped, which waits for nothing: whoever drops it knows that
/// no stream uses it.
pub(crate) struct DeviceMemory {
    device: Arc<Device>,
    address: u64,
    len: usize,
}

impl DeviceMemory {
    pub(super) fn new(device: Arc<Device>, len: usize) -> Result<Self, HipError> {
        let mut address = 0;
        if len > 0 {
            let _current = device.enter()?;
            // SAFETY: the out pointer is valid.
            let code = unsafe { (device.runtime.functions.malloc)(&mut address, len) };
            device.check("allocate device memory", code)?;
        }
        Ok(DeviceMemory { device, address, len })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.len > 0
            && let Ok(_current) = self.device.enter()
        {
            // SAFETY: made by `new`, freed once.
            unsafe { (self.device.runtime.functions.free)(self.address) };
        }
    }
}

/// Host memory that the device can copy from and to without a detour.
pub(crate) struct PinnedMemory {
    device: Arc<Device>,
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// `len` bytes of unspecified content; `len` must not be 0.
    pub(crate) fn new(device: &Arc<Device>, len: usize) -> Result<Self, HipError> {
        let _current = device.enter()?;
        let mut ptr = std::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { (device.runtime.functions.host_malloc)(&mut ptr, len, 0) };
        device.check("allocate pinned memory", code)?;
        match NonNull::new(ptr.cast()) {
            Some(ptr) => Ok(PinnedMemory { device: device.clone(), ptr, len }),
            None => Err(device.runtime.error("allocate pinned memory", 2)),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: made by `new`, freed once.
            unsafe { (self.device.runtime.functions.host_free)(self.ptr.as_ptr().cast()) };
        }
    }
}
