//! The pool of threads that kernels share: fork-join over an index range, the caller takes part.
//!
//! Why not rayon: a run must not allocate and must not hand its work to another thread first; here
//! the calling thread is the first worker, a loop is handed to each worker at its own seat, and nothing is
//! allocated after the pool is made. Several callers may loop at once, with whichever workers are free.
//!
//! What another core wrote last takes many times as long to read as one's own, and a model is a row of short
//! loops. So a thread has the same part of every loop's range, by its number, and takes from others' parts only
//! when its own is done; and what threads tell each other lies in as few cache lines as possible.
//!
//! A worker that has nothing to do looks for the next loop for a little while before it sleeps, and a caller does
//! so before it sleeps until the last worker has left: waking a thread takes longer than many a loop.

mod affinity;
mod job;
mod outside;
mod priority;
mod wait;

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use affinity::Affinities;
pub use outside::ParallelFor;
pub use priority::{PRIORITIES, Priority};

use job::{Job, PARTS, Part, SLEEPER};
use outside::Outside;
use wait::wait_for;

/// How long a thread looks for work before it sleeps: more than what a model lets one thread compute alone, and
/// than what a program does between two runs.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a caller that has nothing left to do waits for workers to begin.
const DELAY: Duration = Duration::from_micros(2);

/// A fork-join pool. Clones share its threads, which end with the last of them.
#[derive(Clone)]
pub struct Pool {
    crew: Arc<Crew>,
    /// Ends the run that this clone was made for, when somebody sets it.
    cancel: Option<Arc<AtomicBool>>,
}

/// The threads.
struct Crew {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// The caller's threads, in place of workers.
    outside: Option<Outside>,
}

struct Shared {
    seats: Vec<Seat>,
    /// How long a thread looks for work before it sleeps.
    patience: Duration,
    /// For callers that sleep until the last worker has left their loop.
    sleep: Mutex<()>,
    left: Condvar,
}

/// Where one worker looks for work. Alone in its cache lines, of which processors fetch two at a time.
#[repr(align(128))]
struct Seat {
    /// The part of a loop that the worker shall begin with, or one of the states below.
    part: AtomicPtr<Part>,
}

/// The worker looks.
const FREE: *mut Part = ptr::null_mut();
/// The worker sleeps, until it is unparked.
const ASLEEP: *mut Part = ptr::without_provenance_mut(1);
/// The worker is inside a loop.
const BUSY: *mut Part = ptr::without_provenance_mut(2);
/// The worker shall end.
const STOP: *mut Part = ptr::without_provenance_mut(3);

impl Pool {
    /// A pool of `threads` threads, the caller's own included: `threads - 1` are started. A thread
    /// that the system refuses is done without.
    pub fn new(threads: usize) -> Self {
        Self::with(threads, true, &Affinities::default())
    }

    /// The same. `spins`: whether threads that have nothing to do look for work for a while before they sleep.
    pub fn with(threads: usize, spins: bool, affinities: &Affinities) -> Self {
        make_rayon_serial();
        let threads = threads.clamp(1, 1024);
        // A seat that nobody sits on is busy for ever.
        let seats = (1..threads).map(|_| Seat { part: AtomicPtr::new(BUSY) }).collect();
        let patience = if spins { PATIENCE } else { Duration::ZERO };
        let shared = Arc::new(Shared { seats, patience, sleep: Mutex::new(()), left: Condvar::new() });
        let workers = (1..threads)
            .map_while(|i| {
                let (shared, affinities) = (shared.clone(), affinities.clone());
                std::thread::Builder::new()
                    .name(format!("rukh-{i}"))
                    .spawn(move || {
                        affinities.apply(i - 1);
                        work(&shared, i - 1)
                    })
                    .ok()
            })
            .collect::<Vec<_>>();
        for seat in &shared.seats[..workers.len()] {
            seat.part.store(FREE, Ordering::Release);
        }
        Pool { crew: Arc::new(Crew { shared, workers, outside: None }), cancel: None }
    }

