//! The provider of a session: says which parts of a graph it takes, and makes them ready.

mod table;

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ort_sys::{OrtGraph, OrtLoggingLevel, OrtNode};

use crate::capability::{Opener, Taken, is_within_a_part};
use crate::compute::{Compute, Order};
use crate::context::{self, Source, Written};
use crate::error::{Result, fail};
use crate::library::{Compilation, Environment, Port, Session, SessionOptions};
use crate::options::Options;
use crate::ort::interface::{OrtEp, OrtEpGraphSupportInfo, OrtNodeFusionOptions};
use crate::ort::{Graph, Logger, Node, Ort, c_string};
use crate::part::Part;
use crate::snapshot::Snapshot;
use crate::streams::Streams;

/// The table comes first: ONNX Runtime knows this by its address.
#[repr(C)]
pub(crate) struct Provider {
    table: OrtEp,
    ort: Ort,
    logger: Logger,
    name: CString,
    environment: Arc<Environment>,
    streams: Arc<Streams>,
    /// The GPU that parts run on; none for the CPU.
    gpu: Option<Gpu>,
    options: Options,
    library_options: SessionOptions,
    /// Sessions that were opened to find out what can be run, by the name of their first output, until `compile`.
    opened: Mutex<HashMap<String, Session>>,
    /// What compiled parts that were made suit, as a text for the factory.
    compatibility: OnceLock<CString>,
}

/// A GPU of librukh's: its number and its machine code.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub(crate) index: usize,
    pub(crate) arch: String,
}

/// A part that is ready to run, and the node that stands for it in a model that is made.
struct Compiled {
    compute: Box<Compute>,
    context: Option<Written>,
}

impl Provider {
    pub(crate) fn new(
        ort: Ort,
        logger: Logger,
        name: CString,
        (environment, streams): (Arc<Environment>, Arc<Streams>),
        gpu: Option<Gpu>,
        options: Options,
    ) -> Result<Box<Provider>> {
        let library_options = options.for_library(gpu.as_ref().map(|gpu| gpu.index))?;
        Ok(Box::new(Provider {
            table: table::table(ort.version),
            ort,
            logger,
            name,
            environment,
            streams,
            gpu,
            options,
            library_options,
            opened: Mutex::default(),
            compatibility: OnceLock::new(),
        }))
    }

