//! How a function of librukh is called: its error and its handles.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use rukh_sys::{rukh_error, rukh_error_destroy, rukh_error_message, rukh_status};

use crate::error::{Error, Result, fail};

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
    Err(Error::of_library(status, message))
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

/// Calls a function that writes a text where it is told to: once for the size, and once for the text.
pub(super) fn text(
    function: impl Fn(*mut c_char, usize, *mut usize, *mut *mut rukh_error) -> rukh_status,
) -> Result<String> {
    let mut needed = 0;
    call(|error| function(null_mut(), 0, &mut needed, error))?;
    let mut text = vec![0_u8; needed];
    call(|error| function(text.as_mut_ptr().cast(), needed, &mut needed, error))?;
    let length = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// The name of a file as librukh takes it.
pub(super) fn path_text(path: &Path) -> Result<CString> {
    match CString::new(path.as_os_str().as_bytes()) {
        Ok(text) => Ok(text),
        Err(_) => {
            fail!(InvalidArgument, "{path:?} has a NUL in it, which no name of a file has; give another name")
        }
    }
}
