//! How a session is made, and how one run of it behaves.

use std::ffi::{CString, c_char};

use rukh_sys::*;

use crate::Result;
use crate::call::{c_string, call, owner, with_text};

owner!(
    /// How a session is made.
    SessionOptions,
    rukh_session_options,
    rukh_session_options_destroy
);

impl SessionOptions {
    pub fn new() -> Result<SessionOptions> {
        // SAFETY: the function has no preconditions.
        SessionOptions::made(|out, error| unsafe { rukh_session_options_create(out, error) })
    }

    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let options = self.handle();
        with_text(key, |key| {
            with_text(value, |value| {
                // SAFETY: the options are live and ours; the texts are NUL-terminated.
                call(|error| unsafe { rukh_session_options_set(options, key, value, error) })
            })
        })
    }

    /// Adds a provider that nodes are offered to, after those that were added before, with options of its own.
    pub fn add_provider(&mut self, name: &str, options: &[(String, String)]) -> Result<()> {
        let name = c_string(name);
        let keys: Vec<CString> = options.iter().map(|(key, _)| c_string(key)).collect();
        let values: Vec<CString> = options.iter().map(|(_, value)| c_string(value)).collect();
        let keys: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr()).collect();
        let values: Vec<*const c_char> = values.iter().map(|value| value.as_ptr()).collect();
        // SAFETY: the options are live and ours; there are as many keys as values, NUL-terminated and alive.
        call(|error| unsafe {
            rukh_session_options_add_provider(
                self.handle(),
                name.as_ptr(),
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
                error,
            )
        })
    }
}

owner!(
    /// How runs behave; ends them from another thread.
    RunOptions,
    rukh_run_options,
    rukh_run_options_destroy
);

impl RunOptions {
    pub fn new() -> Result<RunOptions> {
        // SAFETY: the function has no preconditions.
        RunOptions::made(|out, error| unsafe { rukh_run_options_create(out, error) })
    }

    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let options = self.handle();
        with_text(key, |key| {
            with_text(value, |value| {
                // SAFETY: the options are live and ours; the texts are NUL-terminated.
                call(|error| unsafe { rukh_run_options_set(options, key, value, error) })
            })
        })
    }

    /// Ends every run that uses these options, now and later, until `reset`. From any thread.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: the options are live; rukh.h allows this call at the same time as runs and others.
        call(|error| unsafe { rukh_run_options_cancel(self.handle(), error) })
    }

    /// Allows runs again that begin from now on.
    pub fn reset(&mut self) -> Result<()> {
        // SAFETY: the options are live and ours.
        call(|error| unsafe { rukh_run_options_reset(self.handle(), error) })
    }
}
