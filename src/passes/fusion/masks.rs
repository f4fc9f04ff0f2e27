//! Masks of attention: what exporters compute of positions for every query and key follows from them, or is the same
//! for all queries.

use std::sync::Arc;

use crate::graph::{Attribute, Dim, NodeId, ValueId};
use crate::tensor::Tensor;

use super::indices::{Affine, components, difference, truth};
use super::rewriter::Rewriter;

/// Added to a score, this or less leaves nothing of a probability.
const HIDES: f64 = -3e4;

/// A part of a tensor by its own indices is the tensor with more dimensions of 1.
pub(super) fn gathered(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let output = rw.output(root)?;
    let (data, axes) = if rw.is(root, "GatherND") {
        let data = rw.input(root, 0)?;
        let components = components(rw, root)?;
        let (from, to) = (rw.shape(data)?, rw.shape(output)?);
        if components.len() != from.len() {
            return None;
        }
        let mut axes = Vec::new();
        for (component, dim) in components.iter().zip(from) {
            let mut moving = component.steps.iter().enumerate().filter(|(_, step)| **step != Dim::Known(0));
            let axis = match (moving.next(), moving.next()) {
                (Some((axis, step)), None) if *step == Dim::Known(1) => Some(axis),
                (None, None) if dim.known() == Some(1) => None,
                _ => return None,
            };
            if component.start != Dim::Known(0) || axis.is_some_and(|axis| to[axis] != *dim) {
                return None;
            }
            axes.push(axis);
        }
        // A dimension of 1 may be any that is left: the one after what came before.
        let mut next = 0;
        let mut kept = Vec::new();
        for axis in axes {
            let axis = axis.unwrap_or(next);
            if axis < next || (axis == next && to.get(axis).is_none()) {
                return None;
            }
            kept.push(axis);
            next = axis + 1;
        }
        (data, (0..to.len()).filter(|axis| !kept.contains(axis)).collect())
    } else if rw.is(root, "Gather") {
        rows_of_flat(rw, root, output)?
    } else {
        return None;
    };
    unsqueezed(rw, root, data, axes)
}

/// The tensor whose elements, one after another, are gathered by their own places, and the new axes.
fn rows_of_flat(rw: &Rewriter<'_>, root: NodeId, output: ValueId) -> Option<(ValueId, Vec<usize>)> {
    if !matches!(rw.node(root).attributes.get("axis"), None | Some(Attribute::Int(0))) {
        return None;
    }
    let (flat, indices) = (rw.input(root, 0)?, rw.input(root, 1)?);
    let id = ["Flatten", "Reshape"].iter().find_map(|op| rw.maker(flat, op))?;
    let data = rw.input(id, 0)?;
    let ones = rw.shape(flat)?.get(1..)?.iter().all(|dim| dim.known() == Some(1));
    let at = Affine::of(rw, indices).filter(|at| ones && at.start == Dim::Known(0))?;
    let mut stride = Dim::Known(1);
    for (dim, step) in rw.shape(indices)?.iter().zip(&at.steps).rev() {
        if dim.known() != Some(1) && *step != stride {
            return None;
        }
        stride = stride.mul(dim);
    }
    (stride == rw.shape(flat)?[0]).then_some(())?;
    Some((data, new_axes(rw.shape(data)?, rw.shape(output)?)?))
}

/// A reshape that only puts dimensions of 1 between others needs no shape from the graph.
pub(super) fn reshaped(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Reshape") || rw.constant(rw.input(root, 1)?).is_some() {
        return None;
    }
    let (mut x, output) = (rw.input(root, 0)?, rw.output(root)?);
    let mut found = None;
    // Other shapes of the same elements on the way do not matter.
    loop {
        let axes = rw.shape(x).and_then(|shape| new_axes(shape, rw.shape(output)?));
        found = axes.map(|axes| (x, axes)).or(found);
        match ["Reshape", "Flatten", "Squeeze", "Unsqueeze"].iter().find_map(|op| rw.maker(x, op)) {
            Some(id) => x = rw.input(id, 0)?,
            None => break,
        }
    }
    let (x, axes) = found?;
    unsqueezed(rw, root, x, axes)
}

/// The places of dimensions of 1 that make the second shape of the first.
fn new_axes(from: &[Dim], to: &[Dim]) -> Option<Vec<usize>> {
    let mut rest = from;
    let mut axes = Vec::new();
    for (axis, dim) in to.iter().enumerate() {
        // As many are left as the first shape has.
        match rest.split_first() {
            Some((first, after)) if first == dim => rest = after,
            _ if dim.known() == Some(1) => axes.push(axis),
            _ => return None,
        }
    }
    rest.is_empty().then_some(axes)
}

