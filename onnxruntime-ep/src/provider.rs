//! The provider of a session: says which parts of a graph it takes, and makes them ready.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtGraph, OrtLoggingLevel, OrtNode, OrtStatusPtr};

use crate::capability::{Opener, Taken, is_within_a_part};
use crate::compute::Compute;
use crate::error::{Result, fail};
use crate::library::{Environment, Session, SessionOptions};
use crate::options::Options;
use crate::ort::interface::{OrtEp, OrtEpGraphSupportInfo, OrtNodeComputeInfo, OrtNodeFusionOptions};
use crate::ort::{Graph, Logger, Node, Ort, guard, guard_or};
use crate::part::Part;
use crate::snapshot::Snapshot;

/// The table comes first: ONNX Runtime knows this by its address.
#[repr(C)]
pub(crate) struct Provider {
    table: OrtEp,
    ort: Ort,
    logger: Logger,
    name: CString,
    environment: Arc<Environment>,
    /// The GPU that parts run on; none for the CPU.
    gpu: Option<usize>,
    options: Options,
    library_options: SessionOptions,
    /// Sessions that were opened to find out what can be run, by the name of their first output, until `compile`.
    opened: Mutex<HashMap<String, Session>>,
}

impl Provider {
    pub(crate) fn new(
        ort: Ort,
        logger: Logger,
        name: CString,
        environment: Arc<Environment>,
        gpu: Option<usize>,
        options: Options,
    ) -> Result<Box<Provider>> {
        let library_options = options.for_library(gpu)?;
        Ok(Box::new(Provider {
            table: table(ort.version),
            ort,
            logger,
            name,
            environment,
            gpu,
            options,
            library_options,
            opened: Mutex::default(),
        }))
    }

    fn opener(&self) -> Opener<'_> {
        Opener {
            environment: &self.environment,
            options: &self.library_options,
            on_device: self.gpu.is_some(),
            gives_implicit_inputs: self.ort.version >= 27,
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
        let snapshot = Snapshot::read(&graph)?;
        self.refuse_contexts(&snapshot)?;
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
            let options = OrtNodeFusionOptions {
                ort_version_supported: self.ort.version,
                drop_constant_initializers: true,
            };
            // SAFETY: the caller's promise; the nodes are the graph's.
            self.ort.check(unsafe {
                (self.ort.ep.EpGraphSupportInfo_AddNodesToFuse)(info, nodes.as_ptr(), nodes.len(), &options)
            })?;
            self.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(first.clone(), session);
        }
        Ok(())
    }

    /// Whether a part is better here than with ONNX Runtime's CPU provider: some of it runs on the GPU, or the CPU is
    /// what was asked for, or nobody else may take it.
    fn is_worth_it(&self, session: &Session) -> Result<bool> {
        Ok(self.gpu.is_none() || self.options.no_cpu_fallback || session.nodes_on(c"hip")? > 0)
    }

    /// Models that this provider is said to have compiled do not exist.
    fn refuse_contexts(&self, snapshot: &Snapshot<'_>) -> Result<()> {
        for node in snapshot.nodes.iter().filter(|node| node.proto.op_type == "EPContext") {
            let source = node.proto.attribute.iter().find(|attribute| attribute.name == "source");
            let source =
                source.and_then(|attribute| attribute.s.as_ref()).map(|text| String::from_utf8_lossy(text));
            if source.is_none_or(|source| source.as_bytes() == self.name.as_bytes()) {
                fail!(
                    NotImplemented,
                    "{}: {} runs no EPContext models, for nothing is compiled; open the model that it was made from",
                    node.title(),
                    self.name.to_string_lossy()
                );
            }
        }
        Ok(())
    }

    /// # Safety
    /// `graph` and `node` live as long as the call.
    unsafe fn compile(&self, graph: *const OrtGraph, node: *const OrtNode) -> Result<Box<Compute>> {
        // SAFETY: the caller's promise.
        let (graph, node) = unsafe { (Graph::new(self.ort, graph), Node::new(self.ort, node)) };
        let names = |values: Vec<Option<crate::ort::ValueInfo<'_>>>| -> Result<Vec<String>> {
            values.into_iter().map(|value| value.map_or(Ok(String::new()), |value| value.name())).collect()
        };
        let (inputs, outputs) = (names(node.inputs()?)?, names(node.outputs()?)?);
        let kept = outputs
            .iter()
            .find_map(|name| self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(name));
        let session = match kept {
            Some(session) => session,
            None => self.open(&graph)?,
        };
        let positions = |ports: &[crate::library::Port], names: &[String]| -> Result<Vec<usize>> {
            let position = |port: &crate::library::Port| {
                let name = port.name.to_string_lossy();
                match names.iter().position(|it| *it == name) {
                    Some(position) => Ok(position),
                    None => fail!(Fail, "the value \"{name}\" of a part is none of its fused node"),
                }
            };
            ports.iter().map(position).collect()
        };
        let inputs = positions(&session.inputs, &inputs)?;
        let outputs = positions(&session.outputs, &outputs)?;
        let (environment, stream) = (self.environment.clone(), self.options.in_user_stream());
        let compute = Compute::new(self.ort, self.logger, environment, session, inputs, outputs, stream)?;
        Ok(Box::new(compute))
    }

    /// A session of a graph that ONNX Runtime fused otherwise than was asked for.
    fn open(&self, graph: &Graph<'_>) -> Result<Session> {
        let snapshot = Snapshot::read(graph)?;
        let nodes: Vec<usize> = (0..snapshot.nodes.len()).collect();
        self.opener().open(&snapshot, &Part::of(&snapshot, &nodes), usize::MAX)
    }
}

