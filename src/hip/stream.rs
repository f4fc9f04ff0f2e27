//! A queue of work for a device: copies, fills, launches.

use std::sync::Arc;

use crate::error::{Error, fail};
use crate::threads::Priority;

use super::Launch;
use super::error::HipError;
use super::event::Event;
use super::runtime::Device;
use super::symbols::Raw;

/// A stream of a device: its own, or one that the user keeps. Work given to it runs in order.
pub(crate) struct Stream {
    device: Arc<Device>,
    raw: Raw,
    owned: bool,
}

// SAFETY: a stream handle may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; the runtime orders what several threads give.
unsafe impl Sync for Stream {}

/// `hipStreamNonBlocking`: no implicit ordering with the default stream.
const NON_BLOCKING: u32 = 1;

impl Stream {
    /// A new stream.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self, HipError> {
        let _current = device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { (device.runtime.functions.stream_create)(&mut raw, NON_BLOCKING) };
        device.check("create a stream", code)?;
        Ok(Stream { device: device.clone(), raw, owned: true })
    }

    /// A new stream whose work the device prefers to that of others, or the other way round. Where the runtime has no
    /// priorities it is like any other.
    pub(crate) fn with_priority(device: &Arc<Device>, priority: Priority) -> Result<Self, HipError> {
        let functions = &device.runtime.functions;
        let (Some(ask), Some(create)) = (functions.stream_priorities, functions.stream_create_with_priority)
        else {
            return Self::new(device);
        };
        if priority == Priority::Normal {
            return Self::new(device);
        }
        let _current = device.enter()?;
        let (mut least, mut greatest, mut raw) = (0, 0, std::ptr::null_mut());
        // SAFETY: the out pointers are valid.
        let code = unsafe { ask(&mut least, &mut greatest) };
        device.check("ask for the priorities of streams", code)?;
        let number = if priority == Priority::High { greatest } else { least };
        // SAFETY: the out pointer is valid; the number is one that the runtime named.
        let code = unsafe { create(&mut raw, NON_BLOCKING, number) };
        device.check("create a stream with a priority", code)?;
        Ok(Stream { device: device.clone(), raw, owned: true })
    }

    /// The runtime's number for how urgent its work is, smaller for what is more; `None` where it does not tell.
    #[cfg(test)]
    pub(crate) fn priority(&self) -> Option<i32> {
        let ask = self.device.runtime.functions.stream_priority?;
        let _current = self.device.enter().ok()?;
        let mut number = 0;
        // SAFETY: the stream lives; the out pointer is valid.
        (unsafe { ask(self.raw, &mut number) } == 0).then_some(number)
    }

    /// A stream that the user keeps; 0 is the default stream. The runtime tells streams of another device
    /// where it can, but not while they are being captured: CUDA refuses the question then, which spoils the capture.
    pub(crate) fn of_user(device: &Arc<Device>, address: u64) -> Result<Self, Error> {
        let raw: Raw = std::ptr::with_exposed_provenance_mut(address as usize);
        let stream = Self::kept_elsewhere(device, raw);
        if let (Some(ask), false) = (device.runtime.functions.stream_device, raw.is_null())
            && !stream.is_capturing()
        {
            let _current = device.enter()?;
            let mut of = device.index;
            // SAFETY: the user says that this is a stream; the out pointer is valid.
            let code = unsafe { ask(raw, &mut of) };
            device.check("ask a stream for its device", code)?;
            if of != device.index {
                fail!(
                    InvalidArgument,
                    "user_compute_stream {address:#x} is a stream of device {of}; device_id is {}, and both must be the same",
                    device.index
                );
            }
        }
        Ok(stream)
    }

    /// A stream by its handle; whoever keeps it does so for as long as this is used.
    pub(super) fn kept_elsewhere(device: &Arc<Device>, raw: Raw) -> Self {
        Stream { device: device.clone(), raw, owned: false }
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The runtime's handle, as a number.
    pub(crate) fn id(&self) -> u64 {
        self.raw.addr() as u64
    }

    /// Waits until everything given so far is done.
    pub(crate) fn synchronize(&self) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        // SAFETY: the stream lives.
        let code = unsafe { (self.device.runtime.functions.stream_synchronize)(self.raw) };
        self.device.check("wait for the stream", code)
    }

    /// Marks the point that this stream has come to with what it was given so far.
    pub(crate) fn record(&self, event: &Event) -> Result<(), HipError> {
        event.record(self.raw)
    }

    /// Lets what is given from now on wait for the point that an event marks; the caller does not wait.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        // SAFETY: stream and event live; the runtime keeps what it needs of the event.
        let code = unsafe { (self.device.runtime.functions.stream_wait)(self.raw, event.raw(), 0) };
        self.device.check("let a stream wait for an event", code)
    }

    /// Lets what is given from now on wait for everything that `other` was given so far.
    pub(crate) fn wait_for_stream(&self, other: &Stream, mark: &Event) -> Result<(), HipError> {
        other.record(mark)?;
        self.wait_for(mark)
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// Whether work that it is given now is recorded and not done. What waits for the stream fails then.
    pub(crate) fn is_capturing(&self) -> bool {
        let (Some(ask), Ok(_current)) = (self.device.runtime.functions.is_capturing, self.device.enter())
        else {
            return false;
        };
        let mut status = 0;
        // SAFETY: the stream lives; the out pointer is valid.
        unsafe { ask(self.raw, &mut status) == 0 && status != 0 }
    }

    /// Copies bytes to device memory.
    ///
    /// # Safety
    /// `to` must be valid for the bytes on the device, and `from` must stay as it is until the stream
    /// has come past the copy.
    pub(crate) unsafe fn copy_to_device(&self, to: u64, from: &[u8]) -> Result<(), HipError> {
        if from.is_empty() {
            return Ok(());
        }
        let _current = self.device.enter()?;
        let copy = self.device.runtime.functions.copy_to_device;
        // SAFETY: the caller's promise.
        let code = unsafe { copy(to, from.as_ptr().cast(), from.len(), self.raw) };
        self.device.check("copy to the device", code)
    }

    /// Copies bytes from device memory.
    ///
    /// # Safety
    /// `from` must be valid for `len` bytes on the device and `to` on the host, until the stream has
    /// come past the copy.
    pub(crate) unsafe fn copy_to_host(&self, to: *mut u8, from: u64, len: usize) -> Result<(), HipError> {
        if len == 0 {
            return Ok(());
        }
        let _current = self.device.enter()?;
        // SAFETY: the caller's promise.
        let code = unsafe { (self.device.runtime.functions.copy_to_host)(to.cast(), from, len, self.raw) };
        self.device.check("copy to the host", code)
    }

    /// Copies bytes within device memory; the two spans must not overlap.
    ///
    /// # Safety
    /// Both spans must be valid on the device until the stream has come past the copy.
    pub(crate) unsafe fn copy_on_device(&self, to: u64, from: u64, len: usize) -> Result<(), HipError> {
        if len == 0 {
            return Ok(());
        }
        let _current = self.device.enter()?;
        // SAFETY: the caller's promise.
        let code = unsafe { (self.device.runtime.functions.copy_on_device)(to, from, len, self.raw) };
        self.device.check("copy on the device", code)
    }

    /// Sets bytes of device memory.
    ///
    /// # Safety
    /// The span must be valid on the device until the stream has come past it.
    pub(crate) unsafe fn set_bytes(&self, to: u64, value: u8, len: usize) -> Result<(), HipError> {
        if len == 0 {
            return Ok(());
        }
        let _current = self.device.enter()?;
        // SAFETY: the caller's promise.
        let code = unsafe { (self.device.runtime.functions.set_bytes)(to, value, len, self.raw) };
        self.device.check("fill device memory", code)
    }

    /// Launches kernels in order. The device is made current once for all of them.
    ///
    /// # Safety
    /// The parameters of each launch must be what its kernel takes, and every address in them valid
    /// for what the kernel does with it, until the stream has come past the launches.
    pub(crate) unsafe fn launch<'l>(
        &self,
        launches: impl Iterator<Item = Launch<'l>>,
    ) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        for launch in launches {
            // SAFETY: the caller's promise.
            unsafe { launch.submit(&self.device, self.raw)? };
        }
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned
            && let Ok(_current) = self.device.enter()
        {
            // SAFETY: made by `new`, destroyed once.
            unsafe { (self.device.runtime.functions.stream_destroy)(self.raw) };
        }
    }
}
