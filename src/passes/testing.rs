//! Small graphs for the tests of passes.

use std::sync::Arc;

use crate::graph::{Attribute, Attributes, Dim, Fact, Graph, NEWEST_OPSET, Node, OpName};
use crate::ops::OpError;
use crate::providers::cpu;
use crate::tensor::{Element, ElementType, Tensor, Value};
use crate::threads::Pool;

use super::Evaluate;

/// Builds a graph line by line. Values are made by name when they are first used.
pub(super) struct GraphBuilder(pub(super) Graph);

impl GraphBuilder {
    pub(super) fn new() -> Self {
        GraphBuilder(Graph::new("test"))
    }

    /// An input of floats; a dimension is a number or a name.
    pub(super) fn input(mut self, name: &str, shape: &[&str]) -> Self {
        let shape =
            shape.iter().map(|d| d.parse::<i64>().map_or_else(|_| Dim::symbol(d), Dim::from)).collect();
        let id = self.0.add_value(name, Fact::tensor(ElementType::F32, shape));
        self.0.inputs.push(id);
        self
    }

    pub(super) fn ints(self, name: &str, shape: &[usize], ints: &[i64]) -> Self {
        self.constant(name, shape, ints)
    }

    pub(super) fn floats(self, name: &str, shape: &[usize], floats: &[f32]) -> Self {
        self.constant(name, shape, floats)
    }

    pub(super) fn constant<T: Element>(mut self, name: &str, shape: &[usize], elements: &[T]) -> Self {
        let tensor = Tensor::from_slice(shape, elements).expect("memory for a test");
        let id = self.0.add_value(name, Fact::default());
        self.0.set_constant(id, Arc::new(tensor));
        self
    }

    pub(super) fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        self.node_with(op, &[], inputs, outputs)
    }

    pub(super) fn node_with(
        mut self,
        op: &str,
        attributes: &[(&str, Attribute)],
        inputs: &[&str],
        outputs: &[&str],
    ) -> Self {
        let mut value = |name: &&str| {
            (!name.is_empty())
                .then(|| self.0.find_value(name).unwrap_or_else(|| self.0.add_value(name, Fact::default())))
        };
        let inputs = inputs.iter().map(&mut value).collect();
        let outputs: Vec<_> = outputs.iter().map(&mut value).collect();
        let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
        self.0.add_node(Node {
            name: format!("{op}_node"),
            op: OpName { domain: domain.into(), name: op.into(), opset: NEWEST_OPSET },
            attributes: Attributes(attributes.iter().map(|(n, a)| (n.to_string(), a.clone())).collect()),
            inputs,
            outputs,
        });
        self
    }

    pub(super) fn output(mut self, name: &str) -> Self {
        let id = self.0.find_value(name).expect("an output that a node makes");
        self.0.outputs.push(id);
        self
    }
}

/// The CPU provider on two threads.
pub(super) struct Cpu(Pool);

impl Cpu {
    pub(super) fn new() -> Self {
        Cpu(Pool::new(2))
    }
}

impl Evaluate for Cpu {
    fn evaluate(&self, node: &Node, inputs: &[Option<&Value>]) -> Result<Vec<Value>, OpError> {
        cpu::evaluate(node, inputs, &self.0)
    }
}

/// Compares a graph's text with the lines expected between its braces.
pub(super) fn assert_lines(graph: &Graph, expected: &[&str]) {
    let text = graph.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(&lines[1..lines.len() - 1], expected, "the graph is\n{text}");
}
