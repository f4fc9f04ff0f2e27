//! How a call fails: `OrtStatus`, and the border that neither errors nor panics cross in another form.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use ort_sys::OrtErrorCode::{self, *};
use ort_sys::{OrtStatus, OrtStatusPtr};

/// Why a call fails.
#[derive(Debug)]
pub struct Failure {
    pub code: OrtErrorCode,
    pub message: String,
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub fn new(code: OrtErrorCode, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    pub fn argument(message: impl Into<String>) -> Failure {
        Failure::new(ORT_INVALID_ARGUMENT, message)
    }

    pub fn absent(message: impl Into<String>) -> Failure {
        Failure::new(ORT_NOT_IMPLEMENTED, message)
    }

    pub fn into_status(self) -> OrtStatusPtr {
        let message = CString::new(self.message.replace('\0', "\u{FFFD}")).unwrap_or_default();
        OrtStatusPtr(Box::into_raw(Box::new(Status { code: self.code as i32, message })).cast())
    }
}

/// What `OrtStatus` stands for. The code is a number: a caller may make statuses with codes of its own.
pub struct Status {
    code: i32,
    message: CString,
}

impl Status {
    pub fn create(code: i32, message: CString) -> OrtStatusPtr {
        OrtStatusPtr(Box::into_raw(Box::new(Status { code, message })).cast())
    }

    pub fn code(&self) -> i32 {
        self.code
    }

    pub fn message(&self) -> *const c_char {
        self.message.as_ptr()
    }

    /// # Safety
    /// `status` is NULL or a status of this library that lives as long as the reference is used.
    pub unsafe fn of<'a>(status: *const OrtStatus) -> Option<&'a Status> {
        // SAFETY: the caller's promise.
        unsafe { status.cast::<Status>().as_ref() }
    }
}

/// Runs the body of a function of the API: what fails becomes a status, a panic too.
pub fn guard(function: &str, body: impl FnOnce() -> Result<()>) -> OrtStatusPtr {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => OrtStatusPtr(null_mut()),
        Ok(Err(failure)) => failure.into_status(),
        Err(panic) => defect(function, &*panic).into_status(),
    }
}

/// Runs the body of a function of the API that has no status to give.
pub fn guard_value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    // A panic is a defect, but here is nobody to tell; its text went to stderr.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn defect(function: &str, panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text");
    Failure::new(ORT_RUNTIME_EXCEPTION, format!("a defect of rukh's libonnxruntime in {function}: {text}"))
}

/// Declares functions of the API: a body that may use `?`, in an `extern "system"` function that gives a status.
///
/// What their unsafe code relies on is the contract of ONNX Runtime's header, which the caller keeps: a pointer is NULL
/// or points to what its type says, texts end with a NUL, arrays have the length that comes with them, objects were made
/// by this library and not released before. NULL where the contract does not allow it is told, not followed.
macro_rules! api {
    ($( $(#[$meta:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $body:block )*) => {$(
        $(#[$meta])*
        #[allow(unused_unsafe, unreachable_code)]
        pub(crate) unsafe extern "system" fn $name($($argument: $ty),*) -> ort_sys::OrtStatusPtr {
            $crate::failure::guard(stringify!($name), || {
                // SAFETY: the caller keeps to the contract of the header, which the macro's comment sums up.
                unsafe { $body };
                Ok(())
            })
        }
    )*};
}

/// Declares functions of the API that give no status: a body for the value, and the value after a panic.
macro_rules! api_value {
    ($( $(#[$meta:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $out:ty, $otherwise:expr => $body:block )*) => {$(
        $(#[$meta])*
        #[allow(unused_unsafe)]
        pub(crate) unsafe extern "system" fn $name($($argument: $ty),*) -> $out {
            $crate::failure::guard_value($otherwise, || {
                // SAFETY: as in `api!`.
                unsafe { $body }
            })
        }
    )*};
}

/// Declares functions of the API that release an object; NULL is left alone.
macro_rules! api_release {
    ($( fn $name:ident($raw:ty) => $object:ty; )*) => {$(
        pub(crate) unsafe extern "system" fn $name(object: *mut $raw) {
            $crate::failure::guard_value((), || {
                // SAFETY: as in `api!`: NULL, or an object of this library that was not released before.
                unsafe { $crate::handle::release::<$object>(object) };
            });
        }
    )*};
}

pub(crate) use {api, api_release, api_value};
