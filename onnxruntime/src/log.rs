//! Log messages: from librukh to the caller's logging function, or to stderr in ONNX Runtime's form.

use std::ffi::{CStr, CString, c_void};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use ort_sys::OrtLoggingLevel::{self, *};
use ort_sys::{OrtLogger, OrtLoggingFunction};
use rukh_sys::*;

use crate::failure::guard_value;
use crate::handle::c_string;
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

    /// What messages say of whom they are, where a session has no name of its own.
    pub fn id(&self) -> &CStr {
        &self.id
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
                rukh_environment_options_set_log_callback(
                    options.pointer(),
                    least(self.lowest()),
                    Some(receive),
                    user,
                    Some(release),
                    error,
                )
            }
        })
    }

    /// Writes a message of the caller's.
    pub fn write(&self, level: OrtLoggingLevel, message: &CStr) {
        if (level as i32) >= self.level.load(Relaxed) {
            self.tell(level, &self.id, c"rukh", message);
        }
    }

    fn tell(&self, level: OrtLoggingLevel, id: &CStr, place: &CStr, message: &CStr) {
        match self.function {
            // SAFETY: the caller's function, with texts that end with a NUL and outlive the call.
            Some(function) => unsafe {
                function(
                    self.parameter,
                    level,
                    c"onnxruntime".as_ptr(),
                    id.as_ptr(),
                    place.as_ptr(),
                    message.as_ptr(),
                );
            },
            None => {
                let letter = ["V", "I", "W", "E", "F"][level as usize];
                let [id, place, message] = [id, place, message].map(CStr::to_string_lossy);
                // A closed stderr is no reason to fail.
                let _ = writeln!(std::io::stderr(), "[{letter}:onnxruntime:{id}, {place}] {message}");
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

/// librukh's level for ONNX Runtime's number; it has none above errors.
pub fn least(level: i32) -> rukh_log_level {
    level.clamp(RUKH_LOG_DEBUG, RUKH_LOG_ERROR)
}

unsafe extern "C" fn receive(record: *const rukh_log_record, user: *mut c_void) {
    guard_value((), || {
        // SAFETY: `user` is the reference that `attach` gave, and lives until `release`; the record lives during the call,
        // its texts as long as it does.
        unsafe {
            let log = &*user.cast::<Log>();
            let mut number = RUKH_LOG_ERROR;
            let _ = rukh_log_record_level(record, &mut number, null_mut());
            let level = match number {
                RUKH_LOG_DEBUG => ORT_LOGGING_LEVEL_VERBOSE,
                RUKH_LOG_INFO => ORT_LOGGING_LEVEL_INFO,
                RUKH_LOG_WARNING => ORT_LOGGING_LEVEL_WARNING,
                _ => ORT_LOGGING_LEVEL_ERROR,
            };
            // Who hears of fatal errors alone hears of none.
            if log.lowest() > ORT_LOGGING_LEVEL_ERROR as i32 {
                return;
            }
            let text = |which| {
                let mut text = c"".as_ptr();
                let _ = rukh_log_record_text(record, which, &mut text, null_mut());
                CStr::from_ptr(text)
            };
            let (session, run) = (text(RUKH_LOG_TEXT_SESSION), text(RUKH_LOG_TEXT_RUN));
            let place = text(RUKH_LOG_TEXT_LOCATION);
            let message = text(RUKH_LOG_TEXT_MESSAGE);
            // As ONNX Runtime names the logger of a run.
            match (session.is_empty(), run.is_empty()) {
                (true, true) => log.tell(level, &log.id, place, message),
                (false, true) => log.tell(level, session, place, message),
                (true, false) => log.tell(level, run, place, message),
                (false, false) => {
                    let id = format!("{}:{}", session.to_string_lossy(), run.to_string_lossy());
                    log.tell(level, &c_string(&id), place, message);
                }
            }
        }
    });
}

unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: called once, with the reference that `attach` gave.
    guard_value((), || drop(unsafe { Arc::from_raw(user.cast::<Log>()) }));
}
