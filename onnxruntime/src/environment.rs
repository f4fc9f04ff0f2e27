//! `OrtEnv`: as in ONNX Runtime a process has one at a time, which all that make one share.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use ort_sys::{
    OrtAllocator, OrtArenaCfg, OrtCustomCreateThreadFn, OrtCustomJoinThreadFn, OrtEnv, OrtEnvCreationOptions,
    OrtLoggingFunction, OrtMemoryInfo, OrtThreadingOptions,
};
use rukh_sys::*;

use crate::allocator::Allocator;
use crate::arena::ArenaConfig;
use crate::devices::Devices;
use crate::failure::{Failure, Result, api, api_release};
use crate::handle::{c_string, get, get_mut, give, handles, put, string_or_empty, text};
use crate::library::{self, Own};
use crate::log::Log;
use crate::memory_info::MemoryInfo;

/// ONNX Runtime's level where none is given: warnings.
const WARNING: i32 = 2;

/// What sessions share.
pub struct Environment {
    handle: Own<rukh_environment>,
    log: Arc<Log>,
    threads: i32,
    devices: OnceLock<Devices>,
    allocators: Mutex<Vec<Arc<Allocator>>>,
    /// The caller's references. Without any it only serves sessions that are still there.
    references: AtomicUsize,
}

/// One of the references to the environment that callers have.
pub struct Reference(Arc<Environment>);

handles! {
    Reference => OrtEnv;
    Threading => OrtThreadingOptions;
}

/// Threads of all sessions.
#[derive(Default)]
pub struct Threading {
    intra_op_threads: i32,
}

/// The environment that lives, if one does.
static LIVING: Mutex<Weak<Environment>> = Mutex::new(Weak::new());

impl Environment {
    fn new(log: Arc<Log>, threads: i32) -> Result<Environment> {
        // SAFETY: a place for the handle.
        let options = library::make(|out, error| unsafe { rukh_environment_options_create(out, error) })?;
        log.attach(&options)?;
        if threads > 0 {
            let number = c_string(&threads.to_string());
            // SAFETY: live handle, texts.
            library::call(|error| unsafe {
                rukh_environment_options_set(options.pointer(), c"threads".as_ptr(), number.as_ptr(), error)
            })?;
        }
        // SAFETY: live handle, a place for the handle.
        let handle =
            library::make(|out, error| unsafe { rukh_environment_create(options.pointer(), out, error) })?;
        Ok(Environment {
            handle,
            log,
            threads,
            devices: OnceLock::new(),
            allocators: Mutex::default(),
            references: AtomicUsize::new(0),
        })
    }

    /// A reference to the environment that callers have references to, or to a new one.
    fn share(log: impl FnOnce() -> Arc<Log>, threads: i32) -> Result<Reference> {
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        let environment = match living.upgrade().filter(|known| known.references.load(Relaxed) > 0) {
            Some(environment) => environment,
            None => Arc::new(Environment::new(log(), threads)?),
        };
        *living = Arc::downgrade(&environment);
        environment.references.fetch_add(1, Relaxed);
        Ok(Reference(environment))
    }

    /// The environment for what the API does without one; where none lives, one for the time being.
    pub fn current() -> Result<Arc<Environment>> {
        let living = LIVING.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        living.map_or_else(
            || {
                Environment::new(Log::new(WARNING, c"".to_owned(), None, std::ptr::null_mut()), 0)
                    .map(Arc::new)
            },
            Ok,
        )
    }

    /// An environment with as many threads and another log, for a session with a logging function of its own.
    pub fn with_log(&self, function: OrtLoggingFunction, parameter: *mut c_void) -> Result<Environment> {
        Environment::new(self.log.with_function(function, parameter), self.threads)
    }

    pub fn pointer(&self) -> *mut rukh_environment {
        self.handle.pointer()
    }

