//! What the room asks of a device: plain memory, and fences in streams.

use std::sync::Arc;

use crate::error::{Error, Status};

/// A device's memory and the order of its streams. A stream is known by its handle as a number; 0 is
/// the default stream.
///
/// The room calls every method from several threads at once. It may hold its lock during all but `wait`
/// and `synchronize`; so none may call back into the allocator.
pub(crate) trait Backing: Send + Sync {
    /// The address of at least `bytes` (never 0), aligned to 256.
    fn allocate(&self, bytes: u64) -> Result<u64, BackingError>;

    /// Gives back what `allocate` returned. No queued work uses it any more. A device that fails here
    /// has failed altogether, which its next call reports.
    fn free(&self, address: u64);

    /// A fence behind all work queued on `stream` so far.
    fn record(&self, stream: u64) -> Result<Fence, BackingError>;

    /// Whether the work before `fence` is done. Never waits.
    fn is_done(&self, fence: &Fence) -> Result<bool, BackingError>;

    /// Waits until the work before `fence` is done.
    fn wait(&self, fence: &Fence) -> Result<(), BackingError>;

    /// Ends a fence, done or not. Every fence comes here once.
    fn release(&self, fence: Fence);

    /// Waits until the work queued on `stream` so far is done. Fails while the stream is being captured.
    fn synchronize(&self, stream: u64) -> Result<(), BackingError>;
}

/// A device's answer when it does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackingError {
    /// The device has no memory left; freeing some may help.
    Exhausted,
    /// The process holds so many bytes of the device already that with these it would be over its share.
    OverShare { share: u64, held: u64 },
    /// Anything else, in the words of the device's runtime.
    Failed(String),
}

impl From<BackingError> for Error {
    fn from(e: BackingError) -> Self {
        match e {
            BackingError::Exhausted => Error::new(Status::OutOfMemory, "the device has no memory left"),
            BackingError::OverShare { share, held } => Error::new(
                Status::OutOfMemory,
                format!(
                    "the process holds {held} bytes of the device's memory, and its share (gpu_mem_fraction) is {share}"
                ),
            ),
            BackingError::Failed(message) => Error::new(Status::Device, message),
        }
    }
}

/// A point in a stream's work; the number is the device's own (the handle of an event).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fence(u64);

impl Fence {
    pub(crate) fn new(handle: u64) -> Self {
        Fence(handle)
    }

    pub(crate) fn handle(&self) -> u64 {
        self.0
    }
}

/// A fence that is released when it is dropped.
pub(super) struct OwnedFence {
    backing: Arc<dyn Backing>,
    fence: Fence,
}

impl OwnedFence {
    pub(super) fn record(backing: &Arc<dyn Backing>, stream: u64) -> Result<Self, BackingError> {
        let fence = backing.record(stream)?;
        Ok(OwnedFence { backing: backing.clone(), fence })
    }

    /// A device that cannot say has not passed the fence.
    pub(super) fn is_done(&self) -> bool {
        self.backing.is_done(&self.fence).unwrap_or(false)
    }

    pub(super) fn wait(&self) -> Result<(), BackingError> {
        self.backing.wait(&self.fence)
    }
}

impl Drop for OwnedFence {
    fn drop(&mut self) {
        self.backing.release(Fence(self.fence.0));
    }
}
