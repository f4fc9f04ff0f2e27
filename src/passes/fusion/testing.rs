//! What the tests of fusions share.

use crate::graph::Graph;
use crate::providers::{NodeContext, cpu};
use crate::tensor::{Tensor, Value};
use crate::threads::Pool;

use super::super::testing::{Cpu, GraphBuilder, assert_lines};
use super::*;

/// The CPU provider.
pub(super) struct CpuTarget(pub(super) Pool);

impl Target for CpuTarget {
    fn runs(
        &self,
        node: &Node,
        op: &dyn Operator,
        inputs: &[Option<ValueType>],
        outputs: &[Option<ValueType>],
    ) -> bool {
        let (domain, name) = (&node.op.domain, &node.op.name);
        let node = NodeContext {
            provider: "CPU",
            domain,
            name,
            op,
            input_types: inputs,
            output_types: outputs,
            constants: &[],
            pool: &self.0,
            packs: None,
        };
        cpu::build(&node).is_ok()
    }

    fn prefers_bytes(&self) -> bool {
        true
    }

    fn keeps_floats(&self) -> bool {
        true
    }
}

/// A provider without any operator.
struct Nothing;

impl Target for Nothing {
    fn runs(&self, _: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
        false
    }

    fn prefers_bytes(&self) -> bool {
        true
    }

    fn keeps_floats(&self) -> bool {
        true
    }
}

/// Fuses for the CPU, compares the graph's lines with those expected, and its numbers before and after.
pub(super) fn assert_fused(builder: GraphBuilder, expected: &[&str]) {
    assert_fused_within(builder, expected, 0.0);
}

/// The same where numbers may change by `step`, too: what is rounded to a grid may go to the neighbour.
pub(super) fn assert_fused_within(builder: GraphBuilder, expected: &[&str], step: f32) {
    let mut graph = builder.0;
    infer::infer(&mut graph).unwrap();
    let before = outputs(&graph);
    fuse(&mut graph, &CpuTarget(Pool::new(1)), &Cpu::new()).unwrap();
    assert_lines(&graph, expected);
    for (before, after) in before.iter().zip(outputs(&graph)) {
        assert_eq!(before.len(), after.len());
        let largest = before.iter().fold(1f32, |m, x| m.max(x.abs()));
        for (b, a) in before.iter().zip(after) {
            assert!((b - a).abs() <= step + 2e-5 * largest, "{b} became {a} in\n{graph}");
        }
    }
}

/// Fuses for the CPU.
pub(super) fn fused(builder: GraphBuilder) -> Graph {
    let mut graph = builder.0;
    infer::infer(&mut graph).unwrap();
    fuse(&mut graph, &CpuTarget(Pool::new(1)), &Cpu::new()).unwrap();
    graph
}

/// Fuses for a provider that has no operator.
pub(super) fn fused_for_nothing(builder: GraphBuilder) -> Graph {
    let mut graph = builder.0;
    infer::infer(&mut graph).unwrap();
    fuse(&mut graph, &Nothing, &Cpu::new()).unwrap();
    graph
}

/// The outputs of a graph, where each named dimension is 3 and inputs have numbers from -2 to 2.
fn outputs(graph: &Graph) -> Vec<Vec<f32>> {
    let cpu = Cpu::new();
    let mut values: Vec<Option<Value>> = (0..graph.value_count())
        .map(|i| graph.value(crate::graph::ValueId(i as u32)).constant.as_deref())
        .map(|c| c.map(|c| Value::Tensor(c.clone())))
        .collect();
    let mut state = 1u32;
    for &input in &graph.inputs {
        let shape = graph.value(input).fact.shape.as_ref().unwrap();
        let shape: Vec<usize> =
            shape.iter().map(|d| d.substitute(&|_| Some(3)).known().unwrap() as usize).collect();
        let mut next = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as f32 / (1 << 22) as f32 - 2.0
        };
        let elements: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
        values[input.index()] = Some(Value::Tensor(Tensor::from_slice(&shape, &elements).unwrap()));
    }
    for id in graph.order().unwrap() {
        let node = graph.node(id);
        let inputs: Vec<Option<&Value>> =
            node.inputs.iter().map(|v| v.and_then(|v| values[v.index()].as_ref())).collect();
        let results = super::super::Evaluate::evaluate(&cpu, node, &inputs).unwrap();
        for (output, result) in node.outputs.iter().zip(results) {
            if let Some(output) = output {
                values[output.index()] = Some(result);
            }
        }
    }
    let floats = |v: &Value| v.as_tensor().unwrap().aligned().unwrap().view().slice::<f32>().to_vec();
    graph.outputs.iter().map(|v| floats(values[v.index()].as_ref().unwrap())).collect()
}

#[test]
fn nothing_is_fused_into_what_the_provider_lacks() {
    let graph = fused_for_nothing(
        GraphBuilder::new()
            .input("x", &["n", "4"])
            .node("Sigmoid", &["x"], &["s"])
            .node("Mul", &["x", "s"], &["y"])
            .output("y"),
    );
    assert_lines(&graph, &["s: float[n, 4] = Sigmoid(x)", "y: float[n, 4] = Mul(x, s)", "return y"]);
}
