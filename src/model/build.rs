//! `GraphProto` as a graph: names resolved, captures of subgraphs found, cycles refused.
//!
//! A graph has attributes and an attribute may be a graph, so this file and `attribute.rs` import each other.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Result, fail};
use crate::graph::{Fact, Graph, Node, OpName, ValueId};

use super::external::ExternalData;
use super::proto::{GraphProto, NodeProto};
use super::write::OPSET;
use super::{Opsets, attribute, normal_domain, tensor, types};

/// The model's main graph.
pub(super) fn graph(proto: &GraphProto, opsets: &Opsets, external: &mut ExternalData) -> Result<Graph> {
    Builder { scopes: Vec::new(), opsets, external }.graph(proto, true)
}

/// Builds graphs from the outermost in: the last scope is the graph being built.
pub(super) struct Builder<'a> {
    pub(super) scopes: Vec<Graph>,
    pub(super) opsets: &'a Opsets,
    pub(super) external: &'a mut ExternalData,
}

impl Builder<'_> {
    /// A graph inside the current scopes. Inputs of a main graph must have a type.
    pub(super) fn graph(&mut self, proto: &GraphProto, main: bool) -> Result<Graph> {
        self.scopes.push(Graph::new(&proto.name));
        self.declare_values(proto, main)?;
        self.add_nodes(&proto.node)?;
        for output in &proto.output {
            let Some(id) = self.find(self.scopes.len() - 1, &output.name) else {
                fail!(
                    InvalidModel,
                    "graph \"{}\": output \"{}\" is made by no node",
                    proto.name,
                    output.name
                );
            };
            let declared = types::fact(&format!("output \"{}\"", output.name), output.r#type.as_ref())?;
            let graph = self.current();
            graph.outputs.push(id);
            graph.declared.push(declared.shape.clone());
            let fact = &mut graph.value_mut(id).fact;
            if *fact == Fact::default() {
                *fact = declared;
            }
        }
        self.finish()
    }

    /// Takes the current scope's graph, once its nodes are there.
    pub(super) fn finish(&mut self) -> Result<Graph> {
        let graph = self.scopes.pop().unwrap_or_default();
        if let Err(cycle) = graph.order() {
            let names: Vec<String> = cycle
                .iter()
                .take(4)
                .map(|&id| format!("\"{}\" ({})", graph.node(id).name, graph.node(id).op))
                .collect();
            fail!(InvalidModel, "graph \"{}\" has a cycle through node {}", graph.name, names.join(", "));
        }
        Ok(graph)
    }

    pub(super) fn current(&mut self) -> &mut Graph {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Adds a value that must not be there yet.
    pub(super) fn declare(&mut self, name: &str, fact: Fact) -> Result<ValueId> {
        let graph = self.current();
        if graph.find_value(name).is_some() {
            fail!(
                InvalidModel,
                "graph \"{}\": the value \"{name}\" is made twice; names must be unique",
                graph.name
            );
        }
        Ok(graph.add_value(name, fact))
    }

    fn declare_values(&mut self, proto: &GraphProto, main: bool) -> Result<()> {
        for initializer in &proto.initializer {
            if initializer.name.is_empty() {
                fail!(InvalidModel, "graph \"{}\": an initializer has no name", proto.name);
            }
            let given = match main {
                true => self.external.given.initializer(initializer, &initializer.dims, proto)?.cloned(),
                false => None,
            };
            let value = given.map_or_else(|| tensor::tensor(initializer, self.external), Ok)?;
            // Of two initializers of one name the later one counts, as in ONNX Runtime.
            let id = match self.current().find_value(&initializer.name) {
                Some(id) => id,
                None => self.declare(&initializer.name, Fact::default())?,
            };
            self.current().set_constant(id, Arc::new(value));
        }
        for initializer in &proto.sparse_initializer {
            let name = initializer.values.as_ref().map(|v| v.name.clone()).unwrap_or_default();
            let given = match (main, &initializer.values) {
                (true, Some(values)) => {
                    self.external.given.initializer(values, &initializer.dims, proto)?.cloned()
                }
                _ => None,
            };
            let dense = match given {
                Some(dense) => dense,
                None => {
                    let sparse = tensor::sparse(initializer, self.external)?;
                    let dense = tensor::densify(&name, &sparse)?;
                    self.external.count_copy(dense.buffer().map_or(0, |b| b.len()));
                    dense
                }
            };
            let id = self.declare(&name, Fact::default())?;
            self.current().set_constant(id, Arc::new(dense));
        }
        if main {
            let graph = &self.scopes[self.scopes.len() - 1];
            self.external.given.check_names(
                |name| graph.find_value(name).is_some_and(|id| graph.value(id).constant.is_some()),
                |name| proto.input.iter().any(|input| input.name == name),
            )?;
        }
        for input in &proto.input {
            let fact = types::fact(&format!("input \"{}\"", input.name), input.r#type.as_ref())?;
            // An initializer of the same name is the input's default.
            if let Some(id) = self.current().find_value(&input.name)
                && self.current().value(id).constant.is_some()
            {
                if main && !self.current().defaults.iter().any(|(known, _)| *known == id) {
                    self.current().defaults.push((id, fact));
                }
                continue;
            }
            if main && fact.ty.is_none() {
                fail!(InvalidModel, "input \"{}\" has no type; a model's inputs need one", input.name);
            }
            if input.name.is_empty() {
                fail!(InvalidModel, "graph \"{}\": an input has no name", proto.name);
            }
            let id = self.declare(&input.name, fact)?;
            self.current().inputs.push(id);
        }
        Ok(())
    }

    /// Declares the outputs of all nodes, then adds the nodes, so that their order does not matter.
    pub(super) fn add_nodes(&mut self, nodes: &[NodeProto]) -> Result<()> {
        let nodes = self.without_replaced(nodes);
        for node in &nodes {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                self.declare(output, Fact::default())?;
            }
        }
        for proto in nodes {
            let node = self.node(proto)?;
            self.current().add_node(node);
        }
        Ok(())
    }

    /// The nodes but for Constants whose name a later Constant takes: as with initializers, the last counts.
    /// An initializer of a Constant's name goes as well.
    fn without_replaced<'n>(&mut self, nodes: &'n [NodeProto]) -> Vec<&'n NodeProto> {
        let is_constant =
            |node: &NodeProto| node.op_type == "Constant" && normal_domain(&node.domain).is_empty();
        let mut last: HashMap<&str, usize> = HashMap::new();
        for (i, node) in nodes.iter().enumerate().filter(|(_, node)| is_constant(node)) {
            last.extend(node.output.first().map(|name| (name.as_str(), i)));
        }
        for name in last.keys() {
            self.current().forget_constant(name);
        }
        let stays = |&(i, node): &(usize, &NodeProto)| {
            !is_constant(node) || node.output.first().is_none_or(|name| last.get(name.as_str()) == Some(&i))
        };
        nodes.iter().enumerate().filter(stays).map(|(_, node)| node).collect()
    }

    fn node(&mut self, proto: &NodeProto) -> Result<Node> {
        let name = node_name(proto);
        let domain = normal_domain(&proto.domain).to_owned();
        let own = proto.metadata_props.iter().find(|p| self.external.given.program && p.key == OPSET);
        let known = own.and_then(|p| p.value.parse().ok()).filter(|&n| n >= 1);
        let Some(opset) = known.or_else(|| self.opsets.get(&domain).copied()) else {
            let domain = if domain.is_empty() { "ai.onnx" } else { &domain };
            fail!(
                InvalidModel,
                "node \"{name}\" ({}): its domain {domain} is not among the operator sets that the model imports",
                proto.op_type
            );
        };
        let op = match proto.overload.as_str() {
            "" => proto.op_type.clone(),
            overload => format!("{}:{overload}", proto.op_type),
        };
        let depth = self.scopes.len() - 1;
        let mut inputs = Vec::with_capacity(proto.input.len());
        for input in &proto.input {
            inputs.push(match input.as_str() {
                "" => None,
                input => match self.find(depth, input) {
                    Some(id) => Some(id),
                    None => fail!(
                        InvalidModel,
                        "node \"{name}\" ({}): its input \"{input}\" is made by no node, and is no input or initializer",
                        proto.op_type
                    ),
                },
            });
        }
        let outputs = proto.output.iter().map(|o| self.current().find_value(o)).collect();
        let attributes = attribute::attributes(&proto.attribute, &name, self)?;
        Ok(Node { name, op: OpName { domain, name: op, opset }, attributes, inputs, outputs })
    }

    /// A value by name, in this scope or as a capture from one outside.
    pub(super) fn find(&mut self, depth: usize, name: &str) -> Option<ValueId> {
        if let Some(id) = self.scopes[depth].find_value(name) {
            return Some(id);
        }
        self.find(depth.checked_sub(1)?, name)?;
        let graph = &mut self.scopes[depth];
        let id = graph.add_value(name, Fact::default());
        graph.captures.push(id);
        Some(id)
    }
}

/// The node's name, or one made from its operator and first output.
fn node_name(proto: &NodeProto) -> String {
    if !proto.name.is_empty() {
        return proto.name.clone();
    }
    let output = proto.output.iter().find(|o| !o.is_empty()).map_or("", String::as_str);
    format!("{}:{output}", proto.op_type)
}
