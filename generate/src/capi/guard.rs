//! Between this library and its C callers: errors become statuses, and a panic becomes an error and a poisoned handle.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use super::args;
use super::handles::{self, Handle};
use crate::error::{Error, Result};
use rukh_client::Status;
use rukh_sys::{rukh_error, rukh_error_create, rukh_status};

/// Runs the body of an exported function that works on no handle of this library.
pub(super) fn call(error: *mut *mut rukh_error, body: impl FnOnce() -> Result<()>) -> rukh_status {
    args::put_if_wanted(error, null_mut());
    let Err(e) = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(defect(&*panic))) else {
        return 0;
    };
    if !error.is_null() {
        let message = CString::new(e.message.replace('\0', "\u{FFFD}")).unwrap_or_default();
        // SAFETY: the text is NUL-terminated.
        args::put_if_wanted(error, unsafe { rukh_error_create(e.status as rukh_status, message.as_ptr()) });
    }
    e.status as rukh_status
}

/// Runs the body of an exported function on what `handle` stands for. A panic leaves it unusable: the lock that it is
/// under is then poisoned.
pub(super) fn call_on<H: Handle>(
    handle: *const H,
    error: *mut *mut rukh_error,
    body: impl FnOnce(&mut H::Object) -> Result<()>,
) -> rukh_status {
    call(error, || {
        let object = handles::find(handle)?;
        let mut object = handles::lock(&object, H::NAME)?;
        body(&mut object)
    })
}

/// Runs the body of an exported function that makes an object. `*out` is NULL unless it succeeds.
pub(super) fn create<H: Handle>(
    out: *mut *mut H,
    error: *mut *mut rukh_error,
    body: impl FnOnce() -> Result<H::Object>,
) -> rukh_status {
    call(error, || {
        args::put(out, "out", null_mut())?;
        args::put(out, "out", handles::insert(body()?))
    })
}

/// Destroys a handle. NULL, and what is no live handle of this kind, is left alone.
pub(super) fn destroy<H: Handle>(handle: *mut H) {
    // A panic in a destructor is a defect, but there is nobody to tell: the handle is gone.
    let _ = catch_unwind(AssertUnwindSafe(|| handles::remove(handle.cast_const())));
}

fn defect(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text");
    Error::new(Status::Internal, format!("a defect of the library: {text}"))
}
