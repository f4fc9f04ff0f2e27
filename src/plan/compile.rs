//! A graph as a program: kernels made, constants packed or kept, placement told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::error::{Result, Status, fail};
use crate::graph::{Dim, Graph, Node, ValueId};
use crate::ops::generation::Generation;
use crate::ops::{self, Operator, control};
use crate::providers::NodeContext;
use crate::providers::cpu::{self, CpuKernel};
use crate::providers::hip::{HipKernel, Provider};
use crate::tensor::{Place, Tensor, ValueType};
use crate::threads::Pool;

use super::packs::ModelPacks;
use super::place::{NotOnDevice, Placement};
use super::program::{Body, Control, Generator, PlacementRow, Program, ProgramValue, Step, StepBody};

/// What compiling needs, and what it tells besides the program.
pub(crate) struct CompileContext<'a> {
    pub(crate) pool: &'a Pool,
    /// How many shaped plans a program keeps.
    pub(crate) plan_limit: usize,
    /// The device that takes the nodes it can, when there is one.
    pub(crate) device: Option<Arc<Provider>>,
    /// Whether a node that the device cannot take is an error.
    pub(crate) must_use_device: bool,
    /// Why nodes run on the CPU when there is no device.
    pub(crate) fallback_reason: &'a str,
    pub(crate) placement: Vec<PlacementRow>,
    /// Bytes of constants that kernels packed for themselves.
    pub(crate) packed_bytes: u64,
    /// Bytes and number of constants that were copied to align them.
    pub(crate) copied_bytes: u64,
    pub(crate) copied_weights: u64,
    pub(crate) packs: &'a mut ModelPacks,
}

/// Compiles a graph whose facts were inferred.
pub(crate) fn compile(graph: &Graph, cx: &mut CompileContext<'_>) -> Result<Program> {
    let order: Vec<&Node> = graph.order().unwrap_or_default().into_iter().map(|id| graph.node(id)).collect();
    let mut placement = Placement::new(graph, &order, cx.device.clone());
    let mut steps = Vec::with_capacity(order.len());
    for node in order {
        if cx.pool.cancelled() {
            fail!(Cancelled, "opening was cancelled before node \"{}\"", node.name);
        }
        step(graph, node, &mut placement, &mut steps, cx)?;
    }
    let outputs = graph
        .outputs
        .iter()
        .map(|v| placement.at(v.0, Place::Host, &mut steps))
        .collect::<Result<Vec<u32>>>()?;
    if cx.device.is_some() {
        copies_apart(graph, &outputs, &mut steps);
    }
    // Whether a constant is read while running.
    let mut read = vec![false; graph.value_count() + placement.added.len()];
    for step in &steps {
        for (i, value) in step.inputs.iter().enumerate() {
            let consumed = matches!(&step.body, StepBody::Kernel(CpuKernel::Tensor(k)) if k.consumes(i));
            if let (Some(value), false) = (value, consumed) {
                read[*value as usize] = true;
            }
        }
    }
    outputs.iter().for_each(|&v| read[v as usize] = true);
    for (i, _) in read.iter().enumerate().take(graph.value_count()).filter(|(_, read)| **read) {
        let value = graph.value(ValueId(i as u32));
        if let Some(tensor) = &value.constant {
            cx.packs.read(&value.name, tensor)?;
        }
    }
    let values = values(graph, &read, placement, cx)?;
    let inputs = graph.inputs.iter().chain(&graph.captures).map(|v| v.0).collect();
    Ok(Program::new(values, inputs, graph.captures.len(), outputs, steps, cx.plan_limit, cx.device.clone()))
}

/// Puts copies of the graph's inputs first and copies to its outputs last, so that the device gets the work
/// between them in one go.
fn copies_apart(graph: &Graph, outputs: &[u32], steps: &mut [Step]) {
    let read: std::collections::HashSet<u32> =
        steps.iter().flat_map(|s| s.inputs.iter().flatten().copied()).collect();
    let from_input = |step: &Step| {
        matches!(step.body, StepBody::Copy(Place::Device))
            && step.inputs[0].is_some_and(|v| graph.inputs.iter().any(|input| input.0 == v))
    };
    let to_output = |step: &Step| {
        matches!(step.body, StepBody::Copy(Place::Host))
            && step.outputs[0].is_some_and(|v| outputs.contains(&v) && !read.contains(&v))
    };
    steps.sort_by_key(|step| if from_input(step) { 0 } else { 1 + to_output(step) as u8 });
}