    /// A pool of the caller's threads, `threads` of them with the one that calls.
    pub fn of_outside(threads: usize, run: Arc<dyn ParallelFor>) -> Self {
        make_rayon_serial();
        let shared =
            Shared { seats: Vec::new(), patience: PATIENCE, sleep: Mutex::new(()), left: Condvar::new() };
        let outside = Some(Outside::new(threads, run));
        Pool { crew: Arc::new(Crew { shared: Arc::new(shared), workers: Vec::new(), outside }), cancel: None }
    }

    /// The same threads for a run that the flag ends.
    pub fn until(&self, cancel: Option<Arc<AtomicBool>>) -> Self {
        Pool { crew: self.crew.clone(), cancel }
    }

    /// Whether the run is to end: long loops ask now and then, and leave out what they have not begun. The run
    /// fails then, so nobody sees what they left.
    pub fn cancelled(&self) -> bool {
        self.cancel.as_deref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// The number of threads a loop can use, the caller's included.
    pub fn threads(&self) -> usize {
        self.crew.outside.as_ref().map_or(self.crew.workers.len() + 1, Outside::threads)
    }

    /// Calls `body(0)` … `body(count - 1)`, in any order and on several threads, and returns when all
    /// have returned. A panic in `body` is raised again here.
    ///
    /// A thread begins with the same fraction of the range in every loop: what it wrote in one is near when it
    /// reads it in the next, if equal fractions of both ranges are about the same data.
    pub fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        let free = |seat: &&Seat| matches!(seat.part.load(Ordering::Relaxed), FREE | ASLEEP);
        let workers = self.crew.shared.seats.iter().filter(free).take(count.saturating_sub(1)).count();
        if workers == 0 {
            match &self.crew.outside {
                Some(outside) => outside.for_each(count, body),
                None => (0..count).for_each(body),
            }
            return;
        }
        // SAFETY: only the lifetime changes. All workers have left the job before this function returns, so `body`
        // outlives every use.
        let body: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
        let parts = (workers + 1).min(PARTS);
        let cut = |i: usize| if i < parts { count * i / parts } else { count };
        let mut job = Job {
            parts: [const { MaybeUninit::uninit() }; PARTS],
            left: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
        };
        let address = &raw const job;
        for (i, part) in job.parts[..parts].iter_mut().enumerate() {
            let (next, end) = (AtomicUsize::new(cut(i)), cut(i + 1));
            part.write(Part { next, end, body, job: address, count: parts });
        }
        let job = &job;
        let seats = self.crew.shared.seats.iter().zip(&self.crew.workers);
        let mut inside = 0;
        for (i, (seat, worker)) in seats.filter(|(seat, _)| free(seat)).take(workers).enumerate() {
            inside += usize::from(seat.give(job.part(i + 1, parts), worker));
        }
        job.help(job.part(0, parts));
        let all_left = |inside| job.left.load(Ordering::Acquire) == inside;
        if !wait_for(DELAY, || all_left(inside)) {
            // Who has not begun yet need not any more.
            inside -=
                self.crew.shared.seats.iter().map(|seat| usize::from(seat.take_back(job))).sum::<usize>();
            if !wait_for(self.crew.shared.patience, || all_left(inside)) {
                let mut sleep = lock(&self.crew.shared.sleep);
                job.left.fetch_or(SLEEPER, Ordering::SeqCst);
                while job.left.load(Ordering::SeqCst) != inside | SLEEPER {
                    sleep = self.crew.shared.left.wait(sleep).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        if job.panicked.load(Ordering::Relaxed) {
            panic!("a kernel panicked on a worker thread");
        }
    }

    /// Splits `0..count` into pieces and calls `body` with each. For less than `grain` no sleeping thread should be
    /// woken; mostly threads look for work, and a quarter is worth handing over.
    pub fn split(&self, count: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
        self.split_for(count, grain, &body);
    }

    /// The same for a body by its address, so that the body and what is around it are compiled once.
    fn split_for(&self, count: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        if count == 0 {
            return;
        }
        // Eight pieces a thread, so that an uneven start or a busy core evens out.
        let pieces = (4 * count / grain.max(1)).min(count).clamp(1, self.threads() * 8);
        if pieces == 1 || self.threads() == 1 {
            return body(0..count);
        }
        self.for_each(pieces, &|i| body(count * i / pieces..count * (i + 1) / pieces));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for (seat, worker) in self.shared.seats.iter().zip(self.workers.drain(..)) {
            seat.part.store(STOP, Ordering::Release);
            worker.thread().unpark();
            // A worker never panics: the bodies are caught.
            let _ = worker.join();
        }
    }
}

impl Seat {
    /// Hands the part to the worker, unless it is busy.
    fn give(&self, part: &Part, worker: &JoinHandle<()>) -> bool {
        let part = ptr::from_ref(part).cast_mut();
        let mut state = self.part.load(Ordering::Relaxed);
        while matches!(state, FREE | ASLEEP) {
            match self.part.compare_exchange_weak(state, part, Ordering::Release, Ordering::Relaxed) {
                Ok(ASLEEP) => {
                    worker.thread().unpark();
                    return true;
                }
                Ok(_) => return true,
                Err(other) => state = other,
            }
        }
        false
    }

    /// Takes a part of the job back that the worker has not begun with.
    fn take_back(&self, job: &Job) -> bool {
        let state = self.part.load(Ordering::Relaxed);
        job.parts.as_ptr_range().contains(&state.cast_const().cast())
            && self.part.compare_exchange(state, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Waits for a part; none if the pool ends.
    fn wait(&self, patience: Duration) -> Option<*const Part> {
        loop {
            let state = self.part.load(Ordering::Relaxed);
            match state {
                FREE => {
                    let state = || self.part.load(Ordering::Relaxed);
                    if !wait_for(patience, || state() != FREE)
                        && self
                            .part
                            .compare_exchange(FREE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed)
                            .is_ok()
                    {
                        while state() == ASLEEP {
                            std::thread::park();
                        }
                    }
                }
                // Before it has a first seat.
                BUSY => std::thread::yield_now(),
                STOP => return None,
                _ => {
                    if self.part.compare_exchange(state, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return Some(state);
                    }
                }
            }
        }
    }
}

fn work(shared: &Shared, index: usize) {
    let seat = &shared.seats[index];
    while let Some(part) = seat.wait(shared.patience) {
        // SAFETY: the caller does not return before this worker has counted itself out, below.
        let (part, job) = unsafe { (&*part, &*(*part).job) };
        job.help(part);
        // First, so that the caller finds this worker free when it has its next loop.
        let _ = seat.part.compare_exchange(BUSY, FREE, Ordering::Relaxed, Ordering::Relaxed);
        if job.left.fetch_add(1, Ordering::SeqCst) & SLEEPER != 0 {
            // Under the lock: a caller that has looked before sleeps by now.
            let _sleep = lock(&shared.sleep);
            shared.left.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The matrix-product crate asks rayon's current pool how many threads it may use. Outside any rayon
/// pool that is rayon's global one; with a single thread there the crate computes on the calling
/// thread, and parallelism stays ours.
fn make_rayon_serial() {
    // An error means that it was set before, by the first pool.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_runs_once_from_many_callers() {
        let pool = Pool::new(4);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for count in [0, 1, 2, 3, 100, 1000] {
                        let hits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                        pool.for_each(count, &|i| {
                            hits[i].fetch_add(1, Ordering::Relaxed);
                        });
                        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
    }

    #[test]
    fn split_covers_the_range() {
        let pool = Pool::new(3);
        for (count, grain, pieces) in [(0, 1, 0), (1, 10, 1), (10, 3, 10), (1000, 1, 24), (1000, 400, 10)] {
            let sum = AtomicUsize::new(0);
            pool.split(count, grain, |range| {
                sum.fetch_add(range.sum::<usize>() + 1, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), (0..count).sum::<usize>() + pieces);
        }
    }

    #[test]
    fn nested_loops_and_panics() {
        let pool = Pool::new(3);
        let sum = AtomicUsize::new(0);
        pool.for_each(8, &|_| {
            pool.for_each(8, &|_| {
                sum.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(sum.into_inner(), 64);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.for_each(16, &|i| {
                if i == 7 {
                    std::panic::resume_unwind(Box::new("seven"))
                }
            });
        }));
        assert!(result.is_err());
        pool.for_each(4, &|_| {});
    }
}
