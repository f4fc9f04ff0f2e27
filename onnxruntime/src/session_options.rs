//! `OrtSessionOptions`: how a session is made, as ONNX Runtime says it, and as librukh takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

use ort_sys::OrtLoggingFunction;
use rukh_sys::*;

use crate::custom_operators::Domain;
use crate::failure::{Failure, Result};
use crate::handle::{c_string, handles};
use crate::library::{self, Own};
use crate::model_attributes;
use crate::openings::Openings;
use crate::providers::Provider;
use crate::session::Source;

/// Where profiles go when a caller gives no name.
const PROFILE_PREFIX: &str = "onnxruntime_profile_";

/// How a session is made.
#[derive(Clone)]
pub struct Options {
    providers: Vec<(Provider, Vec<(String, String)>)>,
    /// ONNX Runtime's entries by key. Those without a meaning here are kept for who asks.
    pub entries: BTreeMap<String, String>,
    pub dimensions: Vec<(String, i64)>,
    pub optimization: i32,
    pub threads: c_int,
    pub profile: Option<String>,
    pub log: Option<(OrtLoggingFunction, *mut c_void)>,
    /// Who the session is in the log, and its own level there.
    pub log_id: String,
    pub log_severity: Option<c_int>,
    pub optimized_path: Option<String>,
    pub memory_pattern: bool,
    pub execution_mode: i32,
    pub domains: Vec<Arc<Domain>>,
    /// Tensors that take the place of the model's initializers, by name.
    pub initializers: Vec<(String, Arc<Own<rukh_value>>)>,
    /// Files of external data in the caller's memory, which outlives the sessions.
    pub external_files: Vec<(String, *const c_char, usize)>,
    /// Copies share it, as ONNX Runtime's flag.
    pub openings: Arc<Openings>,
}

handles! { Options => OrtSessionOptions; }

impl Default for Options {
    fn default() -> Options {
        Options {
            providers: Vec::new(),
            entries: BTreeMap::new(),
            dimensions: Vec::new(),
            optimization: 99,
            threads: 0,
            profile: None,
            log: None,
            log_id: String::new(),
            log_severity: None,
            optimized_path: None,
            memory_pattern: true,
            execution_mode: 0,
            domains: Vec::new(),
            initializers: Vec::new(),
            external_files: Vec::new(),
            openings: Arc::default(),
        }
    }
}

/// Entries that librukh takes by ONNX Runtime's own keys.
const SHARED_ENTRIES: [&str; 7] = [
    "session.disable_cpu_ep_fallback",
    "session.intra_op.allow_spinning",
    "session.intra_op_thread_affinities",
    "session.model_external_initializers_file_folder_path",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes",
    "session.use_env_allocators",
];

/// Entries that ask for what is not here, with the values that do.
const REFUSED_ENTRIES: [(&str, &str, &str); 3] = [
    (
        "session.load_model_format",
        "ORT",
        "models in ONNX Runtime's own format are not read; give the ONNX model",
    ),
    ("ep.context_enable", "1", "no compiled model is written: a model opens without compiling"),
    ("session.save_model_format", "ORT", "models are not written"),
];

impl Options {
    /// Wants a provider, after those added before. One that comes twice, by whichever of its names, keeps its place.
    pub fn add_provider(&mut self, provider: Provider, options: Vec<(String, String)>) {
        if !self.providers.iter().any(|(known, _)| *known == provider) {
            self.providers.push((provider, options));
        }
    }

    pub fn wants_gpu(&self) -> bool {
        self.providers.iter().any(|(provider, _)| *provider == Provider::Gpu)
    }

    /// The number of the GPU that is wanted, 0 where none is named.
    pub fn gpu(&self) -> usize {
        let gpu = self.providers.iter().find(|(provider, _)| *provider == Provider::Gpu);
        let number = gpu.and_then(|(_, options)| options.iter().find(|(key, _)| key == "device_id"));
        number.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    }

    pub fn profile_prefix(name: String) -> String {
        if name.is_empty() { PROFILE_PREFIX.to_owned() } else { name }
    }

