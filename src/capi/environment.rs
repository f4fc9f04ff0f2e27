//! Environments: what sessions share.

use std::ffi::c_char;
use std::sync::{Arc, Mutex};

use super::args;
use super::executor::Executor;
use super::guard::{call_on, create, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::log::Listener;
use super::options::{self, TextOptions};
use super::parallel::{CallersThreads, MAX_THREADS};
use super::types::*;
use crate::error::{Result, fail};
use crate::session::{Environment, Level, Log};
use crate::threads::Pool;

/// What an environment will be made from.
pub(super) struct EnvironmentOptions {
    threads: usize,
    pub(super) level: Level,
    pub(super) listener: Option<Listener>,
    /// The caller's threads, and how many they are.
    pub(super) parallel_for: Option<(usize, Arc<CallersThreads>)>,
}

impl Default for EnvironmentOptions {
    fn default() -> Self {
        EnvironmentOptions { threads: 0, level: Level::Warning, listener: None, parallel_for: None }
    }
}

impl TextOptions for EnvironmentOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "threads" => match value.parse() {
                Ok(n) if n <= MAX_THREADS => self.threads = n,
                _ => fail!(
                    InvalidArgument,
                    "environment option \"threads\": \"{value}\" is not allowed; allowed is 0 (all the process may use) to {MAX_THREADS}"
                ),
            },
            "log_level" => match Level::parse(value) {
                Some(level) => self.level = level,
                None => fail!(
                    InvalidArgument,
                    "environment option \"log_level\": \"{value}\" is not allowed; allowed is debug, info, warning or error"
                ),
            },
            _ => fail!(
                InvalidArgument,
                "environment option \"{key}\" is not known; known are log_level, threads"
            ),
        }
        Ok(())
    }

    fn entries(&self) -> Vec<(String, String)> {
        vec![("log_level".into(), self.level.name().into()), ("threads".into(), self.threads.to_string())]
    }
}

impl EnvironmentOptions {
    fn log(&self) -> Log {
        self.listener.clone().map_or_else(Log::default, |listener| listener.log(self.level))
    }
}

impl Handle for rukh_environment_options {
    type Object = Mutex<EnvironmentOptions>;
    const KIND: Kind = Kind::EnvironmentOptions;
    const NAME: &'static str = "rukh_environment_options";
}

/// An environment, and the threads that asynchronous runs use.
pub(super) struct EnvironmentObject {
    pub(super) environment: Arc<Environment>,
    pub(super) executor: Executor,
}

impl Handle for rukh_environment {
    type Object = EnvironmentObject;
    const KIND: Kind = Kind::Environment;
    const NAME: &'static str = "rukh_environment";

    fn log(object: &EnvironmentObject) -> Option<Log> {
        Some(object.environment.log.clone())
    }
}

/// Makes options for an environment, all at their defaults.
///
/// Keys of `rukh_environment_options_set`: "threads" (threads of the pool that computes, the calling
/// one included; 0, the default, for all that the process may use) and "log_level" ("debug", "info",
/// "warning", the default, or "error").
///
/// `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
/// NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_create(
    out: *mut *mut rukh_environment_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || Ok(Mutex::default()))
}

/// Destroys options. Environments made from them stay. NULL, and a pointer that is no live handle of
/// this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_destroy(options: *mut rukh_environment_options) {
    destroy(options);
}

/// Sets an option by its name.
///
/// `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a value that is not allowed (the option
/// keeps its value), and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_set(
    options: *mut rukh_environment_options,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::set(&mut *locked(options), key, value))
}

/// The value of an option, in a form that `rukh_environment_options_set` takes.
///
/// `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
/// key or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_get(
    options: *const rukh_environment_options,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::get(&*locked(options), key, buf, cap, needed))
}

/// The name of the option at `index`; together with `rukh_environment_options_get` this lists them all.
///
/// `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
/// `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
/// same time. Errors: also the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_key(
    options: *const rukh_environment_options,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::key(&*locked(options), index, buf, cap, needed))
}

/// Makes an environment: the threads and the log that sessions share. Most programs need one.
///
/// `options`: NULL for the defaults; copied. `out`: not NULL; receives the environment, which the
/// caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_create(
    options: *const rukh_environment_options,
    out: *mut *mut rukh_environment,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let (threads, parallel_for, log) = if options.is_null() {
            (0, None, Log::default())
        } else {
            let options = handles::pin(options)?;
            let options = locked(&options);
            (options.threads, options.parallel_for.clone(), options.log())
        };
        let environment = Arc::new(match parallel_for {
            Some((threads, run)) => Environment::with_pool(Pool::of_outside(threads, run), log),
            None => Environment::new(threads, log),
        });
        let executor = Executor::new(environment.pool.threads());
        Ok(EnvironmentObject { environment, executor })
    })
}

/// Destroys an environment. Its sessions stay usable and keep the threads; they end with the last
/// session. NULL, and a pointer that is no live handle of this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_destroy(environment: *mut rukh_environment) {
    destroy(environment);
}

/// The number of threads that compute for one run, the calling one included.
///
/// `environment`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_thread_count(
    environment: *const rukh_environment,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |environment| {
        args::put(count, "count", environment.environment.pool.threads())
    })
}
