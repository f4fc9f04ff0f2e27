//! The intermediate representation: a small SSA graph of nodes and values.
//!
//! Values and nodes lie in arenas and are named by index. Each value has at most one producer: a
//! node's output, a graph input, or a constant. Subgraphs (the bodies of `If`, `Loop`, `Scan`) are
//! graphs of their own inside an attribute; a value of an outer graph that a subgraph uses appears
//! in the subgraph as a *capture* of the same name.

mod dim;
mod rename;
mod subgraphs;
mod text;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

pub use dim::Dim;

use crate::tensor::{ElementType, Tensor, ValueType};

/// The newest ai.onnx operator set that is understood.
pub const NEWEST_OPSET: i64 = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl ValueId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a value before the model runs.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Fact {
    pub ty: Option<ValueType>,
    /// The dimensions of a tensor; `None` while even the rank is unknown.
    pub shape: Option<Vec<Dim>>,
    /// The elements of a small integer tensor that holds shape arithmetic, row-major.
    pub elements: Option<Vec<Dim>>,
}

impl Fact {
    pub fn tensor(ty: ElementType, shape: Vec<Dim>) -> Self {
        Fact { ty: Some(ValueType::Tensor(ty)), shape: Some(shape), elements: None }
    }

    pub fn element_type(&self) -> Option<ElementType> {
        self.ty.as_ref()?.element()
    }
}

#[derive(Clone, Debug, Default)]
pub struct ValueInfo {
    /// Unique in its graph and never empty.
    pub name: String,
    pub fact: Fact,
    /// The tensor, for initializers and folded constants.
    pub constant: Option<Arc<Tensor>>,
}

/// An operator's name as the model gives it, with the version of its operator set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpName {
    /// `""` stands for ai.onnx.
    pub domain: String,
    pub name: String,
    /// The version of the domain's operator set that the model imports.
    pub opset: i64,
}

impl std::fmt::Display for OpName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.domain.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}.{}", self.domain, self.name)
        }
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    /// The model's name for it, or one made from its operator and first output; never empty.
    pub name: String,
    pub op: OpName,
    pub attributes: Attributes,
    /// `None` where an optional input is left out.
    pub inputs: Vec<Option<ValueId>>,
    /// `None` where an optional output is not wanted.
    pub outputs: Vec<Option<ValueId>>,
}

/// A node's attributes, by name.
#[derive(Clone, Debug, Default)]
pub struct Attributes(pub Vec<(String, Attribute)>);

#[derive(Clone, Debug)]
pub enum Attribute {
    Int(i64),
    Float(f32),
    String(Vec<u8>),
    Tensor(Arc<Tensor>),
    SparseTensor(Arc<SparseTensor>),
    Graph(Arc<Graph>),
    Type(ValueType),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<Vec<u8>>),
    Tensors(Vec<Arc<Tensor>>),
    Graphs(Vec<Arc<Graph>>),
    /// In a function's body: the value of the caller's attribute of this name.
    Reference(String),
    /// No attribute of the model: what the library's caller says of the node's operator.
    Definition(Definition),
}

/// The definition of an operator, which `ops` knows to read.
#[derive(Clone)]
pub struct Definition(pub Arc<dyn Any + Send + Sync>);

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Definition")
    }
}

/// A tensor given by the values at some positions, zero elsewhere.
#[derive(Clone, Debug)]
pub struct SparseTensor {
    pub values: Tensor,
    /// `[count]` linear or `[count, rank]` coordinates.
    pub indices: Tensor,
    pub shape: Vec<usize>,
}

impl Attributes {
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, a)| a)
    }
}

/// A function that the model defines: a node that calls it stands for the nodes of its body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its inputs and outputs are the body's, by position.
    pub body: Graph,
    /// Attributes that a call may leave out, with their values then.
    pub defaults: Attributes,
}

#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub name: String,
    values: Vec<ValueInfo>,
    /// In no particular order; `order` sorts them. A removed node is `None`.
    nodes: Vec<Option<Node>>,
    pub inputs: Vec<ValueId>,
    pub outputs: Vec<ValueId>,
    /// The shapes that the model declares for its outputs, where it does.
    pub declared: Vec<Option<Vec<Dim>>>,
    /// Initializers that are inputs as well, whose values a caller may replace, as the model declares them.
    /// Only in main graphs.
    pub defaults: Vec<(ValueId, Fact)>,
    /// Values of enclosing graphs that this one uses, under their outer names. Only in subgraphs.
    pub captures: Vec<ValueId>,
    names: HashMap<String, ValueId>,
}

impl Graph {
    pub fn new(name: &str) -> Self {
        Graph { name: name.to_owned(), ..Graph::default() }
    }

    /// Adds a value. A name that is taken (or empty) gets a suffix.
    pub fn add_value(&mut self, name: &str, fact: Fact) -> ValueId {
        let mut unique = name.to_owned();
        let mut suffix = self.values.len();
        while unique.is_empty() || self.names.contains_key(&unique) {
            unique = format!("{}_{suffix}", if name.is_empty() { "value" } else { name });
            suffix += 1;
        }
        let id = ValueId(self.values.len() as u32);
        self.names.insert(unique.clone(), id);
        self.values.push(ValueInfo { name: unique, fact, constant: None });
        id
    }

