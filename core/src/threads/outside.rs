//! Loops on threads of the caller's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What runs the parts of a loop on threads of its own.
pub trait ParallelFor: Send + Sync {
    /// Calls `part` `count` times, on any threads, and returns when every call has returned. `part` does not panic.
    fn run(&self, count: usize, part: &(dyn Fn() + Sync));
}

pub(super) struct Outside {
    threads: usize,
    run: Arc<dyn ParallelFor>,
}

thread_local! {
    /// Whether the thread is inside a part. A loop in there runs on this thread: the caller's threads may all be
    /// inside one, and would wait for each other.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Outside {
    pub(super) fn new(threads: usize, run: Arc<dyn ParallelFor>) -> Self {
        Outside { threads: threads.max(1), run }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `body` with each index. A part takes indices until none is left, so that every index runs once however often
    /// the parts are called.
    pub(super) fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        let parts = count.min(self.threads);
        if parts <= 1 || INSIDE.get() {
            return (0..count).for_each(body);
        }
        let (next, panicked) = (AtomicUsize::new(0), AtomicBool::new(false));
        let part = || {
            let before = INSIDE.replace(true);
            // What threads wrote is seen by the one that finds nothing left, however the caller waits for them.
            let claim = || Some(next.fetch_add(1, Ordering::AcqRel)).filter(|&i| i < count);
            while let Some(i) = claim() {
                if catch_unwind(AssertUnwindSafe(|| body(i))).is_err() {
                    panicked.store(true, Ordering::Relaxed);
                    // The others need not run.
                    next.store(count, Ordering::Relaxed);
                }
            }
            INSIDE.set(before);
        };
        self.run.run(parts, &part);
        // What the caller's function has left out.
        part();
        if panicked.load(Ordering::Relaxed) {
            panic!("a kernel panicked on a thread of the caller's");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pool;
    use super::*;

    /// Calls the parts on new threads, as often as it is told, which need not be as often as it should.
    struct Threads(usize);

    impl ParallelFor for Threads {
        fn run(&self, _: usize, part: &(dyn Fn() + Sync)) {
            std::thread::scope(|scope| (0..self.0).for_each(|_| drop(scope.spawn(part))));
        }
    }

    #[test]
    fn every_index_runs_once_whatever_the_caller_does() {
        for calls in [0, 1, 3, 7] {
            let pool = Pool::of_outside(3, Arc::new(Threads(calls)));
            assert_eq!(pool.threads(), 3);
            for count in [0, 1, 2, 100] {
                let hits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                pool.for_each(count, &|i| {
                    hits[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|hits| hits.load(Ordering::Relaxed) == 1), "{calls} calls, {count}");
            }
        }
    }

    #[test]
    fn loops_in_loops_stay_on_their_thread_and_panics_come_back() {
        let pool = Pool::of_outside(4, Arc::new(Threads(4)));
        let sum = AtomicUsize::new(0);
        pool.for_each(8, &|_| {
            let thread = std::thread::current().id();
            pool.for_each(8, &|_| {
                assert_eq!(std::thread::current().id(), thread);
                sum.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(sum.into_inner(), 64);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.for_each(16, &|i| {
                if i == 7 {
                    std::panic::resume_unwind(Box::new("seven"))
                }
            })
        }));
        assert!(caught.is_err());
        pool.for_each(4, &|_| {});
    }
}
