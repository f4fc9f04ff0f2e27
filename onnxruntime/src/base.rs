//! What comes before the table of functions: `OrtGetApiBase`, versions, statuses.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

use ort_sys::{ORT_API_VERSION, OrtApi, OrtApiBase, OrtStatus, OrtStatusPtr};

use crate::failure::{Status, guard_value};
use crate::table;

/// The version of ONNX Runtime whose place this library takes: callers compare its second number with theirs.
const VERSION: &CStr = c"1.31.0";
const BUILD: &str =
    concat!("ORT Build Info: rukh ", env!("CARGO_PKG_VERSION"), " in the place of ONNX Runtime 1.31");

static BASE: OrtApiBase = OrtApiBase { GetApi: get_api, GetVersionString: get_version };

/// The entry of the library.
#[unsafe(no_mangle)]
pub extern "system" fn OrtGetApiBase() -> *const OrtApiBase {
    &raw const BASE
}

/// The functions of a version of the API; NULL for one that is newer than this library.
unsafe extern "system" fn get_api(version: u32) -> *const OrtApi {
    guard_value(null(), || match (1..=ORT_API_VERSION).contains(&version) {
        true => table::of(version),
        false => null(),
    })
}

unsafe extern "system" fn get_version() -> *const c_char {
    VERSION.as_ptr()
}

pub(crate) unsafe extern "system" fn GetBuildInfoString() -> *const c_char {
    static TEXT: std::sync::LazyLock<CString> = std::sync::LazyLock::new(|| crate::handle::c_string(BUILD));
    guard_value(VERSION.as_ptr(), || TEXT.as_ptr())
}

pub(crate) unsafe extern "system" fn CreateStatus(code: i32, message: *const c_char) -> OrtStatusPtr {
    // SAFETY: NULL, or a text of the caller's.
    let text = unsafe { crate::handle::text(message, "the message") };
    Status::create(code, text.map(CStr::to_owned).unwrap_or_default())
}

pub(crate) unsafe extern "system" fn GetErrorCode(status: *const OrtStatus) -> i32 {
    // SAFETY: NULL, which stands for success, or a status of this library.
    unsafe { Status::of(status) }.map_or(0, Status::code)
}

pub(crate) unsafe extern "system" fn GetErrorMessage(status: *const OrtStatus) -> *const c_char {
    // SAFETY: as above.
    unsafe { Status::of(status) }.map_or(c"".as_ptr(), Status::message)
}

pub(crate) unsafe extern "system" fn ReleaseStatus(status: *mut OrtStatus) {
    if !status.is_null() {
        // SAFETY: a status of this library, which is not used afterwards.
        drop(unsafe { Box::from_raw(status.cast::<Status>()) });
    }
}
