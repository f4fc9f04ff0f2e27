//! Operators on elements of several tensors, and along an axis, between DequantizeLinear and QuantizeLinear.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::softmax::{Normalizer, Softmax};

use super::super::rewriter::Rewriter;
use super::{Dequantized, Parameters};

/// Sums and products of two tensors.
pub(super) fn binary(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let x = rw.input(root, 0)?;
    let (id, op) = [("Add", "com.microsoft.QLinearAdd"), ("Mul", "com.microsoft.QLinearMul")]
        .into_iter()
        .find_map(|(op, integer)| Some((rw.private(x, op)?, integer)))?;
    let mut inputs = quantized(rw, &[rw.input(id, 0)?, rw.input(id, 1)?])?;
    inputs.extend(to.inputs(rw)?);
    let new = rw.draft(root, op, &[], &inputs);
    rw.replace(root, new).then_some(())
}

/// Where.
pub(super) fn choice(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let id = rw.private(rw.input(root, 0)?, "Where")?;
    let mut inputs = vec![rw.input(id, 0)];
    inputs.extend(quantized(rw, &[rw.input(id, 1)?, rw.input(id, 2)?])?);
    inputs.extend(to.inputs(rw)?);
    let new = rw.draft(root, "com.microsoft.QLinearWhere", &[], &inputs);
    rw.replace(root, new).then_some(())
}

/// Softmax.
pub(super) fn softmax(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let id = rw.private(rw.input(root, 0)?, "Softmax")?;
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    let &Softmax { axis, .. } = op.downcast::<Softmax>().filter(|op| op.normalizer == Normalizer::Softmax)?;
    let opset = rw.node(id).op.opset;
    let mut inputs = quantized(rw, &[rw.input(id, 0)?])?;
    inputs.extend(to.inputs(rw)?);
    let attributes = [("axis", Attribute::Int(axis)), ("opset", Attribute::Int(opset))];
    let new = rw.draft(root, "com.microsoft.QLinearSoftmax", &attributes, &inputs);
    rw.replace(root, new).then_some(())
}

/// Concat of what is quantized differently.
pub(super) fn concat(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let id = rw.private(rw.input(root, 0)?, "Concat")?;
    let joined: Vec<ValueId> = rw.node(id).inputs.iter().copied().collect::<Option<_>>()?;
    let mut inputs = to.inputs(rw)?.to_vec();
    inputs.extend(quantized(rw, &joined)?);
    let mut new = rw.draft(root, "com.microsoft.QLinearConcat", &[], &inputs);
    new.attributes = rw.node(id).attributes.clone();
    rw.replace(root, new).then_some(())
}

/// Bytes, scale and zero point of each value.
pub(super) fn quantized(rw: &mut Rewriter<'_>, values: &[ValueId]) -> Option<Vec<Option<ValueId>>> {
    let mut inputs = Vec::with_capacity(3 * values.len());
    for &value in values {
        let d = Dequantized::of_bytes(rw, value)?;
        inputs.push(Some(d.x));
        inputs.extend(d.parameters.inputs(rw)?);
    }
    Some(inputs)
}