    /// librukh's description of a GPU by its number.
    pub fn gpu(&self, id: usize) -> Result<Own<rukh_device>> {
        // SAFETY: live handle, a text, a place for the handle.
        library::make(|out, error| unsafe {
            rukh_environment_find_device(self.pointer(), c"hip".as_ptr(), id, out, error)
        })
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn devices(&self) -> Result<&Devices> {
        if self.devices.get().is_none() {
            let devices = Devices::find(self)?;
            let _ = self.devices.set(devices);
        }
        self.devices.get().ok_or_else(|| Failure::argument("the devices are not known"))
    }

    /// The allocator that is shared for a kind of memory; the first one asked for is made.
    pub fn shared_allocator(
        &self,
        info: &MemoryInfo,
        make: impl FnOnce() -> Result<Allocator>,
    ) -> Result<*mut OrtAllocator> {
        let mut allocators = self.allocators.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match allocators.iter().position(|allocator| allocator.info() == info) {
            Some(index) => index,
            None => {
                allocators.push(Arc::new(make()?));
                allocators.len() - 1
            }
        };
        Ok(Arc::as_ptr(&allocators[index]).cast_mut().cast())
    }

    pub fn statistic(&self, id: usize, name: &str) -> Result<u64> {
        let name = c_string(name);
        // SAFETY: live handle, a text, a place for the number.
        library::get(|value, error| unsafe {
            rukh_environment_memory_statistic(self.pointer(), id, name.as_ptr(), value, error)
        })
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.0.references.fetch_sub(1, Relaxed);
    }
}

impl Reference {
    pub fn environment(&self) -> &Arc<Environment> {
        &self.0
    }
}

/// Makes the environment, or gives another reference to the one that lives.
///
/// # Safety
/// `out` is NULL or may be written; `threading` is NULL or live options; `id` is NULL or a text.
unsafe fn create(
    level: i32,
    id: *const c_char,
    function: Option<OrtLoggingFunction>,
    parameter: *mut c_void,
    threading: *const OrtThreadingOptions,
    out: *mut *mut OrtEnv,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        put(out, std::ptr::null_mut())?;
        let threads = if threading.is_null() { 0 } else { get::<Threading>(threading)?.intra_op_threads };
        let id: CString = c_string(&string_or_empty(id));
        give(out, Environment::share(|| Log::new(level, id, function, parameter), threads)?)
    }
}

/// Threads that the caller makes: librukh makes its own.
fn own_threads(given: bool) -> Result<()> {
    if given {
        Err(Failure::absent("rukh makes its threads itself: custom thread functions are not called"))
    } else {
        Ok(())
    }
}

