//! Options of a generator.

use std::ffi::c_char;

use super::args;
use super::guard::{call_on, create, destroy};
use super::handles::{self, Handle};
use super::types::*;
use crate::error::{Result, fail};
use crate::options::{KEYS, Options};
use rukh_sys::{rukh_error, rukh_status};

impl Handle for rukh_generator_options {
    type Object = Options;
    const NAME: &'static str = "rukh_generator_options";
}

/// A copy of the options that were given, or the defaults for NULL.
pub(super) fn given(options: *const rukh_generator_options) -> Result<Options> {
    if options.is_null() {
        return Ok(Options::default());
    }
    let object = handles::find(options)?;
    Ok(handles::lock(&object, rukh_generator_options::NAME)?.clone())
}

/// Makes options with default values.
///
/// `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
/// any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_options_create(
    out: *mut *mut rukh_generator_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || Ok(Options::default()))
}

/// Destroys options. Generators that were made with them keep what they say. NULL, and a pointer that is no live handle
/// of this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_options_destroy(options: *mut rukh_generator_options) {
    destroy(options);
}

/// Sets an option. docs/generate.md lists the keys; `session.KEY` and `provider.KEY` are passed on to the session and to
/// the provider.
///
/// `options`, `key`, `value`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for a key that does not exist or a value that is not allowed, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_options_set(
    options: *mut rukh_generator_options,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options.set(args::text(key, "key")?, args::text(value, "value")?))
}

/// The value of an option; "" for one that is as the model's folder says.
///
/// `options`, `key`: not NULL. `buf`, `cap`, `needed`: as the top of rukh.h says. `error`: may be NULL. Threads: any, one
/// at a time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a key that does not exist or too little room, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_options_get(
    options: *const rukh_generator_options,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        args::put_text(&options.get(args::text(key, "key")?)?, buf, cap, needed).map(drop)
    })
}

/// The key of an option by number.
///
/// `options`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: as the top of rukh.h says. `error`: may be NULL.
/// Threads: any, one at a time. Errors: `RUKH_ERROR_NOT_FOUND` behind the last, `RUKH_ERROR_INVALID_ARGUMENT`, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_options_key(
    options: *const rukh_generator_options,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |_| match KEYS.get(index) {
        Some(key) => args::put_text(key, buf, cap, needed).map(drop),
        None => fail!(NotFound, "index: {index} is not allowed; there are {} options, from 0", KEYS.len()),
    })
}