fn table(version: u32) -> OrtEp {
    OrtEp {
        ort_version_supported: version,
        GetName: get_name,
        GetCapability: get_capability,
        Compile: compile,
        ReleaseNodeComputeInfos: release_compute_infos,
        GetPreferredDataLayout: null(),
        ShouldConvertDataLayoutForOp: null(),
        SetDynamicOptions: null(),
        OnRunStart: None,
        OnRunEnd: null(),
        CreateAllocator: null(),
        CreateSyncStreamForDevice: null(),
        GetCompiledModelCompatibilityInfo: null(),
        GetKernelRegistry: null(),
        IsConcurrentRunSupported: Some(is_concurrent_run_supported),
        Sync: Some(sync),
        CreateProfiler: null(),
        IsGraphCaptureEnabled: null(),
        IsGraphCaptured: null(),
        ReplayGraph: null(),
        GetGraphCaptureNodeAssignmentPolicy: null(),
        GetAvailableResource: null(),
        OnSessionInitializationEnd: null(),
        GetDefaultMemoryDevice: null(),
        ReleaseCapturedGraph: null(),
    }
}

/// # Safety
/// `this` is a table that a `Provider` begins with, which lives for `'a`.
unsafe fn provider<'a>(this: *const OrtEp) -> &'a Provider {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast::<Provider>() }
}

unsafe extern "system" fn get_name(this: *const OrtEp) -> *const c_char {
    guard_or(null(), || {
        // SAFETY: in this file, ONNX Runtime calls functions of the table with the table, until it is released.
        unsafe { provider(this) }.name.as_ptr()
    })
}

unsafe extern "system" fn get_capability(
    this: *mut OrtEp,
    graph: *const OrtGraph,
    info: *mut OrtEpGraphSupportInfo,
) -> OrtStatusPtr {
    // SAFETY: as above; graph and info live as long as the call.
    let provider = unsafe { provider(this) };
    // SAFETY: as above.
    guard(&provider.ort, || unsafe { provider.get_capability(graph, info) })
}

unsafe extern "system" fn compile(
    this: *mut OrtEp,
    graphs: *const *const OrtGraph,
    nodes: *const *const OrtNode,
    count: usize,
    infos: *mut *mut OrtNodeComputeInfo,
    _contexts: *mut *mut OrtNode,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let provider = unsafe { provider(this) };
    guard(&provider.ort, || {
        let mut computes = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: the arrays have `count` elements, which live as long as the call.
            computes.push(unsafe { provider.compile(*graphs.add(index), *nodes.add(index)) }?);
        }
        for (index, compute) in computes.into_iter().enumerate() {
            // SAFETY: there is room for `count` tables, which ONNX Runtime gives back to `release_compute_infos`.
            unsafe { infos.add(index).write(Box::into_raw(compute).cast()) };
        }
        Ok(())
    })
}

unsafe extern "system" fn release_compute_infos(
    _this: *mut OrtEp,
    infos: *mut *mut OrtNodeComputeInfo,
    count: usize,
) {
    guard_or((), || {
        for index in 0..count {
            // SAFETY: each is what `compile` made of a box, and is given back once.
            unsafe {
                let info = *infos.add(index);
                if !info.is_null() {
                    drop(Box::from_raw(info.cast::<Compute>()));
                }
            }
        }
    })
}

unsafe extern "system" fn is_concurrent_run_supported(
    _this: *mut OrtEp,
    supported: *mut bool,
) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), || {
        // SAFETY: ONNX Runtime gives a place.
        unsafe { supported.write(true) };
        OrtStatusPtr::default()
    })
}

/// Runs and copies have ended when they return, so there is nothing to wait for.
unsafe extern "system" fn sync(_this: *mut OrtEp) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), OrtStatusPtr::default)
}
