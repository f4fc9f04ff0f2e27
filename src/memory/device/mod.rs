//! Device memory: an arena, or the user's own functions, behind one interface.
//!
//! The room knows no device. It works over [`Backing`](backing::Backing), which a HIP runtime implements: plain
//! allocation, and fences that tell when a stream has passed a point.
//!
//! ```text
//! allocator.rs   DeviceAllocator and Block: what users of the room see
//! core.rs        what every kind of allocator does
//! arena.rs       best fit with coalescing, aware of streams: lock, growth, out of memory
//!   heap.rs      regions, chunks and bins: the bookkeeping, without locks or devices
//!   growth.rs    how large the next region is
//! direct.rs      no caching: every block straight from the backing or from the user's functions
//!   external.rs  the user's functions
//! exhausted.rs   the error when there is no memory
//! streams.rs     points in streams' work, and the fences that cover them
//! statistics.rs  counters by the names of PyTorch and ONNX Runtime
//! snapshot.rs    segments, blocks and a trace of events, as JSON
//! config.rs      the settings, from and to text
//! ```

pub(crate) mod allocator;
mod arena;
pub(crate) mod backing;
mod bins;
pub(crate) mod config;
mod core;
mod direct;
mod exhausted;
pub(crate) mod external;
mod growth;
mod heap;
pub(crate) mod snapshot;
pub(crate) mod statistics;
mod streams;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

/// Addresses and sizes of blocks are multiples of this, in bytes.
pub(crate) const GRANULARITY: u64 = 256;

/// `bytes` rounded up to the granularity; `None` when that overflows.
fn rounded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(GRANULARITY)
}
