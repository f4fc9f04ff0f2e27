//! Texts in and out.

use std::ffi::{CStr, CString, c_char};

/// A copy of a text; "" for NULL.
///
/// # Safety
/// `text` is NULL, or a NUL-terminated text that lives during the call.
pub(crate) unsafe fn copy(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A text with a NUL at its end. A NUL within it ends it early.
pub(crate) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
