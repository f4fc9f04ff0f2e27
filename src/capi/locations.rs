//! Tensors and outputs in the memory of a device that a handle names, and copies that a stream orders.

use std::ffi::c_char;
use std::sync::{Mutex, RwLock};

use super::args;
use super::completion::CompletionObject;
use super::device_values::{check_alike, laid_over_any, size_of_tensor};
use super::devices::DeviceObject;
use super::guard::{call, call_on, create_on, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::read;
use super::types::*;
use super::values::{tensor, value_of};
use crate::error::{Result, fail};
use crate::session::{DeviceStream, Location, ProviderKind, Queued, queue_copy};
use crate::tensor::{ElementType, Tensor, Value};

impl Handle for rukh_stream {
    type Object = DeviceStream;
    const KIND: Kind = Kind::Stream;
    const NAME: &'static str = "rukh_stream";
}

/// Whose memory a device and a kind name.
fn location(device: &DeviceObject, kind: rukh_memory_kind) -> Result<Location> {
    let id = || -> Result<u32> { Ok(u32::try_from(device.id()?).unwrap_or(u32::MAX)) };
    match (kind, device.kind()) {
        (RUKH_MEMORY_HOST, _) | (RUKH_MEMORY_DEVICE, ProviderKind::Cpu) => Ok(Location::Host),
        (RUKH_MEMORY_DEVICE, ProviderKind::Hip) => Ok(Location::Device(id()?)),
        (RUKH_MEMORY_PINNED, ProviderKind::Hip) => Ok(Location::Pinned(id()?)),
        (RUKH_MEMORY_PINNED, ProviderKind::Cpu) => {
            fail!(InvalidArgument, "kind: memory is pinned for a GPU; the device given is the CPU")
        }
        _ => fail!(InvalidArgument, "kind: {kind} is not known; known are 0 to 2 (RUKH_MEMORY_...)"),
    }
}

/// Makes a tensor in the memory of a device; its elements are zeros on the host, else unspecified.
///
/// `device`: not NULL. `kind`: one of `RUKH_MEMORY_…`. `element`: one of `RUKH_ELEMENT_…`; `STRING` on the host only.
/// `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not NULL; receives the value, which the
/// caller destroys when no run and no copy uses it; NULL on failure. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE` (also where the runtime has no pinned memory),
/// `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_tensor_in(
    device: *const rukh_device,
    kind: rukh_memory_kind,
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(device, out, error, |device| {
        let location = location(device, kind)?;
        let (element, shape) = (args::element_type(element)?, args::shape(shape, rank)?);
        if location == Location::Host && element == ElementType::String {
            return Ok(RwLock::new(Value::Tensor(Tensor::zeros(element, &shape)?)));
        }
        let bytes = size_of_tensor(element, &shape)?;
        laid_over_any(element, &shape, location.allocate(bytes)?)
    })
}

/// The kind of memory that a tensor lies in, and the number of the GPU that it belongs to or is pinned for.
///
/// `value`: not NULL; a tensor. `kind`: not NULL; receives one of `RUKH_MEMORY_…`: `HOST` for all memory of the host
/// that is not known to be pinned, and for strings. `device_id`: may be NULL; receives the number, 0 for `HOST`.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor,
/// and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_memory_kind(
    value: *const rukh_value,
    kind: *mut rukh_memory_kind,
    device_id: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let value = read(value);
        let (found, id) = match tensor(&value)?.buffer().map_or(Location::Host, Location::of) {
            Location::Host => (RUKH_MEMORY_HOST, 0),
            Location::Pinned(id) => (RUKH_MEMORY_PINNED, id),
            Location::Device(id) => (RUKH_MEMORY_DEVICE, id),
        };
        args::put_if_wanted(device_id, id as usize);
        args::put(kind, "kind", found)
    })
}

/// Binds an output to memory that the library allocates at each run where the caller says: outputs whose shape is not
/// known before stay in the memory of a GPU, and go into the next run from there.
///
/// A value that nodes on that GPU make is made there and crosses no bus; what the CPU or another GPU makes is copied there.
/// Strings, sequences, maps and optionals come to the host. Outputs of a run in a captured stream must be bound to
/// values (`rukh_io_binding_bind_output`).
///
/// `binding`, `name`, `device`: not NULL. `kind`: one of `RUKH_MEMORY_…`. `error`: may be NULL. Threads: any, one at a
/// time. Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`,
/// `RUKH_ERROR_DEVICE`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_bind_output_allocated_in(
    binding: *mut rukh_io_binding,
    name: *const c_char,
    device: *const rukh_device,
    kind: rukh_memory_kind,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        let location = location(&*handles::pin(device)?, kind)?;
        let output = binding.output(name)?;
        binding.take()?.bind_output_allocated_in(output, location);
        Ok(())
    })
}

