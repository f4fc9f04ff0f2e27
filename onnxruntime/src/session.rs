//! `OrtSession`: a model, ready to run, and what it tells about itself.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ort_sys::OrtErrorCode::{ORT_FAIL, ORT_MODEL_LOAD_CANCELED, ORT_NO_SUCHFILE};
use ort_sys::{
    OrtAllocator, OrtEnv, OrtPrepackedWeightsContainer, OrtSession, OrtSessionOptions, OrtTypeInfo, os_char,
};
use rukh_sys::*;

use crate::allocator::copy_text;
use crate::environment::{Environment, Reference};
use crate::failure::{Failure, Result, api, api_release};
use crate::handle::{array, get, give, handles, put, text};
use crate::library::{self, Own};
use crate::memory_info::MemoryInfo;
use crate::placement::Assignment;
use crate::ports::{Port, Side, names_of_dimensions, ports};
use crate::profile::Profile;
use crate::session_options::{Built, Options};
use crate::types::TypeInfo;

/// A model, ready to run. Bindings keep it alive.
pub struct Session(pub Arc<Model>);

/// What a session and its bindings share.
pub struct Model {
    handle: Own<rukh_session>,
    environment: Arc<Environment>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    initializers: Vec<Port>,
    profile: Option<Profile>,
    /// Where its inputs and outputs are best.
    memory: MemoryInfo,
    assignment: OnceLock<Assignment>,
    /// Bindings for runs with outputs of the caller's, kept for the next.
    bindings: Mutex<Vec<Own<rukh_io_binding>>>,
}

handles! { Session => OrtSession; }

/// Where a model comes from.
pub enum Source<'a> {
    Path(&'a CStr),
    Memory(&'a [u8]),
}

impl Source<'_> {
    /// Lends the model's bytes to a function.
    pub fn with_bytes<T>(&self, function: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let path = match self {
            Source::Memory(bytes) => return Ok(function(bytes)),
            Source::Path(path) => Path::new(OsStr::from_bytes(path.to_bytes())),
        };
        let failed =
            |error: std::io::Error| Failure::new(ORT_NO_SUCHFILE, format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        // SAFETY: as for every mapped model the file must not shrink meanwhile.
        let bytes = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
        Ok(function(&bytes))
    }
}

impl Session {
    pub fn environment(&self) -> &Arc<Environment> {
        &self.0.environment
    }

    pub fn open(environment: &Arc<Environment>, source: &Source, options: &Options) -> Result<Session> {
        Session::open_now(environment, source, options).map_err(|failure| match failure.code {
            // What librukh says of all that is cancelled; of runs ONNX Runtime says it, too.
            ORT_FAIL if options.openings.cancelled() => {
                Failure::new(ORT_MODEL_LOAD_CANCELED, failure.message)
            }
            _ => failure,
        })
    }

    fn open_now(environment: &Arc<Environment>, source: &Source, options: &Options) -> Result<Session> {
        // A session with a logging function of its own has an environment of its own.
        let environment = match options.log {
            Some((function, parameter)) => Arc::new(environment.with_log(function, parameter)?),
            None => environment.clone(),
        };
        let mut built = options.build(source, environment.log().id())?;
        if !options.dimensions.is_empty() {
            built = fix_dimensions(&environment, source, options)?;
        }
        let handle = create(&environment, source, &built)?;
        Ok(Session(Arc::new(Model {
            inputs: ports(&handle, Side::Input)?,
            outputs: ports(&handle, Side::Output)?,
            initializers: ports(&handle, Side::Initializer)?,
            profile: options.profile.as_deref().map(Profile::new),
            memory: memory(&environment, options)?,
            assignment: OnceLock::new(),
            bindings: Mutex::default(),
            handle,
            environment,
        })))
    }
}

impl Model {
    pub fn pointer(&self) -> *mut rukh_session {
        self.handle.pointer()
    }

    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    pub fn handle(&self) -> &Own<rukh_session> {
        &self.handle
    }

    pub fn ports(&self, side: Side) -> &[Port] {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
            Side::Initializer => &self.initializers,
        }
    }

    pub fn memory(&self) -> &MemoryInfo {
        &self.memory
    }

    /// Which provider runs which nodes; found out when it is asked first.
    pub fn assignment(&self) -> Result<&Assignment> {
        if self.assignment.get().is_none() {
            let gpu = if self.environment.devices()?.nvidia() {
                c"CUDAExecutionProvider"
            } else {
                c"ROCMExecutionProvider"
            };
            let _ = self.assignment.set(Assignment::of(&self.handle, gpu)?);
        }
        self.assignment.get().ok_or_else(|| Failure::argument("the placement is not known"))
    }

    /// Whether an input or output is an optional, which ONNX Runtime's values are not.
    pub fn has_optionals(&self) -> bool {
        let mut ports = self.inputs.iter().chain(&self.outputs);
        ports.any(|port| matches!(port.info, TypeInfo::Optional(_)))
    }

    /// Whether the input of this name is an optional.
    pub fn is_optional(&self, input: &CStr) -> bool {
        let mut ports = self.inputs.iter();
        ports.any(|port| port.name.as_c_str() == input && matches!(port.info, TypeInfo::Optional(_)))
    }

    /// Lends a binding to a function.
    pub fn with_binding<T>(&self, function: impl FnOnce(&Own<rukh_io_binding>) -> Result<T>) -> Result<T> {
        let kept = self.bindings.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let binding = match kept {
            Some(binding) => binding,
            // SAFETY: live handle, a place for the handle.
            None => {
                library::make(|out, error| unsafe { rukh_io_binding_create(self.pointer(), out, error) })?
            }
        };
        let result = function(&binding);
        // SAFETY: live handle, which nobody else has.
        library::call(|error| unsafe { rukh_io_binding_clear_inputs(binding.pointer(), error) })?;
        // SAFETY: as above.
        library::call(|error| unsafe { rukh_io_binding_clear_outputs(binding.pointer(), error) })?;
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner).push(binding);
        result
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // As in ONNX Runtime the file is written at the latest when the session goes. Nobody is there to tell.
        if let Some(profile) = &self.profile {
            let _ = profile.end(&self.handle);
        }
    }
}

