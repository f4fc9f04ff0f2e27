//! Lets a model of floats compute in half precision.
//!
//! Nodes that can take halves do, with constants rounded once; inputs and outputs of the model stay floats.
//! Floats stay for what loses too much: exponentials, logarithms and powers, sums over many elements, and
//! plain arithmetic between such nodes. Softmax and normalisations compute in floats inside and round their
//! result once, so that they lose nothing by taking halves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Attribute, Attributes, Fact, Graph, NEWEST_OPSET, Node, NodeId, OpName, ValueId};
use crate::ops::custom::Custom;
use crate::ops::{self, OpError, Unknowns};
use crate::tensor::{ElementType, Tensor, ValueType, bf16, f16};

use super::{Target, infer};

/// Operators that stay in floats: results of wide range, long sums, and numbers drawn or quantized.
const KEPT: &[&str] = &[
    "Bernoulli",
    "BitCast",
    "Cast",
    "CastLike",
    "CumProd",
    "CumSum",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "Exp",
    "Log",
    "Multinomial",
    "NegativeLogLikelihoodLoss",
    "NonMaxSuppression",
    "Pow",
    "QLinearMatMul",
    "QuantizeLinear",
    "RandomNormalLike",
    "RandomUniformLike",
    "Range",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "SoftmaxCrossEntropyLoss",
    "Softplus",
];

/// Arithmetic that stays in floats between nodes that do.
const PLAIN: &[&str] =
    &["Abs", "Add", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Reciprocal", "Sqrt", "Sub", "Where"];

/// Rewrites a main graph whose facts were inferred, and infers it again.
pub(crate) fn lower(graph: &mut Graph, half: ElementType, target: &dyn Target) -> Result<()> {
    let mut lowering = Lowering {
        half,
        target,
        halves: HashMap::new(),
        pending: HashSet::new(),
        kept: HashSet::new(),
        unknowns: Unknowns::apart(),
    };
    for id in graph.order().unwrap_or_default() {
        lowering.node(graph, id);
    }
    for output in graph.outputs.clone() {
        lowering.full(graph, output);
    }
    infer::infer(graph)
}

/// The inputs of a node that are to be halves, by position, and what its outputs are then.
type Lowered = (Vec<(usize, ValueId)>, Vec<Fact>);

struct Lowering<'t> {
    half: ElementType,
    target: &'t dyn Target,
    /// The half version of a value.
    halves: HashMap<ValueId, ValueId>,
    /// Values that only exist in their half version so far.
    pending: HashSet<ValueId>,
    /// Floats made by nodes that stay in floats.
    kept: HashSet<ValueId>,
    unknowns: Unknowns,
}

impl Lowering<'_> {
    fn node(&mut self, graph: &mut Graph, id: NodeId) {
        let node = graph.node(id).clone();
        match self.lowered(graph, &node) {
            Some((inputs, facts)) => {
                for (i, input) in inputs {
                    let half = self.half_of(graph, input);
                    graph.node_mut(id).inputs[i] = Some(half);
                }
                for (at, (output, fact)) in node.outputs.iter().zip(facts).enumerate() {
                    let Some(output) = output.filter(|_| fact.element_type() == Some(self.half)) else {
                        continue;
                    };
                    let name = format!("{}_{}", graph.value(output).name, self.half);
                    let half = graph.add_value(&name, fact);
                    graph.node_mut(id).outputs[at] = Some(half);
                    self.halves.insert(output, half);
                    self.pending.insert(output);
                }
                for input in graph.node(id).inputs.clone().into_iter().flatten() {
                    self.full(graph, input);
                }
            }
            None => {
                let captures = graph.captures_of(&node);
                node.inputs.iter().flatten().chain(&captures).for_each(|&v| self.full(graph, v));
                self.kept.extend(node.outputs.iter().flatten().filter(|&&v| is_float(graph, v)));
            }
        }
    }

    /// The inputs that are to be halves, and what the outputs are then. `None`: the node stays as it is.
    fn lowered(&mut self, graph: &mut Graph, node: &Node) -> Option<Lowered> {
        if node.subgraphs().next().is_some() || KEPT.contains(&node.op.name.as_str()) {
            return None;
        }
        let (registered, op) = ops::resolve(node).ok()?;
        // What the caller's kernels do with halves is the caller's to say.
        if op.downcast::<Custom>().is_some() {
            return None;
        }
        let inputs: Vec<(usize, ValueId)> = node
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(i, v)| Some((i, (*v)?)))
            .filter(|&(i, v)| is_float(graph, v) && registered.signature.takes(i, self.half))
            .collect();
        let mut made = inputs.iter().filter(|(_, v)| graph.value(*v).constant.is_none()).peekable();
        let between = PLAIN.contains(&node.op.name.as_str()) && made.peek().is_some();
        if inputs.is_empty() || between && made.all(|(_, v)| self.kept.contains(v)) {
            return None;
        }
        let facts = self.facts(graph, node, &inputs).ok()?;
        let types = |values: &[Option<ValueId>]| -> Vec<Option<ValueType>> {
            values.iter().map(|v| v.and_then(|v| graph.value(v).fact.ty.clone())).collect()
        };
        let mut input_types = types(&node.inputs);
        inputs.iter().for_each(|&(i, _)| input_types[i] = Some(ValueType::Tensor(self.half)));
        let output_types: Vec<Option<ValueType>> =
            node.outputs.iter().zip(&facts).map(|(o, fact)| o.and_then(|_| fact.ty.clone())).collect();
        let gives_halves = facts.iter().any(|fact| fact.element_type() == Some(self.half));
        let gives_floats = node.outputs.iter().flatten().any(|&v| is_float(graph, v));
        let fits = gives_halves == gives_floats;
        (fits && self.target.runs(node, &*op, &input_types, &output_types)).then_some((inputs, facts))
    }

    /// What the outputs are with these inputs as halves.
    fn facts(
        &mut self,
        graph: &mut Graph,
        node: &Node,
        inputs: &[(usize, ValueId)],
    ) -> std::result::Result<Vec<Fact>, OpError> {
        let set = |graph: &mut Graph, ty: ElementType| {
            inputs.iter().for_each(|&(_, v)| graph.value_mut(v).fact.ty = Some(ValueType::Tensor(ty)));
        };
        set(graph, self.half);
        let facts = infer::infer_node(graph, node, &mut self.unknowns);
        set(graph, ElementType::F32);
        facts
    }

    /// The half version of a float.
    fn half_of(&mut self, graph: &mut Graph, value: ValueId) -> ValueId {
        if let Some(&half) = self.halves.get(&value) {
            return half;
        }
        let name = format!("{}_{}", graph.value(value).name, self.half);
        let mut fact = graph.value(value).fact.clone();
        fact.ty = Some(ValueType::Tensor(self.half));
        let half = graph.add_value(&name, fact);
        match graph.value(value).constant.as_deref().and_then(|tensor| rounded(tensor, self.half)) {
            Some(tensor) => graph.set_constant(half, Arc::new(tensor)),
            None => cast(graph, value, half, self.half),
        }
        self.halves.insert(value, half);
        half
    }

    /// Sees to it that a value is there as a float.
    fn full(&mut self, graph: &mut Graph, value: ValueId) {
        if self.pending.remove(&value)
            && let Some(&half) = self.halves.get(&value)
        {
            cast(graph, half, value, ElementType::F32);
        }
    }
}

