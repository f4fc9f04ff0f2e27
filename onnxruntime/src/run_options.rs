//! `OrtRunOptions`: how one run behaves.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::ptr::null;

use ort_sys::{OrtRunOptions, os_char};
use rukh_sys::*;

use crate::failure::{Failure, Result, api, api_release, api_value};
use crate::handle::{c_string, get, get_mut, give, handles, put, string, text};
use crate::library::{self, Own};

/// Entries that librukh knows by the same name.
const KNOWN: [&str; 1] = ["memory.enable_memory_arena_shrinkage"];

/// How one run behaves.
pub struct RunOptions {
    handle: Own<rukh_run_options>,
    tag: CString,
    severity: c_int,
    verbosity: c_int,
    entries: BTreeMap<String, CString>,
}

handles! { RunOptions => OrtRunOptions; }

impl RunOptions {
    fn new() -> Result<RunOptions> {
        // SAFETY: a place for the handle.
        let handle = library::make(|out, error| unsafe { rukh_run_options_create(out, error) })?;
        // 2 is ONNX Runtime's default severity: warnings.
        Ok(RunOptions {
            handle,
            tag: CString::default(),
            severity: 2,
            verbosity: 0,
            entries: BTreeMap::new(),
        })
    }

    pub fn handle(&self) -> &Own<rukh_run_options> {
        &self.handle
    }

    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (c_string(key), c_string(value));
        // SAFETY: live handle, texts.
        library::call(|error| unsafe {
            rukh_run_options_set(self.handle.pointer(), key.as_ptr(), value.as_ptr(), error)
        })
    }
}

/// librukh's options behind a pointer of the API, NULL for NULL.
///
/// # Safety
/// `options` is NULL or live options.
pub unsafe fn pointer(options: *const OrtRunOptions) -> Result<*const rukh_run_options> {
    if options.is_null() {
        return Ok(null());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { get::<RunOptions>(options) }?.handle.pointer())
}

api! {
    fn CreateRunOptions(out: *mut *mut OrtRunOptions) {
        give(out, RunOptions::new()?)?;
    }

    // The severity alone decides; this number is kept for who asks.
    fn RunOptionsSetRunLogVerbosityLevel(options: *mut OrtRunOptions, level: c_int) {
        get_mut::<RunOptions>(options)?.verbosity = level;
    }

    fn RunOptionsSetRunLogSeverityLevel(options: *mut OrtRunOptions, level: c_int) {
        let options = get_mut::<RunOptions>(options)?;
        options.set("log_severity_level", &level.to_string())?;
        options.severity = level;
    }

    fn RunOptionsGetRunLogVerbosityLevel(options: *const OrtRunOptions, out: *mut c_int) {
        put(out, get::<RunOptions>(options)?.verbosity)?;
    }

    fn RunOptionsGetRunLogSeverityLevel(options: *const OrtRunOptions, out: *mut c_int) {
        put(out, get::<RunOptions>(options)?.severity)?;
    }

    fn RunOptionsSetRunTag(options: *mut OrtRunOptions, tag: *const c_char) {
        let options = get_mut::<RunOptions>(options)?;
        let tag = text(tag, "the tag")?;
        options.set("tag", &tag.to_string_lossy())?;
        options.tag = tag.to_owned();
    }

    fn RunOptionsGetRunTag(options: *const OrtRunOptions, out: *mut *const c_char) {
        put(out, get::<RunOptions>(options)?.tag.as_ptr())?;
    }

    // Called while a run uses the options, on another thread: nothing but librukh's handle is touched.
    fn RunOptionsSetTerminate(options: *mut OrtRunOptions) {
        let handle = get::<RunOptions>(options)?.handle.pointer();
        library::call(|error| rukh_run_options_cancel(handle, error))?;
    }

    fn RunOptionsUnsetTerminate(options: *mut OrtRunOptions) {
        let handle = get::<RunOptions>(options)?.handle.pointer();
        library::call(|error| rukh_run_options_reset(handle, error))?;
    }

    fn AddRunConfigEntry(options: *mut OrtRunOptions, key: *const c_char, value: *const c_char) {
        let options = get_mut::<RunOptions>(options)?;
        let (key, value) = (string(key, "the key")?, text(value, "the value")?);
        if key.is_empty() {
            return Err(Failure::argument("the key is empty"));
        }
        if KNOWN.contains(&key.as_str()) {
            // ONNX Runtime names several devices, the CPU among them, which has no arena here.
            let devices = value.to_string_lossy();
            let gpus: Vec<&str> = devices.split(';').filter(|device| !device.starts_with("cpu")).collect();
            if !gpus.is_empty() {
                options.set(&key, &gpus.join(";"))?;
            }
        }
        options.entries.insert(key, value.to_owned());
    }

    fn RunOptionsEnableProfiling(options: *mut OrtRunOptions, _prefix: *const os_char) {
        get::<RunOptions>(options)?;
        return Err(Failure::absent("single runs are not profiled; EnableProfiling of the session's options records all runs"));
    }

    fn RunOptionsDisableProfiling(options: *mut OrtRunOptions) {
        get::<RunOptions>(options)?;
    }
}

api_value! {
    fn GetRunConfigEntry(options: *const OrtRunOptions, key: *const c_char) -> *const c_char, null() => {
        match (get::<RunOptions>(options), string(key, "the key")) {
            (Ok(options), Ok(key)) => options.entries.get(&key).map_or(null(), |value| value.as_ptr()),
            _ => null(),
        }
    }
}

api_release! {
    fn ReleaseRunOptions(OrtRunOptions) => RunOptions;
}
