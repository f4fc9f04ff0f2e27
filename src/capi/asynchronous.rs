//! Running a session in the background.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use super::args;
use super::completion::{CompletionObject, Started};
use super::error_object;
use super::guard::call_on;
use super::handles::{self, Pin};
use super::run::{Request, handles_for};
use super::session::guarded;
use super::types::*;
use super::user::User;
use crate::error::fail;

/// Runs the model on a thread of the environment and returns at once. The run's result is learnt by a callback, or by the
/// completion, or by both.
///
/// `session`: not NULL; kept alive until the callback has returned. `options`: NULL for the defaults;
/// `rukh_run_options_cancel` on them ends the run. `input_names`, `inputs`, `input_count`,
/// `output_names`, `output_count`: as for `rukh_session_run`; names are copied, values shared until the run
/// has ended. `callback`: NULL for none; called once when the run has ended, if and only if this call returns
/// `RUKH_OK`, maybe before it returns. `user`: passed to the callback as it is; may be NULL. `release`: may be NULL; else
/// called once with `user` when the callback has returned, also when this call fails. `out`: NULL for none; receives a
/// completion that can be waited for and asked for outputs, which the caller destroys, at any time; the run goes on without
/// it. `error`: may be NULL.
/// Threads: any, at the same time. At most as many runs as the environment has threads are under way; further ones wait
/// their turn, those with the higher option "priority" first, then those that were started first. Errors: of this call for
/// arguments (also when `callback` and `out` are both NULL), `RUKH_ERROR_OUT_OF_MEMORY` when no thread can be had,
/// and the handle errors; those of the run are told by `rukh_completion_wait`.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_start(
    session: *const rukh_session,
    options: *const rukh_run_options,
    input_names: *const *const c_char,
    inputs: *const *const rukh_value,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    callback: rukh_completion_callback,
    user: *mut c_void,
    release: rukh_release,
    out: *mut *mut rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = User { pointer: user, release };
    args::put_if_wanted(out, null_mut());
    call_on(session, error, move |session| {
        if callback.is_none() && out.is_null() {
            fail!(InvalidArgument, "callback and out are both NULL: nobody would learn how the run ended");
        }
        let request =
            Request::new(session, options, input_names, inputs, input_count, output_names, output_count)?;
        let priority = request.options.priority;
        let started = Arc::new(Started::new(output_count));
        let completion = |started: &Arc<Started>| {
            handles::insert::<rukh_completion>(Arc::new(CompletionObject::of_started(started.clone())))
        };
        let told = match callback {
            Some(callback) => Some(Told { callback, completion: Lent(completion(&started)?) }),
            None => None,
        };
        let kept = if out.is_null() { None } else { Some(Lent(completion(&started)?)) };
        let run = Run { session: session.keep()?, request, end: End::Completion { started, told, user } };
        session.environment.executor.submit(priority, Box::new(move || run.run()))?;
        args::put_if_wanted(out, kept.map_or(null_mut(), Lent::keep));
        Ok(())
    })
}

/// Deprecated: use `rukh_session_start`, whose callback receives a completion. Runs the model on a thread of the environment
/// and returns at once.
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
#[deprecated(note = "use rukh_session_start")]
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
        let priority = request.options.priority;
        let run = Run { session: session.keep()?, request, end: End::Callback { callback, user } };
        session.environment.executor.submit(priority, Box::new(move || run.run()))
    })
}

type Callback =
    unsafe extern "C" fn(*mut c_void, rukh_status, *const *mut rukh_value, usize, *mut rukh_error);

/// A run on its way to its end.
struct Run {
    session: Pin<rukh_session>,
    request: Request,
    end: End,
}

/// Who learns the result.
enum End {
    Completion { started: Arc<Started>, told: Option<Told>, user: User },
    Callback { callback: Callback, user: *mut c_void },
}

/// A function of the caller's with the completion that it is lent.
struct Told {
    callback: unsafe extern "C" fn(*const rukh_completion, *mut c_void),
    completion: Lent,
}

/// A handle that goes with this, unless somebody keeps it.
struct Lent(*mut rukh_completion);

impl Lent {
    fn keep(self) -> *mut rukh_completion {
        let handle = self.0;
        std::mem::forget(self);
        handle
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        handles::remove(self.0);
    }
}

// SAFETY: the header says that callbacks are called on another thread; `user` and handles are only passed on.
unsafe impl Send for Run {}

impl Run {
    fn run(self) {
        let Run { session, request, end } = self;
        let result = guarded(&session, || request.run(&session));
        // The inputs are free before the callback looks at them.
        drop(request);
        match end {
            End::Completion { started, told, user } => {
                started.end(result);
                if let Some(Told { callback, completion }) = told {
                    // SAFETY: the caller's function with the caller's pointer; the handle lives during the call.
                    unsafe { callback(completion.0, user.pointer) };
                }
            }
            End::Callback { callback, user } => match result.and_then(handles_for) {
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
            },
        }
    }
}
