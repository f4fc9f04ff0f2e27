//! What only moves elements moves bytes as well as floats: DequantizeLinear goes below it, QuantizeLinear above
//! it, and where the two meet with the same parameters, both go.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::pad::Pad;
use crate::ops::resize::{Coordinates, Mode, Resize};

use super::super::rewriter::Rewriter;
use super::{Dequantized, Parameters};

/// The shape of quantized numbers is that of the numbers.
pub(super) fn shape(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Shape") && !rw.is(root, "Size") {
        return None;
    }
    let maker = rw.producer(rw.input(root, 0)?)?;
    let name = rw.node(maker).op.name.as_str();
    if name != "DequantizeLinear" && name != "QuantizeLinear" {
        return None;
    }
    let mut new = rw.node(root).clone();
    new.inputs[0] = rw.input(maker, 0);
    rw.replace(root, new).then_some(())
}

/// Moves DequantizeLinear below the node.
pub(super) fn down(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if rw.is(root, "Split") {
        return below_split(rw, root);
    }
    rw.output(root)?;
    if rw.is(root, "Concat") {
        return below_concat(rw, root);
    }
    if !keeps_elements(rw, root) {
        return None;
    }
    let mut d = Dequantized::of(rw, rw.input(root, 0)?).filter(|d| super::is_byte(d.parameters.ty))?;
    if let Some(axis) = d.axis {
        d.axis = Some(transposed(rw, root, axis)?);
    }
    let mut moved = rw.node(root).clone();
    moved.inputs[0] = Some(d.x);
    if rw.is(root, "Pad") {
        moved.inputs.resize(moved.inputs.len().max(3), None);
        moved.inputs[2] = Some(padding(rw, root, d.parameters)?);
    }
    let x = rw.insert_node(moved)?;
    dequantize(rw, root, Dequantized { x, ..d })
}

/// What stands for zeros around bytes.
fn padding(rw: &mut Rewriter<'_>, pad: NodeId, parameters: Parameters) -> Option<ValueId> {
    let zero = match rw.input(pad, 2) {
        Some(value) => rw.scalar(value)? == 0.0,
        None => true,
    };
    let &[zero_point] = &parameters.zeros(rw).filter(|_| zero)?[..] else { return None };
    super::byte(rw, parameters.ty, zero_point)
}

/// Below each output.
fn below_split(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let d = Dequantized::of_bytes(rw, rw.input(root, 0)?)?;
    let outputs: Vec<ValueId> = rw.node(root).outputs.iter().copied().collect::<Option<_>>()?;
    let mut moved = rw.node(root).clone();
    moved.inputs[0] = Some(d.x);
    let parts = rw.insert_outputs(moved, outputs.len())?;
    let one = |(x, output)| {
        let mut new = rw.draft(root, "DequantizeLinear", &[], &Dequantized { x, ..d }.inputs());
        new.outputs = vec![Some(output)];
        new
    };
    let nodes = parts.into_iter().zip(outputs).map(one).collect();
    rw.replace_by(root, nodes).then_some(())
}

/// Where all that is joined is quantized alike.
fn below_concat(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let inputs: Vec<Dequantized> =
        rw.node(root).inputs.iter().map(|&v| Dequantized::of_bytes(rw, v?)).collect::<Option<_>>()?;
    let (&first, rest) = inputs.split_first()?;
    if !rest.iter().all(|d| d.parameters.same(rw, first.parameters)) {
        return None;
    }
    let mut moved = rw.node(root).clone();
    moved.inputs = inputs.iter().map(|d| Some(d.x)).collect();
    let x = rw.insert_node(moved)?;
    dequantize(rw, root, Dequantized { x, ..first })
}

fn dequantize(rw: &mut Rewriter<'_>, root: NodeId, d: Dequantized) -> Option<()> {
    let axis: Vec<_> = d.axis.iter().map(|&axis| ("axis", Attribute::Int(axis as i64))).collect();
    let new = rw.draft(root, "DequantizeLinear", &axis, &d.inputs());
    rw.replace(root, new).then_some(())
}

/// Moves QuantizeLinear above the nodes before it, as long as they have as many inputs as outputs.
pub(super) fn up(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    Parameters::of_quantize(rw, root)?;
    let moved = rw.producer(rw.input(root, 0)?)?;
    let only = rw.output(moved).is_some_and(|output| rw.uses(output) == 1);
    let whole = ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "MaxPool"];
    if !only || !whole.iter().any(|op| rw.is(moved, op)) {
        return None;
    }
    let mut quantize = rw.node(root).clone();
    quantize.inputs[0] = rw.input(moved, 0);
    let quantized = rw.insert_node(quantize)?;
    let mut new = rw.node(moved).clone();
    new.inputs[0] = Some(quantized);
    new.outputs = rw.node(root).outputs.clone();
    if rw.replace(root, new) {
        up(rw, rw.producer(quantized)?);
    }
    Some(())
}

/// Quantizing again what was dequantized, with the same parameters, gives what was there.
pub(super) fn back(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let from = Dequantized::of_bytes(rw, rw.input(root, 0)?)?;
    (from.parameters.same(rw, to) && rw.bypass(root, from.x)).then_some(())
}

/// Whether each element of the output is one of input 0, or the largest of several.
fn keeps_elements(rw: &Rewriter<'_>, id: NodeId) -> bool {
    const MOVES: &[&str] = &[
        "DepthToSpace",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "MaxPool",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    ];
    if MOVES.iter().any(|op| rw.is(id, op)) {
        return true;
    }
    let Ok((_, op)) = ops::resolve(rw.node(id)) else { return false };
    if op.downcast::<Pad>().is_some() {
        // Since opset 11, where the constant is an input.
        return rw.input(id, 1).is_some();
    }
    // Cropping may put a number of its own beside the image.
    op.downcast::<Resize>()
        .is_some_and(|op| op.mode == Mode::Nearest && op.coordinates != Coordinates::CropAndResize)
}

/// Where an axis is after the node: known for Transpose alone.
fn transposed(rw: &Rewriter<'_>, id: NodeId, axis: usize) -> Option<usize> {
    if !rw.is(id, "Transpose") {
        return None;
    }
    match rw.node(id).attributes.get("perm") {
        Some(Attribute::Ints(perm)) => perm.iter().position(|&p| p == axis as i64),
        _ => rw.shape(rw.input(id, 0)?)?.len().checked_sub(axis + 1),
    }
}
