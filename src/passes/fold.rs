//! Computes once what every run would compute alike: nodes over constants, and shape arithmetic
//! whose result is known.

use std::collections::HashMap;
use std::sync::Arc;

use crate::graph::{Attribute, Fact, Graph, Node, NodeId, ValueId};
use crate::ops;
use crate::ops::custom::Definition;
use crate::tensor::{ElementType, Tensor, Value};

use super::{Evaluate, Weights};

/// A result above this size is kept as the nodes that make it, unless it is no larger than what it
/// was made from: a model of a few bytes must not become gigabytes.
const LARGEST: usize = 1 << 20;

/// How many times as large as its inputs a result is taken to be whose size is not known.
const UNKNOWN: usize = 16;

/// How many times as large as its inputs a result of an operator of the caller's may be: weights of 2 bits as floats.
const UNPACKED: usize = 16;

/// Folds what can be folded, in subgraphs as well; tells whether something changed. A node that
/// cannot be computed stays: it fails when it runs, if it runs.
pub(super) fn fold(graph: &mut Graph, evaluate: &dyn Evaluate, weights: Weights) -> bool {
    let mut changed = false;
    let mut cache: HashMap<ValueId, Value> = HashMap::new();
    for id in graph.order().unwrap_or_default() {
        changed |= fold_subgraphs(graph, id, evaluate, weights);
        let node = graph.node(id);
        let kept = node.op.name == "DequantizeLinear" && weights == Weights::Quantized;
        if !ops::is_repeatable(node) || node.subgraphs().next().is_some() || kept {
            continue;
        }
        if let Some(tensors) =
            known_elements(graph, node).or_else(|| compute(graph, node, evaluate, &mut cache))
        {
            let outputs = graph.node(id).outputs.clone();
            for (output, tensor) in outputs.into_iter().zip(tensors) {
                if let Some(output) = output {
                    graph.set_constant(output, tensor);
                }
            }
            graph.remove_node(id);
            changed = true;
        }
    }
    changed
}

fn fold_subgraphs(graph: &mut Graph, id: NodeId, evaluate: &dyn Evaluate, weights: Weights) -> bool {
    let mut changed = false;
    for (_, body) in graph.node_mut(id).subgraphs_mut() {
        changed |= fold(body, evaluate, weights);
    }
    changed
}

/// The single output of a node whose elements inference already knows.
fn known_elements(graph: &Graph, node: &Node) -> Option<Vec<Arc<Tensor>>> {
    let [Some(output)] = node.outputs[..] else { return None };
    let fact = &graph.value(output).fact;
    let ints: Vec<i64> = fact.elements.as_ref()?.iter().map(|d| d.known()).collect::<Option<_>>()?;
    let shape = known_shape(fact)?;
    let tensor = match fact.element_type()? {
        _ if shape.iter().product::<usize>() != ints.len() => return None,
        ElementType::I64 => Tensor::from_slice(&shape, &ints).ok()?,
        ElementType::I32 => {
            let ints: Vec<i32> = ints.iter().map(|&n| i32::try_from(n).ok()).collect::<Option<_>>()?;
            Tensor::from_slice(&shape, &ints).ok()?
        }
        _ => return None,
    };
    Some(vec![Arc::new(tensor)])
}

fn compute(
    graph: &Graph,
    node: &Node,
    evaluate: &dyn Evaluate,
    cache: &mut HashMap<ValueId, Value>,
) -> Option<Vec<Arc<Tensor>>> {
    if let ("Constant", Some(Attribute::Tensor(tensor))) =
        (node.op.name.as_str(), node.attributes.get("value"))
    {
        // Shared as it is: it may be large, and mapped.
        return Some(vec![tensor.clone()]);
    }
    if !node.inputs.iter().flatten().all(|&v| graph.value(v).constant.is_some()) {
        return None;
    }
    let input_bytes: usize =
        node.inputs.iter().flatten().map(|&v| bytes(graph.value(v).constant.as_deref())).sum();
    let largest = LARGEST.max(input_bytes.saturating_mul(growth(graph, node)));
    // Nobody can tell how much an operator of the caller's makes, who asked for it to be computed ahead.
    let is_defined = Definition::of(node).is_some();
    for output in node.outputs.iter().flatten() {
        let fact = &graph.value(*output).fact;
        let size = fact.element_type()?.size();
        let shape = known_shape(fact);
        let known = shape.and_then(|s| s.iter().try_fold(size, |n, &d| n.checked_mul(d)));
        // An unknown size (NonZero of a constant) is bounded by a few times the input's.
        let bound = if is_defined { 0 } else { input_bytes.saturating_mul(UNKNOWN) };
        if known.unwrap_or(bound) > largest {
            return None;
        }
    }
    for &input in node.inputs.iter().flatten() {
        if let Some(tensor) = &graph.value(input).constant {
            cache.entry(input).or_insert_with(|| Value::Tensor((**tensor).clone()));
        }
    }
    let inputs: Vec<Option<&Value>> = node.inputs.iter().map(|v| v.and_then(|v| cache.get(&v))).collect();
    let outputs = evaluate.evaluate(node, &inputs).ok()?;
    outputs
        .into_iter()
        .map(|v| match v {
            Value::Tensor(t) if bytes(Some(&t)) <= largest || !is_defined => Some(Arc::new(t)),
            _ => None,
        })
        .collect()
}

