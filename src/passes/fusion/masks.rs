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
    let (x, output) = (rw.input(root, 0)?, rw.output(root)?);
    let axes = new_axes(rw.shape(x)?, rw.shape(output)?)?;
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
