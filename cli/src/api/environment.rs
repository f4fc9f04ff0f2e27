//! The environment and the devices it sees.

use std::ffi::CStr;

use rukh::capi::*;
use rukh_client::LogLevel;

use super::call::{Result, borrowed, c_string, call, copy, get, make, text};
use super::options::{self, Options};

/// Threads and log, shared by sessions.
pub struct Environment(pub(super) *mut rukh_environment);

// SAFETY: handles may be used from any thread.
unsafe impl Send for Environment {}
// SAFETY: a shared handle is only read, which the library allows from many threads at once.
unsafe impl Sync for Environment {}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_environment_destroy(self.0) };
    }
}

/// What can run models.
pub struct Device {
    pub provider: String,
    pub name: String,
    pub arch: String,
    /// Bytes; 0 when it is not known.
    pub memory: u64,
    pub properties: Vec<(String, String)>,
}

/// What became of a text of problems.
#[derive(Debug, Default)]
pub struct Tuned {
    /// Problems that have a result.
    pub results: usize,
    /// Lines without one.
    pub without: usize,
}

impl Device {
    /// A further fact by its name.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl Environment {
    /// `threads`: 0 for as many as the process may use. Messages of the library go to standard error:
    /// warnings and errors, or everything when `verbose`.
    pub fn new(threads: usize, verbose: bool) -> Result<Environment> {
        let mut options = rukh_client::EnvironmentOptions::new()?;
        options.set("threads", &threads.to_string())?;
        options.set_log(if verbose { LogLevel::Debug } else { LogLevel::Warning }, print)?;
        let options = options.handle().cast();
        // SAFETY: the options are live, and the place written to is a local.
        make(|out, error| unsafe { rukh_environment_create(options, out, error) }).map(Environment)
    }

    /// What sessions do with a GPU's memory, as a table.
    pub fn memory_summary(&self, device: usize) -> Result<String> {
        // SAFETY: the handle is live; `text` gives a buffer with its size.
        text(|buf, cap, needed, error| unsafe {
            rukh_environment_memory_summary(self.0, device, buf, cap, needed, error)
        })
    }

    /// The segments and blocks of a GPU's memory, as JSON.
    pub fn memory_snapshot(&self, device: usize) -> Result<String> {
        // SAFETY: the handle is live; `text` gives a buffer with its size.
        text(|buf, cap, needed, error| unsafe {
            rukh_environment_memory_snapshot(self.0, device, buf, cap, needed, error)
        })
    }

    /// A statistic of a GPU's memory by its name.
    pub fn memory_statistic(&self, device: usize, name: &str) -> Result<u64> {
        let name = c_string(name);
        // SAFETY: the handle is live, the name NUL-terminated and the place written to a local.
        get(|out, error| unsafe {
            rukh_environment_memory_statistic(self.0, device, name.as_ptr(), out, error)
        })
    }

    /// Measures the problems of a text; results go into the file that the provider's options name.
    pub fn tune(&self, options: &Options, shapes: &str) -> Result<Tuned> {
        let options = options::Handle::new(options)?;
        let shapes = c_string(shapes);
        let mut tuned = Tuned::default();
        // SAFETY: the handles are live, the text NUL-terminated and the places written to locals.
        call(|error| unsafe {
            let (results, without) = (&mut tuned.results, &mut tuned.without);
            rukh_environment_tune(self.0, options.0, shapes.as_ptr(), results, without, error)
        })?;
        Ok(tuned)
    }

    /// Every device that the library can use.
    pub fn devices(&self) -> Result<Vec<Device>> {
        // SAFETY: the handle is live and the place written to is a local.
        let count: usize = get(|out, error| unsafe { rukh_environment_device_count(self.0, out, error) })?;
        (0..count).map(|i| self.device(i)).collect()
    }

    fn device(&self, index: usize) -> Result<Device> {
        // SAFETY: in this function, the handles are live and the places written to are locals.
        let handle = make(|out, error| unsafe { rukh_environment_device(self.0, index, out, error) })?;
        let device = (|| {
            // SAFETY: as above.
            let count: usize = get(|out, error| unsafe { rukh_device_property_count(handle, out, error) })?;
            Ok(Device {
                // SAFETY: as above.
                provider: borrowed(|out, error| unsafe { rukh_device_provider(handle, out, error) })?,
                // SAFETY: as above.
                name: borrowed(|out, error| unsafe { rukh_device_name(handle, out, error) })?,
                // SAFETY: as above.
                arch: borrowed(|out, error| unsafe { rukh_device_arch(handle, out, error) })?,
                // SAFETY: as above.
                memory: get(|out, error| unsafe { rukh_device_memory(handle, out, error) })?,
                properties: (0..count).map(|i| property(handle, i)).collect::<Result<_>>()?,
            })
        })();
        // SAFETY: as above; destroyed once.
        unsafe { rukh_device_destroy(handle) };
        device
    }

    /// Each provider with the reason why it has no device here; "" when it has one.
    pub fn providers(&self) -> Result<Vec<(String, String)>> {
        // SAFETY: in this function, the handle is live, names are NUL-terminated, and the places written
        // to are locals.
        let count: usize = get(|out, error| unsafe { rukh_provider_count(out, error) })?;
        (0..count)
            .map(|i| {
                // SAFETY: as above.
                let name = text(|buf, cap, needed, error| unsafe {
                    rukh_provider_name(i, buf, cap, needed, error)
                })?;
                let c_name = c_string(&name);
                // SAFETY: as above.
                let reason = text(|buf, cap, needed, error| unsafe {
                    rukh_environment_provider_reason(self.0, c_name.as_ptr(), buf, cap, needed, error)
                })?;
                Ok((name, reason))
            })
            .collect()
    }
}

/// The version of the library, as text.
pub fn version() -> String {
    // SAFETY: the text is static.
    unsafe { CStr::from_ptr(rukh_version_string()) }.to_string_lossy().into_owned()
}

/// What the library tells of itself and of GPU runtimes, as a JSON object.
pub fn report() -> Result<String> {
    // SAFETY: the places written to are locals of `text`.
    text(|buf, cap, needed, error| unsafe { rukh_report(buf, cap, needed, error) })
}

fn property(handle: *const rukh_device, index: usize) -> Result<(String, String)> {
    let (mut key, mut value) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the handle is live and the places written to are locals.
    call(|error| unsafe { rukh_device_property(handle, index, &mut key, &mut value, error) })?;
    Ok((copy(key), copy(value)))
}

fn print(level: LogLevel, message: &str) {
    let level = match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
    };
    eprintln!("{level}: {message}");
}