/// The memory of the GPU that is wanted, where there is one; else that of the host.
fn memory(environment: &Environment, options: &Options) -> Result<MemoryInfo> {
    if !options.wants_gpu() {
        return Ok(MemoryInfo::cpu().clone());
    }
    let devices = environment.devices()?;
    let gpu = MemoryInfo::gpu(options.gpu(), devices.nvidia());
    Ok(if devices.with(&gpu).is_some() { gpu } else { MemoryInfo::cpu().clone() })
}

fn create(environment: &Environment, source: &Source, options: &Built) -> Result<Own<rukh_session>> {
    let opened = library::make(|out, error| match source {
        // SAFETY: live handles, a text, a place for the session.
        Source::Path(path) => unsafe {
            rukh_session_create(environment.pointer(), path.as_ptr(), options.pointer(), out, error)
        },
        // SAFETY: live handles, as many bytes as the slice has, a place for the session.
        Source::Memory(bytes) => unsafe {
            let data = bytes.as_ptr().cast();
            rukh_session_create_from_memory(
                environment.pointer(),
                data,
                bytes.len(),
                options.pointer(),
                out,
                error,
            )
        },
    });
    opened.map_err(|failure| match (failure.code, source) {
        // librukh's code is also that of names within a model.
        (ORT_NO_SUCHFILE, Source::Memory(_)) => Failure::argument(failure.message),
        _ => failure,
    })
}

/// Options that fix those dimensions that the model has: as in ONNX Runtime others are no error. The model is opened
/// once without them, to see which it has.
fn fix_dimensions(environment: &Environment, source: &Source, options: &Options) -> Result<Arc<Built>> {
    let id = environment.log().id();
    let (probe, built) = (options.build(source, id)?, options.build(source, id)?);
    probe.set("optimization", "none")?;
    let names = names_of_dimensions(&create(environment, source, &probe)?)?;
    for (name, size) in &options.dimensions {
        if names.contains(name) {
            built.set(&format!("dim.{name}"), &size.to_string())?;
        }
    }
    Ok(built)
}

/// # Safety
/// The pointers are NULL or live objects.
pub unsafe fn open(
    environment: *const OrtEnv,
    source: &Source,
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSession,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        put(out, null_mut())?;
        let environment = get::<Reference>(environment)?.environment();
        let session = match options.is_null() {
            true => Session::open(environment, source, &Options::default())?,
            false => Session::open(environment, source, get::<Options>(options)?)?,
        };
        give(out, session)
    }
}

/// # Safety
/// `session` is NULL or a live session; `out` is NULL or may be written.
unsafe fn type_of(
    session: *const OrtSession,
    side: Side,
    index: usize,
    out: *mut *mut OrtTypeInfo,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { give(out, port(session, side, index)?.info.clone()) }
}

/// # Safety
/// As `type_of`, and `allocator` is NULL or a live allocator.
unsafe fn name_of(
    session: *const OrtSession,
    side: Side,
    index: usize,
    allocator: *mut OrtAllocator,
    out: *mut *mut c_char,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { put(out, copy_text(allocator, &port(session, side, index)?.name)?) }
}

