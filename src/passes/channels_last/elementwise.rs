//! Operators that compute each element, or each pixel, by itself.

use crate::graph::{Attribute, Fact, NodeId, OpName, ValueId};
use crate::ops;
use crate::ops::norm::{BatchNorm, GroupNorm};

use super::{Layout, node};

/// Operators whose inputs broadcast, and whose elements do not depend on their places.
const ELEMENTWISE: &[&str] = &[
    "Abs",
    "Add",
    "And",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Swish",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "Xor",
];

/// What an input is in NHWC.
enum Input {
    /// Of one element.
    AsItIs(Option<ValueId>),
    /// A constant of lower rank.
    Lower(ValueId),
    Image(ValueId),
}

pub(super) fn elementwise(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, ELEMENTWISE) {
        return None;
    }
    let rank = layout.image_rank(layout.output(id)?)?;
    let mut inputs = Vec::new();
    let mut made = false;
    for input in layout.graph.node(id).inputs.clone() {
        let Some(value) = input else {
            inputs.push(Input::AsItIs(None));
            continue;
        };
        let shape = layout.shape(value)?;
        inputs.push(if shape.iter().all(|d| d.known() == Some(1)) && shape.len() <= rank {
            Input::AsItIs(input)
        } else if shape.len() == rank {
            made |= layout.is_made(value);
            Input::Image(value)
        } else if shape.len() < rank && layout.constant(value).is_some() {
            Input::Lower(value)
        } else {
            return None;
        });
    }
    if !made {
        return None;
    }
    let mut new = layout.graph.node(id).clone();
    new.inputs.clear();
    for input in inputs {
        new.inputs.push(match input {
            Input::AsItIs(value) => value,
            Input::Lower(value) => Some(layout.of_rank(value, rank)?),
            Input::Image(value) => Some(layout.form(value)?),
        });
    }
    layout.put(id, new)
}

/// With known statistics: pixels are rows of channels then.
pub(super) fn batch_norm(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["BatchNormalization"]) {
        return None;
    }
    let (x, _) = layout.made_input(id, 0)?;
    let y = layout.output(id)?;
    let (_, op) = ops::resolve(layout.graph.node(id)).ok()?;
    op.downcast::<BatchNorm>().filter(|norm| norm.spatial && !norm.training)?;
    // The way back: of all dimensions, one may be unknown.
    let shape = layout.shape(x)?;
    let dims = [&shape[..1], &shape[2..], &shape[1..2]].concat();
    let back: Vec<i64> = dims.iter().map(|d| d.known().unwrap_or(-1)).collect();
    let channels = shape[1].known()?;
    if back.iter().filter(|&&d| d == -1).count() > 1 || back.contains(&0) {
        return None;
    }
    let mut norm = layout.graph.node(id).clone();
    let form = layout.form(x)?;
    let ty = layout.graph.value(y).fact.ty.clone();
    let flat = |layout: &mut Layout<'_>, name: &str| {
        let fact = Fact { ty: ty.clone(), shape: None, elements: None };
        layout.graph.add_value(&format!("{}/{name}", norm.name), fact)
    };
    let (rows, normalised) = (flat(layout, "rows"), flat(layout, "normalised"));
    let mut reshape = layout.reshape_node(&format!("{}/rows", norm.name), form, &[-1, channels])?;
    reshape.outputs = vec![Some(rows)];
    let again = layout.reshape_node(&format!("{}/image", norm.name), normalised, &back)?;
    layout.graph.add_node(reshape);
    norm.inputs[0] = Some(rows);
    norm.outputs = vec![Some(normalised)];
    layout.graph.add_node(norm);
    layout.put(id, again)
}

/// Group normalisation, which has a kernel of its own.
pub(super) fn group_norm(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    if !layout.is(id, &["GroupNormalization"]) {
        return None;
    }
    let (x, _) = layout.made_input(id, 0)?;
    let y = layout.output(id)?;
    let (_, op) = ops::resolve(layout.graph.node(id)).ok()?;
    let by_group = op.downcast::<GroupNorm>()?.scale_by_group;
    let mut new = layout.graph.node(id).clone();
    new.op = OpName { domain: "rukh".into(), name: "NhwcGroupNormalization".into(), opset: 1 };
    if by_group {
        new.attributes.0.push(("by_group".into(), Attribute::Int(1)));
    }
    if !layout.runs(&new, layout.graph.value(y).fact.ty.clone()) {
        return None;
    }
    new.inputs[0] = Some(layout.form(x)?);
    layout.put(id, new)
}

/// Softmax over channels.
pub(super) fn softmax(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    // Before opset 13 it flattens its input.
    if !layout.is(id, &["LogSoftmax", "Softmax"]) || layout.graph.node(id).op.opset < 13 {
        return None;
    }
    let (x, rank) = layout.made_input(id, 0)?;
    let axis = match layout.graph.node(id).attributes.get("axis") {
        Some(&Attribute::Int(axis)) => axis,
        _ => -1,
    };
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    let axis = super::axis_last(usize::try_from(axis).ok().filter(|&axis| axis < rank)?, rank);
    let (name, op) = (layout.graph.node(id).name.clone(), layout.graph.node(id).op.name.clone());
    let form = layout.form(x)?;
    let mut new = node(&name, &op, &[("axis", Attribute::Int(axis as i64))], &[form]);
    new.op.opset = layout.graph.node(id).op.opset;
    layout.put(id, new)
}
