//! Options of a session.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::args;
use super::guard::{call_on, create, create_on, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::options::{self, TextOptions};
use super::types::*;
use crate::error::{Result, fail};
use crate::session::SessionOptions;

/// The options, and what the library's own tests ask of a session.
#[derive(Clone, Default)]
pub(super) struct SessionOptionsObject {
    pub(super) options: SessionOptions,
    pub(super) defect: Option<Defect>,
    /// Ends the openings that use these options.
    pub(super) cancel: Arc<AtomicBool>,
}

/// A panic that the tests of the C API order with the reserved key [`DEFECT_KEY`], to see that one
/// poisons its session and nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) enum Defect {
    /// Runs panic on the thread that called.
    Caller,
    /// Runs panic on a thread of the pool.
    Worker,
}

/// Not among the entries, and of no use but to test the library.
const DEFECT_KEY: &str = "rukh.test.panic";

impl TextOptions for SessionOptionsObject {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match (key, value) {
            (DEFECT_KEY, "caller") => self.defect = Some(Defect::Caller),
            (DEFECT_KEY, "worker") => self.defect = Some(Defect::Worker),
            _ => return self.options.set(key, value),
        }
        Ok(())
    }

    fn entries(&self) -> Vec<(String, String)> {
        self.options.entries()
    }
}

impl Handle for rukh_session_options {
    type Object = Mutex<SessionOptionsObject>;
    const KIND: Kind = Kind::SessionOptions;
    const NAME: &'static str = "rukh_session_options";
}

/// A copy of the options a session was given, or the defaults for NULL.
pub(super) fn session_options(options: *const rukh_session_options) -> Result<SessionOptionsObject> {
    if options.is_null() {
        return Ok(SessionOptionsObject::default());
    }
    let options = handles::pin(options)?;
    let copy = locked(&options).clone();
    Ok(copy)
}

/// Makes options for a session, all at their defaults.
///
/// Keys of `rukh_session_options_set`: "compiled_model_path" (a file for the compiled model; "", the default, for none),
/// "external_data_folder" (where files of external data are, in place of the model's
/// folder), "fallback" ("cpu" or "error"), "intra_op_threads" (threads of a
/// pool of the session's own; 0, the default, for the environment's), "load" ("map" or "read"),
/// "log_id" (who the session is in the log; "", the default, for the name of the model's file), "log_level" (from which level
/// on messages of the session reach the log's callback: "debug", "info", "warning", "error" or "off", or ONNX Runtime's numbers
/// 0 to 4; "", the default, for the environment's level), "model_cache_dir" (a folder in which compiled models are kept for later
/// sessions; "", the default, for none), "model_cache_limit" (bytes that they may have in all; 0 for any number; 17179869184),
/// "optimization" ("none", "basic" or "all"), "optimized_model_path" (a file that the optimised model is written to when the
/// session is made: as "optimization" says, without fusions, which no other program knows; "", the default, for none),
/// "optimized_model_external_data" ("1": its weights go into a file beside it, with ".data" behind its name, as they do
/// anyway when they are larger than a file of ONNX can be; "0", the default), "optimized_model_external_data_file" (the name
/// of that file, without a folder; given, the weights go there in any case; "", the default),
/// "optimized_model_external_data_min_bytes" (smaller weights stay in the model; "1024", the default), "plan_cache" (plans for different input shapes that are
/// kept, 64), "precision" ("f32", "f16", "bf16" or "auto": what floats compute in; "auto", the default, leaves
/// it to the provider's options and the environment), "profiling" ("0" or "1"), "share_weights" ("0" or "1", the default:
/// weights are shared with sessions of the same environment on the same file), "spinning" ("0" or "1", the default: threads
/// that have nothing to do look for work for a millisecond before they sleep; with "0" the session has threads of its own),
/// "thread_affinities" ("1,2;3-5": the processors, numbered from 1, of each thread of a pool of the session's own but the
/// caller's; "", the default, for all), "use_env_allocators" ("0" or
/// "1": device memory comes from the environment's arena), and "dim.NAME" (a number that the model's symbolic
/// dimension NAME is fixed to).
///
/// Keys of ONNX Runtime's are taken as well where they mean the same, and set the key that stands above:
/// "session.disable_cpu_ep_fallback", "session.use_env_allocators",
/// "session.model_external_initializers_file_folder_path", "session.optimized_model_external_initializers_file_name",
/// "session.optimized_model_external_initializers_min_size_in_bytes", "session.intra_op.allow_spinning" and
/// "session.intra_op_thread_affinities".
///
/// `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
/// NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_create(
    out: *mut *mut rukh_session_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || Ok(Mutex::default()))
}

/// Makes a copy of options; later changes to one do not touch the other. The copy is not cancelled.
///
/// `options`: not NULL. `out`: not NULL; receives the copy, which the caller destroys; NULL on failure.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
/// `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_clone(
    options: *const rukh_session_options,
    out: *mut *mut rukh_session_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(options, out, error, |options| {
        let copy = locked(options).clone();
        Ok(Mutex::new(SessionOptionsObject { cancel: Arc::default(), ..copy }))
    })
}

