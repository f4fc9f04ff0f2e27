//! No caching: every block straight from the device, or from the user's functions.
//!
//! A freed block goes back at once, after waiting for the streams that use it. No lock is held while
//! waiting, nor while the user's functions run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backing::{Backing, BackingError, OwnedFence};
use super::core::{Core, Grant};
use super::exhausted::{Exhausted, Refuser};
use super::external::ExternalFunctions;
use super::snapshot::{Action, BlockInfo, BlockState, Segment, Snapshot, Trace};
use super::statistics::Statistics;
use super::{GRANULARITY, rounded};
use crate::error::{Result, fail};

pub(super) struct Direct {
    name: String,
    backing: Arc<dyn Backing>,
    /// `None`: memory comes from the backing.
    functions: Option<ExternalFunctions>,
    /// Bytes; `u64::MAX` for none.
    limit: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    /// By address.
    blocks: BTreeMap<u64, Live>,
    /// Bytes that are being asked for without the lock.
    claimed: u64,
    statistics: Statistics,
    trace: Trace,
}

struct Live {
    size: u64,
    requested: u64,
    /// The stream it was made for and those recorded, without those that were forgotten.
    streams: Vec<u64>,
    state: BlockState,
}

impl Direct {
    pub(super) fn uncached(name: &str, backing: Arc<dyn Backing>, limit: u64) -> Self {
        Self::new(name, backing, None, limit)
    }

    /// The limit is the arena's and does not hold for the user's functions.
    pub(super) fn external(name: &str, backing: Arc<dyn Backing>, functions: ExternalFunctions) -> Self {
        Self::new(name, backing, Some(functions), u64::MAX)
    }

