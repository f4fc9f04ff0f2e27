//! Libraries of custom operators, which register themselves.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

use ort_sys::OrtErrorCode::ORT_FAIL;
use ort_sys::{OrtApiBase, OrtSessionOptions, OrtStatusPtr, os_char};

use crate::base::OrtGetApiBase;
use crate::failure::{Failure, Result, Status, api};
use crate::handle::{get, put, text};
use crate::session_options::Options;

type Register = unsafe extern "C" fn(*mut OrtSessionOptions, *const OrtApiBase) -> OrtStatusPtr;

/// What libraries of operators export.
const REGISTER: &CStr = c"RegisterCustomOps";

fn last_error() -> String {
    // SAFETY: no arguments; the text is valid until the next call of its family on this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "no reason given".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// Opens a library, which stays loaded: sessions call its functions until they end.
fn open(path: &CStr) -> Result<*mut c_void> {
    // SAFETY: a text. Opening runs the library's initializers, which is what the caller asks for.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(Failure::new(ORT_FAIL, format!("{}: {}", path.to_string_lossy(), last_error())));
    }
    Ok(library)
}

/// Lets a function of the library, or of the program, register operators.
///
/// # Safety
/// `options` are live options that nobody else uses.
unsafe fn register(library: *mut c_void, name: &CStr, options: *mut OrtSessionOptions) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { get::<Options>(options) }?;
    // SAFETY: a library that is open, a text.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(Failure::argument(format!("{} is not there: {}", name.to_string_lossy(), last_error())));
    }
    // SAFETY: ONNX Runtime's contract says of what type the function is.
    let function = unsafe { std::mem::transmute::<*mut c_void, Register>(found) };
    // SAFETY: the caller's promise; the status is read and then released once.
    unsafe {
        let status = function(options, OrtGetApiBase());
        let Some(told) = Status::of(status.0) else { return Ok(()) };
        let message = crate::handle::string_or_empty(told.message());
        crate::base::ReleaseStatus(status.0);
        Err(Failure::new(ORT_FAIL, message))
    }
}

api! {
    fn RegisterCustomOpsLibrary(options: *mut OrtSessionOptions, path: *const c_char, library: *mut *mut c_void) {
        put(library, null_mut())?;
        let opened = open(text(path, "the path")?)?;
        register(opened, REGISTER, options)?;
        put(library, opened)?;
    }

    fn RegisterCustomOpsLibrary_V2(options: *mut OrtSessionOptions, path: *const os_char) {
        register(open(text(path, "the path")?)?, REGISTER, options)?;
    }

    fn RegisterCustomOpsUsingFunction(options: *mut OrtSessionOptions, name: *const c_char) {
        let name: CString = text(name, "the name")?.to_owned();
        register(libc::RTLD_DEFAULT, &name, options)?;
    }

    // The operators of onnxruntime-extensions come by its library, as the two functions above take it.
    fn EnableOrtCustomOps(options: *mut OrtSessionOptions) {
        get::<Options>(options)?;
        return Err(Failure::absent("EnableOrtCustomOps: register the library of onnxruntime-extensions by its path"));
    }
}
