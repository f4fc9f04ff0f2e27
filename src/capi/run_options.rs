//! Options of a run, and cancelling it.

use std::ffi::c_char;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::guard::{call_on, create, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::options::{self, TextOptions};
use super::types::*;
use crate::error::{Result, fail};
use crate::session::{OUTPUT_MEMORIES, RunOptions, Threshold, parse_address};
use crate::threads::PRIORITIES;

/// The run's stream.
const STREAM: &str = "compute_stream";

/// How long the run may take.
const TIMEOUT: &str = "timeout_ms";

/// Where outputs go.
const OUTPUTS: &str = "output_memory";

/// Which runs go first.
const PRIORITY: &str = "priority";

/// From which level on the run is heard in the log; and as ONNX Runtime calls it.
const LOG_LEVEL: &str = "log_level";
const LOG_SEVERITY: &str = "log_severity_level";

/// As ONNX Runtime calls it.
const SHRINK: &str = "memory.enable_memory_arena_shrinkage";

impl TextOptions for RunOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            STREAM => match (value.is_empty(), parse_address(key, value)) {
                (true, _) => self.compute_stream = None,
                (false, stream) => self.compute_stream = Some(stream? as u64),
            },
            TIMEOUT => match value.parse::<u64>() {
                Ok(0) => self.timeout = None,
                Ok(limit) => self.timeout = Some(Duration::from_millis(limit)),
                Err(_) => fail!(
                    InvalidArgument,
                    "run option \"{key}\": \"{value}\" is not allowed; allowed is a number of milliseconds, 0 for no limit"
                ),
            },
            OUTPUTS => match OUTPUT_MEMORIES.iter().find(|(name, _)| *name == value) {
                Some((_, memory)) => self.output_memory = *memory,
                None => fail!(
                    InvalidArgument,
                    "run option \"{key}\": \"{value}\" is not allowed; allowed are host, device and pinned"
                ),
            },
            PRIORITY => match PRIORITIES.iter().find(|(name, _)| *name == value) {
                Some((_, priority)) => self.priority = *priority,
                None => fail!(
                    InvalidArgument,
                    "run option \"{key}\": \"{value}\" is not allowed; allowed are low, normal and high"
                ),
            },
            LOG_LEVEL | LOG_SEVERITY => match Threshold::parse(value) {
                Some(level) => self.log_level = level,
                // ONNX Runtime's number for the session's level.
                None if value == "-1" => self.log_level = None,
                None => fail!(
                    InvalidArgument,
                    "run option \"{key}\": \"{value}\" is not allowed; allowed is {}",
                    Threshold::ALLOWED
                ),
            },
            "tag" => self.tag = (!value.is_empty()).then(|| value.into()),
            SHRINK => match value {
                "" | "0" => self.shrink_arena = false,
                "1" => self.shrink_arena = true,
                // ONNX Runtime names the arenas: a device's among others.
                _ if value.split(';').all(|arena| arena == "cpu:0" || arena.starts_with("gpu:")) => {
                    self.shrink_arena = value.contains("gpu:");
                }
                _ => fail!(
                    InvalidArgument,
                    "run option \"{key}\": \"{value}\" is not allowed; allowed are 0, 1, and as in ONNX Runtime \"gpu:0\" or \"cpu:0;gpu:0\""
                ),
            },
            _ => {
                fail!(
                    InvalidArgument,
                    "run option \"{key}\" is not known; known are {STREAM}, {LOG_LEVEL}, {SHRINK}, {OUTPUTS}, {PRIORITY}, tag, {TIMEOUT}"
                )
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<(String, String)> {
        let outputs = OUTPUT_MEMORIES.iter().find(|(_, memory)| *memory == self.output_memory);
        let outputs = outputs.map(|(name, _)| *name);
        let stream = self.compute_stream.map_or_else(String::new, |stream| stream.to_string());
        let priority = PRIORITIES.iter().find(|(_, priority)| *priority == self.priority);
        let priority = priority.map_or("normal", |(name, _)| name);
        vec![
            (STREAM.to_owned(), stream),
            (LOG_LEVEL.to_owned(), Threshold::text(self.log_level).to_owned()),
            (SHRINK.to_owned(), (self.shrink_arena as u8).to_string()),
            (OUTPUTS.to_owned(), outputs.unwrap_or("host").to_owned()),
            (PRIORITY.to_owned(), priority.to_owned()),
            (TIMEOUT.to_owned(), self.timeout.map_or(0, |limit| limit.as_millis()).to_string()),
            ("tag".to_owned(), self.tag.as_deref().unwrap_or_default().to_owned()),
        ]
    }
}

impl Handle for rukh_run_options {
    type Object = Mutex<RunOptions>;
    const KIND: Kind = Kind::RunOptions;
    const NAME: &'static str = "rukh_run_options";
}

/// The options a run was given, or the defaults for NULL.
pub(super) fn run_options(options: *const rukh_run_options) -> Result<RunOptions> {
    if options.is_null() {
        return Ok(RunOptions::default());
    }
    let options = handles::pin(options)?;
    let copy = locked(&options).clone();
    Ok(copy)
}

/// Makes options for runs, all at their defaults. One object may serve many runs, also at once.
///
/// Keys of `rukh_run_options_set`: "tag" (a name for the run in the profile and in the log), "log_level" (from which level on
/// messages of this run reach the log's callback: "debug", which also tells each node and how long the run took, "info",
/// "warning", "error" or "off", or ONNX Runtime's numbers 0 to 4; "", the default, for the session's level;
/// "log_severity_level" is another name of this key), "priority" ("high", "normal", the default, or "low": which of the runs
/// that wait for a thread after `rukh_session_start` goes first, and where the GPU's runtime has priorities, that of the
/// run's stream; a run that goes on is not interrupted),
/// "memory.enable_memory_arena_shrinkage" ("1", or "gpu:0" as in ONNX Runtime: after the run, device memory
/// that nobody uses goes back to the runtime), "output_memory" ("host", the default; "device": outputs that the run
/// allocates stay in the memory of the GPU that runs nodes of the session; "pinned": in memory of the host that this GPU
/// copies to by itself; where there is no GPU all come to the host, and so do strings, sequences, maps and optionals
/// anyway), "timeout_ms" (milliseconds after which the run is ended as by `rukh_run_options_cancel`, with a message that says
/// so; 0, the default, for no limit) and "compute_stream" (the address of a `hipStream_t` of the
/// session's device, decimal or 0x…, 0 for the default stream, "" for none: the run's work on the device comes
/// after what that stream was given before and before what it is given later; outputs in device memory are
/// ordered in it, and the call does not wait for them).
///
/// `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
/// NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_create(
    out: *mut *mut rukh_run_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || Ok(Mutex::new(RunOptions::cancellable())))
}