/// # Safety
/// `session` is NULL or a session that lives as long as the reference is used.
unsafe fn port<'a>(session: *const OrtSession, side: Side, index: usize) -> Result<&'a Port> {
    // SAFETY: the caller's promise.
    let ports = unsafe { get::<Session>(session) }?.0.ports(side);
    ports.get(index).ok_or_else(|| {
        Failure::argument(format!("{} {index} is not there: the model has {}", side.name(), ports.len()))
    })
}

api! {
    fn CreateSession(environment: *const OrtEnv, path: *const os_char, options: *const OrtSessionOptions, out: *mut *mut OrtSession) {
        open(environment, &Source::Path(text(path, "the path")?), options, out)?;
    }

    fn CreateSessionFromArray(environment: *const OrtEnv, data: *const c_void, size: usize, options: *const OrtSessionOptions, out: *mut *mut OrtSession) {
        open(environment, &Source::Memory(array(data.cast(), size, "the model")?), options, out)?;
    }

    // Sessions of one file share what is packed without a container.
    fn CreateSessionWithPrepackedWeightsContainer(environment: *const OrtEnv, path: *const os_char, options: *const OrtSessionOptions, _container: *mut OrtPrepackedWeightsContainer, out: *mut *mut OrtSession) {
        open(environment, &Source::Path(text(path, "the path")?), options, out)?;
    }

    fn CreateSessionFromArrayWithPrepackedWeightsContainer(environment: *const OrtEnv, data: *const c_void, size: usize, options: *const OrtSessionOptions, _container: *mut OrtPrepackedWeightsContainer, out: *mut *mut OrtSession) {
        open(environment, &Source::Memory(array(data.cast(), size, "the model")?), options, out)?;
    }

    fn CreatePrepackedWeightsContainer(out: *mut *mut OrtPrepackedWeightsContainer) {
        give(out, Container)?;
    }

    fn SessionGetInputCount(session: *const OrtSession, out: *mut usize) {
        put(out, get::<Session>(session)?.0.inputs.len())?;
    }

    fn SessionGetOutputCount(session: *const OrtSession, out: *mut usize) {
        put(out, get::<Session>(session)?.0.outputs.len())?;
    }

    fn SessionGetOverridableInitializerCount(session: *const OrtSession, out: *mut usize) {
        put(out, get::<Session>(session)?.0.initializers.len())?;
    }

    fn SessionGetInputTypeInfo(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) {
        type_of(session, Side::Input, index, out)?;
    }

    fn SessionGetOutputTypeInfo(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) {
        type_of(session, Side::Output, index, out)?;
    }

    fn SessionGetOverridableInitializerTypeInfo(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) {
        type_of(session, Side::Initializer, index, out)?;
    }

    fn SessionGetInputName(session: *const OrtSession, index: usize, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        name_of(session, Side::Input, index, allocator, out)?;
    }

    fn SessionGetOutputName(session: *const OrtSession, index: usize, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        name_of(session, Side::Output, index, allocator, out)?;
    }

    fn SessionGetOverridableInitializerName(session: *const OrtSession, index: usize, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        name_of(session, Side::Initializer, index, allocator, out)?;
    }

    fn SessionEndProfiling(session: *mut OrtSession, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        let model = &get::<Session>(session)?.0;
        let path: CString = match &model.profile {
            Some(profile) => profile.end(&model.handle)?,
            // As ONNX Runtime: a session without a profile has no file.
            None => CString::default(),
        };
        put(out, copy_text(allocator, &path)?)?;
    }

    fn SessionGetProfilingStartTimeNs(session: *const OrtSession, out: *mut u64) {
        put(out, get::<Session>(session)?.0.profile.as_ref().map_or(0, Profile::start))?;
    }

    fn SetEpDynamicOptions(session: *mut OrtSession, _keys: *const *const c_char, _values: *const *const c_char, count: usize) {
        get::<Session>(session)?;
        if count > 0 {
            return Err(Failure::absent("providers here have no options that change while a session lives"));
        }
    }

    // Graphs of launches go with the session.
    fn SessionReleaseCapturedGraph(session: *mut OrtSession, _annotation: i32) {
        get::<Session>(session)?;
    }
}

/// `OrtPrepackedWeightsContainer`: holds nothing, since sessions share packed weights by themselves.
pub struct Container;

handles! { Container => OrtPrepackedWeightsContainer; }

api_release! {
    fn ReleaseSession(OrtSession) => Session;
    fn ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer) => Container;
}