    fn new(name: &str, backing: Arc<dyn Backing>, functions: Option<ExternalFunctions>, limit: u64) -> Self {
        let inner = Inner {
            blocks: BTreeMap::new(),
            claimed: 0,
            statistics: Statistics { limit, ..Statistics::default() },
            trace: Trace::new(),
        };
        Direct { name: name.to_string(), backing, functions, limit, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From the device or the user, once more after the user's cache was emptied.
    fn take(&self, size: u64) -> std::result::Result<u64, BackingError> {
        let Some(functions) = &self.functions else { return self.backing.allocate(size) };
        match functions.allocate(size) {
            Err(BackingError::Exhausted) if functions.empty_cache() => {
                self.lock().statistics.num_alloc_retries += 1;
                functions.allocate(size)
            }
            result => result,
        }
    }

    fn give_back(&self, address: u64) {
        match &self.functions {
            Some(functions) => functions.free(address),
            None => self.backing.free(address),
        }
    }

    fn exhausted<T>(&self, inner: &mut Inner, refuser: Refuser, bytes: u64, stream: u64) -> Result<T> {
        inner.statistics.num_ooms += 1;
        inner.trace.add(Action::Oom, 0, bytes, Some(stream));
        let allocated = inner.statistics.allocated_bytes.all.current;
        let reserved = inner.statistics.reserved_bytes.all.current;
        let exhausted = Exhausted {
            name: &self.name,
            refuser,
            requested: bytes,
            limit: self.limit,
            allocated,
            reserved,
            largest_free: 0,
        };
        Err(exhausted.error())
    }

    /// Waits until a stream has done what is queued on it.
    fn wait(&self, stream: u64) -> std::result::Result<(), BackingError> {
        match OwnedFence::record(&self.backing, stream) {
            Ok(fence) => fence.wait(),
            Err(_) => self.backing.synchronize(stream),
        }
    }
}

impl Core for Direct {
    fn allocate(&self, bytes: u64, stream: u64) -> Result<Grant> {
        let size = rounded(bytes).unwrap_or(u64::MAX - (GRANULARITY - 1));
        let mut inner = self.lock();
        let held = inner.statistics.reserved_bytes.all.current.saturating_add(inner.claimed);
        if size > self.limit.saturating_sub(held) {
            return self.exhausted(&mut inner, Refuser::Limit, bytes, stream);
        }
        inner.claimed = inner.claimed.saturating_add(size);
        drop(inner);
        let result = self.take(size);
        let mut inner = self.lock();
        inner.claimed = inner.claimed.saturating_sub(size);
        let address = match result {
            Ok(address) => address,
            Err(BackingError::Exhausted) => {
                let refuser = if self.functions.is_some() { Refuser::User } else { Refuser::Device };
                return self.exhausted(&mut inner, refuser, bytes, stream);
            }
            Err(BackingError::OverShare { share, held }) => {
                return self.exhausted(&mut inner, Refuser::Share { share, held }, bytes, stream);
            }
            Err(failed) => return Err(failed.into()),
        };
        if inner.blocks.contains_key(&address) {
            fail!(InvalidData, "{}: gpu_external_alloc returned {address:#x}, which is in use", self.name);
        }
        if !address.is_multiple_of(GRANULARITY) {
            drop(inner);
            self.give_back(address);
            fail!(
                InvalidData,
                "{}: gpu_external_alloc returned {address:#x}; device memory must be aligned to {GRANULARITY} bytes",
                self.name
            );
        }
        let live = Live { size, requested: bytes, streams: vec![stream], state: BlockState::ActiveAllocated };
        inner.blocks.insert(address, live);
        inner.statistics.segment_begins(size);
        inner.statistics.block_begins(size, bytes);
        inner.trace.add(Action::SegmentAlloc, address, size, Some(stream));
        inner.trace.add(Action::Alloc, address, size, Some(stream));
        Ok(Grant { address, size })
    }

    fn reserve(&self, bytes: u64, stream: u64) -> Result<Grant> {
        let grant = self.allocate(bytes, stream)?;
        self.lock().statistics.num_reserves += 1;
        Ok(grant)
    }

    fn record_stream(&self, address: u64, stream: u64) {
        if let Some(live) = self.lock().blocks.get_mut(&address)
            && !live.streams.contains(&stream)
        {
            live.streams.push(stream);
        }
    }

    fn free(&self, address: u64) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let Some(live) = inner.blocks.get_mut(&address) else { return };
        live.state = BlockState::ActiveAwaitingFree;
        let (size, requested, streams) = (live.size, live.requested, live.streams.clone());
        inner.statistics.block_freed(size);
        inner.trace.add(Action::FreeRequested, address, size, streams.first().copied());
        drop(guard);
        for &stream in &streams {
            // A device that cannot wait has failed: nothing uses its memory any more.
            let _ = self.wait(stream);
        }
        let mut guard = self.lock();
        let inner = &mut *guard;
        // Before it goes back: another thread may be given the same address at once.
        inner.blocks.remove(&address);
        inner.statistics.block_ends(size, requested);
        inner.statistics.segment_ends(size);
        inner.trace.add(Action::FreeCompleted, address, size, streams.first().copied());
        inner.trace.add(Action::SegmentFree, address, size, streams.first().copied());
        drop(guard);
        self.give_back(address);
    }

    /// Nothing is kept that could be given back.
    fn shrink(&self) -> Result<()> {
        Ok(())
    }

    fn empty_cache(&self) -> Result<()> {
        if let Some(functions) = &self.functions {
            functions.empty_cache();
        }
        Ok(())
    }

    fn forget_stream(&self, stream: u64) -> Result<()> {
        let waited = self.wait(stream);
        for live in self.lock().blocks.values_mut() {
            live.streams.retain(|&other| other != stream);
        }
        Ok(waited?)
    }

    fn statistics(&self) -> Statistics {
        self.lock().statistics.clone()
    }

    fn reset_peaks(&self) {
        self.lock().statistics.reset_peaks();
    }

    fn record_history(&self, events: usize) {
        self.lock().trace.set_capacity(events);
    }

    fn snapshot(&self) -> Snapshot {
        let inner = self.lock();
        let segment = |(&address, live): (&u64, &Live)| {
            let block = BlockInfo {
                address,
                size: live.size,
                requested_size: live.requested,
                state: live.state,
                stream: live.streams.first().copied(),
            };
            Segment { address, size: live.size, blocks: vec![block] }
        };
        Snapshot { segments: inner.blocks.iter().map(segment).collect(), trace: inner.trace.events() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::allocator::DeviceAllocator;
    use super::super::config::ArenaConfig;
    use super::super::testing::Fake;

    fn uncached(fake: &std::sync::Arc<Fake>, max_mem: u64) -> DeviceAllocator {
        let config = ArenaConfig { caching: false, max_mem, ..ArenaConfig::default() };
        DeviceAllocator::new("hip:0", fake.clone(), &config)
    }

    #[test]
    fn each_block_comes_and_goes() {
        let fake = Fake::new(0);
        let allocator = uncached(&fake, u64::MAX);
        let a = allocator.allocate(1000, 1).unwrap();
        let b = allocator.reserve(5000, 2).unwrap();
        assert_eq!(fake.take_sizes(), [1024, 5120]);
        fake.submit(1, 1, a.address()..a.address() + 1024);
        fake.submit(3, 1, a.address()..a.address() + 1024);
        a.record_stream(3);
        // Waits for both streams; the device says if it did not.
        drop(a);
        assert_eq!(fake.bytes(), 5120);
        allocator.shrink().unwrap();
        allocator.empty_cache().unwrap();
        fake.submit(2, 2, b.address()..b.address() + 5120);
        allocator.forget_stream(2).unwrap();
        fake.submit(2, 3, 0..1);
        fake.refuse_fences(true);
        drop(b);
        let c = allocator.allocate(1, 7).unwrap();
        fake.submit(7, 3, c.address()..c.address() + 1);
        drop(c);
        fake.check_returned();
        let s = allocator.statistics();
        assert_eq!((s.num_device_alloc, s.num_device_free, s.num_reserves), (3, 3, 1));
        assert_eq!((s.active.all.current, s.reserved_bytes.all.peak), (0, 6144));
    }

    #[test]
    fn the_limit_holds() {
        let fake = Fake::new(8192);
        let allocator = uncached(&fake, 4096);
        let a = allocator.allocate(4000, 1).unwrap();
        let error = allocator.allocate(1, 1).unwrap_err();
        assert!(error.message.contains("Raise gpu_mem_limit"), "{}", error.message);
        drop(a);
        allocator.allocate(4096, 1).unwrap();
        let error = uncached(&fake, u64::MAX).allocate(9000, 1).unwrap_err();
        assert!(error.message.contains("The device has no more memory"), "{}", error.message);
        fake.fail(true);
        let error = allocator.allocate(1, 1).unwrap_err();
        assert!(error.message.contains("hipErrorUnknown"), "{}", error.message);
        assert_eq!(allocator.statistics().num_ooms, 1);
        fake.check_returned();
    }
}
