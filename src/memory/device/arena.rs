//! The arena: best fit with coalescing over regions that are kept, aware of streams.
//!
//! The behaviour is that of ONNX Runtime's arena (granularity, bins, growth, splitting, shrinking)
//! with PyTorch's rules for streams: memory freed by a stream is that stream's again at once, and
//! everyone's when the stream is past the free.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backing::{Backing, BackingError};
use super::config::{ArenaConfig, ExtendStrategy};
use super::core::{Core, Grant};
use super::exhausted::{Exhausted, Refuser};
use super::growth::{Growth, back_off};
use super::heap::{Heap, Request};
use super::snapshot::{Action, Snapshot};
use super::statistics::Statistics;
use super::streams::Streams;
use super::{GRANULARITY, rounded};
use crate::error::{Error, Result};

pub(super) struct Arena {
    name: String,
    backing: Arc<dyn Backing>,
    limit: u64,
    /// Shrinking leaves the first region, whose size the user chose.
    keep_first: bool,
    inner: Mutex<Inner>,
}

struct Inner {
    heap: Heap,
    streams: Streams,
    growth: Growth,
}

/// Where a block comes from.
#[derive(Clone, Copy)]
enum Place {
    Arena,
    OwnRegion,
}

/// Why there is no block yet.
enum Refusal {
    NoMemory(Refuser),
    Failed(Error),
}

