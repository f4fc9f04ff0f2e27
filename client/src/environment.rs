//! What sessions share: threads, the log and devices.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use rukh_sys::*;

use crate::Result;
use crate::call::{call, copy, make, owner, with_text};

/// How much a message of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum LogLevel {
    Debug = RUKH_LOG_DEBUG,
    Info = RUKH_LOG_INFO,
    Warning = RUKH_LOG_WARNING,
    Error = RUKH_LOG_ERROR,
}

owner!(
    /// How an environment is made.
    EnvironmentOptions,
    rukh_environment_options,
    rukh_environment_options_destroy
);

type Log = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

impl EnvironmentOptions {
    pub fn new() -> Result<EnvironmentOptions> {
        // SAFETY: the function has no preconditions.
        EnvironmentOptions::made(|out, error| unsafe { rukh_environment_options_create(out, error) })
    }

    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let options = self.handle();
        with_text(key, |key| {
            with_text(value, |value| {
                // SAFETY: the options are live and ours; the texts are NUL-terminated.
                call(|error| unsafe { rukh_environment_options_set(options, key, value, error) })
            })
        })
    }

    /// Sets who receives messages of a level and above, from any thread. A panic of theirs is stopped and forgotten.
    pub fn set_log(
        &mut self,
        level: LogLevel,
        log: impl Fn(LogLevel, &str) + Send + Sync + 'static,
    ) -> Result<()> {
        let user: *mut Log = Box::into_raw(Box::new(Box::new(log)));
        // SAFETY: the options are live and ours; `release` frees the box, once, also when this call fails.
        call(|error| unsafe {
            rukh_environment_options_set_log_callback(
                self.handle(),
                level as rukh_log_level,
                Some(pass_on),
                user.cast(),
                Some(release),
                error,
            )
        })
    }
}

/// An environment of one's own, or the handle of a caller's.
pub struct Environment {
    handle: *mut rukh_environment,
    owned: bool,
}

// SAFETY: handles may be used from any thread.
unsafe impl Send for Environment {}
// SAFETY: an environment is only read after it was made.
unsafe impl Sync for Environment {}

impl Drop for Environment {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the handle is ours and destroyed once.
            unsafe { rukh_environment_destroy(self.handle) };
        }
    }
}

impl Environment {
    /// A new one; `None` for default options.
    pub fn new(options: Option<&EnvironmentOptions>) -> Result<Environment> {
        let options = options.map_or(null(), |options| options.handle().cast_const());
        // SAFETY: the options are NULL or live.
        let handle = make(|out, error| unsafe { rukh_environment_create(options, out, error) })?;
        Ok(Environment { handle, owned: true })
    }

    /// One that a caller made and destroys. librukh checks the handle at each use, so that any pointer may be given.
    pub fn lent(handle: *const rukh_environment) -> Environment {
        Environment { handle: handle.cast_mut(), owned: false }
    }

    /// The handle, for functions that this layer has no method for.
    pub fn handle(&self) -> *mut rukh_environment {
        self.handle
    }
}

unsafe extern "C" fn pass_on(record: *const rukh_log_record, user: *mut c_void) {
    let (mut level, mut message) = (RUKH_LOG_ERROR, null());
    // SAFETY: the record lives during the call; the places are locals. The text lives as long as the record.
    let told = unsafe {
        rukh_log_record_level(record, &mut level, null_mut()) == RUKH_OK
            && rukh_log_record_text(record, RUKH_LOG_TEXT_MESSAGE, &mut message, null_mut()) == RUKH_OK
    };
    if !told {
        return;
    }
    let level = match level {
        RUKH_LOG_DEBUG => LogLevel::Debug,
        RUKH_LOG_INFO => LogLevel::Info,
        RUKH_LOG_WARNING => LogLevel::Warning,
        _ => LogLevel::Error,
    };
    // SAFETY: `user` is the box that `set_log` made, which lives until `release`; the message is NUL-terminated.
    let (log, message) = unsafe { (&*user.cast::<Log>(), copy(message)) };
    // There is nobody to tell of a panic: the log itself failed.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| log(level, &message)));
}

unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: librukh calls this once with what `set_log` made of a box.
    let log = unsafe { Box::from_raw(user.cast::<Log>()) };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(log)));
}
