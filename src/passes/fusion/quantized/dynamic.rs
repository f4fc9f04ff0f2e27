//! Products of what DynamicQuantizeLinear makes bytes of while the model runs: sums of integers that Cast and Mul
//! make floats again.

use std::sync::Arc;

use crate::graph::{NodeId, ValueId};
use crate::tensor::ElementType;

use super::super::rewriter::Rewriter;

const FLOAT: &str = "com.microsoft.MatMulIntegerToFloat";
const DYNAMIC: &str = "com.microsoft.DynamicQuantizeMatMul";

/// `Cast(MatMulInteger(A, B)) · (a_scale · b_scale)` as MatMulIntegerToFloat.
pub(super) fn scaled(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Mul") {
        return None;
    }
    rw.output(root).filter(|&y| rw.element_type(y) == Some(ElementType::F32))?;
    rw.operands(root).into_iter().find_map(|[sums, scale]| {
        let product = rw.private(rw.input(rw.private(sums, "Cast")?, 0)?, "MatMulInteger")?;
        let inputs = |i: usize| rw.input(product, i);
        let one = |v: ValueId| rw.shape(v).is_some_and(|s| s.iter().all(|d| d.known() == Some(1)));
        // One zero point for all rows, as there is one scale.
        if !inputs(2).is_none_or(one) {
            return None;
        }
        let columns = rw.shape(inputs(1)?)?.last()?.clone();
        let of_b = |v: ValueId| one(v) || rw.shape(v).is_some_and(|s| *s == [columns.clone()]);
        let scales = rw.operands(rw.maker(scale, "Mul")?);
        // Which is whose does not matter where both are one number.
        let [a_scale, b_scale] = scales.into_iter().find(|&[a, b]| one(a) && of_b(b))?;
        let inputs = [inputs(0), inputs(1), Some(a_scale), Some(b_scale), inputs(2), inputs(3)];
        let given = inputs.iter().rposition(Option::is_some)? + 1;
        let new = rw.draft(root, FLOAT, &[], &inputs[..given]);
        rw.replace(root, new).then_some(())
    })
}

/// The product quantizes by itself what nobody else takes quantized.
pub(super) fn quantizing(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, FLOAT) {
        return None;
    }
    let [a, b, a_scale, b_scale, a_zero, b_zero] = [0, 1, 2, 3, 4, 5].map(|i| rw.input(root, i));
    let quantize = rw.private(a?, "DynamicQuantizeLinear")?;
    let made = [a, a_scale, a_zero];
    if rw.node(quantize).outputs[..] != made || made.iter().flatten().any(|&v| rw.uses(v) != 1) {
        return None;
    }
    let inputs = [rw.input(quantize, 0), b, b_scale, b_zero];
    let given = if b_zero.is_some() { 4 } else { 3 };
    let new = rw.draft(root, DYNAMIC, &[], &inputs[..given]);
    rw.replace(root, new).then_some(())
}

/// The bias of a product that gives floats.
pub(in super::super) fn bias(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    let last = rw.shape(rw.output(root)?)?.last()?.clone();
    rw.operands(root).into_iter().find_map(|[product, bias]| {
        let products = [(FLOAT, 6), (DYNAMIC, 4), ("com.microsoft.MatMulNBits", 5)];
        let (node, at) = products.iter().find_map(|&(op, at)| Some((rw.private(product, op)?, at)))?;
        if rw.input(node, at).is_some() {
            return None;
        }
        let row = match rw.shape(bias)? {
            [n] if *n == last => bias,
            [ones @ .., n] if *n == last && ones.iter().all(|d| d.known() == Some(1)) => {
                let row = rw.constant(bias)?.reshaped(&[rw.constant(bias)?.len()])?;
                let name = format!("{}/bias", rw.node(root).name);
                rw.add_constant(&name, Arc::new(row))
            }
            _ => return None,
        };
        let mut new = rw.node(node).clone();
        new.name = rw.node(root).name.clone();
        new.inputs.resize(at, None);
        new.inputs.push(Some(row));
        new.outputs = rw.node(root).outputs.clone();
        rw.replace(root, new).then_some(())
    })
}
