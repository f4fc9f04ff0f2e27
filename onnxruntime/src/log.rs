//! Log messages: from librukh to the caller's logging function, or to stderr in ONNX Runtime's form.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use ort_sys::OrtLoggingLevel::{self, *};
use ort_sys::{OrtLogger, OrtLoggingFunction};
use rukh_sys::*;

use crate::failure::guard_value;
use crate::library::{self, Own};

/// Who receives messages, from which level on.
pub struct Log {
    level: AtomicI32,
    id: CString,
    function: Option<OrtLoggingFunction>,
    parameter: *mut c_void,
}

// SAFETY: the parameter is only passed on, and ONNX Runtime's contract lets logging functions be called from any thread.
unsafe impl Send for Log {}
// SAFETY: as above.
unsafe impl Sync for Log {}

impl Log {
    pub fn new(
        level: i32,
        id: CString,
        function: Option<OrtLoggingFunction>,
        parameter: *mut c_void,
    ) -> Arc<Log> {
        Arc::new(Log { level: AtomicI32::new(level), id, function, parameter })
    }

    /// A log like this one, with another function.
    pub fn with_function(&self, function: OrtLoggingFunction, parameter: *mut c_void) -> Arc<Log> {
        Log::new(self.level.load(Relaxed), self.id.clone(), Some(function), parameter)
    }

    /// The lowest level that is written.
    pub fn lowest(&self) -> i32 {
        self.level.load(Relaxed)
    }

    pub fn set_level(&self, level: i32) {
        self.level.store(level, Relaxed);
    }

    /// Lets environments that are made with these options write here.
    pub fn attach(self: &Arc<Log>, options: &Own<rukh_environment_options>) -> crate::failure::Result<()> {
        let user = Arc::into_raw(self.clone()).cast_mut().cast();
        library::call(|error| {
            // SAFETY: live handle; `release` takes back the reference that `user` is, also when the call fails.
            unsafe {
                rukh_environment_options_set_log(
                    options.pointer(),
                    RUKH_LOG_DEBUG,
                    Some(receive),
                    user,
                    Some(release),
                    error,
                )
            }
        })
    }

    pub fn write(&self, level: OrtLoggingLevel, message: &CStr) {
        if (level as i32) < self.level.load(Relaxed) {
            return;
        }
        match self.function {
            // SAFETY: the caller's function, with texts that end with a NUL and outlive the call.
            Some(function) => unsafe {
                function(
                    self.parameter,
                    level,
                    c"onnxruntime".as_ptr(),
                    self.id.as_ptr(),
                    c"rukh".as_ptr(),
                    message.as_ptr(),
                );
            },
            None => {
                let letter = ["V", "I", "W", "E", "F"][level as usize];
                let (id, message) = (self.id.to_string_lossy(), message.to_string_lossy());
                // A closed stderr is no reason to fail.
                let _ = writeln!(std::io::stderr(), "[{letter}:onnxruntime:{id}, rukh] {message}");
            }
        }
    }
}

/// The level of a number; what is none counts as a message of the least.
pub fn level(number: i32) -> OrtLoggingLevel {
    match number {
        1 => ORT_LOGGING_LEVEL_INFO,
        2 => ORT_LOGGING_LEVEL_WARNING,
        3 => ORT_LOGGING_LEVEL_ERROR,
        4 => ORT_LOGGING_LEVEL_FATAL,
        _ => ORT_LOGGING_LEVEL_VERBOSE,
    }
}

/// What kernels of the caller's know as their logger: all write to the environment's log.
pub fn logger() -> *const OrtLogger {
    static LOGGER: u8 = 0;
    (&raw const LOGGER).cast()
}

unsafe extern "C" fn receive(user: *mut c_void, level: rukh_log_level, message: *const c_char) {
    guard_value((), || {
        // SAFETY: `user` is the reference that `attach` gave, and lives until `release`; the text is valid during the call.
        let (log, message) = unsafe { (&*user.cast::<Log>(), CStr::from_ptr(message)) };
        let level = match level {
            RUKH_LOG_DEBUG => ORT_LOGGING_LEVEL_VERBOSE,
            RUKH_LOG_INFO => ORT_LOGGING_LEVEL_INFO,
            RUKH_LOG_WARNING => ORT_LOGGING_LEVEL_WARNING,
            _ => ORT_LOGGING_LEVEL_ERROR,
        };
        log.write(level, message);
    });
}

unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: called once, with the reference that `attach` gave.
    guard_value((), || drop(unsafe { Arc::from_raw(user.cast::<Log>()) }));
}
