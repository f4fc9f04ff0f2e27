//! Operators that no provider runs are expanded into others that they stand for: the walk over those there are, and the
//! nodes that take a node's place.

use crate::error::Result;
use crate::graph::{Attribute, Attributes, Fact, Graph, Node, NodeId, OpName, ValueId};
use crate::tensor::ElementType;

/// The operator set that the new nodes are of.
pub(super) const OPSET: i64 = 21;

/// Calls `expand_node`, which replaces the node, for each node of an operator, in subgraphs as well; tells whether
/// there were any.
pub(super) fn expand_each(
    graph: &mut Graph,
    (domain, name): (&str, &str),
    expand_node: fn(&mut Graph, NodeId) -> Result<()>,
) -> Result<bool> {
    let mut changed = false;
    for id in graph.node_ids().collect::<Vec<_>>() {
        let op = &graph.node(id).op;
        if op.domain == domain && op.name == name {
            expand_node(graph, id)?;
            changed = true;
            continue;
        }
        for (_, body) in graph.node_mut(id).subgraphs_mut() {
            changed |= expand_each(body, (domain, name), expand_node)?;
        }
    }
    Ok(changed)
}

/// Nodes that take the place of one node.
pub(super) struct Expansion<'a> {
    pub(super) graph: &'a mut Graph,
    /// The node's name, which the names of the new ones begin with.
    pub(super) name: &'a str,
}

impl Expansion<'_> {
    pub(super) fn cast(&mut self, value: ValueId, ty: ElementType) -> ValueId {
        self.node("Cast", &[("to", Attribute::Int(ty as i64))], &[value])
    }

    /// A node of ai.onnx with one output.
    pub(super) fn node(&mut self, op: &str, attributes: &[(&str, Attribute)], inputs: &[ValueId]) -> ValueId {
        let output = self.graph.add_value(&format!("{}/{op}", self.name), Fact::default());
        self.node_to(op, attributes, inputs, output);
        output
    }

    pub(super) fn node_to(
        &mut self,
        op: &str,
        attributes: &[(&str, Attribute)],
        inputs: &[ValueId],
        output: ValueId,
    ) {
        self.graph.add_node(Node {
            name: format!("{}/{op}", self.name),
            op: OpName { domain: String::new(), name: op.to_owned(), opset: OPSET },
            attributes: Attributes(attributes.iter().map(|(n, a)| (n.to_string(), a.clone())).collect()),
            inputs: inputs.iter().map(|&v| Some(v)).collect(),
            outputs: vec![Some(output)],
        });
    }
}
