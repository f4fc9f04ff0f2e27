//! What every kind of allocator of device memory does, and what it gives.

use super::snapshot::Snapshot;
use super::statistics::Statistics;
use crate::error::Result;

/// What the kinds of allocators do. Sizes asked for are never 0.
pub(super) trait Core: Send + Sync {
    fn allocate(&self, bytes: u64, stream: u64) -> Result<Grant>;
    fn reserve(&self, bytes: u64, stream: u64) -> Result<Grant>;
    fn record_stream(&self, address: u64, stream: u64);
    fn free(&self, address: u64);
    fn shrink(&self) -> Result<()>;
    fn empty_cache(&self) -> Result<()>;
    fn forget_stream(&self, stream: u64) -> Result<()>;
    fn statistics(&self) -> Statistics;
    fn reset_peaks(&self);
    fn record_history(&self, events: usize);
    fn snapshot(&self) -> Snapshot;
}

/// Memory that was granted: the size is what was asked for, rounded up at the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) address: u64,
    pub(super) size: u64,
}
