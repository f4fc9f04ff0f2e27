//! Opening a model: read, rewrite, compile.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::error::{Result, Status, fail};
use crate::graph::{Dim, Function, Graph, Node};
use crate::memory::device::external::ExternalFunctions;
use crate::model::{self, Counters, Metadata, Source};
use crate::ops::{OpError, Operator};
use crate::passes::{self, Evaluate, Target, Weights};
use crate::plan::{CompileContext, compile};
use crate::providers::hip::{self, MemorySource, Provider};
use crate::providers::{NodeContext, cpu};
use crate::tensor::{ElementType, Value, ValueType};
use crate::threads::Pool;

use super::environment::{Environment, Level, thread_count};
use super::options::{Fallback, Optimization, ProviderKind, SessionOptions};
use super::overridable::Overridable;
use super::profile::Recorder;
use super::{LoadCounters, Port, Session};

/// Lends the CPU provider to the passes.
struct CpuEvaluate<'a>(&'a Pool);

impl Evaluate for CpuEvaluate<'_> {
    fn evaluate(&self, node: &Node, inputs: &[Option<&Value>]) -> std::result::Result<Vec<Value>, OpError> {
        cpu::evaluate(node, inputs, self.0)
    }
}

/// Tells the fusions what the provider of the model's nodes can run.
struct NodesOf<'a> {
    pool: &'a Pool,
    on_device: bool,
    precision: ElementType,
}

impl Target for NodesOf<'_> {
    fn runs(
        &self,
        node: &Node,
        op: &dyn Operator,
        inputs: &[Option<ValueType>],
        outputs: &[Option<ValueType>],
    ) -> bool {
        let node = NodeContext {
            provider: if self.on_device { "HIP" } else { "CPU" },
            domain: &node.op.domain,
            name: &node.op.name,
            op,
            input_types: inputs,
            output_types: outputs,
            // Nothing is packed for a question.
            constants: &[],
            pool: self.pool,
        };
        if self.on_device { hip::build(&node).is_ok() } else { cpu::build(&node).is_ok() }
    }

    fn prefers_bytes(&self) -> bool {
        !self.on_device
    }

    fn blocks_channels(&self, ty: ElementType) -> bool {
        !self.on_device && cpu::blocks_channels(ty)
    }

    fn keeps_floats(&self) -> bool {
        self.precision == ElementType::F32
    }
}

pub(super) fn open(
    environment: Arc<Environment>,
    source: Source<'_>,
    options: &SessionOptions,
) -> Result<Session> {
    let pool = match options.threads {
        Some(threads) => Pool::new(thread_count(threads)),
        None => environment.pool.clone(),
    };
    let recorder = options.profiling.then(Recorder::new);
    let (device, fallback_reason) = choose_provider(&environment, options)?;
    let load_start = recorder.as_ref().map(Recorder::now);
    let mut model = model::open(source, options.load == super::Load::Map)?;
    fix_dimensions(&mut model.graph, options)?;
    let overridable = Overridable::of(
        &model.graph,
        &model.functions,
        model.metadata.ir_version,
        options,
        device.clone(),
        &fallback_reason,
    );
    let parts = Parts { environment, pool, device, fallback_reason: &fallback_reason, recorder };
    let rewritable = Rewritable { graph: model.graph, functions: &model.functions, metadata: model.metadata };
    let session = build(parts, rewritable, model.counters, overridable, options)?;
    if let (Some(recorder), Some(start)) = (&session.recorder, load_start) {
        recorder.span("open", start);
    }
    Ok(session)
}

/// What a session has besides its model.
pub(super) struct Parts<'a> {
    pub(super) environment: Arc<Environment>,
    pub(super) pool: Pool,
    pub(super) device: Option<Arc<Provider>>,
    pub(super) fallback_reason: &'a str,
    pub(super) recorder: Option<Recorder>,
}

/// A model before its graph is rewritten.
pub(super) struct Rewritable<'a> {
    pub(super) graph: Graph,
    pub(super) functions: &'a HashMap<(String, String), Function>,
    pub(super) metadata: Metadata,
}

