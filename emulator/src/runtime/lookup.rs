//! Functions by their names.

use std::ffi::{CString, c_char, c_int, c_void};

use super::call::{Failure, Out, call, put, put_optional, text};
use super::errors::HipError;
use super::options::file_name;

/// `hipDriverProcAddressQueryResult`
const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;

/// # Safety
///
/// `symbol` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetProcAddress(
    symbol: *const c_char,
    function: Out<'_, *mut c_void>,
    version: c_int,
    flags: u64,
    status: Out<'_, c_int>,
) -> HipError {
    // SAFETY: by this function's contract.
    let symbol = unsafe { text(symbol, "symbol") };
    call("hipGetProcAddress", format_args!("{symbol:?}, {version}, {flags:#x}"), |_| {
        let symbol = symbol.clone()?;
        let found = if symbol.starts_with("hip") { find(&symbol) } else { None };
        put_optional(status, if found.is_some() { FOUND } else { NOT_FOUND });
        put(function, found.unwrap_or(std::ptr::null_mut()), "function")?;
        match found {
            Some(_) => Ok(()),
            None => Err(Failure::invalid(format!("there is no function {symbol}"))),
        }
    })
}

/// A function that this library exports.
fn find(symbol: &str) -> Option<*mut c_void> {
    let (file, symbol) = (CString::new(file_name()?).ok()?, CString::new(symbol).ok()?);
    // SAFETY: both are C strings. The library is this one, which is loaded, so that nothing is run.
    unsafe {
        let library = libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let found = libc::dlsym(library, symbol.as_ptr());
        libc::dlclose(library);
        (!found.is_null()).then_some(found)
    }
}
