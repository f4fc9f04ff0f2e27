//! Threads for runs that go on in the background.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::guard::catch;
use super::locked;
use crate::error::{Result, fail};
use crate::threads::Priority;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for runs and call back. They are started when needed, and end when the executor is
/// dropped; nobody waits for them, because the last owner may be one of them.
pub(super) struct Executor {
    shared: Arc<Shared>,
    most: usize,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// Those that wait for a thread, by priority.
    jobs: [VecDeque<Job>; Priority::COUNT],
    waiting: usize,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Executor {
    /// With so many threads at most.
    pub(super) fn new(most: usize) -> Self {
        Executor {
            shared: Arc::new(Shared { state: Mutex::default(), wake: Condvar::new() }),
            most: most.max(1),
        }
    }

    /// Has a thread do the job, after those of higher priority and those of the same that came before.
    pub(super) fn submit(&self, priority: Priority, job: Job) -> Result<()> {
        let mut state = locked(&self.shared.state);
        if state.waiting >= state.idle && state.threads < self.most {
            let shared = self.shared.clone();
            let started =
                std::thread::Builder::new().name("rukh-run".to_owned()).spawn(move || work(&shared));
            match started {
                Ok(_) => state.threads += 1,
                Err(e) if state.threads == 0 => {
                    fail!(OutOfMemory, "no thread could be started for an asynchronous run: {e}")
                }
                // Those that are there do the work.
                Err(_) => {}
            }
        }
        state.jobs[priority as usize].push_back(job);
        state.waiting += 1;
        self.shared.wake.notify_one();
        Ok(())
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        locked(&self.shared.state).closed = true;
        self.shared.wake.notify_all();
    }
}

fn work(shared: &Shared) {
    let mut state = locked(&shared.state);
    loop {
        if let Some(job) = state.jobs.iter_mut().rev().find_map(VecDeque::pop_front) {
            state.waiting -= 1;
            drop(state);
            // What the run met went to its callback; a panic beyond that has nobody to go to.
            let _ = catch(job);
            state = locked(&shared.state);
        } else if state.closed {
            return;
        } else {
            state.idle += 1;
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}