/// Rewrites and compiles.
pub(super) fn build(
    parts: Parts<'_>,
    model: Rewritable<'_>,
    counters: Counters,
    overridable: Option<Overridable>,
    options: &SessionOptions,
) -> Result<Session> {
    let Parts { environment, pool, device, fallback_reason, recorder } = parts;
    let mut graph = model.graph;
    // The model's own names for the outputs' dimensions, before inference replaces them.
    let declared: Vec<Option<Vec<Dim>>> =
        graph.outputs.iter().map(|&v| graph.value(v).fact.shape.clone()).collect();
    let evaluate = CpuEvaluate(&pool);
    let optimize = match options.optimization {
        Optimization::None => None,
        Optimization::Basic => Some(Weights::Dequantized),
        Optimization::All => Some(Weights::Quantized),
    };
    passes::canonicalise(&mut graph, model.functions, optimize, &evaluate)?;
    let precision = precision(options);
    let target = NodesOf { pool: &pool, on_device: device.is_some(), precision };
    if options.optimization == Optimization::All {
        passes::fuse(&mut graph, &target, &evaluate)?;
    }
    if precision != ElementType::F32 {
        passes::lower(&mut graph, precision, &target)?;
    }
    if options.optimization == Optimization::All {
        passes::channel_layout(&mut graph, &target)?;
    }
    let (inputs, outputs) = ports(&graph, &declared)?;
    let tuned = device.clone().filter(|provider| provider.tuner().is_enabled());
    let mut cx = CompileContext {
        pool: &pool,
        plan_limit: options.plan_cache,
        device,
        must_use_device: options.fallback == Fallback::Error,
        fallback_reason,
        placement: Vec::new(),
        packed_bytes: 0,
        copied_bytes: 0,
        copied_weights: 0,
    };
    let program = compile(&graph, &mut cx)?;
    let counters = LoadCounters {
        mapped_bytes: counters.mapped_bytes,
        read_bytes: counters.read_bytes,
        copied_bytes: counters.copied_bytes + cx.copied_bytes,
        copied_weights: counters.copied_weights + cx.copied_weights,
        packed_bytes: cx.packed_bytes,
    };
    let placement = cx.placement;
    environment.log.write(
        Level::Info,
        &format!(
            "opened model \"{}\": {} nodes after optimization",
            model.metadata.graph_name,
            placement.len()
        ),
    );
    let session = Session {
        environment,
        pool,
        program,
        inputs,
        outputs,
        metadata: model.metadata,
        placement,
        counters,
        recorder,
        tuned,
        overridable: overridable.map(Box::new),
    };
    session.report_tuning();
    Ok(session)
}

/// What floats compute in: as the session's option says, else the provider's, else the environment.
fn precision(options: &SessionOptions) -> ElementType {
    if let Some(precision) = options.precision {
        return precision;
    }
    let (fp16, bf16) = match options.hip() {
        Some(hip) => (hip.fp16_enable, hip.bf16_enable),
        None => (hip::wants_fp16(), false),
    };
    match (fp16, bf16) {
        (true, _) => ElementType::F16,
        (_, true) => ElementType::BF16,
        _ => ElementType::F32,
    }
}

/// The device that is wanted, or why nodes run on the CPU; an error when they must not.
fn choose_provider(
    environment: &Environment,
    options: &SessionOptions,
) -> Result<(Option<Arc<Provider>>, String)> {
    let place = |kind| options.providers.iter().position(|provider| provider.kind() == kind);
    let cpu = place(ProviderKind::Cpu);
    let Some(hip_options) = options.hip() else {
        return Ok((None, "the CPU is the wanted provider".to_owned()));
    };
    if cpu.is_some_and(|cpu| Some(cpu) < place(ProviderKind::Hip)) {
        return Ok((None, "the CPU is preferred to hip".to_owned()));
    }
    for remark in hip_options.remarks() {
        environment.log.write(Level::Warning, &format!("provider \"hip\": {remark}"));
    }
    if options.external_allocator.is_some() && hip_options.has_external_allocator() {
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
    if cpu.is_none() {
        fail!(
            Device,
            "provider \"hip\": {error}. It is the only provider that was added; add \"cpu\" after it to run on the CPU where there is no GPU"
        );
    }
    environment.log.warn_user(&format!("provider \"hip\": {error}; the model runs on the CPU"));
    Ok((None, error))
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

/// What the model takes and gives. An output has the dimensions that the model declares, where it
/// names them.
fn ports(graph: &Graph, declared: &[Option<Vec<Dim>>]) -> Result<(Vec<Port>, Vec<Port>)> {
    let port = |id, declared: Option<&Option<Vec<Dim>>>| {
        let info = graph.value(id);
        let Some(ty) = info.fact.ty.clone() else {
            fail!(InvalidModel, "the type of output \"{}\" is not known", info.name);
        };
        let inferred = info.fact.shape.clone();
        let shape = match (declared.cloned().flatten(), inferred) {
            (Some(declared), Some(inferred)) if declared.len() == inferred.len() => {
                let choose = |(d, i): (Dim, Dim)| {
                    let unnamed = d.as_symbol().is_some_and(model::is_unnamed);
                    if i.known().is_some() || unnamed { i } else { d }
                };
                Some(declared.into_iter().zip(inferred).map(choose).collect())
            }
            (declared, inferred) => inferred.or(declared),
        };
        let shape = if matches!(ty, ValueType::Tensor(_)) { shape } else { None };
        Ok(Port { name: info.name.clone(), ty, shape })
    };
    let inputs = graph.inputs.iter().map(|&v| port(v, None)).collect::<Result<_>>()?;
    let outputs =
        graph.outputs.iter().zip(declared).map(|(&v, d)| port(v, Some(d))).collect::<Result<_>>()?;
    Ok((inputs, outputs))
}