/// By how much a large result may exceed what it is made from: every run would make floats of bytes again, or unpack
/// anew what an operator of the caller's unpacks.
fn growth(graph: &Graph, node: &Node) -> usize {
    if Definition::of(node).is_some() {
        return UNPACKED;
    }
    let ty = node.inputs.first().copied().flatten().and_then(|x| graph.value(x).fact.element_type());
    match ty {
        Some(ty) if node.op.name == "DequantizeLinear" && ty.file_bits() >= 8 => size_of::<f32>(),
        _ => 1,
    }
}

fn known_shape(fact: &Fact) -> Option<Vec<usize>> {
    fact.shape.as_ref()?.iter().map(|d| usize::try_from(d.known()?).ok()).collect()
}

fn bytes(tensor: Option<&Tensor>) -> usize {
    tensor.and_then(Tensor::buffer).map_or(0, |b| b.len())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Cpu, GraphBuilder, assert_lines};
    use super::super::{dead, infer};
    use super::*;

    fn folded(builder: GraphBuilder) -> Graph {
        let mut graph = builder.0;
        for _ in 0..4 {
            infer::infer(&mut graph).unwrap();
            fold(&mut graph, &Cpu::new(), Weights::Dequantized);
        }
        dead::remove(&mut graph);
        graph
    }

    #[test]
    fn nodes_over_constants_become_constants() {
        let graph = folded(
            GraphBuilder::new()
                .input("x", &["2"])
                .floats("a", &[2], &[-1.0, 2.0])
                .node("Relu", &["a"], &["r"])
                .node("MatMul", &["x", "r"], &["y"])
                .output("y"),
        );
        assert_lines(&graph, &["y: float[] = MatMul(x, r)", "return y"]);
        let r = graph.value(graph.find_value("r").unwrap());
        assert_eq!(r.constant.as_ref().unwrap().view().slice::<f32>(), [0.0, 2.0]);
    }

    #[test]
    fn shape_arithmetic_folds_when_the_shape_is_known() {
        let chain = |batch| {
            GraphBuilder::new()
                .input("x", &[batch, "3", "4"])
                .ints("two", &[], &[2])
                .ints("minus", &[1], &[-1])
                .ints("axis", &[1], &[0])
                .node("Shape", &["x"], &["s"])
                .node("Gather", &["s", "two"], &["g"])
                .node("Unsqueeze", &["g", "axis"], &["u"])
                .node_with("Concat", &[("axis", Attribute::Int(0))], &["minus", "u"], &["c"])
                .node("Reshape", &["x", "c"], &["y"])
                .output("y")
        };
        assert_lines(&folded(chain("2")), &["y: float[6, 4] = Reshape(x, c)", "return y"]);
        // With a symbolic batch only the part that does not depend on it is known, which is all here.
        assert_lines(&folded(chain("batch")), &["y: float[3*batch, 4] = Reshape(x, c)", "return y"]);
    }

    #[test]
    fn random_and_large_results_stay() {
        let graph = folded(
            GraphBuilder::new()
                .ints("shape", &[2], &[4096, 4096])
                .node("ConstantOfShape", &["shape"], &["y"])
                .output("y"),
        );
        assert_lines(&graph, &["y: float[4096, 4096] = ConstantOfShape(shape)", "return y"]);
    }
}
