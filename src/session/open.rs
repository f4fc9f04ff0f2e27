//! Opening a model: choose the device, read, build.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Result, Status, fail};
use crate::graph::{Dim, Graph};
use crate::memory::device::external::ExternalFunctions;
use crate::model::{self, Source};
use crate::providers::hip::{HipOptions, MemorySource, Provider};
use crate::threads::Pool;

use super::build::{Parts, Rewritable, build};
use super::environment::{Environment, Level, thread_count};
use super::options::{Fallback, SessionOptions};
use super::overridable::Overridable;
use super::profile::Recorder;
use super::provider_options::ProviderKind;
use super::sharing::Wanted;
use super::{Opened, Session};

pub(super) fn open(
    environment: Arc<Environment>,
    source: Source<'_>,
    options: &SessionOptions,
) -> Result<Session> {
    let pool = own_pool(options, &environment)?.unwrap_or_else(|| environment.pool.clone());
    let recorder = options.profiling.then(Recorder::new);
    let start = recorder.as_ref().map(Recorder::now);
    let wanted = Wanted::of(source, options, &environment.operators(&options.operators));
    let shared = wanted.as_ref().and_then(|wanted| environment.models.find(wanted));
    let (opened, is_first) = match shared {
        Some(opened) => {
            tell_remarks(&environment, options);
            if let Some(reason) = &opened.fallback {
                tell_fallback(&environment, reason);
            }
            (opened, false)
        }
        None => environment.models.offer(build_model(&environment, &pool, source, options, wanted)?),
    };
    let counters = if is_first { opened.counters } else { opened.counters.of_sharing() };
    let number = opened.next_number();
    let session = Session { environment, pool, opened, number, counters, recorder };
    session.report_tuning();
    if let (Some(recorder), Some(start)) = (&session.recorder, start) {
        recorder.span("open", start);
    }
    Ok(session)
}

/// Threads of the session's own, when the options ask for them.
fn own_pool(options: &SessionOptions, environment: &Environment) -> Result<Option<Pool>> {
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

/// Reads a model and makes it ready to run.
fn build_model(
    environment: &Environment,
    pool: &Pool,
    source: Source<'_>,
    options: &SessionOptions,
    wanted: Option<Wanted>,
) -> Result<Opened> {
    let (device, fallback_reason) = choose_provider(environment, options)?;
    let fell_back = device.is_none() && wants_device(options);
    let mut model = model::open(source, options.load == super::Load::Map, &options.given)?;
    fix_dimensions(&mut model.graph, options)?;
    let overridable = Overridable::of(
        &model.graph,
        &model.functions,
        model.metadata.ir_version,
        options,
        device.clone(),
        &fallback_reason,
    );
    let parts = Parts { environment, pool, device, fallback_reason: &fallback_reason };
    let rewritable = Rewritable { graph: model.graph, functions: &model.functions, metadata: model.metadata };
    let mut opened = build(parts, rewritable, model.counters, options)?;
    opened.overridable = overridable.map(Box::new);
    opened.fallback = fell_back.then_some(fallback_reason);
    opened.identity = wanted.and_then(|wanted| wanted.identity(model.files));
    Ok(opened)
}

/// Whether nodes run on a GPU when there is one.
fn wants_device(options: &SessionOptions) -> bool {
    let first = options.providers.first();
    first.is_some_and(|provider| provider.kind() == ProviderKind::Hip)
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
    let error = match Provider::open(hip_options, source, &environment.providers()) {
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
    tell_fallback(environment, &error);
    Ok((None, error))
}

/// Warns of options of the provider that have no effect.
fn tell_remarks(environment: &Environment, options: &SessionOptions) {
    for remark in options.hip().map(HipOptions::remarks).unwrap_or_default() {
        environment.log.write(Level::Warning, &format!("provider \"hip\": {remark}"));
    }
}

/// Warns that the CPU runs what was meant for a device.
fn tell_fallback(environment: &Environment, reason: &str) {
    environment.log.warn_user(&format!("provider \"hip\": {reason}; the model runs on the CPU"));
}

/// Replaces the symbolic dimensions that the options fix.
fn fix_dimensions(graph: &mut Graph, options: &SessionOptions) -> Result<()> {
    if options.dimensions.is_empty() {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    for &input in &graph.inputs {
        let symbols = graph.value(input).fact.shape.iter().flatten().filter_map(Dim::as_symbol);
        known.extend(symbols.filter(|s| !model::is_unnamed(s)).map(str::to_owned));
    }
    if let Some(name) = options.dimensions.keys().find(|name| !known.contains(*name)) {
        let known: Vec<String> = known.into_iter().collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        fail!(
            InvalidArgument,
            "option \"dim.{name}\": the model's inputs have no dimension of this name; they have {known}"
        );
    }
    let size = |name: &str| options.dimensions.get(name).map(|&n| Dim::from(n).known().unwrap_or(i64::MAX));
    for value in graph.inputs.iter().chain(&graph.outputs).copied().collect::<Vec<_>>() {
        if let Some(shape) = &mut graph.value_mut(value).fact.shape {
            shape.iter_mut().for_each(|d| *d = d.substitute(&size));
        }
    }
    Ok(())
}
