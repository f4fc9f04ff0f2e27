//! The providers of a session and their options.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

use super::args;
use super::guard::call_on;
use super::locked;
use super::options;
use super::types::*;
use crate::error::{Result, fail};
use crate::session::{ExternalFunctions, SessionOptions};

/// Adds a provider, less preferred than those added before. Without any the CPU runs everything.
///
/// Whether there is a device is found out when the session is made: a list none of whose providers has a device
/// is `RUKH_ERROR_DEVICE` then; one that also names "cpu" runs on the CPU, with a warning in the log. Without a
/// log the warning is one line on stderr, which the environment variable `RUKH_NO_WARNINGS` set to 1 silences.
/// Single nodes that a device cannot run go to the CPU in any case, unless option "fallback" is "error".
///
/// `options`: not NULL. `provider`: not NULL; "cpu" (or "CPUExecutionProvider") or "hip" (or
/// "ROCMExecutionProvider", "MIGraphXExecutionProvider"). `keys`, `values`: arrays of `count` texts, the
/// provider's options; NULL allowed with 0; copied. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown provider or option, and for one that was added before;
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_add_provider(
    options: *mut rukh_session_options,
    provider: *const c_char,
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let provider = args::text(provider, "provider")?;
        let keys = args::array(keys, count, "keys")?;
        let values = args::array(values, count, "values")?;
        let mut entries = BTreeMap::new();
        for (&key, &value) in keys.iter().zip(values) {
            let key = args::text(key, "key")?;
            if entries.insert(key.to_owned(), args::text(value, "value")?.to_owned()).is_some() {
                fail!(InvalidArgument, "provider \"{provider}\": option \"{key}\" was given twice");
            }
        }
        locked(options).options.add_provider(provider, entries)
    })
}

/// Lets the hip provider take device memory from functions of the caller's instead of its arena, which
/// is then bypassed: the limit and the strategy have no effect.
///
/// `alloc` gets a number of bytes (never 0) and `user`, and returns an address in the memory of the
/// provider's device, aligned to 256 bytes, or NULL when there is none; `release_memory` gets what `alloc`
/// returned, when no stream uses it any more; `empty_cache`, which may be NULL, is asked to give back what
/// nobody uses before an allocation is tried again. They are called from any thread, at the same time too,
/// with no lock held, and must not throw. The provider options "gpu_external_alloc", "gpu_external_free"
/// and "gpu_external_empty_cache" do the same with functions that take no `user`. Not to be used with a
/// user's stream.
///
/// `options`, `alloc`, `release_memory`: not NULL. `user`: handed on as it is; it must stay valid until
/// every session made with these options is destroyed. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_external_allocator(
    options: *mut rukh_session_options,
    alloc: rukh_device_alloc,
    release_memory: rukh_device_free,
    empty_cache: rukh_device_empty_cache,
    user: *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let (Some(alloc), Some(free)) = (alloc, release_memory) else {
            fail!(InvalidArgument, "alloc, release_memory: NULL is not allowed; both functions are needed");
        };
        // SAFETY: the caller's promise, as the comment above demands it.
        let functions = unsafe { ExternalFunctions::with_user(alloc, free, empty_cache, user) };
        locked(options).options.external_allocator = Some(functions);
        Ok(())
    })
}

/// The number of providers that were added.
///
/// `options`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_provider_count(
    options: *const rukh_session_options,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| args::put(count, "count", locked(options).options.providers.len()))
}

/// The name of the provider that was added at `index`: "cpu" or "hip".
///
/// `options`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// index that is not there or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_provider_name(
    options: *const rukh_session_options,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let options = locked(options);
        let provider = args::item(&options.options.providers, index, "provider")?;
        args::put_text(provider.kind().name(), buf, cap, needed)
    })
}

/// The name of an option that was given to the provider at `provider`; `rukh_session_options_provider_get`
/// gives its value.
///
/// `options`: not NULL. `provider`, `index`: from 0; an index past the last is
/// `RUKH_ERROR_INVALID_ARGUMENT`. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
/// `error`: may be NULL. Threads: any, at the same time. Errors: also the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_provider_key(
    options: *const rukh_session_options,
    provider: usize,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let entries = provider_entries(&locked(options).options, provider)?;
        args::put_text(&args::item(&entries, index, "provider option")?.0, buf, cap, needed)
    })
}

/// The value of an option that was given to the provider at `provider`.
///
/// `options`, `key`: not NULL. `provider`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of
/// this header. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for a provider or key that is not there or a buffer that is too small,
/// and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_provider_get(
    options: *const rukh_session_options,
    provider: usize,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let entries = provider_entries(&locked(options).options, provider)?;
        options::value_of(&entries, args::text(key, "key")?, buf, cap, needed)
    })
}

fn provider_entries(options: &SessionOptions, provider: usize) -> Result<Vec<(String, String)>> {
    let provider = args::item(&options.providers, provider, "provider")?;
    Ok(provider.entries().into_iter().collect())
}