fn is_float(graph: &Graph, value: ValueId) -> bool {
    graph.value(value).fact.element_type() == Some(ElementType::F32)
}

fn cast(graph: &mut Graph, from: ValueId, to: ValueId, ty: ElementType) {
    let name = format!("Cast:{}", graph.value(to).name);
    graph.add_node(Node {
        name,
        op: OpName { domain: String::new(), name: "Cast".to_owned(), opset: NEWEST_OPSET },
        attributes: Attributes(vec![("to".to_owned(), Attribute::Int(ty as i64))]),
        inputs: vec![Some(from)],
        outputs: vec![Some(to)],
    });
}

/// A constant in half precision. Finite numbers stay finite, and what is not zero stays so: a mask's most
/// negative float and a small epsilon keep their meaning.
fn rounded(tensor: &Tensor, half: ElementType) -> Option<Tensor> {
    let aligned = tensor.aligned().ok()?;
    let view = aligned.view();
    let floats = view.slice::<f32>();
    match half {
        ElementType::F16 => {
            let least = f16::from_bits(1);
            let of = |&x: &f32| {
                let y = f16::from_f32(x);
                match () {
                    () if y.is_infinite() && x.is_finite() => f16::MAX.copysign(y),
                    () if y.to_f32() == 0.0 && x != 0.0 => least.copysign(y),
                    () => y,
                }
            };
            Tensor::from_slice(tensor.shape(), &floats.iter().map(of).collect::<Vec<f16>>()).ok()
        }
        _ => {
            let of = |&x: &f32| {
                let y = bf16::from_f32(x);
                if y.is_infinite() && x.is_finite() { bf16::MAX.copysign(y) } else { y }
            };
            Tensor::from_slice(tensor.shape(), &floats.iter().map(of).collect::<Vec<bf16>>()).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GraphBuilder, assert_lines};
    use super::*;
    use crate::ops::Operator;

    /// Runs everything.
    struct Anything;

    impl Target for Anything {
        fn runs(&self, _: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
            true
        }

        fn prefers_bytes(&self) -> bool {
            false
        }

        fn keeps_floats(&self) -> bool {
            false
        }
    }

    #[test]
    fn what_loses_too_much_stays_in_floats() {
        let mut graph = GraphBuilder::new()
            .input("x", &["n", "2"])
            .floats("w", &[2, 2], &[1.0, 1e-12, -1e30, 0.5])
            .node("MatMul", &["x", "w"], &["a"])
            .node("Exp", &["a"], &["b"])
            .node("Sqrt", &["b"], &["c"])
            .node("Relu", &["a"], &["d"])
            .node("Add", &["c", "d"], &["y"])
            .output("y")
            .0;
        infer::infer(&mut graph).unwrap();
        lower(&mut graph, ElementType::F16, &Anything).unwrap();
        let lines = [
            "x_float16: float16[n, 2] = Cast<to=10>(x)",
            "a_float16: float16[n, 2] = MatMul(x_float16, w_float16)",
            "d_float16: float16[n, 2] = Relu(a_float16)",
            "a: float[n, 2] = Cast<to=1>(a_float16)",
            "b: float[n, 2] = Exp(a)",
            "c: float[n, 2] = Sqrt(b)",
            "c_float16: float16[n, 2] = Cast<to=10>(c)",
            "y_float16: float16[n, 2] = Add(c_float16, d_float16)",
            "y: float[n, 2] = Cast<to=1>(y_float16)",
            "return y",
        ];
        assert_lines(&graph, &lines);
        let w = graph.value(graph.find_value("w_float16").unwrap()).constant.clone().unwrap();
        let halves: Vec<f32> = w.view().slice::<f16>().iter().map(|x| x.to_f32()).collect();
        assert_eq!(halves, [1.0, f16::from_bits(1).to_f32(), -65504.0, 0.5]);
    }
}
