//! The pool of threads that kernels share: fork-join over an index range, the caller takes part.
//!
//! Why not rayon: a run must not allocate and must not hand its work to another thread first; here
//! the calling thread is the first worker, a loop is published through a fixed slot, and nothing is
//! allocated after the pool is made. Several callers may loop at once; idle workers help whichever
//! loop has work left.
//!
//! A model is a row of short loops. A worker that has nothing to do therefore looks for the next one for a
//! little while before it sleeps, and a caller does so before it sleeps until the last worker has left:
//! waking a thread takes longer than many a loop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread looks for work before it sleeps: more than the steps of a model that one thread
/// computes alone usually take.
const PATIENCE: Duration = Duration::from_micros(100);
/// How long it keeps its processor meanwhile; then others that have work may use it.
const SELFISH: Duration = Duration::from_micros(10);

/// A fork-join pool. Dropping it ends its threads.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Loops with work left; at most one for each calling thread.
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Callers that sleep until the last worker has left their loop, and what wakes them.
    callers: AtomicUsize,
    left: Condvar,
    /// Changes whenever something is put into the queue, or the pool ends.
    news: AtomicUsize,
}

struct Queue {
    jobs: Vec<*const Job>,
    /// Workers that wait for `wake`.
    asleep: usize,
    stop: bool,
}

// SAFETY: the pointers are to jobs that live until they have left the queue (see `for_each`).
unsafe impl Send for Queue {}

/// One loop. It lives on the stack of its caller, who returns only after every worker has left it.
struct Job {
    /// The next index to run.
    next: AtomicUsize,
    count: usize,
    body: *const (dyn Fn(usize) + Sync),
    /// Workers inside this job; they are counted in under the queue's lock. A worker that has counted itself out
    /// does not touch the job any more.
    inside: AtomicUsize,
    panicked: AtomicBool,
}

impl Pool {
    /// A pool of `threads` threads, the caller's own included: `threads - 1` are started. A thread
    /// that the system refuses is done without.
    pub(crate) fn new(threads: usize) -> Self {
        make_rayon_serial();
        let threads = threads.clamp(1, 1024);
        let queue = Queue { jobs: Vec::with_capacity(64), asleep: 0, stop: false };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            callers: AtomicUsize::new(0),
            left: Condvar::new(),
            news: AtomicUsize::new(0),
        });
        let workers = (1..threads)
            .map_while(|i| {
                let shared = shared.clone();
                std::thread::Builder::new().name(format!("rukh-{i}")).spawn(move || work(&shared)).ok()
            })
            .collect();
        Pool { shared, workers }
    }

    /// The number of threads a loop can use, the caller's included.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `body(0)` … `body(count - 1)`, in any order and on several threads, and returns when all
    /// have returned. A panic in `body` is raised again here.
    pub(crate) fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if count <= 1 || self.workers.is_empty() {
            (0..count).for_each(body);
            return;
        }
        // SAFETY: only the lifetime changes. The job is taken out of the queue and left by all
        // workers before this function returns, so `body` outlives every use.
        let body: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
        let job = Job {
            next: AtomicUsize::new(0),
            count,
            body,
            inside: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
        };
        let asleep = {
            let mut queue = lock(&self.shared.queue);
            queue.jobs.push(&job);
            self.shared.news.fetch_add(1, Ordering::Relaxed);
            queue.asleep
        };
        // Only then: waking is a call of the system even if nobody sleeps.
        match asleep {
            0 => {}
            _ if count > 2 => self.shared.wake.notify_all(),
            _ => self.shared.wake.notify_one(),
        }
        job.help();
        lock(&self.shared.queue).jobs.retain(|&other| !std::ptr::eq(other, &job));
        let alone = || job.inside.load(Ordering::SeqCst) == 0;
        patiently(alone);
        if !alone() {
            let mut queue = lock(&self.shared.queue);
            // Before `inside` is read again: whoever leaves after that sees it.
            self.shared.callers.fetch_add(1, Ordering::SeqCst);
            while !alone() {
                queue = self.shared.left.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            self.shared.callers.fetch_sub(1, Ordering::SeqCst);
        }
        if job.panicked.load(Ordering::Relaxed) {
            panic!("a kernel panicked on a worker thread");
        }
    }

    /// Splits `0..count` into pieces of at least `grain` and calls `body` with each. Work below two
    /// grains stays on the calling thread.
    pub(crate) fn split(&self, count: usize, grain: usize, body: impl Fn(std::ops::Range<usize>) + Sync) {
        if count == 0 {
            return;
        }
        // Four pieces a thread, so that an uneven start or a busy core evens out.
        let pieces = (count / grain.max(1)).clamp(1, self.threads() * 4);
        if pieces == 1 || self.workers.is_empty() {
            return body(0..count);
        }
        self.for_each(pieces, &|i| body(count * i / pieces..count * (i + 1) / pieces));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        {
            let mut queue = lock(&self.shared.queue);
            queue.stop = true;
            self.shared.news.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker never panics: the bodies are caught.
            let _ = worker.join();
        }
    }
}

impl Job {
    /// Runs indices until none is left.
    fn help(&self) {
        // SAFETY: see `for_each`: the body outlives the job's users.
        let body = unsafe { &*self.body };
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.count {
                return;
            }
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(i))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
                self.next.store(self.count, Ordering::Relaxed);
            }
        }
    }
}

fn work(shared: &Shared) {
    let mut queue = lock(&shared.queue);
    loop {
        if queue.stop {
            return;
        }
        // SAFETY: a job in the queue is alive, and `inside` is raised before the lock is released.
        let job = queue
            .jobs
            .iter()
            .map(|&job| unsafe { &*job })
            .find(|job| job.next.load(Ordering::Relaxed) < job.count);
        let Some(job) = job else {
            let known = shared.news.load(Ordering::Relaxed);
            drop(queue);
            patiently(|| shared.news.load(Ordering::Relaxed) != known);
            queue = lock(&shared.queue);
            // What came before the lock was taken is found now, what comes after it wakes this thread.
            if shared.news.load(Ordering::Relaxed) == known {
                queue.asleep += 1;
                queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.asleep -= 1;
            }
            continue;
        };
        job.inside.fetch_add(1, Ordering::Relaxed);
        let (known, others) = (shared.news.load(Ordering::Relaxed), queue.jobs.len() > 1);
        drop(queue);
        job.help();
        if job.inside.fetch_sub(1, Ordering::SeqCst) == 1 && shared.callers.load(Ordering::SeqCst) > 0 {
            // Under the lock: a caller that looked before this one left sleeps by now.
            let _queue = lock(&shared.queue);
            shared.left.notify_all();
        }
        if !others {
            // The caller takes the lock now, to take the loop out of the queue.
            patiently(|| shared.news.load(Ordering::Relaxed) != known);
        }
        queue = lock(&shared.queue);
    }
}

/// Waits until `done`, but not for long.
fn patiently(mut done: impl FnMut() -> bool) {
    let mut start = None;
    while !done() {
        for _ in 0..8 {
            std::hint::spin_loop();
        }
        let waited = start.get_or_insert_with(Instant::now).elapsed();
        if waited > PATIENCE {
            return;
        }
        if waited > SELFISH {
            std::thread::yield_now();
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
        for (count, grain) in [(0, 1), (1, 10), (10, 3), (1000, 1), (1000, 400)] {
            let sum = AtomicUsize::new(0);
            pool.split(count, grain, |range| {
                sum.fetch_add(range.sum::<usize>() + 1, Ordering::Relaxed);
            });
            let pieces = (count / grain).clamp(usize::from(count > 0), 12);
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
