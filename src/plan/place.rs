//! Chooses a provider for each node, and puts copies where a value crosses between host and device.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Result, Status, fail};
use crate::graph::{Graph, Node, OpName, ValueId};
use crate::ops::custom::{Custom, Side};
use crate::ops::generation::Generation;
use crate::ops::{self, Operator, Registered, control};
use crate::providers::NodeContext;
use crate::providers::hip::{self, HipKernel, Provider};
use crate::tensor::{ElementType, Place, Tensor, ValueType};

use super::program::{ProgramValue, Step, StepBody};

/// Where the values of a graph are while it is compiled, and the copies made for it.
pub(super) struct Placement<'g> {
    graph: &'g Graph,
    device: Option<Arc<Provider>>,
    /// Where each of the graph's values is made.
    made: Vec<Place>,
    /// Copies of the graph's values on the other side, by value and whether they lie transposed.
    copies: HashMap<(u32, bool), u32>,
    /// Values that were added to the graph's.
    pub(super) added: Vec<ProgramValue>,
    /// Values that only shapes are computed from.
    shapes: Vec<bool>,
}

/// Why a node does not run on the device.
pub(super) enum NotOnDevice {
    /// It belongs to the host: control flow, shape arithmetic.
    ByNature(String),
    /// The device's provider lacks it.
    Fallback(String),
}

impl<'g> Placement<'g> {
    pub(super) fn new(graph: &'g Graph, order: &[&Node], device: Option<Arc<Provider>>) -> Self {
        let made = vec![Place::Host; graph.value_count()];
        let shapes = if device.is_some() { shape_values(graph, order) } else { Vec::new() };
        Placement { graph, device, made, copies: HashMap::new(), added: Vec::new(), shapes }
    }

    /// The device's kernel for a node.
    pub(super) fn device_kernel(
        &self,
        node: &NodeContext<'_>,
        at: &Node,
    ) -> std::result::Result<Box<dyn HipKernel>, NotOnDevice> {
        let op = node.op;
        let is_control = op.downcast::<control::If>().is_some()
            || op.downcast::<control::Loop>().is_some()
            || op.downcast::<control::Scan>().is_some()
            || op.downcast::<control::SequenceMap>().is_some()
            || op.downcast::<Generation>().is_some();
        if is_control {
            return Err(NotOnDevice::ByNature("control flow: the session runs it".to_owned()));
        }
        let device_alone = op.downcast::<Custom>().is_some_and(|op| !op.runs_on(Side::Host));
        let outputs = at.outputs.iter().flatten();
        if node.domain.is_empty() && matches!(node.name, "Shape" | "Size") {
            return Err(NotOnDevice::ByNature("it is known from the shape alone".to_owned()));
        }
        if !device_alone
            && at.outputs.iter().any(Option::is_some)
            && outputs.clone().all(|v| self.shapes[v.index()])
        {
            return Err(NotOnDevice::ByNature("shape arithmetic stays on the host".to_owned()));
        }
        hip::build(node).map_err(|e| NotOnDevice::Fallback(e.to_string()))
    }

    /// The value to read at `place` for a value of the graph; appends a copy when it is elsewhere.
    pub(super) fn at(&mut self, value: u32, place: Place, steps: &mut Vec<Step>) -> Result<u32> {
        self.laid_out(value, place, false, steps)
    }

    /// The value that a device's kernel reads as its input `input`, a constant matrix transposed where the kernel wants
    /// that; appends a copy when it is elsewhere.
    pub(super) fn on_device(
        &mut self,
        kernel: &dyn HipKernel,
        input: usize,
        value: u32,
        steps: &mut Vec<Step>,
    ) -> Result<u32> {
        let constant = self.graph.value(ValueId(value)).constant.as_ref();
        let transposed = constant.is_some_and(|t| t.shape().len() == 2) && kernel.transposes(input);
        self.laid_out(value, Place::Device, transposed, steps)
    }

