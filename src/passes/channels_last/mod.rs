//! Layout of images on GPUs: convolutions take and give them with their channels innermost (NHWC), and what is
//! between convolutions computes on them as they are.
//!
//! Each value of the model has its form in NHWC beside it where a node makes one; the value itself is then that
//! form transposed, and whoever still needs it finds it there. What nobody needs goes in the end, so that a
//! transpose stays at the borders only. Where all positions are one, it is a change of shape, which costs nothing.

mod blocks;
mod convolution;
mod elementwise;
mod moves;
mod pooling;
mod weights;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Attribute, Attributes, Dim, Fact, Graph, NEWEST_OPSET, Node, NodeId, OpName, ValueId};
use crate::ops;
use crate::tensor::{Tensor, Value, ValueType};

use super::fusion::fuse_channels;
use super::{Evaluate, Target, dead, infer};

/// Rewrites a main graph whose facts were inferred, and infers it again.
pub(crate) fn channels_last(graph: &mut Graph, target: &dyn Target, evaluate: &dyn Evaluate) -> Result<()> {
    let is_conv = |name: &str| matches!(name, "Conv" | "FusedConv");
    if !target.prefers_channels_last() || !graph.nodes().any(|(_, node)| is_conv(&node.op.name)) {
        return Ok(());
    }
    let mut layout = Layout {
        graph,
        target,
        evaluate,
        last: HashMap::new(),
        made: HashSet::new(),
        padded: HashMap::new(),
        blocks: HashMap::new(),
        weights: HashMap::new(),
    };
    for id in layout.graph.order().unwrap_or_default() {
        RULES.iter().find_map(|rule| rule(&mut layout, id));
    }
    if layout.last.is_empty() {
        return Ok(());
    }
    dead::remove(graph);
    infer::infer(graph)?;
    fuse_channels(graph, target, evaluate);
    dead::remove(graph);
    infer::infer(graph)
}

/// Rewrites a node that it is for.
type Rule = fn(&mut Layout<'_>, NodeId) -> Option<()>;

const RULES: &[Rule] = &[
    convolution::convolution,
    pooling::window,
    pooling::whole,
    pooling::reduction,
    elementwise::elementwise,
    elementwise::batch_norm,
    elementwise::group_norm,
    elementwise::softmax,
    moves::transpose,
    moves::reshape,
    moves::shape,
    moves::concat,
    moves::split,
    moves::slice,
    moves::pad,
    moves::resize,
];

struct Layout<'a> {
    graph: &'a mut Graph,
    target: &'a dyn Target,
    evaluate: &'a dyn Evaluate,
    /// The NHWC form of a value.
    last: HashMap<ValueId, ValueId>,
    /// Values whose form costs nothing, because it is what the value is made of.
    made: HashSet<ValueId>,
    /// Forms with channels of zeros added, by value and channels.
    padded: HashMap<(ValueId, usize), ValueId>,
    /// Images by blocks, by value, sizes of blocks and padding.
    blocks: HashMap<(ValueId, Vec<i64>), ValueId>,
    /// Rearranged constants, by value and what was done.
    weights: HashMap<(ValueId, String), ValueId>,
}

/// Where axis `axis` of `rank` goes when channels become the innermost.
fn axis_last(axis: usize, rank: usize) -> usize {
    match axis {
        0 => 0,
        1 => rank - 1,
        _ => axis - 1,
    }
}

/// The permutation that makes channels the innermost axis.
fn to_last(rank: usize) -> Vec<usize> {
    [0].into_iter().chain(2..rank).chain([1]).collect()
}

