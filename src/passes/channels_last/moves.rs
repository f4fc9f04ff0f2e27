//! Operators that move elements.

use crate::graph::{Attribute, Dim, Fact, Node, NodeId, OpName, ValueId};

use super::{Layout, axis_last, ints, node, to_first, to_last};

/// The axis that an attribute names, of NHWC.
fn axis_of(layout: &Layout<'_>, id: NodeId, default: Option<i64>, rank: usize) -> Option<usize> {
    let axis = match layout.graph.node(id).attributes.get("axis") {
        Some(&Attribute::Int(axis)) => axis,
        _ => default?,
    };
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    Some(axis_last(usize::try_from(axis).ok().filter(|&axis| axis < rank)?, rank))
}

fn set(node: &mut Node, name: &str, value: Attribute) {
    node.attributes.0.retain(|(n, _)| n != name);
    node.attributes.0.push((name.to_owned(), value));
}

/// A transpose that makes channels the innermost gives the form, and one that puts them back takes it. Others
/// begin with it.
pub(super) fn transpose(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Transpose"]) {
        return None;
    }
    let (x, y) = (layout.input(id, 0)?, layout.output(id)?);
    let rank = layout.image_rank(x)?;
    let perm: Vec<usize> = match layout.graph.node(id).attributes.get("perm") {
        Some(Attribute::Ints(perm)) => {
            perm.iter().map(|&p| usize::try_from(p).ok()).collect::<Option<_>>()?
        }
        _ => (0..rank).rev().collect(),
    };
    if let Some(&form) = layout.last.get(&x).filter(|_| layout.is_made(x)) {
        if perm == to_last(rank) && !layout.graph.outputs.contains(&y) {
            layout.graph.replace_uses(y, form);
            return Some(());
        }
        let first = to_first(rank);
        let both: Vec<usize> = perm.iter().map(|&p| first.get(p).copied()).collect::<Option<_>>()?;
        let new = layout.graph.node_mut(id);
        new.inputs[0] = Some(form);
        set(new, "perm", ints(both));
    } else if perm == to_first(rank) {
        layout.last.insert(y, x);
        layout.made.insert(y);
    }
    Some(())
}

/// Positions become others, with batch and channels as they are.
pub(super) fn reshape(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Flatten", "Reshape", "Squeeze", "Unsqueeze"]) {
        return None;
    }
    let (x, y) = (layout.made_input(id, 0)?.0, layout.output(id)?);
    let rank = layout.image_rank(y)?;
    let (from, to) = (layout.shape(x)?, layout.shape(y)?);
    if from[..2] != to[..2] || from[1].known() == Some(0) {
        return None;
    }
    // A dimension of 0 would be taken for that of the input.
    let known = |d: &Dim| d.known().filter(|&n| n > 0);
    let mut wanted = vec![0];
    wanted.extend(to[2..].iter().chain([&to[1]]).map(|d| known(d).unwrap_or(-1)));
    if wanted.iter().filter(|&&d| d == -1).count() > 1 {
        return None;
    }
    debug_assert_eq!(wanted.len(), rank);
    let (name, form) = (layout.graph.node(id).name.clone(), layout.form(x)?);
    let new = layout.reshape_node(&name, form, &wanted)?;
    layout.put(id, new)
}

/// The shape of the value is that of its form in another order.
pub(super) fn shape(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Shape"]) || !layout.graph.node(id).attributes.0.is_empty() {
        return None;
    }
    let (x, rank) = layout.made_input(id, 0)?;
    let y = layout.output(id)?;
    let name = layout.graph.node(id).name.clone();
    let order: Vec<i64> = to_first(rank).into_iter().map(|k| k as i64).collect();
    let (form, order) = (layout.form(x)?, layout.add_ints(&format!("{name}/order"), &order)?);
    let fact = Fact { elements: None, ..layout.graph.value(y).fact.clone() };
    let of_form = layout.graph.add_value(&format!("{name}/form"), fact);
    let mut shape = node(&name, "Shape", &[], &[form]);
    shape.outputs = vec![Some(of_form)];
    layout.graph.add_node(shape);
    let mut gather = node(&name, "Gather", &[], &[of_form, order]);
    gather.outputs = vec![Some(y)];
    *layout.graph.node_mut(id) = gather;
    Some(())
}