/// Ends every opening and compiling of a model that uses these options: each fails with `RUKH_ERROR_CANCELLED` as soon as
/// it looks, which it does before each node, and each constant that it computes. Later ones fail too, until
/// `rukh_session_options_reset`.
///
/// Sessions that are open stay. `options`: not NULL. `error`: may be NULL. Threads: any, above all another one than that
/// which opens. Errors: the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_cancel(
    options: *mut rukh_session_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        locked(options).cancel.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// Takes `rukh_session_options_cancel` back for openings that begin from now on. Those already cancelled stay cancelled.
///
/// `options`: not NULL. `error`: may be NULL. Threads: any. Errors: the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_reset(
    options: *mut rukh_session_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        locked(options).cancel = Arc::default();
        Ok(())
    })
}

/// Destroys options. Sessions made from them stay. NULL, and a pointer that is no live handle of this
/// kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_destroy(options: *mut rukh_session_options) {
    destroy(options);
}

/// Sets an option by its name; `rukh_session_options_create` lists them.
///
/// `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a value that is not allowed (the option
/// keeps its value), and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set(
    options: *mut rukh_session_options,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::set(&mut *locked(options), key, value))
}

/// The value of an option, in a form that `rukh_session_options_set` takes.
///
/// `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a key that is
/// unknown or not set, or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_get(
    options: *const rukh_session_options,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::get(&*locked(options), key, buf, cap, needed))
}

/// The name of the option at `index`; together with `rukh_session_options_get` this lists them all.
///
/// `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
/// `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
/// same time. Errors: also the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_key(
    options: *const rukh_session_options,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::key(&*locked(options), index, buf, cap, needed))
}

/// Sets how the model file comes into memory; the default is `RUKH_LOAD_MAP`. The same as key "load".
///
/// `options`: not NULL. `mode`: one of `RUKH_LOAD_…`. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown mode, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_load(
    options: *mut rukh_session_options,
    mode: rukh_load_mode,
    error: *mut *mut rukh_error,
) -> rukh_status {
    set_named(options, "load", mode, &["map", "read"], error)
}

/// Sets how far the graph is rewritten; the default is `RUKH_OPTIMIZATION_ALL`. The same as key
/// "optimization".
///
/// `options`: not NULL. `optimization`: one of `RUKH_OPTIMIZATION_…`. `error`: may be NULL. Threads:
/// any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown value, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_optimization(
    options: *mut rukh_session_options,
    optimization: rukh_optimization,
    error: *mut *mut rukh_error,
) -> rukh_status {
    set_named(options, "optimization", optimization, &["none", "basic", "all"], error)
}

/// Sets what happens to a node that no wanted provider can take; the default is `RUKH_FALLBACK_CPU`.
/// The same as key "fallback".
///
/// `options`: not NULL. `fallback`: one of `RUKH_FALLBACK_…`. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown value, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_fallback(
    options: *mut rukh_session_options,
    fallback: rukh_fallback,
    error: *mut *mut rukh_error,
) -> rukh_status {
    set_named(options, "fallback", fallback, &["cpu", "error"], error)
}

/// Switches the recording of runs for `rukh_session_profile` on (1) or off (0, the default). The same
/// as key "profiling".
///
/// `options`: not NULL. `on`: 0 or 1. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for another value of `on`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_profiling(
    options: *mut rukh_session_options,
    on: i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    set_named(options, "profiling", on, &["0", "1"], error)
}

/// Gives the session a pool of `threads` threads of its own, the calling one included; 0, the default,
/// has it use the environment's. The same as key "intra_op_threads".
///
/// `options`: not NULL. `threads`: 0 to 1024. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for a number that is too large, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_threads(
    options: *mut rukh_session_options,
    threads: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| locked(options).options.set("intra_op_threads", &threads.to_string()))
}

/// Fixes a symbolic dimension of the model to a size, wherever its name appears. The same as key
/// "dim.NAME".
///
/// `options`: not NULL. `name`: not NULL and not empty; copied. Opening a model whose inputs do not have
/// the name is an error. `size`: elements, 0 or more. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an empty name or a negative size, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_set_dimension(
    options: *mut rukh_session_options,
    name: *const c_char,
    size: i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let name = args::text(name, "name")?;
        let Ok(size) = usize::try_from(size) else {
            fail!(
                InvalidArgument,
                "size: {size} is not allowed for dimension \"{name}\"; allowed is 0 or more"
            )
        };
        locked(options).options.set_dimension(name, size)
    })
}

/// Sets the option `key` to the name that stands at `number`.
fn set_named(
    options: *mut rukh_session_options,
    key: &str,
    number: i32,
    names: &[&str],
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| match usize::try_from(number).ok().and_then(|i| names.get(i)) {
        Some(name) => locked(options).options.set(key, name),
        None => fail!(InvalidArgument, "{key}: {number} is not known; known are 0 to {}", names.len() - 1),
    })
}
