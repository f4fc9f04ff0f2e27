//! The environment that all sessions of a factory share, and its devices.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

use rukh_sys::*;

use super::call::{call, get, make};
use crate::error::Result;
use crate::ort::{Logger, Ort, copy, guard_or};

/// Threads, the log, and devices of this machine.
pub(crate) struct Environment(pub(super) *mut rukh_environment);

// SAFETY: handles may be used from any thread.
unsafe impl Send for Environment {}
// SAFETY: an environment is only read after it was made.
unsafe impl Sync for Environment {}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_environment_destroy(self.0) };
    }
}

/// A GPU that librukh can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// The hip provider's option `device_id`.
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) arch: String,
    /// The address on the bus, "" where it is not known.
    pub(crate) pci: String,
    /// Whose runtime drives it.
    pub(crate) platform: String,
}

impl Environment {
    /// An environment whose log goes to ONNX Runtime's.
    pub(crate) fn new(ort: Ort, logger: Logger) -> Result<Environment> {
        // SAFETY: in this function, handles are live and destroyed once; the texts are NUL-terminated; what the log's
        // callback gets is a box that `release` frees.
        unsafe {
            let options = make(|out, error| rukh_environment_options_create(out, error))?;
            let user = Box::into_raw(Box::new((ort, logger)));
            let result = call(|error| {
                rukh_environment_options_set_log_callback(
                    options,
                    RUKH_LOG_WARNING,
                    Some(log),
                    user.cast(),
                    Some(release),
                    error,
                )
            });
            let made = result.and_then(|()| make(|out, error| rukh_environment_create(options, out, error)));
            rukh_environment_options_destroy(options);
            made.map(Environment)
        }
    }

    /// The GPUs, in the order of their numbers.
    pub(crate) fn gpus(&self) -> Result<Vec<Device>> {
        // SAFETY: the environment is live; the place is a local.
        let count: usize = get(|out, error| unsafe { rukh_environment_device_count(self.0, out, error) })?;
        let mut gpus = Vec::new();
        for index in 0..count {
            // SAFETY: as above; the device is destroyed once.
            unsafe {
                let device = make(|out, error| rukh_environment_device(self.0, index, out, error))?;
                let read = describe(device, gpus.len());
                rukh_device_destroy(device);
                gpus.extend(read?);
            }
        }
        Ok(gpus)
    }
}

/// # Safety
/// `device` is live.
unsafe fn describe(device: *const rukh_device, index: usize) -> Result<Option<Device>> {
    let text = |function: unsafe extern "C" fn(
        *const rukh_device,
        *mut *const c_char,
        *mut *mut rukh_error,
    ) -> i32| {
        let mut text = null();
        // SAFETY: the device is live; its texts live as long and are copied.
        call(|error| unsafe { function(device, &mut text, error) }).map(|()| unsafe { copy(text) })
    };
    if text(rukh_device_provider)? != "hip" {
        return Ok(None);
    }
    let mut gpu = Device {
        index,
        name: text(rukh_device_name)?,
        arch: text(rukh_device_arch)?,
        pci: String::new(),
        platform: String::new(),
    };
    // SAFETY: as above.
    let count: usize = get(|out, error| unsafe { rukh_device_property_count(device, out, error) })?;
    for property in 0..count {
        let (mut key, mut value) = (null(), null());
        // SAFETY: as above.
        let (key, value) = unsafe {
            call(|error| rukh_device_property(device, property, &mut key, &mut value, error))?;
            (copy(key), copy(value))
        };
        match key.as_str() {
            "pci" => gpu.pci = value,
            "platform" => gpu.platform = value,
            _ => {}
        }
    }
    Ok(Some(gpu))
}

/// A line of librukh's log.
unsafe extern "C" fn log(record: *const rukh_log_record, user: *mut c_void) {
    guard_or((), || {
        use ort_sys::OrtLoggingLevel::*;
        let (mut level, mut message) = (RUKH_LOG_ERROR, null());
        // SAFETY: the record lives during the call; the places are locals. The text lives as long as the record.
        let told = unsafe {
            rukh_log_record_level(record, &mut level, null_mut()) == RUKH_OK
                && rukh_log_record_text(record, RUKH_LOG_TEXT_MESSAGE, &mut message, null_mut()) == RUKH_OK
        };
        if !told {
            return;
        }
        // SAFETY: `user` is the box that `Environment::new` made, which lives until `release`; the message is NUL-terminated.
        let ((ort, logger), message) = unsafe { (*user.cast::<(Ort, Logger)>(), copy(message)) };
        let level = match level {
            RUKH_LOG_ERROR => ORT_LOGGING_LEVEL_ERROR,
            RUKH_LOG_WARNING => ORT_LOGGING_LEVEL_WARNING,
            _ => ORT_LOGGING_LEVEL_INFO,
        };
        ort.log(logger, level, &message);
    })
}

unsafe extern "C" fn release(user: *mut c_void) {
    guard_or((), || {
        // SAFETY: librukh calls this once with what `Environment::new` made of a box.
        drop(unsafe { Box::from_raw(user.cast::<(Ort, Logger)>()) });
    })
}