/// The values, with those constants that are read while running.
fn values(
    graph: &Graph,
    read: &[bool],
    placement: Placement<'_>,
    cx: &mut CompileContext<'_>,
) -> Result<Vec<ProgramValue>> {
    let mut aligned: HashMap<*const Tensor, Tensor> = HashMap::new();
    let mut values = (0..graph.value_count())
        .map(|i| {
            let info = graph.value(ValueId(i as u32));
            let constant = match &info.constant {
                Some(tensor) if read[i] => Some(match aligned.entry(Arc::as_ptr(tensor)) {
                    Entry::Occupied(entry) => entry.get().clone(),
                    Entry::Vacant(entry) => {
                        if !tensor.is_aligned() {
                            cx.copied_bytes += tensor.buffer().map_or(0, |b| b.len() as u64);
                            cx.copied_weights += 1;
                        }
                        entry.insert(tensor.aligned()?).clone()
                    }
                }),
                _ => None,
            };
            let fact = if info.constant.is_some() { info.fact.clone() } else { Default::default() };
            let (name, ty) = (info.name.clone(), info.fact.ty.clone());
            Ok(ProgramValue { name, ty, constant, fact, place: placement.place(i as u32) })
        })
        .collect::<Result<Vec<ProgramValue>>>()?;
    values.extend(placement.added);
    Ok(values)
}

/// Appends the step of a node, and before it the copies that it needs.
fn step(
    graph: &Graph,
    node: &Node,
    placement: &mut Placement<'_>,
    steps: &mut Vec<Step>,
    cx: &mut CompileContext<'_>,
) -> Result<()> {
    let name = node.op.to_string();
    let (registered, op) = ops::resolve(node).map_err(|e| e.at(&node.name, &name, Status::InvalidModel))?;
    let row = cx.placement.len();
    cx.placement.push(PlacementRow {
        node: node.name.clone(),
        operator: name.clone(),
        provider: "cpu",
        reason: cx.fallback_reason.to_owned(),
    });
    let outputs: Vec<Option<u32>> = node.outputs.iter().map(|v| v.map(|v| v.0)).collect();
    let body = device_kernel(graph, node, &*op, placement, row, cx)?;
    let (inputs, body) = match body {
        Some(kernel) => {
            let on_host =
                |i: usize| registered.shape_inputs.contains(&i) || kernel.host_inputs().contains(&i);
            let inputs = node.inputs.iter().enumerate().map(|(i, v)| {
                v.map(|v| match on_host(i) {
                    true => placement.at(v.0, Place::Host, steps),
                    false => placement.on_device(&*kernel, i, v.0, steps),
                })
                .transpose()
            });
            let inputs = inputs.collect::<Result<Vec<Option<u32>>>>()?;
            outputs.iter().flatten().for_each(|&v| placement.make(v, Place::Device));
            (inputs, StepBody::Device(kernel))
        }
        None => {
            let mut inputs: Vec<Option<u32>> = node.inputs.iter().map(|v| v.map(|v| v.0)).collect();
            let control = control(graph, &*op, &mut inputs, cx)?;
            let body = match control {
                Some(control) => {
                    cx.placement[row].reason = "control flow: the session runs it".to_owned();
                    StepBody::Control(control)
                }
                None => {
                    let kernel = kernel(graph, node, &*op, cx)?;
                    if let CpuKernel::Tensor(kernel) = &kernel {
                        cx.placement[row].add_algorithm(kernel.algorithm());
                    }
                    StepBody::Kernel(kernel)
                }
            };
            let inputs =
                inputs.into_iter().map(|v| v.map(|v| placement.at(v, Place::Host, steps)).transpose());
            (inputs.collect::<Result<Vec<Option<u32>>>>()?, body)
        }
    };
    steps.push(Step { node: node.name.clone(), op_name: name, inputs, outputs, op, registered, body });
    Ok(())
}

/// The device's kernel for a node that it takes; the placement's row says where the node runs and why.
fn device_kernel(
    graph: &Graph,
    node: &Node,
    op: &dyn Operator,
    placement: &Placement<'_>,
    row: usize,
    cx: &mut CompileContext<'_>,
) -> Result<Option<Box<dyn HipKernel>>> {
    if cx.device.is_none() {
        return Ok(None);
    }
    let facts = NodeFacts::new(graph, node);
    let context = NodeContext {
        provider: "HIP",
        domain: &node.op.domain,
        name: &node.op.name,
        op,
        input_types: &facts.inputs,
        output_types: &facts.outputs,
        constants: &facts.constants,
        pool: cx.pool,
        packs: None,
    };
    let row = &mut cx.placement[row];
    match placement.device_kernel(&context, node) {
        Ok(kernel) => {
            row.provider = "hip";
            row.reason = String::new();
            Ok(Some(kernel))
        }
        Err(NotOnDevice::Fallback(reason)) if cx.must_use_device => {
            fail!(
                Unsupported,
                "node \"{}\" ({}): {reason}, and option \"fallback\" is \"error\"; allow it with \"cpu\"",
                node.name,
                node.op
            )
        }
        Err(NotOnDevice::Fallback(reason) | NotOnDevice::ByNature(reason)) => {
            row.reason = reason;
            Ok(None)
        }
    }
}

