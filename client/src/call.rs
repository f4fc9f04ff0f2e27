//! How a function of librukh is called: its error, its handles, its texts.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

use rukh_sys::{RUKH_OK, rukh_error, rukh_error_destroy, rukh_error_message, rukh_status};

use crate::{Error, Result, Status};

/// Calls a function, handing it a place for its error.
pub fn call(function: impl FnOnce(*mut *mut rukh_error) -> rukh_status) -> Result<()> {
    let mut error = null_mut();
    let status = function(&mut error);
    if status == RUKH_OK {
        return Ok(());
    }
    // SAFETY: on failure the error is NULL or a live handle, which is ours; its message is copied before it goes.
    let message = unsafe {
        let message = copy(rukh_error_message(error));
        rukh_error_destroy(error);
        message
    };
    Err(Error::new(Status::from_number(status), message))
}

/// Calls a function that gives one plain value.
pub fn get<T: Default>(function: impl FnOnce(*mut T, *mut *mut rukh_error) -> rukh_status) -> Result<T> {
    let mut value = T::default();
    call(|error| function(&mut value, error))?;
    Ok(value)
}

/// Calls a function that makes a handle.
pub fn make<T>(function: impl FnOnce(*mut *mut T, *mut *mut rukh_error) -> rukh_status) -> Result<*mut T> {
    let mut handle = null_mut();
    call(|error| function(&mut handle, error))?;
    Ok(handle)
}

/// Calls a function that lends a text; "" for NULL.
///
/// # Safety
/// The handle that lends the text is live, and stays so during this call.
pub(crate) unsafe fn lent(
    function: impl FnOnce(*mut *const c_char, *mut *mut rukh_error) -> rukh_status,
) -> Result<String> {
    let mut text = std::ptr::null();
    call(|error| function(&mut text, error))?;
    // SAFETY: texts of librukh end with a NUL and live as long as their handle, by the caller's promise until here.
    Ok(unsafe { copy(text) })
}

/// A copy of a text; "" for NULL.
///
/// # Safety
/// The text is NULL or ends with a NUL, and nobody writes it meanwhile.
pub unsafe fn copy(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Lends a text to a function, with a NUL at its end; short ones without asking for memory. A NUL within it ends it
/// early, so librukh will not find what it names.
pub fn with_text<T>(text: &str, function: impl FnOnce(*const c_char) -> T) -> T {
    const SHORT: usize = 128;
    let bytes = text.as_bytes();
    if bytes.len() < SHORT {
        let mut room = [0_u8; SHORT];
        room[..bytes.len()].copy_from_slice(bytes);
        return function(room.as_ptr().cast());
    }
    function(c_string(text).as_ptr())
}

/// A text with a NUL at its end, cut at the first NUL within it.
pub(crate) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Declares the owner of a handle, which is destroyed once, with its owner.
macro_rules! owner {
    ($(#[$about:meta])* $name:ident, $handle:ident, $destroy:ident) => {
        $(#[$about])*
        pub struct $name(std::ptr::NonNull<rukh_sys::$handle>);

        // SAFETY: handles of librukh may be used and destroyed on any thread.
        unsafe impl Send for $name {}
        // SAFETY: calls that only read an object may run at the same time; those that change one take `&mut`, or are
        // allowed at the same time by rukh.h.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle is ours and destroyed once.
                unsafe { rukh_sys::$destroy(self.0.as_ptr()) };
            }
        }

        impl $name {
            /// The handle, for functions that this layer has no method for. It stays this owner's.
            pub fn handle(&self) -> *mut rukh_sys::$handle {
                self.0.as_ptr()
            }

            /// Takes over a handle that the caller owned.
            ///
            /// # Safety
            /// The handle is live, and nobody else destroys it.
            pub unsafe fn from_handle(handle: *mut rukh_sys::$handle) -> $crate::Result<Self> {
                match std::ptr::NonNull::new(handle) {
                    Some(handle) => Ok(Self(handle)),
                    None => Err($crate::Error::new($crate::Status::Internal, "librukh gave no handle")),
                }
            }

            #[allow(dead_code)]
            pub(crate) fn made(
                function: impl FnOnce(
                    *mut *mut rukh_sys::$handle,
                    *mut *mut rukh_sys::rukh_error,
                ) -> rukh_sys::rukh_status,
            ) -> $crate::Result<Self> {
                let handle = $crate::call::make(function)?;
                // SAFETY: librukh made the handle for us just now.
                unsafe { Self::from_handle(handle) }
            }
        }
    };
}
pub(crate) use owner;
