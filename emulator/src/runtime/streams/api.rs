//! The exported functions for streams.

use std::ffi::c_void;

use super::{Callback, LEGACY, Operation, PER_THREAD, Stream};
use crate::runtime::call::{Failure, Handle, Out, call, null, put, put_optional};
use crate::runtime::capture::Gate;
use crate::runtime::errors::HipError;
use crate::runtime::failures::CallKind;
use crate::runtime::thread;
use crate::runtime::work::{HostFunction, Work};

const NON_BLOCKING: u32 = 1;
/// From the least urgent to the most urgent.
const PRIORITIES: (i32, i32) = (1, -1);

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamCreate(stream: Out<'_, Handle>) -> HipError {
    create("hipStreamCreate", stream, 0, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamCreateWithFlags(stream: Out<'_, Handle>, flags: u32) -> HipError {
    create("hipStreamCreateWithFlags", stream, flags, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamCreateWithPriority(
    stream: Out<'_, Handle>,
    flags: u32,
    priority: i32,
) -> HipError {
    create("hipStreamCreateWithPriority", stream, flags, priority)
}

fn create(name: &str, stream: Out<'_, Handle>, flags: u32, priority: i32) -> HipError {
    call(name, format_args!("{flags}, {priority}"), |runtime| {
        runtime.fault()?;
        if flags > NON_BLOCKING {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed are 0 and {NON_BLOCKING}")));
        }
        runtime.count(CallKind::Stream)?;
        if stream.is_none() {
            return Err(null("stream"));
        }
        let mut state = runtime.state();
        let handle = state.new_handle();
        let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
        state.streams.insert(handle, Stream::new(flags != NON_BLOCKING, priority, thread::device()));
        put(stream, handle, "stream")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamDestroy(stream: Handle) -> HipError {
    call("hipStreamDestroy", format_args!("{stream:#x}"), |runtime| {
        if matches!(stream, 0 | LEGACY | PER_THREAD) {
            return Err(Failure::new(
                HipError::INVALID_HANDLE,
                format!("{stream:#x} is a stream of the runtime"),
            ));
        }
        let key = runtime.state().stream(stream)?;
        runtime.leave_capture(key);
        runtime.drain(key);
        runtime.state().streams.remove(&key);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamSynchronize(stream: Handle) -> HipError {
    call("hipStreamSynchronize", format_args!("{stream:#x}"), |runtime| {
        let key = runtime.state().stream(stream)?;
        if key == LEGACY {
            runtime.gate(key)?;
            runtime.order_with_legacy(key);
        } else {
            runtime.not_while_capturing(key)?;
        }
        runtime.drain(key);
        runtime.fault()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamQuery(stream: Handle) -> HipError {
    call("hipStreamQuery", format_args!("{stream:#x}"), |runtime| {
        let key = runtime.state().stream(stream)?;
        if key != LEGACY {
            runtime.not_while_capturing(key)?;
        }
        if !runtime.state().stream_mut(key)?.is_idle() {
            if !thread::poll() {
                return Err(HipError::NOT_READY.into());
            }
            runtime.drain(key);
        }
        runtime.fault()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamGetPriority(stream: Handle, priority: Out<'_, i32>) -> HipError {
    call("hipStreamGetPriority", format_args!("{stream:#x}"), |runtime| {
        let mut state = runtime.state();
        let key = state.stream(stream)?;
        put(priority, state.stream_mut(key)?.priority, "priority")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamGetFlags(stream: Handle, flags: Out<'_, u32>) -> HipError {
    call("hipStreamGetFlags", format_args!("{stream:#x}"), |runtime| {
        let mut state = runtime.state();
        let key = state.stream(stream)?;
        put(flags, u32::from(!state.stream_mut(key)?.blocking), "flags")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamGetDevice(stream: Handle, device: Out<'_, i32>) -> HipError {
    call("hipStreamGetDevice", format_args!("{stream:#x}"), |runtime| {
        let mut state = runtime.state();
        let key = state.stream(stream)?;
        if state.stream_mut(key)?.capture.is_some() {
            // HIP allows it; CUDA does not, and programs may be for both.
            drop(state);
            return Err(runtime.forbid_on_capturing(key));
        }
        put(device, state.stream_mut(key)?.device, "device")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetStreamPriorityRange(least: Out<'_, i32>, greatest: Out<'_, i32>) -> HipError {
    call("hipDeviceGetStreamPriorityRange", format_args!(""), |_| {
        put_optional(least, PRIORITIES.0);
        put_optional(greatest, PRIORITIES.1);
        Ok(())
    })
}

/// The program's function is called when the work before it is done.
#[unsafe(no_mangle)]
pub extern "C" fn hipStreamAddCallback(
    stream: Handle,
    callback: Option<Callback>,
    user_data: *mut c_void,
    flags: u32,
) -> HipError {
    call("hipStreamAddCallback", format_args!("{stream:#x}, {flags}"), |runtime| {
        let key = runtime.state().stream(stream)?;
        let function = callback.ok_or_else(|| null("callback"))?;
        if flags != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed is 0")));
        }
        if let Gate::Capture = runtime.gate(key)? {
            return Err(runtime.forbid_on_capturing(key));
        }
        runtime.enqueue(key, Operation::Callback { stream, function, user_data: user_data as u64 });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipLaunchHostFunc(
    stream: Handle,
    function: Option<HostFunction>,
    user_data: *mut c_void,
) -> HipError {
    call("hipLaunchHostFunc", format_args!("{stream:#x}"), |runtime| {
        let key = runtime.state().stream(stream)?;
        let function = function.ok_or_else(|| null("function"))?;
        let work = Work::Host { function, user_data: user_data as u64 };
        runtime.submit(key, work, "hipLaunchHostFunc")
    })
}