/// Destroys options; runs that use them go on. NULL, and a pointer that is no live handle of this kind,
/// is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_destroy(options: *mut rukh_run_options) {
    destroy(options);
}

/// Sets an option by its name; `rukh_run_options_create` lists them. Runs that have begun keep theirs.
///
/// `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_set(
    options: *mut rukh_run_options,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::set(&mut *locked(options), key, value))
}

/// The value of an option, in a form that `rukh_run_options_set` takes.
///
/// `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
/// key or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_get(
    options: *const rukh_run_options,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::get(&*locked(options), key, buf, cap, needed))
}

/// The name of the option at `index`; together with `rukh_run_options_get` this lists them all.
///
/// `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
/// `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
/// same time. Errors: also the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_key(
    options: *const rukh_run_options,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::key(&*locked(options), index, buf, cap, needed))
}

/// Ends every run that uses these options, now and later, with `RUKH_ERROR_CANCELLED`, soon but not at
/// once. `rukh_run_options_reset` allows runs again.
///
/// `options`: not NULL. `error`: may be NULL. Threads: any, above all another one than the run's.
/// Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_cancel(
    options: *mut rukh_run_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        locked(options).cancel_flag().store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// Takes `rukh_run_options_cancel` back for runs that begin from now on. Those already cancelled stay
/// cancelled.
///
/// `options`: not NULL. `error`: may be NULL. Threads: any. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_reset(
    options: *mut rukh_run_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        locked(options).cancel = RunOptions::cancellable().cancel;
        Ok(())
    })
}
