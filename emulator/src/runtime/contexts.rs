//! Contexts. Each device has one; its handle is the device's number and 1.

use super::Runtime;
use super::call::{Failure, Handle, Out, call, put};
use super::errors::HipError;
use super::thread;

impl Runtime {
    fn device_of_context(&self, context: Handle) -> Result<i32, Failure> {
        let device = i32::try_from(context).ok().and_then(|it| it.checked_sub(1)).unwrap_or(-1);
        self.device(device)
            .map_err(|_| Failure::new(HipError::INVALID_CONTEXT, format!("{context:#x} is no context")))?;
        Ok(device)
    }
}

fn context_of(device: i32) -> Handle {
    (device + 1) as Handle
}

#[unsafe(no_mangle)]
pub extern "C" fn hipCtxCreate(context: Out<'_, Handle>, flags: u32, device: i32) -> HipError {
    call("hipCtxCreate", format_args!("{flags}, {device}"), |runtime| {
        runtime.device(device)?;
        put(context, context_of(device), "context")?;
        thread::set_device(device);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipCtxDestroy(context: Handle) -> HipError {
    call("hipCtxDestroy", format_args!("{context:#x}"), |runtime| {
        runtime.device_of_context(context).map(|_| ())
    })
}

/// Null leaves the current one.
#[unsafe(no_mangle)]
pub extern "C" fn hipCtxSetCurrent(context: Handle) -> HipError {
    call("hipCtxSetCurrent", format_args!("{context:#x}"), |runtime| {
        if context != 0 {
            thread::set_device(runtime.device_of_context(context)?);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipCtxGetCurrent(context: Out<'_, Handle>) -> HipError {
    call("hipCtxGetCurrent", format_args!(""), |_| put(context, context_of(thread::device()), "context"))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipCtxGetDevice(device: Out<'_, i32>) -> HipError {
    call("hipCtxGetDevice", format_args!(""), |_| put(device, thread::device(), "device"))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipCtxSynchronize() -> HipError {
    call("hipCtxSynchronize", format_args!(""), |runtime| {
        runtime.forbidden_while_capturing(HipError::STREAM_CAPTURE_UNSUPPORTED)?;
        runtime.drain_all();
        runtime.fault()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDevicePrimaryCtxRetain(context: Out<'_, Handle>, device: i32) -> HipError {
    call("hipDevicePrimaryCtxRetain", format_args!("{device}"), |runtime| {
        runtime.device(device)?;
        put(context, context_of(device), "context")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDevicePrimaryCtxRelease(device: i32) -> HipError {
    call("hipDevicePrimaryCtxRelease", format_args!("{device}"), |runtime| runtime.device(device).map(|_| ()))
}
