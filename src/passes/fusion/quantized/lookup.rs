//! Whatever is computed of each byte of one tensor alone, from quantized numbers to quantized numbers again, is
//! a table of 256 bytes: an activation, a product with its sigmoid, a gelu in five steps with roundings between.
//! The nodes themselves make the table, so nothing changes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::graph::{Dim, NodeId, ValueId};
use crate::ops;
use crate::ops::binary::{Alignment, Elementwise};
use crate::ops::choose::Clip;
use crate::ops::lookup::ENTRIES;
use crate::ops::qlinear::elementwise::{QLinearBinary, QLinearUnary};
use crate::ops::unary::Unary;
use crate::ops::variadic::Variadic;
use crate::tensor::{ElementType, Tensor, Value};

use super::super::rewriter::Rewriter;
use super::{Dequantized, Parameters, is_byte};

const LOOKUP: &str = "rukh.Lookup";

/// More nodes than this are not gathered.
const NODES: usize = 64;

pub(super) fn lookup(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let output = rw.output(root)?;
    let ty = rw.element_type(output).filter(|&ty| is_byte(ty))?;
    if Parameters::of_quantize(rw, root).is_none() && integer(rw, root).is_none() {
        return None;
    }
    let shape = rw.shape(output)?.to_vec();
    let mut function = Function { shape, nodes: Vec::new(), source: None };
    function.node(rw, root)?;
    let source = function.source?;
    let table = function.table(rw, source, output)?;
    let same = rw.element_type(source) == Some(ty)
        && table.view().bytes().iter().enumerate().all(|(i, &y)| i == usize::from(y));
    if same && rw.bypass(root, source) {
        return Some(());
    }
    let name = format!("{}/table", rw.node(root).name);
    let table = rw.add_constant(&name, Arc::new(table));
    let new = rw.draft(root, LOOKUP, &[], &[Some(source), Some(table)]);
    rw.replace(root, new).then_some(())
}

/// The nodes of a function of one byte, in execution order.
struct Function {
    /// What all its tensors have.
    shape: Vec<Dim>,
    nodes: Vec<NodeId>,
    source: Option<ValueId>,
}

impl Function {
    /// Takes in a node and what it needs.
    fn node(&mut self, rw: &Rewriter<'_>, id: NodeId) -> Option<()> {
        if self.nodes.contains(&id) {
            return Some(());
        }
        let operands = operands(rw, id)?;
        for (i, value) in rw.node(id).inputs.iter().enumerate() {
            match *value {
                Some(value) if operands.contains(&i) => self.value(rw, value)?,
                Some(value) => drop(rw.constant(value)?),
                None => {}
            }
        }
        self.nodes.push(id);
        (self.nodes.len() <= NODES).then_some(())
    }

    /// Bytes are the source, unless they are a function of bytes themselves.
    fn value(&mut self, rw: &Rewriter<'_>, value: ValueId) -> Option<()> {
        if let Some(constant) = rw.constant(value) {
            return (constant.len() == 1).then_some(());
        }
        let id = rw.producer(value);
        let number = Dequantized::of_bytes(rw, value).and_then(|d| rw.constant(d.x));
        if number.is_none_or(|number| number.len() != 1) && rw.shape(value)? != self.shape {
            return None;
        }
        match rw.element_type(value)? {
            ElementType::F32 => self.node(rw, id?),
            ty if is_byte(ty) => match id.filter(|&id| rw.is(id, LOOKUP)) {
                Some(id) => self.node(rw, id),
                None => (*self.source.get_or_insert(value) == value).then_some(()),
            },
            _ => None,
        }
    }

    /// What the nodes make of all bytes.
    fn table(&self, rw: &Rewriter<'_>, source: ValueId, output: ValueId) -> Option<Tensor> {
        let bytes: [u8; ENTRIES] = std::array::from_fn(|i| i as u8);
        let all = match rw.element_type(source)? {
            ElementType::I8 => Tensor::from_slice(&[ENTRIES], &bytes.map(|b| b as i8)),
            _ => Tensor::from_slice(&[ENTRIES], &bytes),
        };
        let mut values = HashMap::from([(source, Value::Tensor(all.ok()?))]);
        for &id in &self.nodes {
            let node = rw.node(id);
            let operands = operands(rw, id)?;
            for (i, &value) in node.inputs.iter().enumerate() {
                let Some(value) = value else { continue };
                let Some(constant) = rw.constant(value) else { continue };
                // One element of any rank would give the table dimensions.
                let tensor = match operands.contains(&i) {
                    true => constant.reshaped(&[])?,
                    false => (**constant).clone(),
                };
                values.insert(value, Value::Tensor(tensor));
            }
            let inputs: Vec<Option<&Value>> = node.inputs.iter().map(|v| values.get(&(*v)?)).collect();
            let made = rw.evaluate(node, &inputs)?.into_iter().next()?;
            values.insert(rw.output(id)?, made);
        }
        let table = values.remove(&output)?;
        let table = table.as_tensor().filter(|t| t.shape() == [ENTRIES])?;
        table.aligned().ok()
    }
}

/// The inputs whose elements meet one another, of a node that computes each element by itself.
fn operands(rw: &Rewriter<'_>, id: NodeId) -> Option<Vec<usize>> {
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    let all = || (0..rw.node(id).inputs.len()).collect();
    if let Some(operands) = integer(rw, id) {
        return Some(operands);
    }
    if Parameters::of_quantize(rw, id).is_some()
        || Dequantized::of_bytes(rw, rw.output(id)?).is_some()
        || rw.is(id, LOOKUP)
        || op.downcast::<Unary>().is_some()
        || op.downcast::<Clip>().is_some()
    {
        return Some(vec![0]);
    }
    let numpy = |op: &Elementwise| op.alignment == Alignment::Multidirectional;
    (op.downcast::<Elementwise>().is_some_and(numpy) || op.downcast::<Variadic>().is_some()).then(all)
}

/// The same of operators from bytes to bytes.
fn integer(rw: &Rewriter<'_>, id: NodeId) -> Option<Vec<usize>> {
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    match op.downcast::<QLinearBinary>() {
        Some(_) => Some(vec![0, 3]),
        None => op.downcast::<QLinearUnary>().map(|_| vec![0]),
    }
}
