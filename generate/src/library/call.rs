//! How a function of librukh is called: its error, its handles, its texts.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

use super::status::Status;
use crate::error::{Error, Result};
use rukh_sys::{rukh_error, rukh_error_destroy, rukh_error_message, rukh_status};

/// Calls a function, handing it a place for its error.
pub(super) fn call(function: impl FnOnce(*mut *mut rukh_error) -> rukh_status) -> Result<()> {
    let mut error = null_mut();
    let status = function(&mut error);
    if status == 0 {
        return Ok(());
    }
    // SAFETY: on failure the error is NULL or a live handle, which is ours; its message is copied before it goes.
    let message = unsafe {
        let message = CStr::from_ptr(rukh_error_message(error)).to_string_lossy().into_owned();
        rukh_error_destroy(error);
        message
    };
    Err(Error { status: Status::from_number(status), message })
}

/// Calls a function that gives one plain value.
pub(super) fn get<T: Default>(
    function: impl FnOnce(*mut T, *mut *mut rukh_error) -> rukh_status,
) -> Result<T> {
    let mut value = T::default();
    call(|error| function(&mut value, error))?;
    Ok(value)
}

/// Calls a function that makes a handle.
pub(super) fn make<T>(
    function: impl FnOnce(*mut *mut T, *mut *mut rukh_error) -> rukh_status,
) -> Result<*mut T> {
    let mut handle = null_mut();
    call(|error| function(&mut handle, error))?;
    Ok(handle)
}

/// A copy of a text that librukh gave just now, and whose handle is live; "" for NULL.
pub(super) fn copy(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: texts of librukh are NUL-terminated and live as long as their handle.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A text for librukh. A NUL within it ends it early, so librukh will not find what it names.
pub(super) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
