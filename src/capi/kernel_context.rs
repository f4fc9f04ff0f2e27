//! One call of the caller's kernel: its inputs and outputs, and the threads and the stream that it may use.

use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use super::args;
use super::guard::call_on;
use super::handles::{self, Handle, Kind};
use super::locked;
use super::types::*;
use super::values::{make, value_of};
use crate::error::{Result, fail};
use crate::ops::custom::{Call, DeviceWork};

pub(super) struct KernelContextObject(Mutex<State>);

struct State {
    /// `None` once the call is over.
    call: Option<Call>,
    state: *mut c_void,
    error: Option<CString>,
    /// Handles that were lent to the caller, of inputs and of outputs.
    inputs: Vec<*mut rukh_value>,
    outputs: Vec<*mut rukh_value>,
}

// SAFETY: the state is the caller's, who says that kernels may be called from any thread; handles are numbers that are
// checked wherever they are used.
unsafe impl Send for State {}

impl Handle for rukh_kernel_context {
    type Object = KernelContextObject;
    const KIND: Kind = Kind::KernelContext;
    const NAME: &'static str = "rukh_kernel_context";
}

impl KernelContextObject {
    pub(super) fn new(call: Call, state: *mut c_void) -> Self {
        let (inputs, outputs) = (vec![null_mut(); call.inputs.len()], vec![null_mut(); call.outputs.len()]);
        KernelContextObject(Mutex::new(State { call: Some(call), state, error: None, inputs, outputs }))
    }

    /// Takes everything back: the call, and a text when the kernel gave one.
    pub(super) fn end(&self) -> (Option<Call>, Option<CString>) {
        let mut state = locked(&self.0);
        let State { inputs, outputs, .. } = &mut *state;
        for handle in inputs.drain(..).chain(outputs.drain(..)).filter(|handle| !handle.is_null()) {
            handles::remove(handle);
        }
        (state.call.take(), state.error.take())
    }

    fn with<T>(&self, f: impl FnOnce(&mut Call, &mut State) -> Result<T>) -> Result<T> {
        let mut state = locked(&self.0);
        let Some(mut call) = state.call.take() else {
            fail!(InvalidHandle, "the kernel's call is over; its context is valid during the call alone");
        };
        let result = f(&mut call, &mut state);
        state.call = Some(call);
        result
    }

    fn on_device<T>(&self, f: impl FnOnce(&DeviceWork) -> Result<T>) -> Result<T> {
        self.with(|call, _| match &call.device {
            Some(device) => f(device),
            None => fail!(InvalidArgument, "the kernel runs on the CPU; a kernel for GPUs has a stream"),
        })
    }
}

/// The number of the node's inputs, those included that it leaves out before others.
///
/// `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_input_count(
    context: *const rukh_kernel_context,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| args::put(count, "count", cx.with(|call, _| Ok(call.inputs.len()))?))
}

/// The number of the node's outputs, those included that it leaves out before others.
///
/// `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_output_count(
    context: *const rukh_kernel_context,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| args::put(count, "count", cx.with(|call, _| Ok(call.outputs.len()))?))
}

/// The value of an input, to read alone. In a kernel for GPUs it is in device memory (`rukh_value_device` tells its
/// address), but for inputs that decide a shape.
///
/// `context`: not NULL. `index`: from 0. `value`: not NULL; receives the value, borrowed for the call: it must not be
/// destroyed, and no clone of it may outlive the call; NULL for an input that the node leaves out. `error`: may be NULL.
/// Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_input(
    context: *const rukh_kernel_context,
    index: usize,
    value: *mut *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let handle = cx.with(|call, state| {
            let Some(given) = args::item(&call.inputs, index, "input")? else { return Ok(null()) };
            if state.inputs[index].is_null() {
                state.inputs[index] = make(given.clone())?;
            }
            Ok(state.inputs[index].cast_const())
        })?;
        args::put(value, "value", handle)
    })
}

/// The tensor of an output, to write every element of; its content is unspecified. In a kernel for GPUs it is in device
/// memory.
///
/// `context`: not NULL. `index`: from 0. `shape`: `rank` dimensions in elements, which must be those that the shape
/// function told, where it did; NULL allowed with rank 0. `value`: not NULL; receives the tensor, borrowed for the call:
/// it must not be destroyed, and no clone of it may outlive the call; NULL for an output that nobody wants. `error`: may
/// be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, another
/// shape, or an output that is no tensor, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_output(
    context: *mut rukh_kernel_context,
    index: usize,
    shape: *const i64,
    rank: usize,
    value: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let shape = args::shape(shape, rank)?;
        let handle = cx.with(|call, state| {
            let Some(made) = call.output(index, &shape)? else { return Ok(null_mut()) };
            if state.outputs[index].is_null() {
                state.outputs[index] = make(made)?;
            }
            Ok(state.outputs[index])
        })?;
        args::put(value, "value", handle)
    })
}

