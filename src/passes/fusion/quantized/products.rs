//! Convolutions and products of matrices between DequantizeLinear and QuantizeLinear; products of matrices also
//! where floats are wanted of them.

use std::sync::Arc;

use crate::graph::{NodeId, ValueId};
use crate::ops;
use crate::ops::matmul::Gemm;
use crate::tensor::{ElementType, Tensor};

use super::super::rewriter::Rewriter;
use super::{Dequantized, Parameters, at, is_byte};

/// Conv as QLinearConv.
pub(super) fn convolution(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let conv = rw.private(rw.input(root, 0)?, "Conv")?;
    let x = Dequantized::of_bytes(rw, rw.input(conv, 0)?)?;
    let w = weight(rw, rw.input(conv, 1)?, 0)?;
    let mut inputs = operands(rw, x, w)?;
    inputs.extend(to.inputs(rw)?);
    if let Some(bias) = rw.input(conv, 2) {
        let channels = channels(rw, w.x, 0)?;
        inputs.push(Some(integers(rw, bias, channels, x, w, Some(to))?));
    }
    let mut new = rw.draft(root, "QLinearConv", &[], &inputs);
    new.attributes = rw.node(conv).attributes.clone();
    rw.replace(root, new).then_some(())
}

/// QLinearAdd as the residual of a convolution.
pub(super) fn residual(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "com.microsoft.QLinearAdd") {
        return None;
    }
    let input = |rw: &Rewriter<'_>, i: usize| rw.input(root, i);
    let (a, b) = (input(rw, 0)?, input(rw, 3)?);
    if rw.shape(a)? != rw.shape(b)? {
        return None;
    }
    [0, 3].into_iter().find_map(|at| {
        let conv = rw.private(input(rw, at)?, "QLinearConv")?;
        let parameters = |rw: &Rewriter<'_>, id: NodeId, scale: usize| {
            let ty = rw.element_type(rw.output(conv)?)?;
            Some(Parameters { scale: rw.input(id, scale)?, zero: rw.input(id, scale + 1), ty })
        };
        if !parameters(rw, root, at + 1)?.same(rw, parameters(rw, conv, 6)?) {
            return None;
        }
        let mut inputs = rw.node(conv).inputs.clone();
        inputs.resize(9, None);
        let other = 3 - at;
        inputs.extend([other, other + 1, other + 2, 6, 7].map(|i| input(rw, i)));
        let mut new = rw.draft(root, "rukh.QLinearConv", &[], &inputs);
        new.attributes = rw.node(conv).attributes.clone();
        rw.replace(root, new).then_some(())
    })
}

/// MatMul as QLinearMatMul.
pub(super) fn matmul(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let product = rw.private(rw.input(root, 0)?, "MatMul")?;
    let (a, b) = matrices(rw, product)?;
    let mut inputs = operands(rw, a, b)?;
    inputs.extend(to.inputs(rw)?);
    let new = rw.draft(root, "QLinearMatMul", &[], &inputs);
    rw.replace(root, new).then_some(())
}

/// Gemm as QGemm.
pub(super) fn gemm(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let product = rw.private(rw.input(root, 0)?, "Gemm")?;
    integer_gemm(rw, root, product, Some(to))
}

/// What no QuantizeLinear follows: MatMul as MatMulIntegerToFloat, Gemm as QGemm.
pub(super) fn float(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if rw.is(root, "Gemm") {
        return integer_gemm(rw, root, root, None);
    }
    if !rw.is(root, "MatMul") {
        return None;
    }
    let (a, b) = matrices(rw, root)?;
    let [a_zero, b_zero] = [a.parameters.zero_point(rw)?, b.parameters.zero_point(rw)?];
    let scales = [a, b].map(|d| Some(d.parameters.scale));
    let inputs = [Some(a.x), Some(b.x), scales[0], scales[1], Some(a_zero), Some(b_zero)];
    let new = rw.draft(root, "com.microsoft.MatMulIntegerToFloat", &[], &inputs);
    rw.replace(root, new).then_some(())
}

