//! How librukh is called: its errors, its handles, its texts.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{NonNull, null_mut};

use ort_sys::OrtErrorCode::{self, *};
use rukh_sys::*;

use crate::failure::{Failure, Result};

/// Calls a function, handing it a place for its error.
pub fn call(function: impl FnOnce(*mut *mut rukh_error) -> rukh_status) -> Result<()> {
    let mut error = null_mut();
    let status = function(&mut error);
    if status == RUKH_OK {
        return Ok(());
    }
    // SAFETY: on failure the error is NULL or a live handle, which is ours; its message is copied before it goes.
    let message = unsafe {
        let message = CStr::from_ptr(rukh_error_message(error)).to_string_lossy().into_owned();
        rukh_error_destroy(error);
        message
    };
    Err(Failure::new(code(status), message))
}

/// Calls a function that gives one plain value.
pub fn get<T: Default>(function: impl FnOnce(*mut T, *mut *mut rukh_error) -> rukh_status) -> Result<T> {
    let mut value = T::default();
    call(|error| function(&mut value, error))?;
    Ok(value)
}

/// Calls a function that lends a text.
pub fn lent(
    function: impl FnOnce(*mut *const c_char, *mut *mut rukh_error) -> rukh_status,
) -> Result<Option<CString>> {
    let mut text = std::ptr::null();
    call(|error| function(&mut text, error))?;
    // SAFETY: texts of librukh end with a NUL and live as long as their handle, which the caller holds.
    Ok((!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned()))
}

/// Calls a function that makes a handle.
pub fn make<T: Destroy>(
    function: impl FnOnce(*mut *mut T, *mut *mut rukh_error) -> rukh_status,
) -> Result<Own<T>> {
    let mut handle = null_mut();
    call(|error| function(&mut handle, error))?;
    Own::new(handle).ok_or_else(|| Failure::new(ORT_FAIL, "librukh gave no handle"))
}

/// Calls a function that builds a text, which may hold NULs, until it fits.
pub fn bytes(
    mut function: impl FnMut(*mut c_char, usize, *mut usize, *mut *mut rukh_error) -> rukh_status,
) -> Result<Vec<u8>> {
    let mut buffer = vec![0_u8; 64];
    loop {
        let mut needed = 0;
        let asked = call(|error| function(buffer.as_mut_ptr().cast(), buffer.len(), &mut needed, error));
        if needed > buffer.len() {
            buffer = vec![0; needed];
            continue;
        }
        asked?;
        buffer.truncate(needed.saturating_sub(1));
        return Ok(buffer);
    }
}

/// As `bytes`, for a text without NULs.
pub fn string(
    function: impl FnMut(*mut c_char, usize, *mut usize, *mut *mut rukh_error) -> rukh_status,
) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(function)?).into_owned())
}

/// A handle of librukh that is destroyed with this.
pub struct Own<T: Destroy>(NonNull<T>);

/// A kind of handle.
pub trait Destroy {
    /// # Safety
    /// `handle` is a live handle, which is not used afterwards.
    unsafe fn destroy(handle: *mut Self);
}

// SAFETY: handles of librukh may be used and destroyed on any thread.
unsafe impl<T: Destroy> Send for Own<T> {}
// SAFETY: calls that only read an object may run at the same time; those that change one take `pointer` of what
// ONNX Runtime's contract gives to one thread at a time.
unsafe impl<T: Destroy> Sync for Own<T> {}

impl<T: Destroy> Own<T> {
    pub fn new(handle: *mut T) -> Option<Own<T>> {
        NonNull::new(handle).map(Own)
    }

    pub fn pointer(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Destroy> Drop for Own<T> {
    fn drop(&mut self) {
        // SAFETY: the handle is live: nothing else destroys it.
        unsafe { T::destroy(self.0.as_ptr()) };
    }
}

macro_rules! destroy {
    ($($handle:ident $function:ident;)*) => {$(
        impl Destroy for $handle {
            unsafe fn destroy(handle: *mut $handle) {
                // SAFETY: the caller's promise.
                unsafe { $function(handle) }
            }
        }
    )*};
}

destroy! {
    rukh_environment rukh_environment_destroy;
    rukh_environment_options rukh_environment_options_destroy;
    rukh_device rukh_device_destroy;
    rukh_session_options rukh_session_options_destroy;
    rukh_session rukh_session_destroy;
    rukh_run_options rukh_run_options_destroy;
    rukh_io_binding rukh_io_binding_destroy;
    rukh_value rukh_value_destroy;
    rukh_operator rukh_operator_destroy;
    rukh_stream rukh_stream_destroy;
    rukh_adapter rukh_adapter_destroy;
}

fn code(status: rukh_status) -> OrtErrorCode {
    match status {
        RUKH_ERROR_INVALID_ARGUMENT | RUKH_ERROR_INVALID_HANDLE | RUKH_ERROR_INVALID_INPUT => {
            ORT_INVALID_ARGUMENT
        }
        RUKH_ERROR_NOT_FOUND => ORT_NO_SUCHFILE,
        RUKH_ERROR_INVALID_MODEL => ORT_INVALID_GRAPH,
        RUKH_ERROR_UNSUPPORTED => ORT_NOT_IMPLEMENTED,
        RUKH_ERROR_DEVICE | RUKH_ERROR_POISONED => ORT_EP_FAIL,
        RUKH_ERROR_INTERNAL | RUKH_ERROR_OUT_OF_MEMORY => ORT_RUNTIME_EXCEPTION,
        _ => ORT_FAIL,
    }
}