/// Makes a value an output: strings, a sequence, or a tensor that lies elsewhere; a planned output gets a copy of the
/// elements. In a kernel for the CPU.
///
/// `context`, `value`: not NULL; the value is shared. `index`: from 0. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or a value of another type or shape than the
/// output's, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_set_output(
    context: *mut rukh_kernel_context,
    index: usize,
    value: *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let value = value_of(value)?;
        cx.with(|call, _| call.set_output(index, value))
    })
}

/// The state that the kernel's function `create` gave the node.
///
/// `context`, `state`: not NULL; receives NULL where there is none. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_state(
    context: *const rukh_kernel_context,
    state: *mut *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let pointer = cx.with(|_, own| Ok(own.state))?;
        args::put(state, "state", pointer)
    })
}

/// Whether the run was cancelled (1) or not (0). A kernel that takes long asks now and then, and may then return with
/// its outputs as they are.
///
/// `context`, `cancelled`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_cancelled(
    context: *const rukh_kernel_context,
    cancelled: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let is = cx.with(|call, _| Ok(call.pool.cancelled()))?;
        args::put(cancelled, "cancelled", i32::from(is))
    })
}

/// The number of threads that `rukh_kernel_context_parallel_for` can use, the calling one included.
///
/// `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_thread_count(
    context: *const rukh_kernel_context,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| args::put(count, "count", cx.with(|call, _| Ok(call.pool.threads()))?))
}

/// The caller's body of a loop, for the pool's threads.
struct Body {
    body: unsafe extern "C" fn(usize, *mut c_void),
    user: *mut c_void,
}

// SAFETY: the header says that the body is called on several threads.
unsafe impl Sync for Body {}

/// Calls `body` with each number below `count`, in any order and on the session's threads, and returns when all calls
/// have returned.
///
/// `context`: not NULL. `count`: 0 or more; some parts for each thread make an even load. `body`: not NULL; it may call
/// the functions of this context. `user`: passed to the body as it is; may be NULL. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, `RUKH_ERROR_CANCELLED` when the run was cancelled and parts were left
/// out, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_parallel_for(
    context: *mut rukh_kernel_context,
    count: usize,
    body: rukh_parallel_body,
    user: *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let Some(body) = body else {
            fail!(InvalidArgument, "body: NULL is not allowed; it is the loop's body");
        };
        let body = Body { body, user };
        let pool = cx.with(|call, _| Ok(call.pool.clone()))?;
        let body = &body;
        pool.for_each(count, &|index| {
            // SAFETY: the caller's function with the caller's pointer.
            unsafe { (body.body)(index, body.user) }
        });
        if pool.cancelled() {
            fail!(Cancelled, "the run was cancelled");
        }
        Ok(())
    })
}

/// The stream that a kernel for GPUs gives its work to: a `hipStream_t`, on NVIDIA's GPUs a `CUstream`.
///
/// `context`, `stream`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL and in a kernel for the CPU, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_stream(
    context: *const rukh_kernel_context,
    stream: *mut *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let address = cx.on_device(|device| Ok(device.stream))?;
        args::put(stream, "stream", std::ptr::with_exposed_provenance_mut(address as usize))
    })
}

/// The temporary device memory that the function `prepare` asked for; its content is unspecified.
///
/// `context`, `address`: not NULL; receives NULL where there is none. `bytes`: may be NULL; receives its size. `error`:
/// may be NULL. Threads: any, at the same time. Errors: as `rukh_kernel_context_stream`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_scratch(
    context: *const rukh_kernel_context,
    address: *mut *mut c_void,
    bytes: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let (start, size) = cx.on_device(|device| Ok(device.scratch))?;
        args::put_if_wanted(bytes, size);
        args::put(address, "address", std::ptr::with_exposed_provenance_mut(start as usize))
    })
}

/// Says why a kernel failed: the text of the error that the run returns, after the node's name. The kernel then fails,
/// whatever status it returns.
///
/// `context`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_kernel_context_set_error(
    context: *mut rukh_kernel_context,
    text: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(context, error, |cx| {
        let text = Some(args::c_text(args::text(text, "text")?));
        cx.with(|_, state| {
            state.error = text;
            Ok(())
        })
    })
}