    fn opener(&self) -> Opener<'_> {
        Opener {
            environment: &self.environment,
            options: &self.library_options,
            compiled: &self.options.compiled,
            on_device: self.gpu.is_some(),
            gives_implicit_inputs: self.ort.version >= 27,
            for_contexts: self.options.context.enabled,
        }
    }

    fn log(&self, text: &str) {
        self.ort.log(self.logger, OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO, text);
    }

    /// # Safety
    /// `graph` and `info` live as long as the call.
    unsafe fn get_capability(&self, graph: *const OrtGraph, info: *mut OrtEpGraphSupportInfo) -> Result<()> {
        // SAFETY: the caller's promise.
        let graph = unsafe { Graph::new(self.ort, graph) };
        if is_within_a_part(&self.opener(), &graph)? {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.take_contexts(&graph, info) }?;
        if self.options.context.enabled && graph.parent()?.is_some() {
            self.log("in a model with compiled parts, nodes in bodies are left to other providers: ONNX Runtime writes parts of the main graph alone");
            return Ok(());
        }
        let snapshot = Snapshot::read(&graph)?;
        if snapshot.nodes.is_empty() {
            return Ok(());
        }
        let (parts, left_out) = self.opener().find(&snapshot)?;
        for reason in left_out {
            self.log(&format!("left to other providers: {reason}"));
        }
        for Taken { part, session } in parts {
            if !self.is_worth_it(&session)? {
                self.log(&format!(
                    "a part of {} nodes is left to the CPU: none of it runs on the GPU",
                    part.nodes.len()
                ));
                continue;
            }
            let Some(first) = part.outputs.first() else {
                continue;
            };
            let nodes: Vec<*const OrtNode> =
                part.nodes.iter().map(|index| snapshot.nodes[*index].pointer).collect();
            // SAFETY: the caller's promise; the nodes are the graph's.
            unsafe { self.take(info, &nodes, true) }?;
            self.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(first.clone(), session);
        }
        Ok(())
    }

    /// Whether a part is better here than with ONNX Runtime's CPU provider: some of it runs on the GPU, or the CPU is
    /// what was asked for, or nobody else may take it.
    fn is_worth_it(&self, session: &Session) -> Result<bool> {
        Ok(self.gpu.is_none() || self.options.no_cpu_fallback || session.nodes_on(c"hip")? > 0)
    }

    /// Takes each node that stands for a part which this provider has compiled.
    ///
    /// # Safety
    /// `info` lives as long as the call.
    unsafe fn take_contexts(&self, graph: &Graph<'_>, info: *mut OrtEpGraphSupportInfo) -> Result<()> {
        for node in graph.nodes()? {
            let Source::Provider(source) = context::source(&node)? else { continue };
            if source.as_bytes() == self.name.as_bytes() {
                // The node's inputs are those of the part, also where one of them is a constant here.
                // SAFETY: the caller's promise; the node is the graph's.
                unsafe { self.take(info, &[node.pointer], false) }?;
            } else {
                let name = node.name()?;
                let text = format!(
                    "left to other providers: node \"{name}\" (com.microsoft.EPContext): \"{source}\" compiled it"
                );
                self.log(&text);
            }
        }
        Ok(())
    }

    /// Asks ONNX Runtime for nodes as one part.
    ///
    /// # Safety
    /// `info` lives as long as the call, and the nodes are those of its graph.
    unsafe fn take(
        &self,
        info: *mut OrtEpGraphSupportInfo,
        nodes: &[*const OrtNode],
        drop_constants: bool,
    ) -> Result<()> {
        let options = OrtNodeFusionOptions {
            ort_version_supported: self.ort.version,
            drop_constant_initializers: drop_constants,
        };
        // SAFETY: the caller's promise; the nodes are an array of their length.
        self.ort.check(unsafe {
            (self.ort.ep.EpGraphSupportInfo_AddNodesToFuse)(info, nodes.as_ptr(), nodes.len(), &options)
        })
    }

    /// # Safety
    /// `graph` and `node` live as long as the call.
    unsafe fn compile(&self, graph: *const OrtGraph, node: *const OrtNode) -> Result<Compiled> {
        // SAFETY: the caller's promise.
        let (graph, node) = unsafe { (Graph::new(self.ort, graph), Node::new(self.ort, node)) };
        if let [inner] = graph.nodes()?[..]
            && context::source(&inner)? != Source::None
        {
            return self.compiled_before(&graph, &node, &inner);
        }
        let (inputs, outputs) = (node.input_names()?, node.output_names()?);
        let kept = outputs
            .iter()
            .find_map(|name| self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(name));
        let session = match kept {
            Some(session) => session,
            None => self.open(&graph)?,
        };
        let positions = |ports: &[Port], names: &[String]| -> Result<Vec<usize>> {
            ports.iter().map(|port| position(names, &port.name.to_string_lossy())).collect()
        };
        let inputs = positions(&session.inputs, &inputs)?;
        let outputs = positions(&session.outputs, &outputs)?.into_iter().enumerate().collect();
        let context = match self.options.context.enabled {
            true => Some(self.write(&graph, &node)?),
            false => None,
        };
        Ok(Compiled { compute: self.ready(session, inputs, outputs)?, context })
    }

    /// A part that a node of the model stands for.
    fn compiled_before(&self, graph: &Graph<'_>, fused: &Node<'_>, node: &Node<'_>) -> Result<Compiled> {
        let name = node.name()?;
        let settings = &self.options.context;
        if settings.enabled {
            fail!(
                InvalidArgument,
                "node \"{name}\" (com.microsoft.EPContext) was compiled before, and ep.context_enable is 1; compile the model that it was made from, or leave the option out"
            );
        }
        let session = context::open(&self.environment, &self.library_options, settings, graph, node)?;
        // Values may have other names than when the part was compiled: their order counts.
        let given = fused.input_names()?;
        let inputs = node.input_names()?.iter().map(|name| position(&given, name)).collect::<Result<_>>()?;
        let wanted = fused.output_names()?;
        let outputs = node.output_names()?.into_iter().enumerate();
        let outputs = outputs
            .filter_map(|(index, name)| {
                Some((index, wanted.iter().position(|it| *it == name && !name.is_empty())?))
            })
            .collect();
        Ok(Compiled { compute: self.ready(session, inputs, outputs)?, context: None })
    }

    fn ready(
        &self,
        session: Session,
        inputs: Vec<usize>,
        outputs: Vec<(usize, usize)>,
    ) -> Result<Box<Compute>> {
        let order = match &self.gpu {
            None => Order::Cpu,
            Some(_) if self.options.in_user_stream() => Order::UserStream(self.streams.clone()),
            Some(_) => Order::Streams(self.streams.clone()),
        };
        let environment = self.environment.clone();
        Ok(Box::new(Compute::new(self.ort, environment, session, (inputs, outputs), order)?))
    }

    /// Waits for all that streams of the GPU were given.
    fn sync(&self) -> Result<()> {
        self.gpu.as_ref().map_or(Ok(()), |gpu| self.streams.settle(gpu.index))
    }

    /// Compiles a part for a model that is made.
    fn write(&self, graph: &Graph<'_>, node: &Node<'_>) -> Result<Written> {
        let device = self.gpu.as_ref().map_or("cpu", |gpu| &gpu.arch);
        let wanted = Compilation {
            targets: self.options.compile_targets.as_deref().unwrap_or(device),
            weights: self.options.compile_weights.as_deref().unwrap_or("used"),
        };
        let name = self.name.to_string_lossy();
        let written =
            context::write(self.ort, &self.opener(), &self.options.context, wanted, &name, (graph, node))?;
        self.compatibility.get_or_init(|| c_string(&context::summary(&written.facts)));
        Ok(written)
    }

    /// A session of a graph that ONNX Runtime fused otherwise than was asked for.
    fn open(&self, graph: &Graph<'_>) -> Result<Session> {
        let snapshot = Snapshot::read(graph)?;
        let nodes: Vec<usize> = (0..snapshot.nodes.len()).collect();
        self.opener().open(&snapshot, &Part::of(&snapshot, &nodes), usize::MAX)
    }
}

/// Where a value is among those of a fused node.
fn position(names: &[String], name: &str) -> Result<usize> {
    match names.iter().position(|it| it == name) {
        Some(position) => Ok(position),
        None => fail!(Fail, "the value \"{name}\" of a part is none of its fused node"),
    }
}
