//! Runs and copies whose work is queued on a device, and waiting for them.

use std::sync::Mutex;

use super::args;
use super::asynchronous::guarded;
use super::guard::{call_on, create_on, destroy};
use super::handles::{Handle, Kind, Pin};
use super::locked;
use super::run_options::run_options;
use super::types::*;
use crate::session::Queued;

pub(super) struct CompletionObject {
    /// `None`: everything was done when the run returned. Goes before the session that it belongs to.
    queued: Mutex<Option<Box<Queued>>>,
    /// That of a run.
    _session: Option<Pin<rukh_session>>,
}

impl CompletionObject {
    pub(super) fn new(queued: Mutex<Option<Box<Queued>>>, session: Option<Pin<rukh_session>>) -> Self {
        CompletionObject { queued, _session: session }
    }

    pub(super) fn queued(&self) -> &Mutex<Option<Box<Queued>>> {
        &self.queued
    }
}

impl Handle for rukh_completion {
    type Object = CompletionObject;
    const KIND: Kind = Kind::Completion;
    const NAME: &'static str = "rukh_completion";
}

/// Queues a run of what is bound and returns without waiting for the device.
///
/// Nothing is waited for when all inputs and outputs that the run uses are in device memory and no node runs on
/// the CPU; else the call waits for what the host must read, as `rukh_io_binding_run` does. The values that are
/// bound stay alive until the run is done and must not be written meanwhile, except by work that the caller
/// orders after it: in the stream of run option "compute_stream" or of the provider's `user_compute_stream`, or
/// behind `rukh_completion_event`.
///
/// `binding`: not NULL; free again when the call returns. `options`: NULL for the defaults. `out`: not NULL;
/// receives the completion, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, one
/// at a time for each binding. Errors: as `rukh_io_binding_run`; what kernels find wrong with the data is told
/// by `rukh_completion_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_run_queued(
    binding: *mut rukh_io_binding,
    options: *const rukh_run_options,
    out: *mut *mut rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(binding, out, error, |binding| {
        let options = run_options(options)?;
        let mut bound = binding.take()?;
        let session = binding.session();
        let queued = guarded(session, || {
            session.meet_defect();
            session.session.queue_bound(&options, &mut bound)
        })?;
        Ok(CompletionObject::new(Mutex::new(queued), Some(session.keep()?)))
    })
}

/// Destroys a completion, and waits for its run or copy first; a mark of `rukh_stream_record` is not waited for. NULL,
/// and a pointer that is no live handle of this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_destroy(completion: *mut rukh_completion) {
    destroy(completion);
}

/// Whether the run or copy is done; does not wait.
///
/// `completion`: not NULL. `done`: not NULL; receives 1 or 0. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_DEVICE` and `RUKH_ERROR_POISONED` when the device failed, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_is_done(
    completion: *const rukh_completion,
    done: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(completion, error, |completion| {
        let is_done = locked(&completion.queued).as_ref().map_or(Ok(true), |queued| queued.is_done())?;
        args::put(done, "done", is_done as i32)
    })
}

/// Waits until the run or copy is done.
///
/// `completion`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_DATA` for data that a kernel refused (told once), `RUKH_ERROR_DEVICE`,
/// `RUKH_ERROR_POISONED`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_wait(
    completion: *const rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(completion, error, |completion| {
        locked(&completion.queued).as_mut().map_or(Ok(()), |queued| queued.wait())
    })
}

/// The event behind the work, for streams of the caller's to wait for (`hipStreamWaitEvent`).
///
/// `completion`: not NULL; owns the event. `event`: not NULL; receives the `hipEvent_t` (`CUevent` on the
/// nvidia platform) as a number, 0 when the run left nothing queued. `error`: may be NULL. Threads: any, at the
/// same time. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_event(
    completion: *const rukh_completion,
    event: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(completion, error, |completion| {
        args::put(event, "event", locked(&completion.queued).as_ref().map_or(0, |queued| queued.event()))
    })
}
