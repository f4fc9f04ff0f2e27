//! Errors: code and message.

use std::ffi::c_char;
use std::sync::Arc;

use super::args;
use super::error_object::ErrorObject;
use super::guard::{catch, destroy};
use super::handles;
use super::types::*;

/// The status code of an error.
///
/// `error`: NULL gives `RUKH_OK`; a pointer that is no live error gives what is wrong with it, such as
/// `RUKH_ERROR_INVALID_HANDLE`. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_error_code(error: *const rukh_error) -> rukh_status {
    if error.is_null() {
        return RUKH_OK;
    }
    handles::pin(error).map_or_else(|e| e.status as rukh_status, |error| error.code)
}

/// The message of an error: it names the thing, the value that was given and what is allowed.
///
/// Never NULL. The text is UTF-8, borrowed from the error and valid until the error is destroyed.
/// `error`: NULL gives ""; a pointer that is no live error gives a static text that says so. Threads:
/// any, at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_error_message(error: *const rukh_error) -> *const c_char {
    if error.is_null() {
        return c"".as_ptr();
    }
    match handles::pin(error) {
        // The text outlives the pin: it goes when the handle is destroyed, as the comment says.
        Ok(error) => error.message.as_ptr(),
        Err(_) => c"this is no live rukh_error".as_ptr(),
    }
}

/// Makes an error: for libraries on top of this one, whose functions report failures as this one's do.
///
/// `code`: one of `RUKH_ERROR_…`. `message`: not NULL; copied; bytes that are not UTF-8 are replaced. Returns the
/// error, which its owner destroys; NULL for a code that is none, for a NULL message and when host memory is
/// exhausted. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_error_create(code: rukh_status, message: *const c_char) -> *mut rukh_error {
    let made = || {
        if !(RUKH_ERROR_INVALID_ARGUMENT..=RUKH_ERROR_INTERNAL).contains(&code) {
            return None;
        }
        let message = args::bytes_of_text(message, "message").ok()?;
        let message = args::c_text(&String::from_utf8_lossy(message));
        handles::insert(Arc::new(ErrorObject { code, message })).ok()
    };
    catch(made).ok().flatten().unwrap_or(std::ptr::null_mut())
}

/// Destroys an error. NULL, and a pointer that is no live error, is left alone.
///
/// Threads: any; the error must not be in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_error_destroy(error: *mut rukh_error) {
    destroy(error);
}

/// The name of a status code, such as "RUKH_ERROR_NOT_FOUND"; "unknown" for a code that this version
/// does not know.
///
/// Never NULL; the text is static. Never fails. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn rukh_status_name(status: rukh_status) -> *const c_char {
    let name = match status {
        RUKH_OK => c"RUKH_OK",
        RUKH_ERROR_INVALID_ARGUMENT => c"RUKH_ERROR_INVALID_ARGUMENT",
        RUKH_ERROR_INVALID_HANDLE => c"RUKH_ERROR_INVALID_HANDLE",
        RUKH_ERROR_NOT_FOUND => c"RUKH_ERROR_NOT_FOUND",
        RUKH_ERROR_IO => c"RUKH_ERROR_IO",
        RUKH_ERROR_INVALID_MODEL => c"RUKH_ERROR_INVALID_MODEL",
        RUKH_ERROR_UNSUPPORTED => c"RUKH_ERROR_UNSUPPORTED",
        RUKH_ERROR_INVALID_INPUT => c"RUKH_ERROR_INVALID_INPUT",
        RUKH_ERROR_INVALID_DATA => c"RUKH_ERROR_INVALID_DATA",
        RUKH_ERROR_OUT_OF_MEMORY => c"RUKH_ERROR_OUT_OF_MEMORY",
        RUKH_ERROR_CANCELLED => c"RUKH_ERROR_CANCELLED",
        RUKH_ERROR_DEVICE => c"RUKH_ERROR_DEVICE",
        RUKH_ERROR_POISONED => c"RUKH_ERROR_POISONED",
        RUKH_ERROR_FORKED => c"RUKH_ERROR_FORKED",
        RUKH_ERROR_INTERNAL => c"RUKH_ERROR_INTERNAL",
        _ => c"unknown",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn errors_are_made_for_libraries_on_top() {
        // SAFETY: texts are NUL-terminated; errors are destroyed once.
        unsafe {
            let error = rukh_error_create(RUKH_ERROR_NOT_FOUND, c"there is none".as_ptr());
            assert_eq!(rukh_error_code(error), RUKH_ERROR_NOT_FOUND);
            assert_eq!(std::ffi::CStr::from_ptr(rukh_error_message(error)), c"there is none");
            rukh_error_destroy(error);
            for (code, message) in [
                (RUKH_OK, c"x".as_ptr()),
                (15, c"x".as_ptr()),
                (-1, c"x".as_ptr()),
                (RUKH_ERROR_IO, std::ptr::null()),
            ] {
                assert!(rukh_error_create(code, message).is_null(), "{code}");
            }
        }
    }

    #[test]
    fn codes_are_those_of_the_library() {
        for (status, code) in [
            (Status::InvalidArgument, RUKH_ERROR_INVALID_ARGUMENT),
            (Status::InvalidHandle, RUKH_ERROR_INVALID_HANDLE),
            (Status::NotFound, RUKH_ERROR_NOT_FOUND),
            (Status::Io, RUKH_ERROR_IO),
            (Status::InvalidModel, RUKH_ERROR_INVALID_MODEL),
            (Status::Unsupported, RUKH_ERROR_UNSUPPORTED),
            (Status::InvalidInput, RUKH_ERROR_INVALID_INPUT),
            (Status::InvalidData, RUKH_ERROR_INVALID_DATA),
            (Status::OutOfMemory, RUKH_ERROR_OUT_OF_MEMORY),
            (Status::Cancelled, RUKH_ERROR_CANCELLED),
            (Status::Device, RUKH_ERROR_DEVICE),
            (Status::Poisoned, RUKH_ERROR_POISONED),
            (Status::Forked, RUKH_ERROR_FORKED),
            (Status::Internal, RUKH_ERROR_INTERNAL),
        ] {
            assert_eq!(status as rukh_status, code, "{status:?}");
        }
    }
}
