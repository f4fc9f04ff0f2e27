//! The graph as the fusions see it: who makes a value, who uses it, and the one way to put a node in the
//! place of others.

use std::sync::Arc;

use crate::graph::{Attribute, Attributes, Dim, Fact, Graph, NEWEST_OPSET, Node, NodeId, OpName, ValueId};
use crate::ops::{self, Infer, Unknowns};
use crate::tensor::{ElementType, Tensor, Value, ValueType, bf16, f16};

use super::super::Evaluate;
use super::Target;

/// A graph whose facts were inferred, with what a fusion asks of it kept up to date.
pub(super) struct Rewriter<'a> {
    pub(super) graph: &'a mut Graph,
    target: &'a dyn Target,
    evaluate: &'a dyn Evaluate,
    producers: Vec<Option<NodeId>>,
    uses: Vec<usize>,
    unknowns: Unknowns,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(graph: &'a mut Graph, target: &'a dyn Target, evaluate: &'a dyn Evaluate) -> Self {
        let (producers, uses) = (graph.producers(), graph.use_counts());
        Rewriter { graph, target, evaluate, producers, uses, unknowns: Unknowns::apart() }
    }

    /// Whether a pointwise and a depthwise convolution of images like this one are faster as one.
    pub(super) fn pairs_convolutions(&self, image: ValueId) -> bool {
        let ty = self.graph.value(image).fact.element_type();
        ty.is_some_and(|ty| self.target.pairs_convolutions(ty))
    }

    pub(super) fn copies_packs(&self) -> bool {
        self.target.copies_packs()
    }

    pub(super) fn reads_columns(&self) -> bool {
        self.target.reads_columns()
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }

    /// Whether the node is the operator of ai.onnx with this name, or of another domain: `rukh.MatMul`.
    pub(super) fn is(&self, id: NodeId, op: &str) -> bool {
        let (domain, name) = op.rsplit_once('.').unwrap_or(("", op));
        let given = &self.graph.node(id).op;
        given.name == name && given.domain == domain
    }

    /// The node that makes a value, when it is this operator.
    pub(super) fn maker(&self, value: ValueId, op: &str) -> Option<NodeId> {
        let id = self.producer(value)?;
        self.is(id, op).then_some(id)
    }

    /// The same, where nobody else uses the value: the node goes when its user does.
    pub(super) fn private(&self, value: ValueId, op: &str) -> Option<NodeId> {
        self.maker(value, op).filter(|_| self.uses(value) == 1)
    }

    pub(super) fn producer(&self, value: ValueId) -> Option<NodeId> {
        self.producers.get(value.index()).copied().flatten()
    }

    /// How often a value is used, as an output of the graph too.
    pub(super) fn uses(&self, value: ValueId) -> usize {
        self.uses.get(value.index()).copied().unwrap_or(0)
    }

    pub(super) fn input(&self, id: NodeId, i: usize) -> Option<ValueId> {
        self.graph.node(id).inputs.get(i).copied().flatten()
    }

    /// The only output that the node gives, when it is the first.
    pub(super) fn output(&self, id: NodeId) -> Option<ValueId> {
        match self.graph.node(id).outputs[..] {
            [Some(output), ref rest @ ..] if rest.iter().all(Option::is_none) => Some(output),
            _ => None,
        }
    }

    /// Both inputs of a node of two, in both orders: for operators that commute.
    pub(super) fn operands(&self, id: NodeId) -> Vec<[ValueId; 2]> {
        match (self.input(id, 0), self.input(id, 1)) {
            (Some(a), Some(b)) if self.graph.node(id).inputs.len() == 2 => vec![[a, b], [b, a]],
            _ => Vec::new(),
        }
    }

    pub(super) fn fact(&self, value: ValueId) -> &Fact {
        &self.graph.value(value).fact
    }

    pub(super) fn shape(&self, value: ValueId) -> Option<&[Dim]> {
        self.fact(value).shape.as_deref()
    }

    pub(super) fn element_type(&self, value: ValueId) -> Option<ElementType> {
        self.fact(value).element_type()
    }

    pub(super) fn constant(&self, value: ValueId) -> Option<&Arc<Tensor>> {
        self.graph.value(value).constant.as_ref()
    }

    /// The elements of a constant in f32 or f64.
    pub(super) fn floats(&self, value: ValueId) -> Option<Vec<f64>> {
        let tensor = self.constant(value)?.aligned().ok()?;
        match tensor.ty() {
            ElementType::F32 => Some(tensor.view().slice::<f32>().iter().map(|&x| x as f64).collect()),
            ElementType::F64 => Some(tensor.view().slice::<f64>().to_vec()),
            _ => None,
        }
    }

    /// The value of a constant of one element, of any float type.
    pub(super) fn scalar(&self, value: ValueId) -> Option<f64> {
        let tensor = self.constant(value).filter(|t| t.len() == 1)?.aligned().ok()?;
        match tensor.ty() {
            ElementType::F16 => tensor.view().slice::<f16>().first().map(|x| x.to_f64()),
            ElementType::BF16 => tensor.view().slice::<bf16>().first().map(|x| x.to_f64()),
            _ => self.floats(value)?.first().copied(),
        }
    }

    /// Whether the value is a constant of one element close to `want`: exporters round theirs to the
    /// model's type.
    pub(super) fn is_scalar(&self, value: ValueId, want: f64) -> bool {
        let precision = match self.element_type(value) {
            Some(ElementType::F16) => 1e-3,
            Some(ElementType::BF16) => 8e-3,
            _ => 1e-6,
        };
        self.scalar(value).is_some_and(|x| (x - want).abs() <= precision * want.abs())
    }

    /// A new constant of a float type; `None` for another, or without memory.
    pub(super) fn add_floats(
        &mut self,
        name: &str,
        ty: ElementType,
        shape: &[usize],
        elements: &[f64],
    ) -> Option<ValueId> {
        let tensor = match ty {
            ElementType::F32 => {
                Tensor::from_slice(shape, &elements.iter().map(|&x| x as f32).collect::<Vec<_>>())
            }
            ElementType::F64 => Tensor::from_slice(shape, elements),
            _ => return None,
        };
        Some(self.add_constant(name, Arc::new(tensor.ok()?)))
    }

    pub(super) fn add_constant(&mut self, name: &str, tensor: Arc<Tensor>) -> ValueId {
        let value = self.graph.add_value(name, Fact::default());
        self.graph.set_constant(value, tensor);
        self.producers.resize(self.graph.value_count(), None);
        self.uses.resize(self.graph.value_count(), 0);
        value
    }

    /// A node that could stand in the place of `root`, whose name and outputs it takes. `op` as for `is`.
    pub(super) fn draft(
        &self,
        root: NodeId,
        op: &str,
        attributes: &[(&str, Attribute)],
        inputs: &[Option<ValueId>],
    ) -> Node {
        let (domain, name) = op.rsplit_once('.').unwrap_or(("", op));
        let root = self.graph.node(root);
        Node {
            name: root.name.clone(),
            op: OpName {
                domain: domain.to_owned(),
                name: name.to_owned(),
                opset: if domain.is_empty() { NEWEST_OPSET } else { 1 },
            },
            attributes: Attributes(attributes.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect()),
            inputs: inputs.to_vec(),
            outputs: root.outputs.clone(),
        }
    }

    /// A new node with one output, which `root` is about to use: its operator must be one that is there
    /// already, or that the target runs.
    pub(super) fn insert(
        &mut self,
        root: NodeId,
        op: &str,
        attributes: &[(&str, Attribute)],
        inputs: &[Option<ValueId>],
    ) -> Option<ValueId> {
        self.insert_node(self.draft(root, op, attributes, inputs))
    }

    /// The same of a node that is made already, whose outputs do not matter.
    pub(super) fn insert_node(&mut self, node: Node) -> Option<ValueId> {
        self.insert_outputs(node, 1)?.pop()
    }

    /// The same with this many outputs.
    pub(super) fn insert_outputs(&mut self, mut node: Node, count: usize) -> Option<Vec<ValueId>> {
        node.outputs = vec![None; count];
        let facts = self.infer(&node)?;
        let types = |values: &[Option<ValueId>]| -> Vec<Option<ValueType>> {
            values.iter().map(|v| v.and_then(|v| self.graph.value(v).fact.ty.clone())).collect()
        };
        let (_, op) = ops::resolve(&node).ok()?;
        let made: Vec<Option<ValueType>> = facts.iter().map(|fact| fact.ty.clone()).collect();
        if !self.target.runs(&node, &*op, &types(&node.inputs), &made) {
            return None;
        }
        let name = format!("{}/{}", node.name, node.op.name);
        let values: Vec<ValueId> = facts.into_iter().map(|fact| self.graph.add_value(&name, fact)).collect();
        node.outputs = values.iter().copied().map(Some).collect();
        node.inputs.iter().flatten().for_each(|v| self.uses[v.index()] += 1);
        let id = self.graph.add_node(node);
        self.producers.resize(self.graph.value_count(), None);
        self.uses.resize(self.graph.value_count(), 0);
        values.iter().for_each(|v| self.producers[v.index()] = Some(id));
        Some(values)
    }

    /// Puts a node in the place of `root` and of the other nodes that make its outputs; what nobody uses
    /// then goes. Nothing happens, and the answer is `false`, when the target lacks the operator (unless
    /// the new node only replaces its like), or when an output would have another type or shape.
    pub(super) fn replace(&mut self, root: NodeId, new: Node) -> bool {
        if self.check(root, &new).is_none() {
            return false;
        }
        for input in new.inputs.iter().flatten() {
            self.uses[input.index()] += 1;
        }
        let made: Vec<NodeId> = new.outputs.iter().flatten().filter_map(|&v| self.producer(v)).collect();
        for &output in new.outputs.iter().flatten() {
            self.producers[output.index()] = Some(root);
        }
        let old = std::mem::replace(self.graph.node_mut(root), new);
        self.release(&old);
        for id in made.into_iter().filter(|&id| id != root) {
            if let Some(node) = self.graph.remove_node(id) {
                self.release(&node);
            }
        }
        true
    }

    /// Puts a node for each output of `root` in its place, as `replace` does.
    pub(super) fn replace_by(&mut self, root: NodeId, nodes: Vec<Node>) -> bool {
        if nodes.is_empty() || nodes.iter().any(|new| self.check(root, new).is_none()) {
            return false;
        }
        for input in nodes.iter().flat_map(|new| new.inputs.iter().flatten()) {
            self.uses[input.index()] += 1;
        }
        let Some(old) = self.graph.remove_node(root) else { return false };
        for new in nodes {
            let outputs = new.outputs.clone();
            let id = self.graph.add_node(new);
            outputs.iter().flatten().for_each(|v| self.producers[v.index()] = Some(id));
        }
        self.release(&old);
        true
    }

    /// Makes every use of the output of `id` a use of `value`, and removes the node. Not for outputs of
    /// the graph.
    pub(super) fn bypass(&mut self, id: NodeId, value: ValueId) -> bool {
        let Some(output) = self.output(id).filter(|v| !self.graph.outputs.contains(v)) else { return false };
        self.graph.replace_uses(output, value);
        self.uses[value.index()] += std::mem::take(&mut self.uses[output.index()]);
        if let Some(node) = self.graph.remove_node(id) {
            self.producers[output.index()] = None;
            self.release(&node);
        }
        true
    }

    /// Makes every use of `from` a use of `to`, and removes the node that makes it where nobody needs its other
    /// outputs. Not for outputs of the graph.
    pub(super) fn redirect(&mut self, from: ValueId, to: ValueId) {
        let Some(id) = self.producer(from).filter(|_| !self.graph.outputs.contains(&from)) else { return };
        self.graph.replace_uses(from, to);
        self.uses[to.index()] += std::mem::take(&mut self.uses[from.index()]);
        if self.graph.node(id).outputs.iter().flatten().all(|&v| self.uses(v) == 0)
            && let Some(node) = self.graph.remove_node(id)
        {
            node.outputs.iter().flatten().for_each(|v| self.producers[v.index()] = None);
            self.release(&node);
        }
    }

    /// What a node computes of these inputs.
    pub(super) fn evaluate(&self, node: &Node, inputs: &[Option<&Value>]) -> Option<Vec<Value>> {
        self.evaluate.evaluate(node, inputs).ok()
    }

    /// What a node's outputs would be.
    fn infer(&mut self, new: &Node) -> Option<Vec<Fact>> {
        let mut unknowns = self.unknowns.clone();
        let facts = self.infer_with(new, &mut unknowns);
        self.unknowns = unknowns;
        facts
    }

    fn infer_with(&self, node: &Node, unknowns: &mut Unknowns) -> Option<Vec<Fact>> {
        let (registered, op) = ops::resolve(node).ok()?;
        let facts: Vec<Option<&Fact>> =
            node.inputs.iter().map(|v| v.map(|v| &self.graph.value(v).fact)).collect();
        let constants: Vec<Option<&Tensor>> =
            node.inputs.iter().map(|v| v.and_then(|v| self.graph.value(v).constant.as_deref())).collect();
        let mut cx =
            Infer::new(&registered.signature, &facts, &constants, node.outputs.len(), unknowns).ok()?;
        op.infer(&mut cx).ok()?;
        Some(cx.into_outputs())
    }

    /// Whether the new node may stand there.
    fn check(&mut self, root: NodeId, new: &Node) -> Option<()> {
        let unknowns = self.unknowns.clone();
        let facts = self.infer(new)?;
        let (_, op) = ops::resolve(new).ok()?;
        for (i, fact) in facts.into_iter().enumerate() {
            let Some(output) = new.outputs.get(i).copied().flatten() else { continue };
            let old = &self.graph.value(output).fact;
            if old.shape.is_none() || old.ty != fact.ty {
                return None;
            }
            if old.shape != fact.shape && !self.makes(root, i, output, &fact, &unknowns) {
                return None;
            }
        }
        let types = |values: &[Option<ValueId>]| -> Vec<Option<ValueType>> {
            values.iter().map(|v| v.and_then(|v| self.graph.value(v).fact.ty.clone())).collect()
        };
        let like = |id: NodeId| {
            let op = &self.graph.node(id).op;
            op.name == new.op.name && op.domain == new.op.domain
        };
        let inputs = self.graph.node(root).inputs.iter().flatten();
        let replaced = like(root) || inputs.filter_map(|&v| self.producer(v)).any(like);
        (replaced || self.target.runs(new, &*op, &types(&new.inputs), &types(&new.outputs))).then_some(())
    }

    /// Whether inference finds the same shape for an output of a node that is there, when it names what it does not know
    /// from the same number on.
    fn makes(&self, node: NodeId, i: usize, output: ValueId, want: &Fact, unknowns: &Unknowns) -> bool {
        let node = self.graph.node(node);
        let facts = || self.infer_with(node, &mut unknowns.clone());
        node.outputs.get(i) == Some(&Some(output))
            && facts().is_some_and(|facts| facts.get(i).is_some_and(|fact| fact.shape == want.shape))
    }

    /// Takes back the uses of a node that is gone.
    fn release(&mut self, node: &Node) {
        let captures = self.graph.captures_of(node);
        for value in node.inputs.iter().flatten().copied().chain(captures) {
            self.uses[value.index()] -= 1;
            let Some(producer) = self.producer(value).filter(|_| self.uses(value) == 0) else { continue };
            if self.graph.node(producer).outputs.iter().flatten().all(|&v| self.uses(v) == 0)
                && let Some(node) = self.graph.remove_node(producer)
            {
                node.outputs.iter().flatten().for_each(|v| self.producers[v.index()] = None);
                self.release(&node);
            }
        }
    }
}
