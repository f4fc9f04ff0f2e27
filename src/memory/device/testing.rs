//! A device for tests: addresses without memory, streams whose work ends on command.
//!
//! It knows which work is queued over which addresses, and so sees every use of memory that is still
//! in use: memory freed under queued work, or handed to another stream too early.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backing::{Backing, BackingError, Fence};

pub(super) struct Fake {
    /// In bytes; 0 is no limit.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_address: u64,
    live: BTreeMap<u64, u64>,
    /// Work queued and work done, for each stream.
    streams: BTreeMap<u64, (u64, u64)>,
    work: Vec<Work>,
    fences: BTreeMap<u64, (u64, u64)>,
    fences_recorded: usize,
    refuse_fences: bool,
    fail: bool,
    sizes: Vec<u64>,
    errors: Vec<String>,
}

/// Work on a range of addresses, for a user known by number.
struct Work {
    stream: u64,
    number: u64,
    user: u64,
    range: Range<u64>,
}

impl Fake {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Fake { limit, state: Mutex::new(State { next_address: 1 << 20, ..State::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues work of `user` on addresses. It is an error when unfinished work of another user on
    /// another stream overlaps.
    pub(super) fn submit(&self, stream: u64, user: u64, range: Range<u64>) {
        self.lend(stream, stream, user, range);
    }

    /// As `submit`, on a stream that was made to wait for what `owner` has queued so far.
    pub(super) fn lend(&self, stream: u64, owner: u64, user: u64, range: Range<u64>) {
        let mut state = self.state();
        let clash = state
            .work
            .iter()
            .find(|w| w.user != user && ![stream, owner].contains(&w.stream) && overlap(&w.range, &range))
            .map(|w| {
                format!("{range:x?} on stream {stream} while stream {} still uses {:x?}", w.stream, w.range)
            });
        state.errors.extend(clash);
        let entry = state.streams.entry(stream).or_default();
        entry.0 += 1;
        let number = entry.0;
        state.work.push(Work { stream, number, user, range });
    }

    /// Ends all work queued on a stream.
    pub(super) fn complete(&self, stream: u64) {
        let mut state = self.state();
        let queued = state.streams.entry(stream).or_default().0;
        state.complete(stream, queued);
    }

    pub(super) fn refuse_fences(&self, refuse: bool) {
        self.state().refuse_fences = refuse;
    }

    /// Makes the next calls of `allocate`, `wait` and `synchronize` fail.
    pub(super) fn fail(&self, fail: bool) {
        self.state().fail = fail;
    }

    pub(super) fn fences_recorded(&self) -> usize {
        self.state().fences_recorded
    }

    /// The sizes that were asked for since the last call, granted or not.
    pub(super) fn take_sizes(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().sizes)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state().live.values().sum()
    }

    /// Panics when memory was used wrongly.
    pub(super) fn check(&self) {
        let state = self.state();
        assert!(state.errors.is_empty(), "{:#?}", state.errors);
    }

    /// As `check`, and everything must have been given back.
    pub(super) fn check_returned(&self) {
        self.check();
        let state = self.state();
        assert!(state.live.is_empty(), "leaked: {:x?}", state.live);
        assert!(state.fences.is_empty(), "leaked fences: {:?}", state.fences);
    }
}

impl State {
    fn complete(&mut self, stream: u64, number: u64) {
        let entry = self.streams.entry(stream).or_default();
        entry.1 = entry.1.max(number);
        let done = entry.1;
        self.work.retain(|w| w.stream != stream || w.number > done);
    }
}

impl Backing for Fake {
    fn allocate(&self, bytes: u64) -> Result<u64, BackingError> {
        let mut state = self.state();
        state.sizes.push(bytes);
        if state.fail {
            return Err(BackingError::Failed("hipErrorUnknown".to_string()));
        }
        let used: u64 = state.live.values().sum();
        if bytes == 0 || (self.limit > 0 && used.checked_add(bytes).is_none_or(|sum| sum > self.limit)) {
            return Err(BackingError::Exhausted);
        }
        let address = state.next_address;
        let Some(end) = address.checked_add(bytes) else { return Err(BackingError::Exhausted) };
        // Without a gap: chunks of neighbouring regions must not be joined all the same.
        state.next_address = end.next_multiple_of(256);
        state.live.insert(address, bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let mut state = self.state();
        let Some(bytes) = state.live.remove(&address) else {
            state.errors.push(format!("{address:#x} freed, which is not allocated"));
            return;
        };
        let range = address..address + bytes;
        let used = state.work.iter().find(|w| overlap(&w.range, &range)).map(|w| w.stream);
        if let Some(stream) = used {
            state.errors.push(format!("{range:x?} freed while stream {stream} uses it"));
        }
    }

    fn record(&self, stream: u64) -> Result<Fence, BackingError> {
        let mut state = self.state();
        if state.refuse_fences {
            return Err(BackingError::Failed("hipErrorStreamCaptureUnsupported".to_string()));
        }
        state.fences_recorded += 1;
        let handle = state.fences_recorded as u64;
        let queued = state.streams.entry(stream).or_default().0;
        state.fences.insert(handle, (stream, queued));
        Ok(Fence::new(handle))
    }

    fn is_done(&self, fence: &Fence) -> Result<bool, BackingError> {
        let state = self.state();
        let (stream, number) = state.fences[&fence.handle()];
        Ok(state.streams[&stream].1 >= number)
    }

    fn wait(&self, fence: &Fence) -> Result<(), BackingError> {
        let mut state = self.state();
        if state.fail {
            return Err(BackingError::Failed("hipErrorUnknown".to_string()));
        }
        let (stream, number) = state.fences[&fence.handle()];
        state.complete(stream, number);
        Ok(())
    }

    fn release(&self, fence: Fence) {
        let mut state = self.state();
        if state.fences.remove(&fence.handle()).is_none() {
            state.errors.push(format!("fence {} released twice", fence.handle()));
        }
    }

    fn synchronize(&self, stream: u64) -> Result<(), BackingError> {
        let mut state = self.state();
        if state.fail {
            return Err(BackingError::Failed("hipErrorUnknown".to_string()));
        }
        let queued = state.streams.entry(stream).or_default().0;
        state.complete(stream, queued);
        Ok(())
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}