/// The one that puts them back.
fn to_first(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

fn ints(list: impl IntoIterator<Item = usize>) -> Attribute {
    Attribute::Ints(list.into_iter().map(|x| x as i64).collect())
}

/// A node without outputs; `op` is a name, or domain and name.
fn node(name: &str, op: &str, attributes: &[(&str, Attribute)], inputs: &[ValueId]) -> Node {
    let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
    Node {
        name: name.to_owned(),
        op: OpName {
            domain: domain.to_owned(),
            name: op.to_owned(),
            opset: if domain.is_empty() { NEWEST_OPSET } else { 1 },
        },
        attributes: Attributes(attributes.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect()),
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: Vec::new(),
    }
}

impl Layout<'_> {
    fn is(&self, id: NodeId, names: &[&str]) -> bool {
        let op = &self.graph.node(id).op;
        op.domain.is_empty() && names.contains(&op.name.as_str())
    }

    fn input(&self, id: NodeId, i: usize) -> Option<ValueId> {
        self.graph.node(id).inputs.get(i).copied().flatten()
    }

    /// The output of a node that has one.
    fn output(&self, id: NodeId) -> Option<ValueId> {
        match self.graph.node(id).outputs[..] {
            [Some(output)] => Some(output),
            _ => None,
        }
    }

    fn shape(&self, value: ValueId) -> Option<&[Dim]> {
        self.graph.value(value).fact.shape.as_deref()
    }

    fn constant(&self, value: ValueId) -> Option<&Arc<Tensor>> {
        self.graph.value(value).constant.as_ref()
    }

    /// The integers of a constant input.
    fn constant_ints(&self, id: NodeId, i: usize) -> Option<Vec<i64>> {
        self.constant(self.input(id, i)?)?.to_ints()
    }

    /// The rank of a value with channels and positions, of which kernels take up to three axes.
    fn image_rank(&self, value: ValueId) -> Option<usize> {
        self.shape(value).map(<[Dim]>::len).filter(|rank| (3..=5).contains(rank))
    }

    /// Whether the form of a value costs nothing.
    fn is_made(&self, value: ValueId) -> bool {
        self.made.contains(&value)
    }

    /// The image at an input, where its form costs nothing.
    fn made_input(&self, id: NodeId, i: usize) -> Option<(ValueId, usize)> {
        let value = self.input(id, i).filter(|&value| self.is_made(value))?;
        Some((value, self.image_rank(value)?))
    }

    /// The form of a value, which is transposed for it where it has none.
    fn form(&mut self, value: ValueId) -> Option<ValueId> {
        if let Some(&form) = self.last.get(&value) {
            return Some(form);
        }
        let rank = self.image_rank(value)?;
        if self.constant(value).is_some() {
            return self.rearranged(value, &to_last(rank));
        }
        let name = self.graph.value(value).name.clone();
        let node = match self.is_pixel(value) {
            true => {
                let shape = [&[0], &vec![1; rank - 2][..], &[self.channels(value)]].concat();
                self.reshape_node(&name, value, &shape)?
            }
            false => node(&name, "Transpose", &[("perm", ints(to_last(rank)))], &[value]),
        };
        let form = self.add_form(value);
        self.graph.add_node(Node { outputs: vec![Some(form)], ..node });
        self.last.insert(value, form);
        Some(form)
    }

    /// Whether a value has one position.
    fn is_pixel(&self, value: ValueId) -> bool {
        self.shape(value).is_some_and(|shape| shape[2..].iter().all(|d| d.known() == Some(1)))
    }

    /// Its channels as a shape names them: −1 where the rest must tell.
    fn channels(&self, value: ValueId) -> i64 {
        self.shape(value).and_then(|shape| shape.get(1)?.known()).filter(|&n| n > 0).unwrap_or(-1)
    }

    fn reshape_node(&mut self, name: &str, value: ValueId, shape: &[i64]) -> Option<Node> {
        let shape = self.add_ints(&format!("{name}/shape"), shape)?;
        Some(node(name, "Reshape", &[], &[value, shape]))
    }

    /// A new value that is to be the form of another.
    fn add_form(&mut self, value: ValueId) -> ValueId {
        let info = self.graph.value(value);
        let (name, mut fact) = (format!("{}_nhwc", info.name), info.fact.clone());
        fact.shape.iter_mut().for_each(|shape| shape[1..].rotate_left(1));
        self.graph.add_value(&name, Fact { elements: None, ..fact })
    }

    fn add_ints(&mut self, name: &str, ints: &[i64]) -> Option<ValueId> {
        let tensor = Tensor::from_slice(&[ints.len()], ints).ok()?;
        let value = self.graph.add_value(name, Fact::default());
        self.graph.set_constant(value, Arc::new(tensor));
        Some(value)
    }

    /// Puts a node that makes the forms of the outputs of `id` in its place.
    fn put(&mut self, id: NodeId, mut new: Node) -> Option<()> {
        let outputs = self.graph.node(id).outputs.clone();
        outputs.iter().flatten().all(|&value| self.image_rank(value).is_some()).then_some(())?;
        new.outputs = outputs.iter().map(|output| output.map(|value| self.add_form(value))).collect();
        let forms = new.outputs.clone();
        *self.graph.node_mut(id) = new;
        for (value, form) in outputs.into_iter().zip(forms) {
            if let (Some(value), Some(form)) = (value, form) {
                self.define(value, form)?;
            }
        }
        Some(())
    }

    /// Makes a value from its form.
    fn define(&mut self, value: ValueId, form: ValueId) -> Option<()> {
        let (rank, name) = (self.image_rank(value)?, self.graph.value(value).name.clone());
        let back = match self.is_pixel(value) {
            true => {
                let shape = [&[0, self.channels(value)], &vec![1; rank - 2][..]].concat();
                self.reshape_node(&name, form, &shape)?
            }
            false => node(&name, "Transpose", &[("perm", ints(to_first(rank)))], &[form]),
        };
        self.graph.add_node(Node { outputs: vec![Some(value)], ..back });
        self.last.insert(value, form);
        self.made.insert(value);
        Some(())
    }

    /// Whether the target has a kernel for a node that gives this type.
    fn runs(&self, node: &Node, made: Option<ValueType>) -> bool {
        let Ok((_, op)) = ops::resolve(node) else { return false };
        let ty = |v: &Option<ValueId>| v.and_then(|v| self.graph.value(v).fact.ty.clone());
        let inputs: Vec<Option<ValueType>> = node.inputs.iter().map(ty).collect();
        self.target.runs(node, &*op, &inputs, &[made])
    }

    /// What a node computes of constants.
    fn computed(&self, node: &Node, inputs: &[&Tensor]) -> Option<Tensor> {
        let values: Vec<Value> = inputs.iter().map(|&tensor| Value::Tensor(tensor.clone())).collect();
        let inputs: Vec<Option<&Value>> = values.iter().map(Some).collect();
        self.evaluate.evaluate(node, &inputs).ok()?.first()?.as_tensor().cloned()
    }
}
