//! A model: its configuration, and its sessions, one for each device that instances run on.

use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use rukh_client::{Environment, Session, SessionOptions};

use crate::api::*;
use crate::backend::Backend;
use crate::config::{Config, check, complete};
use crate::error::{Error, Result, call, fail};
use crate::server::{log, new_message, read_message, text};

/// A model that is loaded. The backend outlives it.
pub(crate) struct Model {
    pub(crate) config: Config,
    backend: *const Backend,
    file: PathBuf,
    /// The session that the configuration was made from, first, until it is known that no instance wants it.
    sessions: Mutex<Vec<(Place, Arc<Session>)>>,
}

// SAFETY: the backend is only read, and lives longer than the model: the server finalizes it after its models.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

/// Where instances run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Cpu,
    /// A GPU by the server's number.
    Gpu(i64),
    /// As the parameters say.
    Parameters,
}

impl Model {
    /// # Safety
    /// The model is live, and `backend` lives as long as what this returns.
    pub(crate) unsafe fn new(model: *mut TRITONBACKEND_Model, backend: *const Backend) -> Result<Model> {
        let mut wanted = false;
        // SAFETY: in this function, the model and the backend are live by the caller's promise, and the places are locals.
        let (json, folder) = unsafe {
            call(TRITONBACKEND_ModelAutoCompleteConfig(model, &mut wanted))?;
            (config_of(model)?, folder(model)?)
        };
        let mut config = Config::read(&json)?;
        let mut file = folder.join(&config.file);
        if file.is_dir() {
            file = file.join("model.onnx");
        }
        let place = match &config.first_group {
            Some((kind, device)) if kind == "KIND_GPU" => Place::Gpu(*device),
            Some((kind, _)) if kind == "KIND_MODEL" => Place::Parameters,
            Some((kind, _)) if kind == "KIND_CPU" => Place::Cpu,
            // The server has not chosen a kind yet; what follows from the parameters is the likeliest.
            _ => Place::Parameters,
        };
        // SAFETY: as above.
        let (environment, default_batch) = unsafe { (&(*backend).environment, (*backend).default_batch) };
        let session = open(environment, &config, &file, place)?;
        if wanted {
            let mut json = json;
            if complete(&mut json, &session.inputs, &session.outputs, default_batch)? {
                // SAFETY: as above.
                config = unsafe {
                    new_message(&json, |message| call(TRITONBACKEND_ModelSetConfig(model, 1, message)))?;
                    Config::read(&config_of(model)?)?
                };
            }
        }
        check(&config, &session.inputs, &session.outputs)?;
        Ok(Model { config, backend, file, sessions: Mutex::new(vec![(place, Arc::new(session))]) })
    }

    /// The session of a place, which its instances share.
    pub(crate) fn session(&self, place: Place) -> Result<Arc<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, session)) = sessions.iter().find(|(found, _)| *found == place) {
            return Ok(session.clone());
        }
        // What nobody runs goes before another takes its memory.
        sessions.retain(|(_, session)| Arc::strong_count(session) > 1);
        // SAFETY: the backend lives longer than the model.
        let environment = unsafe { &(*self.backend).environment };
        let session = Arc::new(open(environment, &self.config, &self.file, place)?);
        sessions.push((place, session.clone()));
        Ok(session)
    }
}

/// # Safety
/// The model is live.
unsafe fn config_of(model: *mut TRITONBACKEND_Model) -> Result<serde_json::Value> {
    let mut message = null_mut();
    // SAFETY: the model is live by the caller's promise, the place is a local, and the message is ours.
    unsafe {
        call(TRITONBACKEND_ModelConfig(model, 1, &mut message))?;
        read_message(message)
    }
}

/// The folder of the model's version.
///
/// # Safety
/// The model is live.
unsafe fn folder(model: *mut TRITONBACKEND_Model) -> Result<PathBuf> {
    let (mut kind, mut location, mut version) = (TRITONBACKEND_ARTIFACT_FILESYSTEM, null(), 0);
    // SAFETY: the model is live by the caller's promise, the places are locals, and the text lives as long as the model.
    let location = unsafe {
        call(TRITONBACKEND_ModelRepository(model, &mut kind, &mut location))?;
        call(TRITONBACKEND_ModelVersion(model, &mut version))?;
        text(location)
    };
    if kind != TRITONBACKEND_ARTIFACT_FILESYSTEM {
        fail!(TRITONSERVER_ERROR_UNSUPPORTED, "the model lies in no folder; this backend needs one");
    }
    Ok(PathBuf::from(location).join(version.to_string()))
}

fn open(environment: &Environment, config: &Config, file: &std::path::Path, place: Place) -> Result<Session> {
    let mut options = SessionOptions::new()?;
    let (mut provider, mut provider_options) = (None, Vec::new());
    for (key, value) in &config.parameters {
        if key == "provider" {
            provider = Some(value.as_str());
        } else if let Some(key) = key.strip_prefix("provider.") {
            provider_options.push((key.to_owned(), value.clone()));
        } else {
            let place = |error| Error::from(error).context(&format!("parameter \"{key}\""));
            options.set(key, value).map_err(place)?;
        }
    }
    let is_cpu = provider.map(|name| name == "cpu" || name == "CPUExecutionProvider");
    match place {
        Place::Cpu => {
            if is_cpu == Some(false) {
                fail!(
                    TRITONSERVER_ERROR_INVALID_ARG,
                    "the instance group is of KIND_CPU, and the parameter \"provider\" is \"{}\"; an instance group of KIND_MODEL runs where the parameters say",
                    provider.unwrap_or_default()
                );
            }
            options.add_provider("cpu", &[])?;
        }
        Place::Gpu(number) => {
            if is_cpu == Some(true) || provider_options.iter().any(|(key, _)| key == "device_id") {
                fail!(
                    TRITONSERVER_ERROR_INVALID_ARG,
                    "the instance group is of KIND_GPU, which chooses provider and device: leave out the parameters \"provider\" and \"provider.device_id\", or make it an instance group of KIND_MODEL"
                );
            }
            provider_options.push(("device_id".into(), gpu(environment, number)?.to_string()));
            options.add_provider(provider.unwrap_or("hip"), &provider_options)?;
        }
        Place::Parameters => {
            let default = if environment.gpus()?.is_empty() { "cpu" } else { "hip" };
            let name = provider.unwrap_or(default);
            if provider.is_none() && name == "cpu" && !provider_options.is_empty() {
                log(
                    TRITONSERVER_LOG_WARN,
                    "rukh: no GPU was found; the parameters \"provider.…\" are not used",
                );
                provider_options.clear();
            }
            options.add_provider(name, &provider_options)?;
        }
    }
    Ok(Session::open(environment, file, &options)?)
}

/// rukh's number of a GPU of the server's, which counts those of CUDA.
fn gpu(environment: &Environment, number: i64) -> Result<usize> {
    let gpus = environment.gpus()?;
    let mut cuda: Vec<_> = gpus.iter().filter(|gpu| gpu.property("platform") == "nvidia").collect();
    if cuda.is_empty() {
        cuda = gpus.iter().collect();
    }
    match usize::try_from(number).ok().and_then(|number| cuda.get(number)) {
        Some(gpu) => Ok(gpu.id),
        None => fail!(
            TRITONSERVER_ERROR_UNAVAILABLE,
            "the instance group wants GPU {number}, and rukh finds {} ({}); `rukh devices` says why",
            cuda.len(),
            cuda.iter().map(|gpu| &*gpu.name).collect::<Vec<_>>().join(", ")
        ),
    }
}
