//! Computes once what several nodes compute alike.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::graph::{Attribute, Dim, NodeId, ValueId};
use crate::ops;
use crate::tensor::ElementType;

use super::rewriter::Rewriter;

/// Constants up to this many bytes are compared; larger ones are the same only as one value.
const SMALL: usize = 256;

/// Nodes by what they compute: operator, attributes, inputs.
#[derive(Default)]
pub(super) struct Seen {
    nodes: HashMap<(String, Vec<Option<ValueId>>), NodeId>,
    constants: HashMap<(String, Vec<u8>), ValueId>,
    /// Small integers whose elements are known as expressions of the dimensions.
    sizes: HashMap<Size, ValueId>,
}

/// Type, shape and elements.
type Size = (Option<ElementType>, Option<Vec<Dim>>, Vec<Dim>);

/// Replaces the node by an earlier one that gives the same.
pub(super) fn common(rw: &mut Rewriter<'_>, seen: &mut Seen, id: NodeId) {
    let node = rw.node(id);
    let plain = |a: &Attribute| {
        matches!(
            a,
            Attribute::Int(_)
                | Attribute::Float(_)
                | Attribute::String(_)
                | Attribute::Ints(_)
                | Attribute::Floats(_)
                | Attribute::Strings(_)
        )
    };
    if !ops::is_repeatable(node) || !node.attributes.0.iter().all(|(_, a)| plain(a)) {
        return;
    }
    if let Some(output) = rw.output(id)
        && let fact = rw.fact(output)
        && let Some(elements) = &fact.elements
    {
        let key = (fact.element_type(), fact.shape.clone(), elements.clone());
        let first = seen.sizes.entry(key).or_insert(output);
        // What nobody used any more after an earlier replacement is gone.
        if !rw.producer(*first).is_some_and(|producer| rw.graph.has_node(producer)) {
            *first = output;
        }
        let first = *first;
        if first != output && rw.bypass(id, first) {
            return;
        }
    }
    let node = rw.node(id);
    let mut attributes = node.attributes.0.clone();
    attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
    let key = format!("{:?} {} {attributes:?}", node.op, node.outputs.len());
    let inputs = node.inputs.clone();
    let inputs: Vec<_> = inputs.into_iter().map(|v| v.map(|v| canonical(rw, seen, v))).collect();
    match seen.nodes.entry((key, inputs)) {
        Entry::Vacant(entry) => {
            entry.insert(id);
        }
        Entry::Occupied(mut entry) => {
            let first = *entry.get();
            if !rw.graph.has_node(first) {
                entry.insert(id);
                return;
            }
            if let (Some(value), Some(_)) = (rw.output(first), rw.output(id)) {
                rw.bypass(id, value);
            }
        }
    }
}

/// The first constant with the same elements.
fn canonical(rw: &Rewriter<'_>, seen: &mut Seen, value: ValueId) -> ValueId {
    let Some(tensor) = rw.constant(value) else { return value };
    let Some(buffer) = tensor.buffer().filter(|b| b.len() <= SMALL) else { return value };
    let key = (format!("{} {:?}", tensor.ty(), tensor.shape()), buffer.bytes().to_vec());
    *seen.constants.entry(key).or_insert(value)
}

#[cfg(test)]
mod tests {
    use super::super::super::infer;
    use super::super::super::testing::{Cpu, GraphBuilder};
    use super::super::fuse;
    use super::super::testing::{CpuTarget, assert_fused};
    use crate::graph::Attribute;
    use crate::threads::Pool;

    #[test]
    fn the_same_is_computed_once() {
        let builder = GraphBuilder::new()
            .input("x", &["n", "4"])
            .floats("one", &[1], &[1.5])
            .floats("uno", &[1], &[1.5])
            .floats("two", &[1], &[2.0])
            .node("Div", &["one", "x"], &["a"])
            .node("Div", &["uno", "x"], &["b"])
            .node("Div", &["two", "x"], &["c"])
            .node("Exp", &["a"], &["d"])
            .node("Exp", &["b"], &["e"])
            .node("Max", &["d", "e", "c"], &["y"])
            .output("y");
        assert_fused(
            builder,
            &[
                "a: float[n, 4] = Div(one, x)",
                "c: float[n, 4] = Div(two, x)",
                "d: float[n, 4] = Exp(a)",
                "y: float[n, 4] = Max(d, d, c)",
                "return y",
            ],
        );
    }

    #[test]
    fn sizes_are_known_by_their_dimensions() {
        let builder = GraphBuilder::new()
            .input("x", &["n", "4"])
            .input("w", &["1", "4"])
            .node("Exp", &["x"], &["e"])
            .node("Shape", &["x"], &["a"])
            .node("Shape", &["e"], &["b"])
            .node("Expand", &["w", "b"], &["c"])
            .node("Sin", &["w"], &["s"])
            .node("Expand", &["s", "a"], &["d"])
            .node("Max", &["c", "d", "e"], &["y"])
            .output("y");
        assert_fused(
            builder,
            &[
                "e: float[n, 4] = Exp(x)",
                "a: int64[2] = Shape(x)",
                "c: float[n, 4] = Expand(w, a)",
                "s: float[1, 4] = Sin(w)",
                "d: float[n, 4] = Expand(s, a)",
                "y: float[n, 4] = Max(c, d, e)",
                "return y",
            ],
        );
    }

    /// The first `Shape` goes with the only node that uses it, before the third one comes.
    #[test]
    fn what_is_gone_is_no_model() {
        let zero = [0i64];
        let builder = GraphBuilder::new()
            .input("x", &["n", "4"])
            .ints("zero", &[1], &zero)
            .node("Shape", &["x"], &["a"])
            .node("Exp", &["x"], &["e"])
            .node_with("Shape", &[("end", Attribute::Int(1))], &["e"], &["rows"])
            .node("Gather", &["a", "zero"], &["first"])
            .node("Expand", &["e", "rows"], &["c"])
            .node("Expand", &["c", "first"], &["d"])
            .node("Shape", &["d"], &["b"])
            .node("Expand", &["d", "b"], &["y"])
            .output("y");
        let mut graph = builder.0;
        infer::infer(&mut graph).unwrap();
        fuse(&mut graph, &CpuTarget(Pool::new(1)), &Cpu::new()).unwrap();
        let made: Vec<_> = graph.nodes().flat_map(|(_, n)| n.outputs.iter().flatten().copied()).collect();
        for (_, node) in graph.nodes() {
            for &input in node.inputs.iter().flatten() {
                let there = made.contains(&input)
                    || graph.inputs.contains(&input)
                    || graph.value(input).constant.is_some();
                assert!(there, "{} of {} is made\n{graph}", graph.value(input).name, node.name);
            }
        }
    }

    #[test]
    fn outputs_keep_their_names_and_random_numbers_differ() {
        let builder = GraphBuilder::new()
            .input("x", &["n"])
            .node("Exp", &["x"], &["a"])
            .node("Exp", &["x"], &["b"])
            .output("a")
            .output("b");
        assert_fused(builder, &["a: float[n] = Exp(x)", "b: float[n] = Exp(x)", "return a, b"]);
    }
}
