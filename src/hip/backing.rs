//! A device as the memory room sees it: plain memory, and fences in streams.

use std::sync::Arc;

use super::Device;
use super::error::{HipError, HipErrorKind};
use super::event::Event;
use super::stream::Stream;
use super::symbols::Raw;
use crate::memory::device::backing::{Backing, BackingError, Fence};

/// Memory and fences of a device. A fence is the address of a boxed event.
pub(crate) struct DeviceBacking {
    device: Arc<Device>,
    /// Bytes of the device that the process may hold; `u64::MAX` is no limit.
    share: u64,
}

impl DeviceBacking {
    pub(crate) fn new(device: Arc<Device>) -> Self {
        DeviceBacking { device, share: u64::MAX }
    }

    /// Gives memory only as long as the whole process holds at most so many bytes of the device.
    pub(crate) fn within(self, share: Option<u64>) -> Self {
        DeviceBacking { share: share.unwrap_or(u64::MAX), ..self }
    }
}

impl From<HipError> for BackingError {
    fn from(e: HipError) -> Self {
        match e.kind {
            HipErrorKind::OutOfMemory => BackingError::Exhausted,
            _ => BackingError::Failed(e.to_string()),
        }
    }
}

impl Backing for DeviceBacking {
    fn allocate(&self, bytes: u64) -> Result<u64, BackingError> {
        let bytes = usize::try_from(bytes).map_err(|_| BackingError::Exhausted)?;
        match self.device.malloc_within(bytes, self.share) {
            Ok(given) => Ok(given?),
            Err(held) => Err(BackingError::OverShare { share: self.share, held }),
        }
    }

    fn free(&self, address: u64) {
        self.device.free(address);
    }

    fn record(&self, stream: u64) -> Result<Fence, BackingError> {
        let event = Event::new(&self.device)?;
        event.record(raw(stream))?;
        Ok(Fence::new(Box::into_raw(Box::new(event)).expose_provenance() as u64))
    }

    fn is_done(&self, fence: &Fence) -> Result<bool, BackingError> {
        Ok(event(fence).is_done()?)
    }

    fn wait(&self, fence: &Fence) -> Result<(), BackingError> {
        Ok(event(fence).synchronize()?)
    }

    fn release(&self, fence: Fence) {
        let event = std::ptr::with_exposed_provenance_mut::<Event>(fence.handle() as usize);
        // SAFETY: the number is that of a box that `record` gave up, and each fence comes here once.
        drop(unsafe { Box::from_raw(event) });
    }

    fn synchronize(&self, stream: u64) -> Result<(), BackingError> {
        let stream = Stream::kept_elsewhere(&self.device, raw(stream));
        if stream.is_capturing() {
            let why =
                "memory is still used by work in a stream that is being captured; end the capture first";
            return Err(BackingError::Failed(why.to_owned()));
        }
        Ok(stream.synchronize()?)
    }
}

/// Pinned memory of the host for copies from and to a device, with that device's fences.
pub(crate) struct PinnedBacking(pub(crate) DeviceBacking);

impl Backing for PinnedBacking {
    fn allocate(&self, bytes: u64) -> Result<u64, BackingError> {
        let bytes = usize::try_from(bytes).map_err(|_| BackingError::Exhausted)?;
        let missing = || BackingError::Failed("this runtime has no pinned memory".to_owned());
        self.0.device.host_malloc(bytes)?.ok_or_else(missing)
    }

    fn free(&self, address: u64) {
        self.0.device.host_free(address);
    }

    fn record(&self, stream: u64) -> Result<Fence, BackingError> {
        self.0.record(stream)
    }

    fn is_done(&self, fence: &Fence) -> Result<bool, BackingError> {
        self.0.is_done(fence)
    }

    fn wait(&self, fence: &Fence) -> Result<(), BackingError> {
        self.0.wait(fence)
    }

    fn release(&self, fence: Fence) {
        self.0.release(fence);
    }

    fn synchronize(&self, stream: u64) -> Result<(), BackingError> {
        self.0.synchronize(stream)
    }
}

fn raw(stream: u64) -> Raw {
    std::ptr::with_exposed_provenance_mut(stream as usize)
}

fn event(fence: &Fence) -> &Event {
    // SAFETY: the number is that of a box which lives until `release` takes the fence.
    unsafe { &*std::ptr::with_exposed_provenance::<Event>(fence.handle() as usize) }
}