fn unsqueezed(rw: &mut Rewriter<'_>, root: NodeId, data: ValueId, axes: Vec<usize>) -> Option<()> {
    let axes: Vec<i64> = axes.into_iter().map(|axis| axis as i64).collect();
    let axes = Tensor::from_slice(&[axes.len()], &axes).ok()?;
    let axes = rw.add_constant(&format!("{}/axes", rw.node(root).name), Arc::new(axes));
    let new = rw.draft(root, "Unsqueeze", &[], &[Some(data), Some(axes)]);
    rw.replace(root, new).then_some(())
}

/// A mask by positions becomes the attribute for it; one that is the same for all queries is computed once for all.
pub(super) fn of_attention(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Attention") && !rw.is(root, "rukh.Attention") || rw.node(root).inputs.len() != 4 {
        return None;
    }
    let mask = rw.input(root, 3)?;
    let (condition, choice) = match rw.maker(mask, "Where") {
        Some(choice) => (rw.input(choice, 0)?, Some(choice)),
        None if rw.element_type(mask)? == crate::tensor::ElementType::Bool => (mask, None),
        None => return None,
    };
    let numbers = match choice {
        Some(choice) => [rw.scalar(rw.input(choice, 1)?)?, rw.scalar(rw.input(choice, 2)?)?],
        None => [0.0, f64::NEG_INFINITY],
    };
    let hides = numbers[0] == 0.0 && numbers[1] <= HIDES;
    let small = smallest(rw, condition);
    let mut new = rw.node(root).clone();
    if hides && truth(rw, small) == Some(true) {
        new.inputs.truncate(3);
    } else if hides && rw.node(root).attributes.get("is_causal").is_none() && is_causal(rw, small) {
        new.inputs.truncate(3);
        new.attributes.0.push(("is_causal".to_owned(), Attribute::Int(1)));
    } else if small != condition {
        // The last dimension stays: one column is the first key's alone to the standard's operator.
        (rw.shape(small)?.last() == rw.shape(condition)?.last()).then_some(())?;
        let chosen = match choice {
            Some(choice) => {
                let mut node = rw.node(choice).clone();
                node.inputs[0] = Some(small);
                rw.insert_node(node)?
            }
            None => small,
        };
        new.inputs[3] = Some(chosen);
    } else {
        return None;
    }
    rw.replace(root, new).then_some(())
}

/// The condition without what is true everywhere, and before it was expanded.
fn smallest(rw: &Rewriter<'_>, condition: ValueId) -> ValueId {
    if let Some(id) = rw.maker(condition, "And") {
        let mut found = rw.operands(id).into_iter();
        if let Some([_, rest]) = found.find(|[known, _]| truth(rw, *known) == Some(true)) {
            return smallest(rw, rest);
        }
    }
    match rw.maker(condition, "Expand").and_then(|id| rw.input(id, 0)) {
        Some(x) if rw.shape(x).is_some() => smallest(rw, x),
        _ => condition,
    }
}