    fn laid_out(&mut self, value: u32, place: Place, transposed: bool, steps: &mut Vec<Step>) -> Result<u32> {
        let Some(device) = &self.device else { return Ok(value) };
        if self.made[value as usize] == place {
            return Ok(value);
        }
        if let Some(&copy) = self.copies.get(&(value, transposed)) {
            return Ok(copy);
        }
        let info = self.graph.value(ValueId(value));
        let copy = (self.graph.value_count() + self.added.len()) as u32;
        let mut added = ProgramValue {
            name: info.name.clone(),
            ty: info.fact.ty.clone(),
            constant: None,
            fact: Default::default(),
            place,
        };
        match &info.constant {
            Some(tensor) if place == Place::Device => {
                if tensor.is_absent() {
                    fail!(
                        InvalidModel,
                        "weight \"{}\" is needed on the device, and the artifact does not hold it; compile it for the device, or with weights=\"all\"",
                        info.name
                    );
                }
                let bytes = tensor.buffer().map_or(&[][..], |b| b.bytes());
                let buffer = match *tensor.shape() {
                    [rows, columns] if transposed => {
                        hip::upload_transposed(device, bytes, [rows, columns], tensor.ty().size())
                            .map_err(|e| e.at(&info.name, "Transpose", Status::Internal))?
                    }
                    _ => device.upload(bytes)?,
                };
                let buffer = buffer.into_buffer(bytes.len());
                added.constant = Tensor::from_buffer(tensor.ty(), tensor.shape(), buffer);
                added.fact = info.fact.clone();
            }
            _ => steps.push(copy_step(&info.name, value, copy, place)?),
        }
        self.added.push(added);
        self.copies.insert((value, transposed), copy);
        Ok(copy)
    }

    /// Notes where a value is made.
    pub(super) fn make(&mut self, value: u32, place: Place) {
        self.made[value as usize] = place;
    }

    pub(super) fn place(&self, value: u32) -> Place {
        self.made[value as usize]
    }
}

/// A step that copies a value to the other side.
fn copy_step(name: &str, from: u32, to: u32, place: Place) -> Result<Step> {
    let node = Node {
        name: name.to_owned(),
        op: OpName { domain: String::new(), name: "Identity".to_owned(), opset: 16 },
        attributes: Default::default(),
        inputs: vec![Some(ValueId(from))],
        outputs: vec![Some(ValueId(to))],
    };
    let (registered, op): (Arc<Registered>, Arc<dyn Operator>) =
        ops::resolve(&node).map_err(|e| e.at(name, "Copy", Status::Internal))?;
    Ok(Step {
        node: node.name,
        op_name: if place == Place::Device { "CopyToDevice" } else { "CopyToHost" }.to_owned(),
        inputs: vec![Some(from)],
        outputs: vec![Some(to)],
        op,
        registered,
        body: StepBody::Copy(place),
    })
}

/// The values that are computed for shapes alone: integers of rank 0 or 1 that lead to an input whose
/// value decides a shape.
fn shape_values(graph: &Graph, order: &[&Node]) -> Vec<bool> {
    let mut wanted = vec![false; graph.value_count()];
    let small = |v: ValueId| {
        let fact = &graph.value(v).fact;
        let integer = matches!(fact.ty, Some(ValueType::Tensor(ElementType::I64 | ElementType::I32)));
        integer && fact.shape.as_ref().is_none_or(|s| s.len() <= 1)
    };
    for node in order.iter().rev() {
        let Ok((registered, _)) = ops::resolve(node) else { continue };
        for &i in registered.shape_inputs.iter() {
            if let Some(&Some(v)) = node.inputs.get(i) {
                wanted[v.index()] = true;
            }
        }
        let mut outputs = node.outputs.iter().flatten().peekable();
        if outputs.peek().is_some() && outputs.all(|v| wanted[v.index()]) {
            node.inputs.iter().flatten().filter(|v| small(**v)).for_each(|v| wanted[v.index()] = true);
        }
    }
    wanted
}