/// The device that runs nodes of a session: the GPU when any node runs there, else the CPU.
///
/// `session`: not NULL. `out`: not NULL; receives a handle that the caller destroys; NULL on failure. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_device(
    session: *const rukh_session,
    out: *mut *mut rukh_device,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(session, out, error, |session| match session.session.device() {
        Some(id) => DeviceObject::of(ProviderKind::Hip, id as usize),
        None => DeviceObject::of(ProviderKind::Cpu, 0),
    })
}

/// Queues a copy of the elements of a tensor into another of the same type and shape in a stream, and returns without
/// waiting for it. Between the host and a GPU nothing holds up the caller where the host's side is pinned memory; from
/// other memory the runtime may wait. Between two tensors on the host the copy is done when the call returns.
///
/// `from`, `to`: not NULL; tensors of anything but strings, not of two GPUs; they must not change, and stay, until the
/// stream has come past the copy. `stream`: the address of a `hipStream_t` (`CUstream` on the nvidia platform) of the
/// tensors' device, such as `rukh_stream_address` gives; 0 for the default stream. `out`: may be NULL; receives a
/// completion that keeps both values until the copy is done, and that the caller destroys; NULL on failure. `error`:
/// may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` when types or shapes differ, for a stream of another
/// device (not told while it is being captured), or for one that is being captured while `out` is given;
/// `RUKH_ERROR_UNSUPPORTED` for tensors of two GPUs; `RUKH_ERROR_DEVICE`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_copy_queued(
    from: *const rukh_value,
    to: *mut rukh_value,
    stream: u64,
    out: *mut *mut rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    args::put_if_wanted(out, std::ptr::null_mut());
    call(error, || {
        let (from, to) = (value_of(from)?, value_of(to)?);
        let (source, target) = (tensor(&from)?, tensor(&to)?);
        check_alike(source, target)?;
        // SAFETY: the caller's promise, as the comment above demands it.
        let event = unsafe { queue_copy(source, target, stream, !out.is_null())? };
        if out.is_null() {
            return Ok(());
        }
        let queued = event.map(|event| Box::new(Queued::up_to(event, vec![from.clone(), to.clone()])));
        let completion = CompletionObject::new(Mutex::new(queued), None);
        args::put(out, "out", handles::insert(std::sync::Arc::new(completion))?)
    })
}

/// Makes a stream of a GPU: a queue of work that goes on in order, for run option "compute_stream", for
/// `rukh_value_copy_queued` and for work of the caller's.
///
/// `device`: not NULL; a GPU. `out`: not NULL; receives the stream, which the caller destroys when nothing uses it any
/// more; NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for the CPU, which
/// has no streams, `RUKH_ERROR_DEVICE`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_stream_create(
    device: *const rukh_device,
    out: *mut *mut rukh_stream,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(device, out, error, |device| match device.kind() {
        ProviderKind::Hip => DeviceStream::new(device.id()?),
        ProviderKind::Cpu => fail!(InvalidArgument, "device: the CPU has no streams; allowed are GPUs"),
    })
}

/// Destroys a stream; its work goes on to its end. NULL, and a pointer that is no live handle of this kind, is left
/// alone.
///
/// Threads: any.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_stream_destroy(stream: *mut rukh_stream) {
    destroy(stream);
}

/// The runtime's handle of a stream (`hipStream_t`, or `CUstream` on the nvidia platform) as a number.
///
/// `stream`, `address`: not NULL; the runtime's handle is the stream's. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_stream_address(
    stream: *const rukh_stream,
    address: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(stream, error, |stream| args::put(address, "address", stream.address()))
}

/// Waits until a stream has done all that it was given.
///
/// `stream`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_DEVICE`, and the handle
/// errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_stream_wait(
    stream: *const rukh_stream,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(stream, error, |stream| stream.wait())
}

/// Marks the place that a stream has come to: a completion of all that it was given until now, which the host can wait for
/// (`rukh_completion_wait`), and other streams too (`rukh_stream_wait_for`).
///
/// `stream`: not NULL. `out`: not NULL; receives the completion, which the caller destroys, before or after the stream; NULL
/// on failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a stream that
/// is being captured, `RUKH_ERROR_DEVICE`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_stream_record(
    stream: *const rukh_stream,
    out: *mut *mut rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(stream, out, error, |stream| {
        Ok(CompletionObject::new(Mutex::new(Some(Box::new(stream.record()?))), None))
    })
}

/// Lets a stream wait for work in another: what it is given from now on begins when that work is done. The call returns
/// without waiting.
///
/// `stream`: not NULL. `completion`: not NULL; of a run, a copy or `rukh_stream_record`; it may be destroyed when the call
/// has returned. `error`: may be NULL. Threads: any, at the same time; a thread that waits for the completion holds up the
/// call. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a completion of `rukh_session_start`, whose outputs are there when it has
/// ended, `RUKH_ERROR_UNSUPPORTED` for a stream of another runtime, `RUKH_ERROR_DEVICE`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_stream_wait_for(
    stream: *const rukh_stream,
    completion: *const rukh_completion,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(stream, error, |stream| {
        let completion = handles::pin(completion)?;
        locked(completion.queued()?).as_ref().map_or(Ok(()), |work| stream.wait_for(work))
    })
}