    /// Makes a value a constant.
    pub fn set_constant(&mut self, id: ValueId, tensor: Arc<Tensor>) {
        let value = &mut self.values[id.index()];
        value.fact = Fact::tensor(tensor.ty(), tensor.shape().iter().map(|&d| Dim::from(d)).collect());
        value.constant = Some(tensor);
    }

    /// Gives up the name of an initializer, for another value to take.
    pub fn forget_constant(&mut self, name: &str) {
        if self.find_value(name).is_some_and(|id| self.value(id).constant.is_some()) {
            self.names.remove(name);
        }
    }

    /// Makes initializers inputs, behind those that are there.
    pub fn open_defaults(&mut self, which: &[usize]) {
        for &i in which {
            if let Some((id, fact)) = self.defaults.get(i).cloned() {
                let value = &mut self.values[id.index()];
                value.constant = None;
                value.fact = fact;
                self.inputs.push(id);
            }
        }
    }

    pub fn add_node(&mut self, node: Node) -> NodeId {
        self.nodes.push(Some(node));
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub fn remove_node(&mut self, id: NodeId) -> Option<Node> {
        self.nodes.get_mut(id.index())?.take()
    }

    pub fn value(&self, id: ValueId) -> &ValueInfo {
        &self.values[id.index()]
    }

    pub fn value_mut(&mut self, id: ValueId) -> &mut ValueInfo {
        &mut self.values[id.index()]
    }

    /// The tensors of initializers and folded constants.
    pub fn constants(&self) -> impl Iterator<Item = &Tensor> {
        self.values.iter().filter_map(|value| value.constant.as_deref())
    }

    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    pub fn find_value(&self, name: &str) -> Option<ValueId> {
        self.names.get(name).copied()
    }

    /// Whether the node was not removed.
    pub fn has_node(&self, id: NodeId) -> bool {
        self.nodes.get(id.index()).is_some_and(Option::is_some)
    }

    /// The node; ids of removed nodes must not be used.
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes[id.index()].as_ref().expect("the id of a node that is there")
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.index()].as_mut().expect("the id of a node that is there")
    }

    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().enumerate().filter(|(_, n)| n.is_some()).map(|(i, _)| NodeId(i as u32))
    }

    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> + '_ {
        self.nodes.iter().enumerate().filter_map(|(i, n)| Some((NodeId(i as u32), n.as_ref()?)))
    }

    /// The node that makes each value.
    pub fn producers(&self) -> Vec<Option<NodeId>> {
        let mut producers = vec![None; self.values.len()];
        for (id, node) in self.nodes() {
            for output in node.outputs.iter().flatten() {
                producers[output.index()] = Some(id);
            }
        }
        producers
    }

    /// How often each value is used: by nodes (captures of their subgraphs counted) and as an output.
    pub fn use_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.values.len()];
        for (_, node) in self.nodes() {
            for input in node.inputs.iter().flatten() {
                counts[input.index()] += 1;
            }
            for capture in self.captures_of(node) {
                counts[capture.index()] += 1;
            }
        }
        for output in &self.outputs {
            counts[output.index()] += 1;
        }
        counts
    }

    /// The values of this graph that the node's subgraphs capture.
    pub fn captures_of(&self, node: &Node) -> Vec<ValueId> {
        let mut captures = Vec::new();
        for (_, subgraph) in node.subgraphs() {
            for &capture in &subgraph.captures {
                if let Some(id) = self.find_value(&subgraph.value(capture).name)
                    && !captures.contains(&id)
                {
                    captures.push(id);
                }
            }
        }
        captures
    }

    /// The nodes sorted so that each comes after what it uses; ties keep the model's order.
    /// `Err` names nodes that lie on a cycle.
    pub fn order(&self) -> Result<Vec<NodeId>, Vec<NodeId>> {
        let producers = self.producers();
        let mut waiting = vec![0usize; self.nodes.len()];
        let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes() {
            let captures = self.captures_of(node);
            for value in node.inputs.iter().flatten().chain(&captures) {
                if let Some(producer) = producers[value.index()] {
                    waiting[id.index()] += 1;
                    users[producer.index()].push(id);
                }
            }
        }
        let mut ready: std::collections::BTreeSet<NodeId> =
            self.node_ids().filter(|id| waiting[id.index()] == 0).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(id) = ready.pop_first() {
            order.push(id);
            for user in &users[id.index()] {
                waiting[user.index()] -= 1;
                if waiting[user.index()] == 0 {
                    ready.insert(*user);
                }
            }
        }
        let left: Vec<NodeId> = self.node_ids().filter(|id| waiting[id.index()] != 0).collect();
        if left.is_empty() { Ok(order) } else { Err(left) }
    }
}
