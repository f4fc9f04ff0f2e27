//! From a model to what sessions run: rewrite the graph, compile the program.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use crate::error::{Result, fail};
use crate::graph::{Dim, Function, Graph, Node};
use crate::model::{self, LoadCounters, Metadata};
use crate::ops::{OpError, Operator};
use crate::passes::{self, Evaluate, Target, Weights};
use crate::plan::{CompileContext, ModelPacks, compile};
use crate::providers::hip::{self, Provider};
use crate::providers::{NodeContext, cpu};
use crate::tensor::{ElementType, Value, ValueType};
use crate::threads::Pool;

use super::environment::Environment;
use super::log::{Category, Level};
use super::options::{Fallback, Optimization, SessionOptions};
use super::{Opened, Port};

/// What a model is built for.
pub(super) struct Parts<'a> {
    pub(super) environment: &'a Environment,
    pub(super) pool: &'a Pool,
    /// Whether nodes are for a GPU, which need not be there to rewrite for it.
    pub(super) on_device: bool,
    pub(super) device: Option<Arc<Provider>>,
    /// Targets of GPUs for which it is built without one.
    pub(super) targets: &'a [String],
    pub(super) fallback_reason: &'a str,
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
    counters: LoadCounters,
    options: &SessionOptions,
) -> Result<Opened> {
    let rewritten = rewrite(&parts, model, options)?;
    compiled(parts, rewritten, counters, options, &mut ModelPacks::Made)
}

/// A model whose graph was rewritten.
#[derive(Clone)]
pub(super) struct Rewritten {
    pub(super) graph: Graph,
    pub(super) metadata: Metadata,
    /// The model's own names for the outputs' dimensions.
    pub(super) declared: Vec<Option<Vec<Dim>>>,
}

/// Rewrites.
pub(super) fn rewrite(
    parts: &Parts<'_>,
    model: Rewritable<'_>,
    options: &SessionOptions,
) -> Result<Rewritten> {
    let Parts { environment, pool, .. } = *parts;
    let mut graph = model.graph;
    let declared = declared(&graph);
    let evaluate = CpuEvaluate(pool);
    let optimize = match options.optimization {
        Optimization::None => None,
        Optimization::Basic => Some(Weights::Dequantized),
        Optimization::All => Some(Weights::Quantized),
    };
    let operators = environment.operators(&options.operators);
    passes::canonicalise(&mut graph, model.functions, &operators, optimize, &evaluate)?;
    if let Some(path) = &options.optimized_model {
        // Fusions make operators of the library's own, which no other program knows.
        model::save(&graph, &model.metadata, path, &options.weights_apart)?;
    }
    let precision = options.computed_precision();
    // On GPUs half precision is faster, where it is wanted.
    let bytes = !parts.on_device
        || precision == ElementType::F32
            && match &parts.device {
                Some(device) => hip::has_matrix_cores(device.target()),
                None => parts.targets.iter().all(|target| hip::has_matrix_cores(target)),
            };
    let target = NodesOf { pool, on_device: parts.on_device, bytes, precision };
    if options.optimization == Optimization::All {
        passes::fuse(&mut graph, &target, &evaluate)?;
    }
    if precision != ElementType::F32 {
        passes::lower(&mut graph, precision, &target)?;
    }
    if options.optimization == Optimization::All {
        passes::channel_layout(&mut graph, &target)?;
        passes::channels_last(&mut graph, &target, &evaluate)?;
    }
    Ok(Rewritten { graph, metadata: model.metadata, declared })
}

/// The shapes of a graph's outputs as far as they are told before inference replaces them.
pub(super) fn declared(graph: &Graph) -> Vec<Option<Vec<Dim>>> {
    graph.outputs.iter().map(|&v| graph.value(v).fact.shape.clone()).collect()
}

/// Compiles a graph whose facts were inferred.
pub(super) fn compiled(
    parts: Parts<'_>,
    rewritten: Rewritten,
    counters: LoadCounters,
    options: &SessionOptions,
    packs: &mut ModelPacks,
) -> Result<Opened> {
    let Parts { environment, pool, device, fallback_reason, .. } = parts;
    let Rewritten { graph, metadata, declared } = rewritten;
    let (inputs, outputs) = ports(&graph, &declared)?;
    let tuned = device.clone().filter(|provider| provider.tuner().is_enabled());
    let mut cx = CompileContext {
        pool,
        plan_limit: options.plan_cache,
        device,
        must_use_device: options.fallback == Fallback::Error,
        fallback_reason,
        placement: Vec::new(),
        packed_bytes: 0,
        copied_bytes: 0,
        copied_weights: 0,
        packs,
    };
    let program = compile(&graph, &mut cx)?;
    let counters = LoadCounters {
        copied_bytes: counters.copied_bytes + cx.copied_bytes,
        copied_weights: counters.copied_weights + cx.copied_weights,
        packed_bytes: cx.packed_bytes,
        ..counters
    };
    let placement = cx.placement;
    options.log(&environment.log).write(
        Level::Info,
        Category::Session,
        &format!("opened model \"{}\": {} nodes after optimization", metadata.graph_name, placement.len()),
    );
    Ok(Opened {
        program,
        inputs,
        outputs,
        metadata,
        placement,
        counters,
        tuned,
        overridable: None,
        fallback: None,
        identity: None,
        device_inputs: OnceLock::new(),
        sessions: AtomicUsize::new(0),
    })
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

/// Lends the CPU provider to the passes.
struct CpuEvaluate<'a>(&'a Pool);

impl Evaluate for CpuEvaluate<'_> {
    fn evaluate(&self, node: &Node, inputs: &[Option<&Value>]) -> std::result::Result<Vec<Value>, OpError> {
        let outputs = cpu::evaluate(node, inputs, self.0);
        // What was cancelled is not done.
        if self.0.cancelled() { Err(OpError::Cancelled) } else { outputs }
    }
}

/// Tells the fusions what the provider of the model's nodes can run.
struct NodesOf<'a> {
    pool: &'a Pool,
    on_device: bool,
    /// Whether it multiplies bytes faster than floats.
    bytes: bool,
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
            packs: None,
        };
        if self.on_device { hip::build(&node).is_ok() } else { cpu::build(&node).is_ok() }
    }

    fn prefers_bytes(&self) -> bool {
        self.bytes
    }

    fn blocks_channels(&self, ty: ElementType) -> bool {
        !self.on_device && cpu::blocks_channels(ty)
    }

    fn prefers_channels_last(&self) -> bool {
        self.on_device
    }

    fn copies_packs(&self) -> bool {
        self.on_device
    }

    fn reads_columns(&self) -> bool {
        !self.on_device
    }

    fn keeps_floats(&self) -> bool {
        self.precision == ElementType::F32
    }

    fn pairs_convolutions(&self, ty: ElementType) -> bool {
        // What is computed in `f32` becomes that precision later.
        let ty = if ty == ElementType::F32 { self.precision } else { ty };
        !self.on_device && cpu::pairs_convolutions(ty)
    }
}
