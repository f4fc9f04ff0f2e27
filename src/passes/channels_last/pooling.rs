//! Poolings, and reductions over positions.

use crate::graph::{Attribute, NodeId, OpName};
use crate::ops;
use crate::ops::pool::{Pool, Reduction};
use crate::ops::reduce::{Axes, Reduce};

use super::{Layout, axis_last, ints, node};

/// Maxima and means over windows.
pub(super) fn window(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    let (x, _) = layout.made_input(id, 0)?;
    let y = layout.output(id)?;
    let (_, op) = ops::resolve(layout.graph.node(id)).ok()?;
    let name = match op.downcast::<Pool>()?.reduction {
        Reduction::Max => "NhwcMaxPool",
        Reduction::Average { .. } => "NhwcAveragePool",
        Reduction::Norm { .. } => return None,
    };
    let mut new = layout.graph.node(id).clone();
    new.op = OpName { domain: "rukh".into(), name: name.into(), opset: 1 };
    new.attributes.0.retain(|(name, _)| name != "storage_order");
    if !layout.runs(&new, layout.graph.value(y).fact.ty.clone()) {
        return None;
    }
    new.inputs[0] = Some(layout.form(x)?);
    layout.put(id, new)
}

/// Maxima and means over all positions.
pub(super) fn whole(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    let op = match layout.is(id, &["GlobalAveragePool"]) {
        true => "ReduceMean",
        false if layout.is(id, &["GlobalMaxPool"]) => "ReduceMax",
        false => return None,
    };
    let (x, rank) = layout.made_input(id, 0)?;
    layout.output(id)?;
    let name = layout.graph.node(id).name.clone();
    let positions: Vec<i64> = (1..rank as i64 - 1).collect();
    let axes = layout.add_ints(&format!("{name}/axes"), &positions)?;
    let form = layout.form(x)?;
    layout.put(id, node(&name, op, &[("keepdims", Attribute::Int(1))], &[form, axes]))
}

/// Reductions, of which those over all positions give no image and need no form of their result.
pub(super) fn reduction(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    let (x, rank) = layout.made_input(id, 0)?;
    let y = layout.output(id)?;
    let (_, op) = ops::resolve(layout.graph.node(id)).ok()?;
    let reduce = op.downcast::<Reduce>()?;
    let axes = match &reduce.axes {
        Axes::Attribute(axes) => axes.clone()?,
        Axes::Input => layout.constant_ints(id, 1)?,
    };
    let reduced = reduce.reduced(&axes, rank).ok()?;
    let flat = !reduce.keepdims;
    let of_last: Vec<usize> = (0..rank).filter(|&k| reduced[k]).map(|k| axis_last(k, rank)).collect();
    let positions = reduced[2..].iter().all(|&r| r);
    if of_last.is_empty() {
        return None;
    }
    // Without its channels or without its positions, what is left has one order.
    if flat && !positions && !reduced[1] {
        return None;
    }
    let by_attribute = matches!(reduce.axes, Axes::Attribute(_));
    let mut new = layout.graph.node(id).clone();
    new.inputs[0] = Some(layout.form(x)?);
    if by_attribute {
        new.attributes.0.iter_mut().filter(|(name, _)| name == "axes").for_each(|(_, value)| {
            *value = ints(of_last.iter().copied());
        });
    } else {
        let list: Vec<i64> = of_last.iter().map(|&k| k as i64).collect();
        new.inputs[1] = Some(layout.add_ints(&format!("{}/axes", new.name), &list)?);
    }
    if flat {
        // The axes that are left keep their order.
        *layout.graph.node_mut(id) = new;
        return Some(());
    }
    layout.image_rank(y).filter(|&r| r == rank)?;
    layout.put(id, new)
}
