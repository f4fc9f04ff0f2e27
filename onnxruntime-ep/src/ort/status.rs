//! Errors over the border: `OrtStatus` in, `OrtStatus` out, and no panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ort_sys::{OrtErrorCode, OrtStatus, OrtStatusPtr};

use super::{Ort, c_string, copy};
use crate::error::{Code, Error, Result};

impl Ort {
    /// What a function of ONNX Runtime returned, as a result. The status is freed.
    pub(crate) fn check(&self, status: OrtStatusPtr) -> Result<()> {
        if status.0.is_null() {
            return Ok(());
        }
        // SAFETY: the status is live and ours; its text is copied before it goes.
        let (code, message) = unsafe {
            let code = (self.api.GetErrorCode)(status.0) as i32;
            let message = copy((self.api.GetErrorMessage)(status.0));
            (self.api.ReleaseStatus)(status.0);
            (code, message)
        };
        Err(Error::new(Code::from_number(code), message))
    }

    /// A status for ONNX Runtime, which frees it.
    pub(crate) fn status(&self, error: &Error) -> OrtStatusPtr {
        let message = c_string(&error.message);
        let code = error.code.number();
        // SAFETY: the text is NUL-terminated and copied.
        OrtStatusPtr(unsafe { (self.api.CreateStatus)(code, message.as_ptr()) }.0.cast::<OrtStatus>())
    }
}

impl Code {
    fn number(self) -> OrtErrorCode {
        match self {
            Code::Fail => OrtErrorCode::ORT_FAIL,
            Code::InvalidArgument => OrtErrorCode::ORT_INVALID_ARGUMENT,
            Code::NoSuchFile => OrtErrorCode::ORT_NO_SUCHFILE,
            Code::RuntimeException => OrtErrorCode::ORT_RUNTIME_EXCEPTION,
            Code::NotImplemented => OrtErrorCode::ORT_NOT_IMPLEMENTED,
            Code::InvalidGraph => OrtErrorCode::ORT_INVALID_GRAPH,
            Code::EpFail => OrtErrorCode::ORT_EP_FAIL,
        }
    }
}

/// Runs the body of a function that ONNX Runtime calls; an error or a panic becomes a status.
pub(crate) fn guard(ort: &Ort, body: impl FnOnce() -> Result<()>) -> OrtStatusPtr {
    guard_with(|error| ort.status(error), body)
}

/// As `guard`, with a way of its own from an error to a status.
pub(crate) fn guard_with(
    status: impl FnOnce(&Error) -> OrtStatusPtr,
    body: impl FnOnce() -> Result<()>,
) -> OrtStatusPtr {
    match caught(body).and_then(|result| result) {
        Ok(()) => OrtStatusPtr::default(),
        Err(error) => guard_or(OrtStatusPtr::default(), || status(&error)),
    }
}

/// Runs the body of a function that gives no status, as those do that release things; `otherwise` is what it gives after
/// a panic, which the panic's hook has told of.
pub(crate) fn guard_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(otherwise)
}

/// The one place where panics stop.
fn caught<T>(body: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let text = text_of(&*panic);
        // What was thrown may panic when it is dropped, and nothing is left to stop that.
        std::mem::forget(panic);
        Error::new(Code::EpFail, format!("a defect of the plugin for rukh, please report it: {text}"))
    })
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}

/// A status of whatever version ONNX Runtime is, for one that may not have all that is needed here.
///
/// # Safety
/// `base` is NULL or what ONNX Runtime gives to `CreateEpFactories`.
pub(crate) unsafe fn status_of_any_version(base: *const ort_sys::OrtApiBase, error: &Error) -> OrtStatusPtr {
    // SAFETY: the caller's promise. The function that makes a status is at the same place in every version.
    unsafe {
        let Some(api) = base.as_ref().and_then(|base| (base.GetApi)(1).as_ref()) else {
            return OrtStatusPtr::default();
        };
        (api.CreateStatus)(error.code.number(), c_string(&error.message).as_ptr())
    }
}
