//! Opening a model: choose the device, read, build.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::{Result, fail};
use crate::model::{self, Source};
use crate::threads::Pool;

use super::artifact::{build_artifact, is_compiled};
use super::build::{Parts, Rewritable, build};
use super::choose::{Chosen, own_pool, tell_fallback, tell_remarks};
use super::dimensions::fix_dimensions;
use super::environment::Environment;
use super::model_cache::Cached;
use super::options::SessionOptions;
use super::overridable::Overridable;
use super::profile::Recorder;
use super::sharing::Wanted;
use super::{Opened, Session};

pub(super) fn open(
    environment: Arc<Environment>,
    source: Source<'_>,
    options: &SessionOptions,
    cancel: Option<Arc<AtomicBool>>,
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
                tell_fallback(&environment, options, reason);
            }
            (opened, false)
        }
        None => {
            let pool = pool.until(cancel);
            let opened = build_model(&environment, &pool, source, options, wanted);
            if pool.cancelled() {
                // What was left out may have led to another error.
                fail!(Cancelled, "opening the model was cancelled");
            }
            environment.models.offer(opened?)
        }
    };
    let counters = if is_first { opened.counters } else { opened.counters.of_sharing() };
    let number = opened.next_number();
    let log = options.log(&environment.log);
    let session = Session { environment, log, pool, opened, number, counters, recorder };
    session.report_tuning();
    if let (Some(recorder), Some(start)) = (&session.recorder, start) {
        recorder.span("open", start);
    }
    Ok(session)
}

/// Reads a model and makes it ready to run.
fn build_model(
    environment: &Environment,
    pool: &Pool,
    source: Source<'_>,
    options: &SessionOptions,
    wanted: Option<Wanted>,
) -> Result<Opened> {
    let chosen = Chosen::of(environment, options)?;
    if is_compiled(source) {
        let (mut opened, files) = build_artifact(environment, pool, source, options, chosen)?;
        opened.identity = wanted.and_then(|wanted| wanted.identity(files));
        return Ok(opened);
    }
    let cached = Cached::of(environment, pool, source, options, &chosen)?;
    if let Some((mut opened, files)) = cached.and_then(|cached| cached.open(&chosen)) {
        opened.identity = wanted.and_then(|wanted| wanted.identity(files));
        return Ok(opened);
    }
    let fallback = chosen.fell_back(options);
    let Chosen { device, fallback_reason } = chosen;
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
    let on_device = device.is_some();
    let parts =
        Parts { environment, pool, on_device, device, targets: &[], fallback_reason: &fallback_reason };
    let rewritable = Rewritable { graph: model.graph, functions: &model.functions, metadata: model.metadata };
    let mut opened = build(parts, rewritable, model.counters, options)?;
    opened.overridable = overridable.map(Box::new);
    opened.fallback = fallback;
    opened.identity = wanted.and_then(|wanted| wanted.identity(model.files));
    Ok(opened)
}
