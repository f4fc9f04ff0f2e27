//! A graph as a program: kernels made, constants packed or kept, placement told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::error::{Result, Status};
use crate::graph::{Graph, Node, ValueId};
use crate::ops::{self, Operator, control};
use crate::providers::cpu::{self, CpuKernel, NodeContext};
use crate::tensor::{Tensor, ValueType};
use crate::threads::Pool;

use super::program::{Body, Control, PlacementRow, Program, ProgramValue, Step, StepBody};

/// What compiling needs, and what it tells besides the program.
pub(crate) struct CompileContext<'a> {
    pub(crate) pool: &'a Pool,
    /// How many shaped plans a program keeps.
    pub(crate) plan_limit: usize,
    /// Why nodes do not run on the provider that was asked for first; empty when they do.
    pub(crate) fallback_reason: &'a str,
    pub(crate) placement: Vec<PlacementRow>,
    /// Bytes of constants that kernels packed for themselves.
    pub(crate) packed_bytes: u64,
    /// Bytes and number of constants that were copied to align them.
    pub(crate) copied_bytes: u64,
    pub(crate) copied_weights: u64,
}

/// Compiles a graph whose facts were inferred.
pub(crate) fn compile(graph: &Graph, cx: &mut CompileContext<'_>) -> Result<Program> {
    let order = graph.order().unwrap_or_default();
    let mut steps = Vec::with_capacity(order.len());
    // Whether a constant is read while running.
    let mut read = vec![false; graph.value_count()];
    for id in order {
        let node = graph.node(id);
        let step = step(graph, node, cx)?;
        for (i, value) in step.inputs.iter().enumerate() {
            let consumed = matches!(&step.body, StepBody::Kernel(CpuKernel::Tensor(k)) if k.consumes(i));
            if let (Some(value), false) = (value, consumed) {
                read[*value as usize] = true;
            }
        }
        steps.push(step);
    }
    graph.outputs.iter().for_each(|v| read[v.index()] = true);
    let values = values(graph, &read, cx)?;
    let inputs = graph.inputs.iter().chain(&graph.captures).map(|v| v.0).collect();
    let outputs = graph.outputs.iter().map(|v| v.0).collect();
    Ok(Program::new(values, inputs, graph.captures.len(), outputs, steps, cx.plan_limit))
}

/// The values, with those constants that are read while running.
fn values(graph: &Graph, read: &[bool], cx: &mut CompileContext<'_>) -> Result<Vec<ProgramValue>> {
    let mut aligned: HashMap<*const Tensor, Tensor> = HashMap::new();
    (0..graph.value_count())
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
            Ok(ProgramValue { name: info.name.clone(), ty: info.fact.ty.clone(), constant, fact })
        })
        .collect()
}

fn step(graph: &Graph, node: &Node, cx: &mut CompileContext<'_>) -> Result<Step> {
    let name = node.op.to_string();
    let (registered, op) = ops::resolve(node).map_err(|e| e.at(&node.name, &name, Status::InvalidModel))?;
    let mut inputs: Vec<Option<u32>> = node.inputs.iter().map(|v| v.map(|v| v.0)).collect();
    let row = cx.placement.len();
    cx.placement.push(PlacementRow {
        node: node.name.clone(),
        operator: name.clone(),
        provider: "cpu",
        reason: cx.fallback_reason.to_owned(),
    });
    let body = match control(graph, &*op, &mut inputs, cx)? {
        Some(control) => {
            cx.placement[row].reason = "control flow: the session runs it".to_owned();
            StepBody::Control(control)
        }
        None => StepBody::Kernel(kernel(graph, node, &*op, cx)?),
    };
    let outputs = node.outputs.iter().map(|v| v.map(|v| v.0)).collect();
    Ok(Step { node: node.name.clone(), op_name: name, inputs, outputs, op, registered, body })
}

fn kernel(graph: &Graph, node: &Node, op: &dyn Operator, cx: &mut CompileContext<'_>) -> Result<CpuKernel> {
    let types = |values: &[Option<ValueId>]| -> Vec<Option<ValueType>> {
        values.iter().map(|v| v.and_then(|v| graph.value(v).fact.ty.clone())).collect()
    };
    let constants: Vec<Option<&Tensor>> =
        node.inputs.iter().map(|v| v.and_then(|v| graph.value(v).constant.as_deref())).collect();
    let kernel = cpu::build(&NodeContext {
        domain: &node.op.domain,
        name: &node.op.name,
        op,
        input_types: &types(&node.inputs),
        output_types: &types(&node.outputs),
        constants: &constants,
        pool: cx.pool,
    })
    .map_err(|e| e.at(&node.name, &node.op.to_string(), Status::InvalidModel))?;
    if let CpuKernel::Tensor(kernel) = &kernel {
        for (i, constant) in constants.iter().enumerate() {
            if let Some(tensor) = constant
                && kernel.consumes(i)
            {
                cx.packed_bytes += tensor.buffer().map_or(0, |b| b.len() as u64);
            }
        }
    }
    Ok(kernel)
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
        Ok(Box::new(Body { program, captures }))
    };
    Ok(if let Some(op) = op.downcast::<control::If>() {
        Some(Control::If { then_branch: body(&op.then_branch)?, else_branch: body(&op.else_branch)? })
    } else if let Some(op) = op.downcast::<control::Loop>() {
        Some(Control::Loop(body(&op.body)?))
    } else if let Some(op) = op.downcast::<control::Scan>() {
        Some(Control::Scan(body(&op.body)?))
    } else if let Some(op) = op.downcast::<control::SequenceMap>() {
        Some(Control::SequenceMap(body(&op.body)?))
    } else {
        None
    })
}