fn integer_gemm(rw: &mut Rewriter<'_>, root: NodeId, product: NodeId, to: Option<Parameters>) -> Option<()> {
    let (_, op) = ops::resolve(rw.node(product)).ok()?;
    let &Gemm { alpha, beta, transpose, .. } = op.downcast::<Gemm>()?;
    let axis = usize::from(!transpose[1]);
    let a = Dequantized::of_bytes(rw, rw.input(product, 0)?)?;
    let b = weight(rw, rw.input(product, 1)?, axis)?;
    let mut inputs = operands(rw, a, b)?;
    if let Some(c) = rw.input(product, 2) {
        // The integer operator scales C, too.
        let columns = channels(rw, b.x, axis).filter(|_| alpha == 1.0 && beta == 1.0)?;
        inputs.push(Some(integers(rw, c, columns, a, b, to)?));
    }
    if let Some(to) = to {
        inputs.resize(7, None);
        inputs.extend(to.inputs(rw)?);
    }
    let mut new = rw.draft(root, "com.microsoft.QGemm", &[], &inputs);
    new.attributes = rw.node(product).attributes.clone();
    new.attributes.0.retain(|(name, _)| name != "beta");
    rw.replace(root, new).then_some(())
}

/// The operands of a MatMul, the right one perhaps with a scale for each column. A product of constants is for
/// folding.
fn matrices(rw: &Rewriter<'_>, product: NodeId) -> Option<(Dequantized, Dequantized)> {
    let a = Dequantized::of_bytes(rw, rw.input(product, 0)?)?;
    let right = rw.input(product, 1)?;
    let b = weight(rw, right, rw.shape(right)?.len().checked_sub(1)?)?;
    let matrix = b.axis.is_none() || rw.shape(right)?.len() == 2;
    let constant = rw.constant(a.x).is_some() && rw.constant(b.x).is_some();
    (matrix && !constant).then_some((a, b))
}

/// Bytes that share one scale, or have one for each index of this axis.
fn weight(rw: &Rewriter<'_>, value: ValueId, axis: usize) -> Option<Dequantized> {
    Dequantized::of(rw, value).filter(|d| is_byte(d.parameters.ty) && d.axis.is_none_or(|a| a == axis))
}

/// Both operands, each with scale and zero point.
fn operands(rw: &mut Rewriter<'_>, a: Dequantized, b: Dequantized) -> Option<Vec<Option<ValueId>>> {
    let mut inputs = vec![Some(a.x)];
    inputs.extend(a.parameters.inputs(rw)?);
    inputs.push(Some(b.x));
    inputs.extend(b.parameters.inputs(rw)?);
    Some(inputs)
}

fn channels(rw: &Rewriter<'_>, w: ValueId, axis: usize) -> Option<usize> {
    usize::try_from(rw.shape(w)?.get(axis)?.known()?).ok()
}

/// A bias as integers that count the products of the operands' scales: given as such, or rounded to them where
/// that moves no result by more than a small part of a step of the output.
fn integers(
    rw: &mut Rewriter<'_>,
    bias: ValueId,
    count: usize,
    a: Dequantized,
    b: Dequantized,
    to: Option<Parameters>,
) -> Option<ValueId> {
    const PART: f64 = 1.0 / 16.0;
    let (a_scale, b_scales) = (*a.parameters.scales(rw)?.first()?, b.parameters.scales(rw)?);
    let given = Dequantized::of(rw, bias);
    if let Some(given) = given.filter(|d| d.parameters.ty == ElementType::I32) {
        let (scales, zeros) = (given.parameters.scales(rw)?, given.parameters.zeros(rw)?);
        // Quantizers multiply the scales in f32.
        let close = (0..b_scales.len().max(scales.len())).all(|i| {
            let (unit, scale) = (at(&b_scales, i).map(|b| a_scale * b), at(&scales, i));
            unit.zip(scale).is_some_and(|(unit, scale)| (unit - scale).abs() <= 1e-6 * unit)
        });
        if close && zeros.iter().all(|&zero| zero == 0) && rw.shape(given.x)?.len() == 1 {
            return Some(given.x);
        }
    }
    let numbers = match given {
        Some(given) => given.numbers(rw)?,
        None => rw.floats(bias)?,
    };
    let step = to?.scales(rw)?.first().copied()?;
    if numbers.len() != count {
        return None;
    }
    let mut integers = Vec::with_capacity(count);
    for (i, x) in numbers.iter().enumerate() {
        let unit = a_scale * at(&b_scales, i)?;
        let integer = (x / unit).round();
        if unit > 2.0 * PART * step || integer.abs() > f64::from(i32::MAX / 2) {
            return None;
        }
        integers.push(integer as i32);
    }
    let tensor = Tensor::from_slice(&[count], &integers).ok()?;
    Some(rw.add_constant("bias", Arc::new(tensor)))
}