    fn entry_is(&self, key: &str, value: &str) -> bool {
        self.entries.get(key).is_some_and(|given| given == value)
    }

    /// The options as librukh takes them for a model, but for dimensions. `log_id` is the environment's.
    pub fn build(&self, source: &Source, log_id: &CStr) -> Result<Arc<Built>> {
        self.check()?;
        // SAFETY: a place for the handle.
        let built = Built(library::make(|out, error| unsafe { rukh_session_options_create(out, error) })?);
        built.set("optimization", ["none", "basic", "all"][self.optimization.clamp(0, 2) as usize])?;
        if self.threads > 0 {
            built.set("intra_op_threads", &self.threads.to_string())?;
        }
        let log_id = if self.log_id.is_empty() { log_id.to_string_lossy() } else { (&self.log_id).into() };
        built.set("log_id", &log_id)?;
        if let Some(severity) = self.log_severity {
            built.set("log_level", &severity.to_string())?;
        }
        if self.profile.is_some() {
            built.set("profiling", "1")?;
        }
        for (key, value) in self.entries.iter().filter(|(key, _)| SHARED_ENTRIES.contains(&key.as_str())) {
            built.set(key, value)?;
        }
        for (provider, options) in &self.providers {
            built.add_provider(provider.name(), options)?;
        }
        if let Some(path) = &self.optimized_path {
            built.set("optimized_model_path", path)?;
        }
        self.add_weights(&built)?;
        self.add_operators(source, &built)?;
        self.openings.add(built)
    }

    fn add_weights(&self, built: &Built) -> Result<()> {
        for (name, value) in &self.initializers {
            let name = c_string(name);
            // SAFETY: live handles, a text.
            library::call(|error| unsafe {
                rukh_session_options_add_initializer(built.pointer(), name.as_ptr(), value.pointer(), error)
            })?;
        }
        for (location, data, size) in &self.external_files {
            let location = c_string(location);
            // SAFETY: live handle, a text; the caller keeps the memory as long as sessions use it.
            library::call(|error| unsafe {
                rukh_session_options_add_external_file(
                    built.pointer(),
                    location.as_ptr(),
                    data.cast(),
                    *size,
                    None,
                    std::ptr::null_mut(),
                    error,
                )
            })?;
        }
        Ok(())
    }

    fn add_operators(&self, source: &Source, built: &Built) -> Result<()> {
        if self.domains.is_empty() {
            return Ok(());
        }
        let domains: BTreeSet<String> = self.domains.iter().map(|domain| domain.name().to_owned()).collect();
        let attributes = source.with_bytes(|model| model_attributes::of(model, &domains))?;
        self.domains.iter().try_for_each(|domain| domain.add_to(built.pointer(), &attributes))
    }

    fn check(&self) -> Result<()> {
        for (key, value, reason) in REFUSED_ENTRIES {
            if self.entry_is(key, value) {
                return Err(Failure::absent(format!("{key}={value} cannot be met: {reason}")));
            }
        }
        Ok(())
    }
}

/// Options of librukh.
pub struct Built(Own<rukh_session_options>);

impl Built {
    pub fn pointer(&self) -> *mut rukh_session_options {
        self.0.pointer()
    }

    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (c_string(key), c_string(value));
        // SAFETY: live handle, texts.
        library::call(|error| unsafe {
            rukh_session_options_set(self.pointer(), key.as_ptr(), value.as_ptr(), error)
        })
    }

    fn add_provider(&self, name: &str, options: &[(String, String)]) -> Result<()> {
        let name = c_string(name);
        let texts: Vec<(CString, CString)> =
            options.iter().map(|(key, value)| (c_string(key), c_string(value))).collect();
        let keys: Vec<*const c_char> = texts.iter().map(|(key, _)| key.as_ptr()).collect();
        let values: Vec<*const c_char> = texts.iter().map(|(_, value)| value.as_ptr()).collect();
        // SAFETY: live handle, arrays of as many texts.
        library::call(|error| unsafe {
            rukh_session_options_add_provider(
                self.pointer(),
                name.as_ptr(),
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
                error,
            )
        })
    }
}
