//! A loop while it runs: its parts, and how a thread takes indices from them.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Parts of a loop's range; of more threads several begin with the same part.
pub(super) const PARTS: usize = 32;

/// One loop. It lives on the stack of its caller, who returns only after every worker has left it.
pub(super) struct Job {
    /// As many as are in use: to write all would take as long as a short loop.
    pub(super) parts: [MaybeUninit<Part>; PARTS],
    /// Workers that have left, and `SLEEPER`. A worker that has counted itself does not touch the job any more.
    pub(super) left: AtomicUsize,
    pub(super) panicked: AtomicBool,
}

/// The caller sleeps until the workers have left.
pub(super) const SLEEPER: usize = 1 << (usize::BITS - 1);

/// A part of a loop's range, and all that a worker needs to begin, in one cache line.
#[repr(align(64))]
pub(super) struct Part {
    /// The next index to run.
    pub(super) next: AtomicUsize,
    pub(super) end: usize,
    pub(super) body: *const (dyn Fn(usize) + Sync),
    pub(super) job: *const Job,
    /// Parts of the job.
    pub(super) count: usize,
}

impl Job {
    /// The part of a thread, of which the caller is number 0, where so many parts are in use.
    pub(super) fn part(&self, thread: usize, count: usize) -> &Part {
        // SAFETY: `for_each` wrote so many before anybody else saw the job.
        unsafe { self.parts[thread % count].assume_init_ref() }
    }

    /// Runs indices until none is left, those of `first` first.
    pub(super) fn help(&self, first: &Part) {
        // SAFETY: see `for_each`: the body outlives the job's users.
        let (body, count) = (unsafe { &*first.body }, first.count);
        // From that part on, round.
        let start = (ptr::from_ref(first).addr() - self.parts.as_ptr().addr()) / size_of::<Part>();
        for i in start..start + count {
            while let Some(i) = self.part(i, count).claim() {
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(i))).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                    let parts = (0..count).map(|i| self.part(i, count));
                    parts.for_each(|part| part.next.store(part.end, Ordering::Relaxed));
                }
            }
        }
    }
}

impl Part {
    fn claim(&self) -> Option<usize> {
        // Looked at first: adding takes the cache line away from its owner.
        if self.next.load(Ordering::Relaxed) >= self.end {
            return None;
        }
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        (i < self.end).then_some(i)
    }
}
