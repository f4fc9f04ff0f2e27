//! Which device and which threads a session works with.

use std::sync::Arc;

use crate::error::{Result, Status, fail};
use crate::memory::device::external::ExternalFunctions;
use crate::providers::hip::{HipOptions, MemorySource, Provider};
use crate::threads::Pool;

use super::environment::{Environment, thread_count};
use super::log::{Category, Level};
use super::options::{Fallback, SessionOptions};
use super::provider_options::ProviderKind;

/// Threads of the session's own, when the options ask for them.
pub(super) fn own_pool(options: &SessionOptions, environment: &Environment) -> Result<Option<Pool>> {
    let SessionOptions { spinning, affinities, .. } = options;
    if options.threads.is_none() && *spinning && affinities.len() == 0 {
        return Ok(None);
    }
    let threads = options.threads.map_or_else(|| environment.pool.threads(), thread_count);
    if affinities.len() != 0 && affinities.len() != threads - 1 {
        fail!(
            InvalidArgument,
            "option \"thread_affinities\" is for {} threads; the session has {} besides the caller's, and both must be equal",
            affinities.len(),
            threads - 1
        );
    }
    Ok(Some(Pool::with(threads, *spinning, affinities)))
}

/// Whether nodes run on a GPU when there is one.
fn wants_device(options: &SessionOptions) -> bool {
    let first = options.providers.first();
    first.is_some_and(|provider| provider.kind() == ProviderKind::Hip)
}

/// The device that nodes run on, when one is wanted and there, or why they run on the CPU.
#[derive(Clone)]
pub(super) struct Chosen {
    pub(super) device: Option<Arc<Provider>>,
    pub(super) fallback_reason: String,
}

impl Chosen {
    pub(super) fn of(environment: &Environment, options: &SessionOptions) -> Result<Self> {
        let (device, fallback_reason) = choose_provider(environment, options)?;
        Ok(Chosen { device, fallback_reason })
    }

    /// Why nodes run on the CPU though a device was wanted.
    pub(super) fn fell_back(&self, options: &SessionOptions) -> Option<String> {
        (self.device.is_none() && wants_device(options)).then(|| self.fallback_reason.clone())
    }
}

/// The device that is wanted; an error where there is none.
pub(super) fn device_of(environment: &Environment, options: &SessionOptions) -> Result<Arc<Provider>> {
    match choose_provider(environment, options)? {
        (Some(provider), _) => Ok(provider),
        (None, reason) => fail!(Device, "provider \"hip\": {reason}"),
    }
}

/// The device that is wanted, or why nodes run on the CPU; an error when they must not.
fn choose_provider(
    environment: &Environment,
    options: &SessionOptions,
) -> Result<(Option<Arc<Provider>>, String)> {
    let cpu = options.providers.iter().any(|provider| provider.kind() == ProviderKind::Cpu);
    let Some(hip_options) = options.hip() else {
        return Ok((None, "the CPU is the wanted provider".to_owned()));
    };
    if !wants_device(options) {
        return Ok((None, "the CPU is preferred to hip".to_owned()));
    }
    tell_remarks(environment, options);
    if options.external_allocator.is_some() && hip_options.gpu_external_alloc != 0 {
        fail!(
            InvalidArgument,
            "the functions of rukh_session_options_set_external_allocator and provider option \"gpu_external_alloc\" cannot be used together; give one of them"
        );
    }
    if options.external_allocator.is_some() && hip_options.user_stream().is_some() {
        fail!(
            InvalidArgument,
            "provider option \"user_compute_stream\" and an external allocator cannot be used together; give one of them"
        );
    }
    let external = match &options.external_allocator {
        Some(functions) => Some(*functions),
        // SAFETY: whoever sets the options says that these are such functions; the header demands it.
        None => unsafe {
            ExternalFunctions::from_addresses(
                hip_options.gpu_external_alloc,
                hip_options.gpu_external_free,
                hip_options.gpu_external_empty_cache,
            )?
        },
    };
    let source = match (external, options.use_env_allocators) {
        (Some(_), true) => fail!(
            InvalidArgument,
            "option \"use_env_allocators\" and an external allocator cannot be used together; give one of them"
        ),
        (Some(functions), false) => MemorySource::External(functions),
        (None, true) => MemorySource::Shared(environment.device_arena(hip_options.device_id)?),
        (None, false) => MemorySource::Arena,
    };
    let fourier = environment.fourier_plans(hip_options.device_id);
    let error = match Provider::open(hip_options, source, &environment.providers(), &fourier) {
        Ok(provider) => {
            environment.note_provider(&provider);
            return Ok((Some(provider), String::new()));
        }
        Err(error) if error.status != Status::Device => return Err(error),
        Err(error) => error.message,
    };
    if options.fallback == Fallback::Error {
        fail!(
            Device,
            "provider \"hip\": {error}, and option \"fallback\" is \"error\"; allow the CPU with \"cpu\""
        );
    }
    if !cpu {
        fail!(
            Device,
            "provider \"hip\": {error}. It is the only provider that was added; add \"cpu\" after it to run on the CPU where there is no GPU"
        );
    }
    tell_fallback(environment, options, &error);
    Ok((None, error))
}

/// Warns of options of the provider that have no effect.
pub(super) fn tell_remarks(environment: &Environment, options: &SessionOptions) {
    for remark in options.hip().map(HipOptions::remarks).unwrap_or_default() {
        let log = options.log(&environment.log);
        log.write(Level::Warning, Category::Provider, &format!("provider \"hip\": {remark}"));
    }
}

/// Warns that the CPU runs what was meant for a device.
pub(super) fn tell_fallback(environment: &Environment, options: &SessionOptions, reason: &str) {
    let message = format!("provider \"hip\": {reason}; the model runs on the CPU");
    options.log(&environment.log).warn_user(Category::Provider, &message);
}