api! {
    fn CreateEnv(level: i32, id: *const c_char, out: *mut *mut OrtEnv) {
        create(level, id, None, std::ptr::null_mut(), std::ptr::null(), out)?;
    }

    fn CreateEnvWithCustomLogger(function: Option<OrtLoggingFunction>, parameter: *mut c_void, level: i32, id: *const c_char, out: *mut *mut OrtEnv) {
        create(level, id, function, parameter, std::ptr::null(), out)?;
    }

    fn CreateEnvWithGlobalThreadPools(level: i32, id: *const c_char, threading: *const OrtThreadingOptions, out: *mut *mut OrtEnv) {
        create(level, id, None, std::ptr::null_mut(), threading, out)?;
    }

    fn CreateEnvWithCustomLoggerAndGlobalThreadPools(function: Option<OrtLoggingFunction>, parameter: *mut c_void, level: i32, id: *const c_char, threading: *const OrtThreadingOptions, out: *mut *mut OrtEnv) {
        create(level, id, function, parameter, threading, out)?;
    }

    fn CreateEnvWithOptions(options: *const OrtEnvCreationOptions, out: *mut *mut OrtEnv) {
        let options = options.as_ref().ok_or_else(|| crate::handle::null("the options"))?;
        create(options.logging_severity_level, options.log_id, options.custom_logging_function, options.custom_logging_param, options.threading_options, out)?;
    }

    fn UpdateEnvWithCustomLogLevel(environment: *mut OrtEnv, level: i32) {
        let environment = &get::<Reference>(environment)?.0;
        environment.log.set_level(level);
        library::call(|error| rukh_environment_set_log_level(environment.pointer(), crate::log::least(level), error))?;
    }

    fn EnableTelemetryEvents(_environment: *const OrtEnv) {}

    fn DisableTelemetryEvents(_environment: *const OrtEnv) {}

    fn SetLanguageProjection(environment: *const OrtEnv, _projection: i32) {
        get::<Reference>(environment)?;
    }

    fn CreateThreadingOptions(out: *mut *mut OrtThreadingOptions) {
        give(out, Threading::default())?;
    }

    fn SetGlobalIntraOpNumThreads(options: *mut OrtThreadingOptions, threads: c_int) {
        let options = get_mut::<Threading>(options)?;
        if threads < 0 {
            return Err(Failure::argument(format!("{threads} threads were asked for; 0, for all, or more are allowed")));
        }
        options.intra_op_threads = threads;
    }

    // Nodes run one after the other: there is no second pool.
    fn SetGlobalInterOpNumThreads(options: *mut OrtThreadingOptions, _threads: c_int) {
        get_mut::<Threading>(options)?;
    }

    // Sessions have an entry for it.
    fn SetGlobalSpinControl(options: *mut OrtThreadingOptions, _allow: c_int) {
        get_mut::<Threading>(options)?;
    }

    fn SetGlobalDenormalAsZero(options: *mut OrtThreadingOptions) {
        get_mut::<Threading>(options)?;
    }

    fn SetGlobalIntraOpThreadAffinity(options: *mut OrtThreadingOptions, affinity: *const c_char) {
        get_mut::<Threading>(options)?;
        text(affinity, "the affinity")?;
        return Err(Failure::absent("rukh does not bind threads to processors: SetGlobalIntraOpThreadAffinity has no effect here"));
    }

    fn SetGlobalCustomCreateThreadFn(options: *mut OrtThreadingOptions, function: OrtCustomCreateThreadFn) {
        get_mut::<Threading>(options)?;
        own_threads(function.is_some())?;
    }

    fn SetGlobalCustomThreadCreationOptions(options: *mut OrtThreadingOptions, creation: *mut c_void) {
        get_mut::<Threading>(options)?;
        own_threads(!creation.is_null())?;
    }

    fn SetGlobalCustomJoinThreadFn(options: *mut OrtThreadingOptions, function: OrtCustomJoinThreadFn) {
        get_mut::<Threading>(options)?;
        own_threads(function.is_some())?;
    }

    fn CreateAndRegisterAllocator(environment: *mut OrtEnv, info: *const OrtMemoryInfo, arena: *const OrtArenaCfg) {
        register_arena(environment, info, arena)?;
    }

    fn CreateAndRegisterAllocatorV2(environment: *mut OrtEnv, _provider: *const c_char, info: *const OrtMemoryInfo, arena: *const OrtArenaCfg, _keys: *const *const c_char, _values: *const *const c_char, _count: usize) {
        register_arena(environment, info, arena)?;
    }
}

/// Makes the arena that sessions with "session.use_env_allocators" share. The host's memory has none to configure.
///
/// # Safety
/// The pointers are NULL or live objects.
unsafe fn register_arena(
    environment: *mut OrtEnv,
    info: *const OrtMemoryInfo,
    arena: *const OrtArenaCfg,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (environment, info) = unsafe { (get::<Reference>(environment)?, get::<MemoryInfo>(info)?) };
    let Some(id) = info.device()? else { return Ok(()) };
    // SAFETY: the caller's promise.
    let config = if arena.is_null() { None } else { Some(unsafe { get::<ArenaConfig>(arena)? }.text()) };
    let config = config.as_deref().map(c_string);
    let text = config.as_ref().map_or(std::ptr::null(), |config| config.as_ptr());
    // SAFETY: live handle, a text or NULL.
    library::call(|error| unsafe { rukh_environment_create_arena(environment.0.pointer(), id, text, error) })
}

api_release! {
    fn ReleaseEnv(OrtEnv) => Reference;
    fn ReleaseThreadingOptions(OrtThreadingOptions) => Threading;
}
