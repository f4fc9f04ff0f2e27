//! Triton's objects as the rest of the backend sees them.

mod message;
mod request;
mod response;
mod state;

use std::ffi::{CStr, CString, c_char};

use crate::api::*;

pub(crate) use message::{message_json, new_message, read_message};
pub(crate) use request::{Request, Tensor, Times, is_cancelled};
pub(crate) use response::Response;
pub(crate) use state::update_state;

/// Writes a line into the server's log.
pub(crate) fn log(level: TRITONSERVER_LogLevel, message: &str) {
    // SAFETY: the function has no preconditions.
    if !unsafe { TRITONSERVER_LogIsEnabled(level) } {
        return;
    }
    let message = CString::new(message.replace('\0', "\u{FFFD}")).unwrap_or_default();
    // SAFETY: the texts are NUL-terminated and copied; an error is ours, and there is nobody to tell.
    unsafe {
        let error = TRITONSERVER_LogMessage(level, c"rukh".as_ptr(), 0, message.as_ptr());
        if !error.is_null() {
            TRITONSERVER_ErrorDelete(error);
        }
    }
}

/// Nanoseconds of the clock that the server's statistics use.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is a local; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A copy of a text of the server's; "" for NULL.
///
/// # Safety
/// The text is NULL or ends with a NUL.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
