//! Threads that help with a launch. One that has not woken up when the work is done is not waited for, which a launch of
//! some microseconds would otherwise spend most of its time on.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// What each thread calls, with its lifetime taken away.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn() + Sync));

// SAFETY: the function may be called by any thread, and `Pool::run` keeps it until no thread is in it.
unsafe impl Send for Job {}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// How many jobs there were.
    generation: u64,
    /// Threads within the job.
    running: usize,
}

/// Threads that wait for a job.
pub struct Pool {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
    /// The process that has the threads: a fork has none.
    process: u32,
    /// One job at a time.
    busy: Mutex<()>,
}

impl Pool {
    /// The pool of this process, which the first call starts with so many threads, the caller counted; 0 stands for the
    /// number of processors. `None` for one thread.
    pub fn get(threads: usize) -> Option<&'static Pool> {
        static POOL: OnceLock<Option<Pool>> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = || if threads == 0 { processors() } else { threads };
        let pool = POOL.get_or_init(|| (threads() > 1).then(Pool::new)).as_ref()?;
        STARTED.get_or_init(|| {
            for _ in 1..threads() {
                // Without a thread the others do its part.
                let _ = std::thread::Builder::new().name("amdemu".to_owned()).spawn(|| pool.help());
            }
        });
        (pool.process == std::process::id()).then_some(pool)
    }

    fn new() -> Pool {
        Pool {
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            process: std::process::id(),
            busy: Mutex::new(()),
        }
    }

    /// Calls the function, which does not panic, in this thread and in those that wake up meanwhile. It returns when none is
    /// in it any more.
    pub fn run(&self, job: &(dyn Fn() + Sync)) {
        let _one_at_a_time = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lifetime ends when this function returns, and before that no thread holds the job any more.
        let lasting: &'static (dyn Fn() + Sync) = unsafe { std::mem::transmute(job) };
        {
            let mut state = self.lock();
            state.job = Some(Job(lasting));
            state.generation += 1;
        }
        self.work.notify_all();
        job();
        let mut state = self.lock();
        state.job = None;
        while state.running > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What a thread of the pool does, for ever.
    fn help(&self) {
        let mut seen = 0;
        let mut state = self.lock();
        loop {
            match state.job {
                Some(job) if state.generation != seen => {
                    seen = state.generation;
                    state.running += 1;
                    drop(state);
                    // SAFETY: `run` waits for this thread, which it has counted, before the job ends.
                    unsafe { (*job.0)() };
                    state = self.lock();
                    state.running -= 1;
                    if state.running == 0 {
                        self.done.notify_all();
                    }
                }
                _ => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_work_is_done_when_it_returns() {
        let pool = Pool::new();
        std::thread::scope(|scope| {
            // Threads of the scope would wait for ever: these are left to the end of the process.
            let pool: &'static Pool = Box::leak(Box::new(pool));
            for _ in 0..3 {
                std::thread::spawn(|| pool.help());
            }
            scope.spawn(move || {
                for count in 0..2000 {
                    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
                    pool.run(&|| {
                        while next.fetch_add(1, Ordering::Relaxed) < count % 50 {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                    assert_eq!(done.into_inner(), count % 50);
                }
            });
        });
    }
}
