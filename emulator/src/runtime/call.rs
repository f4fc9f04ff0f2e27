//! The frame around every exported function: no panic leaves it, errors are remembered and explained.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::errors::HipError;
use super::{Runtime, thread};

pub use super::instance::current;

/// Why a call fails. The message goes to stderr.
#[derive(Clone, Debug)]
pub struct Failure {
    pub error: HipError,
    pub message: Option<String>,
}

/// Where a function writes a result; `None` is C's null pointer. It need not be initialised.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// An opaque pointer that this runtime gave out. It is never followed.
pub type Handle = u64;

/// A pointer of the program that may be one of the device's. It is never followed unless memory says where it leads.
pub type Address = u64;

impl Failure {
    pub fn new(error: HipError, message: impl Into<String>) -> Failure {
        Failure { error, message: Some(message.into()) }
    }

    /// Most errors: an argument is wrong.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(HipError::INVALID_VALUE, message)
    }

    pub fn handle(what: &str, handle: Handle) -> Failure {
        Failure::new(HipError::INVALID_HANDLE, format!("{handle:#x} is no {what}, or one that was destroyed"))
    }
}

/// An answer that is no mistake of the program, such as "not ready".
impl From<HipError> for Failure {
    fn from(error: HipError) -> Failure {
        Failure { error, message: None }
    }
}

/// Runs the body of an exported function. `arguments` are for the trace of calls.
pub fn call(
    name: &str,
    arguments: fmt::Arguments<'_>,
    body: impl FnOnce(&'static Runtime) -> Result<(), Failure>,
) -> HipError {
    let done = catch_unwind(AssertUnwindSafe(|| body(current()?)));
    let result = done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Failure::new(HipError::UNKNOWN, format!("a mistake in the emulator: {text}")))
    });
    let error = result.as_ref().err().map_or(HipError::SUCCESS, |failure| failure.error);
    if let Err(Failure { message: Some(message), .. }) = &result {
        report(&format!("{name}: {message} ({})", error.name()));
    }
    if !matches!(error, HipError::SUCCESS | HipError::NOT_READY) {
        thread::set_last_error(error);
    }
    if current().is_ok_and(|runtime| runtime.options.api_trace) {
        report(&format!("{name}({arguments}) = {}", error.name()));
    }
    error
}

/// A line on stderr.
pub fn report(text: &str) {
    use std::io::Write;
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr(), "amdemu: {text}");
}

/// Writes a result that must have a place.
pub fn put<T>(out: Out<'_, T>, value: T, name: &str) -> Result<(), Failure> {
    match out {
        Some(place) => {
            place.write(value);
            Ok(())
        }
        None => Err(null(name)),
    }
}

/// Writes a result that the program may not want.
pub fn put_optional<T>(out: Out<'_, T>, value: T) {
    if let Some(place) = out {
        place.write(value);
    }
}

/// An argument that must not be null.
pub fn required<T>(argument: Option<T>, name: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| null(name))
}

pub fn null(name: &str) -> Failure {
    Failure::invalid(format!("{name} is a null pointer"))
}

/// The text at a C string.
///
/// # Safety
///
/// It is null or ends with a zero byte.
pub unsafe fn text(pointer: *const c_char, name: &str) -> Result<String, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: by this function's contract.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Writes as much of a text as fits, and a zero byte.
///
/// # Safety
///
/// `to` is null or has room for `length` bytes.
pub unsafe fn put_text(to: *mut c_char, length: i32, text: &str) -> Result<(), Failure> {
    let room = usize::try_from(length).unwrap_or(0);
    if to.is_null() || room == 0 {
        return Err(Failure::invalid(format!("no room for a text: {length} bytes at {to:p}")));
    }
    let bytes = &text.as_bytes()[..text.len().min(room - 1)];
    // SAFETY: by this function's contract, and it is shorter than the room.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
        to.add(bytes.len()).write(0);
    }
    Ok(())
}