impl Arena {
    pub(super) fn new(name: &str, backing: Arc<dyn Backing>, config: &ArenaConfig) -> Self {
        let inner = Inner {
            heap: Heap::new(config.max_dead_bytes_per_chunk, config.max_mem),
            streams: Streams::new(backing.clone()),
            growth: Growth::new(config),
        };
        Arena {
            name: name.to_string(),
            backing,
            limit: config.max_mem,
            keep_first: config.arena_extend_strategy == ExtendStrategy::NextPowerOfTwo,
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block, for which everything is tried: what is free, a new region, giving back idle regions,
    /// and waiting for the streams.
    fn get(&self, bytes: u64, stream: u64, place: Place) -> Result<Grant> {
        let mut inner = self.lock();
        // A size that cannot be rounded up is beyond any limit and any device.
        let size = rounded(bytes).unwrap_or(u64::MAX - (GRANULARITY - 1));
        let request = Request { size, requested: bytes, stream };
        inner.streams.touch(stream);
        let mut refuser = match self.try_once(&mut inner, &request, place) {
            Ok(grant) => return Ok(grant),
            Err(Refusal::Failed(error)) => return Err(error),
            Err(Refusal::NoMemory(refuser)) => refuser,
        };
        // What can never be had is not worth the cache.
        let steps: &[bool] = if size > self.limit { &[] } else { &[false, true, false] };
        inner.heap.statistics.num_alloc_retries += u64::from(!steps.is_empty());
        for &wait in steps {
            if wait {
                drop(inner);
                self.wait_for_streams()?;
                inner = self.lock();
            } else {
                let idle = inner.heap.remove_idle(false);
                idle.into_iter().for_each(|address| self.backing.free(address));
            }
            match self.try_once(&mut inner, &request, place) {
                Ok(grant) => return Ok(grant),
                Err(Refusal::Failed(error)) => return Err(error),
                Err(Refusal::NoMemory(by)) => refuser = by,
            }
        }
        inner.heap.statistics.num_ooms += 1;
        inner.heap.trace.add(Action::Oom, 0, size, Some(stream));
        let statistics = &inner.heap.statistics;
        let exhausted = Exhausted {
            name: &self.name,
            refuser,
            requested: bytes,
            limit: self.limit,
            allocated: statistics.allocated_bytes.all.current,
            reserved: statistics.reserved_bytes.all.current,
            largest_free: inner.heap.largest_free(),
        };
        Err(exhausted.error())
    }

    /// A free chunk or a new region.
    fn try_once(
        &self,
        inner: &mut Inner,
        request: &Request,
        place: Place,
    ) -> std::result::Result<Grant, Refusal> {
        self.follow_streams(inner);
        if let Place::Arena = place
            && let Some(grant) = self.find(inner, request)
        {
            return Ok(grant);
        }
        let reserved = inner.heap.statistics.reserved_bytes.all.current;
        let available = self.limit.saturating_sub(reserved);
        let available = available - available % GRANULARITY;
        if request.size > available {
            return Err(Refusal::NoMemory(Refuser::Limit));
        }
        match place {
            Place::OwnRegion => {
                let address = self.device_memory(request.size)?;
                Ok(inner.heap.add_dedicated(address, request))
            }
            Place::Arena => {
                let plan = inner.growth.plan(request.size, available);
                let (address, size) = self.region(plan.size, request.size)?;
                inner.growth.grown(plan);
                inner.heap.add_region(address, size);
                inner.heap.take(request).ok_or(Refusal::NoMemory(Refuser::Device))
            }
        }
    }

    /// A free chunk that the stream may use; fences and joining are the means when there is none.
    fn find(&self, inner: &mut Inner, request: &Request) -> Option<Grant> {
        if let Some(grant) = inner.heap.take(request) {
            return Some(grant);
        }
        inner.heap.join(request.stream);
        if let Some(grant) = inner.heap.take(request) {
            return Some(grant);
        }
        if inner.streams.cover() && self.follow_streams(inner) {
            inner.heap.join(request.stream);
            return inner.heap.take(request);
        }
        None
    }

    /// A region of `size` bytes, or of less when the device refuses, down to `least`.
    fn region(&self, mut size: u64, least: u64) -> std::result::Result<(u64, u64), Refusal> {
        loop {
            match self.device_memory(size) {
                Ok(address) => return Ok((address, size)),
                Err(Refusal::NoMemory(refuser)) => match back_off(size, least) {
                    Some(less) => size = less,
                    None => return Err(Refusal::NoMemory(refuser)),
                },
                Err(failed) => return Err(failed),
            }
        }
    }

    fn device_memory(&self, size: u64) -> std::result::Result<u64, Refusal> {
        self.backing.allocate(size).map_err(|error| match error {
            BackingError::Exhausted => Refusal::NoMemory(Refuser::Device),
            BackingError::OverShare { share, held } => Refusal::NoMemory(Refuser::Share { share, held }),
            failed => Refusal::Failed(failed.into()),
        })
    }

    /// Sees which streams got on. Whether any did.
    fn follow_streams(&self, inner: &mut Inner) -> bool {
        let progress = inner.streams.poll();
        if progress {
            self.sweep(inner);
        }
        progress
    }

    fn sweep(&self, inner: &mut Inner) {
        let regions = inner.heap.sweep(&inner.streams);
        regions.into_iter().for_each(|address| self.backing.free(address));
    }

    /// Waits, without the lock, until all streams are past what they have freed.
    fn wait_for_streams(&self) -> Result<()> {
        let waits = self.lock().streams.fences();
        if waits.is_empty() {
            return Ok(());
        }
        waits.wait()?;
        let mut inner = self.lock();
        inner.heap.statistics.num_sync_all_streams += 1;
        inner.streams.pass(&waits);
        self.sweep(&mut inner);
        Ok(())
    }

    fn give_back(&self, keep_first: bool) -> Result<()> {
        self.wait_for_streams()?;
        let mut inner = self.lock();
        let idle = inner.heap.remove_idle(keep_first);
        inner.growth.restart();
        drop(inner);
        idle.into_iter().for_each(|address| self.backing.free(address));
        Ok(())
    }
}

impl Core for Arena {
    fn allocate(&self, bytes: u64, stream: u64) -> Result<Grant> {
        self.get(bytes, stream, Place::Arena)
    }

    fn reserve(&self, bytes: u64, stream: u64) -> Result<Grant> {
        self.get(bytes, stream, Place::OwnRegion)
    }

    fn record_stream(&self, address: u64, stream: u64) {
        let mut inner = self.lock();
        inner.streams.touch(stream);
        inner.heap.record_stream(address, stream);
    }

    fn free(&self, address: u64) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let region = inner.heap.free(address, &mut inner.streams);
        drop(guard);
        if let Some(region) = region {
            self.backing.free(region);
        }
    }

    fn shrink(&self) -> Result<()> {
        self.give_back(self.keep_first)
    }

    fn empty_cache(&self) -> Result<()> {
        self.give_back(false)
    }

    fn forget_stream(&self, stream: u64) -> Result<()> {
        let Some(waits) = self.lock().streams.fence(stream) else { return Ok(()) };
        let waited = waits.wait();
        let mut inner = self.lock();
        inner.streams.forget(stream);
        inner.heap.forget(stream);
        self.sweep(&mut inner);
        Ok(waited?)
    }

    fn statistics(&self) -> Statistics {
        self.lock().heap.statistics.clone()
    }

    fn reset_peaks(&self) {
        self.lock().heap.statistics.reset_peaks();
    }

    fn record_history(&self, events: usize) {
        self.lock().heap.trace.set_capacity(events);
    }

    fn snapshot(&self) -> Snapshot {
        let inner = self.lock();
        Snapshot { segments: inner.heap.segments(), trace: inner.heap.trace.events() }
    }
}

impl Drop for Arena {
    /// No block is left, but streams may still use what was freed.
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A device that cannot wait has failed: nothing uses its memory any more.
        let _ = inner.streams.fences().wait();
        inner.heap.regions().into_iter().for_each(|address| self.backing.free(address));
    }
}

#[cfg(test)]
mod tests;
