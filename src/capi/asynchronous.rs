//! Running a session in the background.

use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::error_object;
use super::guard::{call_on, catch};
use super::handles::{Handle, Pin};
use super::locked;
use super::run::{Request, handles_for};
use super::types::*;
use crate::error::{Result, fail};

/// Runs the model on a thread of the environment and returns at once.
///
/// `session`: not NULL; kept alive until the callback has returned. `options`: NULL for the defaults;
/// `rukh_run_options_cancel` on them ends the run. `input_names`, `inputs`, `input_count`,
/// `output_names`, `output_count`: as for `rukh_session_run`; names are copied, values shared until the run
/// has ended. `callback`: not NULL; called once when the run has ended, if and only if this call returns
/// `RUKH_OK`. `user`: passed to the callback as it is; may be NULL. `error`: may be NULL. Threads: any, at
/// the same time. At most as many runs as the environment has threads are under way; further ones wait
/// their turn. Errors: of this call for arguments, `RUKH_ERROR_OUT_OF_MEMORY` when no thread can be had,
/// and the handle errors; those of the run go to the callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_run_async(
    session: *const rukh_session,
    options: *const rukh_run_options,
    input_names: *const *const c_char,
    inputs: *const *const rukh_value,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    callback: rukh_run_callback,
    user: *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |session| {
        let Some(callback) = callback else {
            fail!(InvalidArgument, "callback: NULL is not allowed; it receives the result");
        };
        let request =
            Request::new(session, options, input_names, inputs, input_count, output_names, output_count)?;
        let run = Run { session: session.keep()?, request, callback, user };
        session.environment.executor.submit(Box::new(move || run.run()))
    })
}

type Callback =
    unsafe extern "C" fn(*mut c_void, rukh_status, *const *mut rukh_value, usize, *mut rukh_error);

/// A run on its way to its callback.
struct Run {
    session: Pin<rukh_session>,
    request: Request,
    callback: Callback,
    user: *mut c_void,
}

// SAFETY: the header says that the callback is called on another thread; `user` is only passed on.
unsafe impl Send for Run {}

impl Run {
    fn run(self) {
        let Run { session, request, callback, user } = self;
        let result = guarded(&session, || handles_for(request.run(&session)?));
        // The inputs are free before the callback looks at them.
        drop(request);
        match result {
            // SAFETY: the caller's function; the array lives through the call.
            Ok(outputs) => unsafe {
                callback(user, RUKH_OK, outputs.as_ptr(), outputs.len(), null_mut());
            },
            Err(e) => {
                let status = e.status as rukh_status;
                let error = error_object::make(e).unwrap_or(null_mut());
                // SAFETY: the caller's function.
                unsafe { callback(user, status, null(), 0, error) };
            }
        }
    }
}

/// Runs `body` on a session that is not the handle of the exported function; a panic poisons it.
pub(super) fn guarded<T>(session: &Pin<rukh_session>, body: impl FnOnce() -> Result<T>) -> Result<T> {
    session.check()?;
    catch(body).unwrap_or_else(|panic| {
        session.poison();
        Err(panic.report(rukh_session::log(session)))
    })
}

type Job = Box<dyn FnOnce() + Send>;

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
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Executor {
    pub(super) fn new(most: usize) -> Self {
        Executor {
            shared: Arc::new(Shared { state: Mutex::default(), wake: Condvar::new() }),
            most: most.max(1),
        }
    }

    fn submit(&self, job: Job) -> Result<()> {
        let mut state = locked(&self.shared.state);
        if state.jobs.len() >= state.idle && state.threads < self.most {
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
        state.jobs.push_back(job);
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
        if let Some(job) = state.jobs.pop_front() {
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