pub(super) fn concat(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Concat"]) {
        return None;
    }
    let rank = layout.image_rank(layout.output(id)?)?;
    let axis = axis_of(layout, id, None, rank)?;
    let inputs: Vec<ValueId> = layout.graph.node(id).inputs.iter().copied().collect::<Option<_>>()?;
    let made = inputs.iter().filter(|&&value| layout.is_made(value)).count();
    if 2 * made < inputs.len() || made == 0 || inputs.iter().any(|&v| layout.image_rank(v) != Some(rank)) {
        return None;
    }
    let mut new = layout.graph.node(id).clone();
    new.inputs = inputs.into_iter().map(|value| layout.form(value).map(Some)).collect::<Option<_>>()?;
    set(&mut new, "axis", Attribute::Int(axis as i64));
    layout.put(id, new)
}

pub(super) fn split(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Split"]) {
        return None;
    }
    let (x, rank) = layout.made_input(id, 0)?;
    let axis = axis_of(layout, id, Some(0), rank)?;
    let mut outputs = layout.graph.node(id).outputs.iter().flatten();
    outputs.all(|&y| layout.image_rank(y) == Some(rank)).then_some(())?;
    let mut new = layout.graph.node(id).clone();
    new.inputs[0] = Some(layout.form(x)?);
    set(&mut new, "axis", Attribute::Int(axis as i64));
    layout.put(id, new)
}

/// Slice, when it says which axes it cuts.
pub(super) fn slice(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Slice"]) || layout.graph.node(id).op.opset < 10 {
        return None;
    }
    let (x, rank) = layout.made_input(id, 0)?;
    let axes = layout.constant_ints(id, 3)?;
    let moved = moved_axes(&axes, rank)?;
    layout.image_rank(layout.output(id)?).filter(|&r| r == rank)?;
    let mut new = layout.graph.node(id).clone();
    new.inputs[0] = Some(layout.form(x)?);
    new.inputs[3] = Some(layout.add_ints(&format!("{}/axes", new.name), &moved)?);
    layout.put(id, new)
}

/// Axes, of NHWC.
fn moved_axes(axes: &[i64], rank: usize) -> Option<Vec<i64>> {
    let moved = |&axis: &i64| {
        let axis = if axis < 0 { axis + rank as i64 } else { axis };
        Some(axis_last(usize::try_from(axis).ok().filter(|&axis| axis < rank)?, rank) as i64)
    };
    axes.iter().map(moved).collect()
}

pub(super) fn pad(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["Pad"]) || layout.graph.node(id).op.opset < 11 {
        return None;
    }
    let (x, rank) = layout.made_input(id, 0)?;
    let pads = layout.constant_ints(id, 1).filter(|pads| pads.len() == 2 * rank)?;
    if layout.input(id, 3).is_some() {
        return None;
    }
    layout.image_rank(layout.output(id)?).filter(|&r| r == rank)?;
    let order = to_last(rank);
    let moved: Vec<i64> =
        order.iter().copied().chain(order.iter().map(|k| k + rank)).map(|k| pads[k]).collect();
    let mut new = layout.graph.node(id).clone();
    new.inputs[0] = Some(layout.form(x)?);
    new.inputs[1] = Some(layout.add_ints(&format!("{}/pads", new.name), &moved)?);
    layout.put(id, new)
}

/// Resize with the axes that its sizes or scales are for, and Upsample as Resize.
pub(super) fn resize(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    let opset = layout.graph.node(id).op.opset;
    if !layout.is(id, &["Resize"]) || opset < 11 {
        return None;
    }
    let (x, rank) = layout.made_input(id, 0)?;
    layout.image_rank(layout.output(id)?).filter(|&r| r == rank)?;
    let mut new = layout.graph.node(id).clone();
    let axes: Vec<i64> = match new.attributes.get("axes") {
        Some(Attribute::Ints(axes)) => moved_axes(axes, rank)?,
        _ => (0..rank).map(|k| axis_last(k, rank) as i64).collect(),
    };
    set(&mut new, "axes", Attribute::Ints(axes));
    // The version since which there are axes; what it does not know was refused when the model was read.
    new.op = OpName { opset: opset.max(18), ..new.op };
    if !layout.runs(&new, layout.graph.value(layout.output(id)?).fact.ty.clone()) {
        return None;
    }
    new.inputs[0] = Some(layout.form(x)?);
    layout.put(id, new)
}
