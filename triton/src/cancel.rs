//! Ends a run when all of its requests were cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rukh_client::RunOptions;

use crate::api::*;
use crate::error::{Error, Result};
use crate::server::{Request, is_cancelled, log};

/// How often the server is asked. It tells nobody by itself.
const PERIOD: Duration = Duration::from_millis(5);

/// After so many periods without a run the thread sleeps until the next one.
const IDLE_PERIODS: usize = 20;

/// A thread that asks the server about the requests of a run, for one run at a time.
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    options: Arc<RunOptions>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    run: Option<Run>,
    cancelled: bool,
    asleep: bool,
    stop: bool,
}

struct Run {
    requests: Vec<*mut TRITONBACKEND_Request>,
    options: Arc<RunOptions>,
}

// SAFETY: the server allows questions about a request from any thread; `watch` takes the run away, under the lock, before
// its requests are released.
unsafe impl Send for Run {}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    pub(crate) fn new() -> Result<Watcher> {
        let shared = Arc::new(Shared::default());
        let (own, options) = (shared.clone(), Arc::new(RunOptions::new()?));
        let thread = std::thread::Builder::new().name("rukh-cancel".into()).spawn(move || watch(&own));
        match thread {
            Ok(thread) => Ok(Watcher { shared, thread: Some(thread), options }),
            Err(error) => Err(Error::new(
                TRITONSERVER_ERROR_UNAVAILABLE,
                format!("the thread that watches for cancelled requests could not be started: {error}"),
            )),
        }
    }

    /// Calls a function with options that are cancelled when all requests are.
    pub(crate) fn watch<'a, T>(
        &mut self,
        requests: impl Iterator<Item = &'a Request>,
        run: impl FnOnce(&RunOptions) -> T,
    ) -> Result<T> {
        let requests = requests.map(Request::handle).collect();
        let mut state = self.shared.lock();
        state.run = Some(Run { requests, options: self.options.clone() });
        let asleep = state.asleep;
        drop(state);
        if asleep {
            self.shared.wake.notify_one();
        }
        let ended = Ended(&self.shared);
        let result = run(&self.options);
        drop(ended);
        if std::mem::take(&mut self.shared.lock().cancelled) {
            self.options = Arc::new(RunOptions::new()?);
        }
        Ok(result)
    }
}

/// Takes the run away, also when it ends by a panic.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().run = None;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread's own panic has no one else to go to; there is nothing that it holds.
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared) {
    let mut state = shared.lock();
    let mut idle = 0;
    while !state.stop {
        match &state.run {
            Some(run) => {
                idle = 0;
                // SAFETY: the requests are live while their run is there, which the lock keeps.
                if run.requests.iter().all(|request| unsafe { is_cancelled(*request) }) {
                    if let Err(error) = run.options.cancel() {
                        log(TRITONSERVER_LOG_ERROR, &format!("rukh: cancelling a run: {error}"));
                    }
                    state.cancelled = true;
                    state.run = None;
                }
            }
            None => idle += 1,
        }
        let woken = if idle > IDLE_PERIODS {
            state.asleep = true;
            shared.wake.wait(state).map_err(|poisoned| poisoned.into_inner())
        } else {
            let waited = shared.wake.wait_timeout(state, PERIOD);
            waited.map(|(state, _)| state).map_err(|poisoned| poisoned.into_inner().0)
        };
        state = woken.unwrap_or_else(|state| state);
        state.asleep = false;
    }
}
