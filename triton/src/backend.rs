//! What all models of the backend share.

use rukh_client::{Environment, EnvironmentOptions, LogLevel};
use serde_json::Value as Json;

use crate::api::*;
use crate::error::{Result, call, fail};
use crate::server::{log, message_json};

/// Threads, the log, and devices.
pub(crate) struct Backend {
    pub(crate) environment: Environment,
    /// The `max_batch_size` of models that batch and whose configuration leaves it out; 0 for none.
    pub(crate) default_batch: i64,
}

/// Settings of `--backend-config` that the server gives to every backend, and that are its own.
const SERVERS: [&str; 4] =
    ["auto-complete-config", "backend-directory", "min-compute-capability", "default-max-batch-size"];

impl Backend {
    /// # Safety
    /// The backend is live.
    pub(crate) unsafe fn new(backend: *mut TRITONBACKEND_Backend) -> Result<Backend> {
        let (mut major, mut minor) = (0, 0);
        let mut message = std::ptr::null_mut();
        // SAFETY: the backend is live by the caller's promise, the places are locals, and the message stays the server's.
        let config = unsafe {
            call(TRITONBACKEND_ApiVersion(&mut major, &mut minor))?;
            call(TRITONBACKEND_BackendConfig(backend, &mut message))?;
            message_json(message)?
        };
        if major != 1 {
            fail!(
                TRITONSERVER_ERROR_UNSUPPORTED,
                "the server's backend API has version {major}.{minor}; this backend needs version 1"
            );
        }
        Backend::with_settings(&config["cmdline"])
    }

    fn with_settings(settings: &Json) -> Result<Backend> {
        let mut options = EnvironmentOptions::new()?;
        // The setting log_level may change the level.
        options.set_log(LogLevel::Warning, |level, message| {
            let level = match level {
                LogLevel::Debug => TRITONSERVER_LOG_VERBOSE,
                LogLevel::Info => TRITONSERVER_LOG_INFO,
                LogLevel::Warning => TRITONSERVER_LOG_WARN,
                LogLevel::Error => TRITONSERVER_LOG_ERROR,
            };
            log(level, &format!("rukh: {message}"));
        })?;
        let mut default_batch = 4;
        for (key, value) in settings.as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if key == "default-max-batch-size" {
                match value.parse() {
                    Ok(number) if number >= 0 => default_batch = number,
                    _ => fail!(
                        TRITONSERVER_ERROR_INVALID_ARG,
                        "default-max-batch-size is \"{value}\"; it must be a whole number from 0"
                    ),
                }
            } else if !SERVERS.contains(&&**key) {
                options.set(key, value).map_err(|error| {
                    crate::error::Error::from(error).context(&format!("--backend-config=rukh,{key}={value}"))
                })?;
            }
        }
        Ok(Backend { environment: Environment::new(Some(&options))?, default_batch })
    }
}