/// Whether a condition `[…, queries, keys]` is that keys are not behind their query, of as many.
fn is_causal(rw: &Rewriter<'_>, condition: ValueId) -> bool {
    let test = || {
        let id = rw.producer(condition)?;
        let from = if rw.is(id, "LessOrEqual") || rw.is(id, "GreaterOrEqual") { 0 } else { -1 };
        (!rw.is(id, "Equal")).then_some(())?;
        let difference = difference(rw, id)?;
        let [front @ .., queries, keys] = &difference.steps[..] else { return None };
        let [.., rows, columns] = rw.shape(condition)? else { return None };
        let whole = difference.start == Dim::Known(if from == 0 { 0 } else { 1 });
        let ahead = *queries == Dim::Known(1) && *keys == Dim::Known(-1);
        (whole && ahead && rows == columns && front.iter().all(|step| *step == Dim::Known(0))).then_some(())
    };
    test().is_some()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::{assert_fused, fused};
    use super::*;

    /// Positions `[1, 1, 5, 1]` of queries and `[1, 1, 1, 5]` of keys, an input by sample and key, and attention with
    /// the mask `m`.
    fn positions() -> GraphBuilder {
        GraphBuilder::new()
            .input("q", &["n", "2", "s", "4"])
            .input("x", &["n", "s"])
            .ints("zero", &[], &[0])
            .ints("one", &[], &[1])
            .ints("two", &[1], &[2])
            .ints("three", &[1], &[3])
            .ints("sample", &[3], &[1, 2, 3])
            .ints("query", &[3], &[0, 1, 3])
            .ints("key", &[3], &[0, 1, 2])
            .floats("nothing", &[], &[0.0])
            .floats("least", &[], &[f32::MIN])
            .floats("half", &[], &[0.5])
            .node("Shape", &["x"], &["shape"])
            .node("Gather", &["shape", "zero"], &["samples"])
            .node("Gather", &["shape", "one"], &["rows"])
            .node("Range", &["zero", "samples", "one"], &["r0"])
            .node("Range", &["zero", "rows", "one"], &["r1"])
            .node("Unsqueeze", &["r0", "sample"], &["at_sample"])
            .node("Unsqueeze", &["r1", "query"], &["at_query"])
            .node("Unsqueeze", &["r1", "key"], &["at_key"])
    }

    fn attend(builder: GraphBuilder, condition: &str) -> GraphBuilder {
        builder
            .node("Where", &[condition, "nothing", "least"], &["m"])
            .node("Attention", &["q", "q", "q", "m"], &["y"])
            .output("y")
    }

    #[test]
    fn keys_behind_their_query() {
        let causal = "y: float[n, 2, s, 4] = Attention<is_causal=1>(q, q, q)";
        for (op, operands) in
            [("LessOrEqual", ["at_key", "at_query"]), ("GreaterOrEqual", ["at_query", "at_key"])]
        {
            let builder =
                positions().node(op, &operands, &["c"]).node("GreaterOrEqual", &["at_key", "zero"], &["t"]);
            let builder = builder.node("And", &["t", "c"], &["d"]);
            assert_fused(attend(builder, "d"), &[causal, "return y"]);
        }
        // Each query's own key hidden too; keys from the query on.
        for (op, operands) in [("Less", ["at_key", "at_query"]), ("LessOrEqual", ["at_query", "at_key"])] {
            let graph = fused(attend(positions().node(op, &operands, &["c"]), "c")).to_string();
            assert!(!graph.contains("is_causal") && graph.contains("(q, q, q, m)"), "{graph}");
        }
    }

    #[test]
    fn the_same_for_all_queries() {
        let flat = [("axis", Attribute::Int(2))];
        let gathered = positions()
            .node("Greater", &["x", "half"], &["b"])
            .node_with("Flatten", &flat, &["b"], &["f"])
            .node("Mul", &["at_sample", "rows"], &["before"])
            .node("Add", &["at_key", "before"], &["i"])
            .node("Gather", &["f", "i"], &["g"])
            .node("Shape", &["i"], &["like"])
            .node("Reshape", &["g", "like"], &["c"]);
        let by_both = positions()
            .node("Greater", &["x", "half"], &["b"])
            .node("Max", &["at_sample", "at_key"], &["most"])
            .node("Shape", &["most"], &["like"])
            .ints("last", &[1], &[-1])
            .node("Expand", &["at_sample", "like"], &["i"])
            .node("Expand", &["at_key", "like"], &["j"])
            .node("Unsqueeze", &["i", "last"], &["iu"])
            .node("Unsqueeze", &["j", "last"], &["ju"])
            .node_with("Concat", &[("axis", Attribute::Int(-1))], &["iu", "ju"], &["at"])
            .node("GatherND", &["b", "at"], &["c"]);
        for builder in [gathered, by_both] {
            let builder = builder.node("GreaterOrEqual", &["at_query", "zero"], &["t"]).node(
                "And",
                &["t", "c"],
                &["d"],
            );
            let graph = fused(attend(builder, "d")).to_string();
            for part in
                ["float[n, 1, 1, s] = Where(", "bool[n, 1, 1, s] = Unsqueeze(b, ", "Attention(q, q, q, "]
            {
                assert!(graph.contains(part), "{part} in {graph}");
            }
            for gone in ["Gather", "Range", "And", "Concat"] {
                assert!(!graph.contains(&format!("= {gone}")), "{gone} in {graph}");
            }
        }
    }

    /// A shift of each sample's positions, found by their differences, is none.
    #[test]
    fn positions_that_go_on() {
        let builder = positions()
            .ints("first", &[1], &[0])
            .ints("second", &[1], &[1])
            .ints("end", &[1], &[i64::MAX])
            .ints("start", &[1], &[0])
            .node("Unsqueeze", &["r1", "start"], &["p"])
            .node("Expand", &["p", "shape"], &["e"])
            .node("Slice", &["e", "first", "second", "second"], &["e0"])
            .node("Sub", &["e0", "one"], &["before"])
            .node_with("Concat", &[("axis", Attribute::Int(-1))], &["before", "e"], &["all"])
            .node("Slice", &["all", "second", "end", "second"], &["later"])
            .node("Sub", &["later", "e"], &["by"])
            .node("Equal", &["by", "by"], &["c"]);
        let graph = fused(attend(builder, "c")).to_string();
        assert!(graph.contains("Attention(q, q, q)"), "{graph}");
    }
}
