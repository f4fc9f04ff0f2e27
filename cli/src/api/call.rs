//! How a C function is called: errors, texts, owned handles.

use std::ffi::{CStr, CString, c_char};

use rukh::capi::{
    RUKH_OK, rukh_error, rukh_error_destroy, rukh_error_message, rukh_status, rukh_status_name,
};

/// What went wrong, in the library's words.
#[derive(Clone, Debug)]
pub struct Error {
    pub status: rukh_status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<rukh_client::Error> for Error {
    fn from(error: rukh_client::Error) -> Error {
        Error { status: error.status as rukh_status, message: error.message }
    }
}

impl From<Error> for String {
    fn from(error: Error) -> String {
        error.message
    }
}

impl Error {
    /// The status as the header names it.
    pub fn name(&self) -> String {
        // SAFETY: the text is static.
        unsafe { CStr::from_ptr(rukh_status_name(self.status)) }.to_string_lossy().into_owned()
    }
}

/// Calls a function of the library, handing it a place for its error.
pub(super) fn call(function: impl FnOnce(*mut *mut rukh_error) -> rukh_status) -> Result<()> {
    let mut error = std::ptr::null_mut();
    let status = function(&mut error);
    if status == RUKH_OK {
        return Ok(());
    }
    // SAFETY: on failure the error is NULL or a live handle, which is ours; its message is copied
    // before it is destroyed.
    let message = unsafe {
        let message = CStr::from_ptr(rukh_error_message(error)).to_string_lossy().into_owned();
        rukh_error_destroy(error);
        message
    };
    Err(Error { status, message })
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
    let mut handle = std::ptr::null_mut();
    call(|error| function(&mut handle, error))?;
    Ok(handle)
}

/// Calls a function that gives a text which its handle owns; "" where it gives none.
pub(super) fn borrowed(
    function: impl FnOnce(*mut *const c_char, *mut *mut rukh_error) -> rukh_status,
) -> Result<String> {
    let mut text = std::ptr::null();
    call(|error| function(&mut text, error))?;
    Ok(copy(text))
}

/// A copy of a text that the library gave just now, and that its handle, which is live, owns.
pub(super) fn copy(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: texts of the library are NUL-terminated and live as long as their handle.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Calls a function that writes a text into a buffer: once for the length, once for the text.
pub(super) fn text(
    function: impl Fn(*mut c_char, usize, *mut usize, *mut *mut rukh_error) -> rukh_status,
) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(function)?).into_owned())
}

/// As `text`, for strings that need not be UTF-8.
pub(super) fn bytes(
    function: impl Fn(*mut c_char, usize, *mut usize, *mut *mut rukh_error) -> rukh_status,
) -> Result<Vec<u8>> {
    let mut needed = 0;
    call(|error| function(std::ptr::null_mut(), 0, &mut needed, error))?;
    let mut buffer = vec![0u8; needed];
    call(|error| function(buffer.as_mut_ptr().cast(), buffer.len(), &mut needed, error))?;
    // The NUL at the end.
    buffer.pop();
    Ok(buffer)
}

/// A text for the library. A NUL within it ends it early, so the library will not find what it names.
pub(super) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
