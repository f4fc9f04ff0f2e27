//! The one interface to device memory, and the block it gives.

use std::sync::Arc;

use super::arena::Arena;
use super::backing::Backing;
use super::config::ArenaConfig;
use super::core::{Core, Grant};
use super::direct::Direct;
use super::external::ExternalFunctions;
use super::snapshot::Snapshot;
use super::statistics::Statistics;
use crate::error::Result;

/// An allocator of device memory. Clones share it; blocks keep it alive.
#[derive(Clone)]
pub(crate) struct DeviceAllocator(Arc<dyn Core>);

impl DeviceAllocator {
    /// Over `backing`: an arena, or with `config.caching` off every block straight from the device.
    /// `name` is what errors call the memory, such as `hip:0`.
    pub(crate) fn new(name: &str, backing: Arc<dyn Backing>, config: &ArenaConfig) -> Self {
        if config.caching {
            DeviceAllocator(Arc::new(Arena::new(name, backing, config)))
        } else {
            DeviceAllocator(Arc::new(Direct::uncached(name, backing, config.max_mem)))
        }
    }

    /// Every block from the user's functions. `backing` only tells when streams are done.
    pub(crate) fn external(name: &str, backing: Arc<dyn Backing>, functions: ExternalFunctions) -> Self {
        DeviceAllocator(Arc::new(Direct::external(name, backing, functions)))
    }

    /// Whether both are the same allocator.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A block for work on `stream`, which may use it at once. No bytes take no memory.
    pub(crate) fn allocate(&self, bytes: usize, stream: u64) -> Result<Block> {
        self.block(bytes, stream, |core, bytes| core.allocate(bytes, stream))
    }

    /// A block beside the arena that returns to the device as soon as it is freed and its streams are
    /// done: for weights, which stay as long as their session.
    pub(crate) fn reserve(&self, bytes: usize, stream: u64) -> Result<Block> {
        self.block(bytes, stream, |core, bytes| core.reserve(bytes, stream))
    }

    /// Gives back to the device what no one uses, after waiting for the streams that use it still.
    /// Under `kNextPowerOfTwo` the first region stays.
    pub(crate) fn shrink(&self) -> Result<()> {
        self.0.shrink()
    }

    /// As `shrink`, and nothing unused stays.
    pub(crate) fn empty_cache(&self) -> Result<()> {
        self.0.empty_cache()
    }

    /// To be called before a stream is destroyed, when no more work is queued on it: waits for the
    /// stream. Blocks made for it stay valid.
    pub(crate) fn forget_stream(&self, stream: u64) -> Result<()> {
        self.0.forget_stream(stream)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    pub(crate) fn reset_peaks(&self) {
        self.0.reset_peaks();
    }

    /// Keeps the last `events` events for snapshots; 0, as at first, keeps none.
    pub(crate) fn record_history(&self, events: usize) {
        self.0.record_history(events);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn block(
        &self,
        bytes: usize,
        stream: u64,
        grant: impl Fn(&dyn Core, u64) -> Result<Grant>,
    ) -> Result<Block> {
        let grant = match bytes {
            0 => Grant { address: 0, size: 0 },
            bytes => grant(&*self.0, bytes as u64)?,
        };
        Ok(Block { core: self.0.clone(), grant, bytes, stream })
    }
}

impl std::fmt::Debug for DeviceAllocator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceAllocator")
    }
}

/// Device memory that returns to its allocator when it is dropped. Work that is queued on its streams
/// by then may still use it.
pub(crate) struct Block {
    core: Arc<dyn Core>,
    grant: Grant,
    bytes: usize,
    stream: u64,
}

impl Block {
    /// A multiple of 256; 0 for a block of no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.grant.address
    }

    /// What was asked for, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    /// What may be used, in bytes: `len` at the least.
    pub(crate) fn capacity(&self) -> u64 {
        self.grant.size
    }

    #[cfg(test)]
    /// The stream that it was made for.
    pub(crate) fn stream(&self) -> u64 {
        self.stream
    }

    /// Another stream uses the block too: once freed, nobody gets the memory before that stream has
    /// done what is queued on it when the block is freed.
    pub(crate) fn record_stream(&self, stream: u64) {
        if self.grant.size > 0 {
            self.core.record_stream(self.grant.address, stream);
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.grant.size > 0 {
            self.core.free(self.grant.address);
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({:#x}, {} bytes, stream {})", self.grant.address, self.bytes, self.stream)
    }
}