/// Types of a node's inputs and outputs, and its constant inputs.
struct NodeFacts<'g> {
    inputs: Vec<Option<ValueType>>,
    outputs: Vec<Option<ValueType>>,
    constants: Vec<Option<&'g Tensor>>,
}

impl<'g> NodeFacts<'g> {
    fn new(graph: &'g Graph, node: &Node) -> Self {
        let types = |values: &[Option<ValueId>]| -> Vec<Option<ValueType>> {
            values.iter().map(|v| v.and_then(|v| graph.value(v).fact.ty.clone())).collect()
        };
        let constant = |v: &Option<ValueId>| v.and_then(|v| graph.value(v).constant.as_deref());
        NodeFacts {
            inputs: types(&node.inputs),
            outputs: types(&node.outputs),
            constants: node.inputs.iter().map(constant).collect(),
        }
    }
}

fn kernel(graph: &Graph, node: &Node, op: &dyn Operator, cx: &mut CompileContext<'_>) -> Result<CpuKernel> {
    let facts = NodeFacts::new(graph, node);
    let sources = facts.constants.iter().flatten().all(|tensor| !tensor.is_absent());
    let packs = cx.packs.begin(node, sources);
    let kernel = cpu::build(&NodeContext {
        provider: "CPU",
        domain: &node.op.domain,
        name: &node.op.name,
        op,
        input_types: &facts.inputs,
        output_types: &facts.outputs,
        constants: &facts.constants,
        pool: cx.pool,
        packs: packs.as_ref(),
    })
    .map_err(|e| e.at(&node.name, &node.op.to_string(), Status::InvalidModel))?;
    let packed: Vec<&Tensor> = match &kernel {
        CpuKernel::Tensor(kernel) => {
            let constants = facts.constants.iter().enumerate();
            constants.filter(|(i, _)| kernel.consumes(*i)).filter_map(|(_, tensor)| *tensor).collect()
        }
        CpuKernel::Value(_) => Vec::new(),
    };
    let kept = packs.map(|packs| cx.packs.end(node, packs, &packed)).transpose()?.unwrap_or(false);
    if !kept {
        cx.packed_bytes +=
            packed.iter().map(|tensor| tensor.buffer().map_or(0, |b| b.len() as u64)).sum::<u64>();
    }
    Ok(kernel)
}

/// What is known of the shapes of a graph's outputs, from inference or else from what the model declares.
fn shapes(graph: &Graph) -> Vec<Vec<usize>> {
    let known = |dim: &Dim| dim.known().and_then(|n| usize::try_from(n).ok());
    let one = |(i, &output): (usize, &ValueId)| {
        let inferred = graph.value(output).fact.shape.as_deref();
        let declared = graph.declared.get(i).and_then(Option::as_deref);
        let rank = inferred.or(declared).map_or(0, <[Dim]>::len);
        let at = |shape: Option<&[Dim]>, axis: usize| known(shape?.get(axis)?);
        (0..rank).map(|axis| at(inferred, axis).or_else(|| at(declared, axis)).unwrap_or(0)).collect()
    };
    graph.outputs.iter().enumerate().map(one).collect()
}

/// The nested programs of a control-flow node. Their captures are added to the step's inputs.
fn control(
    graph: &Graph,
    op: &dyn Operator,
    inputs: &mut Vec<Option<u32>>,
    cx: &mut CompileContext<'_>,
) -> Result<Option<Control>> {
    let mut body = |body: &Graph| -> Result<Box<Body>> {
        let program = compile(body, cx)?;
        let captures = body
            .captures
            .iter()
            .map(|&capture| {
                let outer = graph.find_value(&body.value(capture).name).map(|v| v.0);
                inputs.push(outer);
                inputs.len() - 1
            })
            .collect();
        let rank = |&v: &ValueId| body.value(v).fact.shape.as_ref().map_or(0, Vec::len);
        let ranks = body.inputs.iter().map(rank).collect();
        Ok(Box::new(Body { program, captures, ranks, shapes: shapes(body) }))
    };
    Ok(if let Some(op) = op.downcast::<control::If>() {
        Some(Control::If { then_branch: body(&op.then_branch)?, else_branch: body(&op.else_branch)? })
    } else if let Some(op) = op.downcast::<control::Loop>() {
        Some(Control::Loop(body(&op.body)?))
    } else if let Some(op) = op.downcast::<control::Scan>() {
        Some(Control::Scan(body(&op.body)?))
    } else if let Some(op) = op.downcast::<control::SequenceMap>() {
        Some(Control::SequenceMap(body(&op.body)?))
    } else if let Some(op) = op.downcast::<Generation>() {
        Some(Control::Generation(Box::new(Generator {
            encoder: op.encoder.as_deref().map(&mut body).transpose()?,
            init_decoder: op.init_decoder.as_deref().map(&mut body).transpose()?,
            decoder: body(&op.decoder)?,
        })))
    } else {
        None
    })
}
