//! Runs that were started, runs and copies whose work is queued on a device, and waiting for them.

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use super::args;
use super::guard::{call_on, create_on, destroy};
use super::handles::{Handle, Kind, Pin};
use super::locked;
use super::run_options::run_options;
use super::session::guarded;
use super::types::*;
use crate::error::{Result, fail};
use crate::session::Queued;
use crate::tensor::Value;

pub(super) struct CompletionObject(Work);

enum Work {
    Queued {
        /// `None`: everything was done when the run returned. Goes before the session that it belongs to.
        queued: Mutex<Option<Box<Queued>>>,
        /// That of a run.
        _session: Option<Pin<rukh_session>>,
    },
    Started(Arc<Started>),
}

impl CompletionObject {
    pub(super) fn new(queued: Mutex<Option<Box<Queued>>>, session: Option<Pin<rukh_session>>) -> Self {
        CompletionObject(Work::Queued { queued, _session: session })
    }

    pub(super) fn of_started(started: Arc<Started>) -> Self {
        CompletionObject(Work::Started(started))
    }

    /// The work on a device, for streams to wait for; an error for a run that has none.
    pub(super) fn queued(&self) -> Result<&Mutex<Option<Box<Queued>>>> {
        match &self.0 {
            Work::Queued { queued, .. } => Ok(queued),
            Work::Started(_) => fail!(
                InvalidArgument,
                "completion is one of rukh_session_start, which leaves nothing queued on a device; wait for it with \
                 rukh_completion_wait"
            ),
        }
    }
}

/// A run in the background, and its result once it has ended.
pub(super) struct Started {
    output_count: usize,
    result: Mutex<Option<Result<Vec<Value>>>>,
    ended: Condvar,
}

impl Started {
    pub(super) fn new(output_count: usize) -> Self {
        Started { output_count, result: Mutex::default(), ended: Condvar::new() }
    }

    pub(super) fn end(&self, result: Result<Vec<Value>>) {
        *locked(&self.result) = Some(result);
        self.ended.notify_all();
    }

    fn is_done(&self) -> bool {
        locked(&self.result).is_some()
    }

    /// Waits for the end, and gives what `take` makes of the outputs.
    fn wait<T>(&self, take: impl FnOnce(&[Value]) -> Result<T>) -> Result<T> {
        let mut result = locked(&self.result);
        loop {
            match &*result {
                None => result = self.ended.wait(result).unwrap_or_else(PoisonError::into_inner),
                Some(Ok(outputs)) => return take(outputs),
                Some(Err(e)) => return Err(e.clone()),
            }
        }
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

/// Destroys a completion, and waits first for what is queued on a device, but for a mark of `rukh_stream_record`. A run that
/// `rukh_session_start` started goes on, and its callback is called. NULL, and a pointer that is no live handle of this kind,
/// is left alone.
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
        let is_done = match &completion.0 {
            Work::Queued { queued, .. } => {
                locked(queued).as_ref().map_or(Ok(true), |queued| queued.is_done())?
            }
            Work::Started(started) => started.is_done(),
        };
        args::put(done, "done", is_done as i32)
    })
}

/// Waits until the run or copy is done, and tells how it ended.
///
/// `completion`: not NULL. `error`: may be NULL. Threads: any, at the same time; but a callback must not wait for a run that
/// waits for the callback's own thread. Errors: of a run that was started those of `rukh_session_run`, each time; of what is
/// queued `RUKH_ERROR_INVALID_DATA` for data that a kernel refused (told once), `RUKH_ERROR_DEVICE` and
/// `RUKH_ERROR_POISONED`; and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_wait(
    completion: *const rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(completion, error, |completion| match &completion.0 {
        Work::Queued { queued, .. } => locked(queued).as_mut().map_or(Ok(()), |queued| queued.wait()),
        Work::Started(started) => started.wait(|_| Ok(())),
    })
}

/// The event behind the work, for streams of the caller's to wait for (`hipStreamWaitEvent`).
///
/// `completion`: not NULL; owns the event. `event`: not NULL; receives the `hipEvent_t` (`CUevent` on the
/// nvidia platform) as a number, 0 when the run left nothing queued, as one of `rukh_session_start` does. `error`: may be
/// NULL. Threads: any, at the same time. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_event(
    completion: *const rukh_completion,
    event: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(completion, error, |completion| {
        let number = match &completion.0 {
            Work::Queued { queued, .. } => locked(queued).as_ref().map_or(0, |queued| queued.event()),
            Work::Started(_) => 0,
        };
        args::put(event, "event", number)
    })
}

/// The number of outputs that `rukh_completion_output` gives: as many as `rukh_session_start` was asked for. 0 for what is
/// queued, whose outputs the io binding has.
///
/// `completion`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_output_count(
    completion: *const rukh_completion,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(completion, error, |completion| {
        let number = match &completion.0 {
            Work::Queued { .. } => 0,
            Work::Started(started) => started.output_count,
        };
        args::put(count, "count", number)
    })
}

/// An output of a run that `rukh_session_start` started. Waits until the run has ended.
///
/// `completion`: not NULL. `index`: from 0, in the order in which outputs were asked for. `out`: not NULL; receives a value
/// that the caller destroys, and that outlives the completion; NULL on failure. Asked for again, another handle of the same
/// value. `error`: may be NULL. Threads: any, at the same time, as for `rukh_completion_wait`. Errors: those of the run;
/// `RUKH_ERROR_INVALID_ARGUMENT` for an output that is not there, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_completion_output(
    completion: *const rukh_completion,
    index: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(completion, out, error, |completion| match &completion.0 {
        Work::Queued { .. } => fail!(
            InvalidArgument,
            "output {index} is not there: what is queued has none here; rukh_io_binding_output gives those of a run"
        ),
        Work::Started(started) => {
            started.wait(|outputs| Ok(RwLock::new(args::item(outputs, index, "output")?.clone())))
        }
    })
}
