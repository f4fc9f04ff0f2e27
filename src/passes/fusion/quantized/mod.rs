//! Graphs that quantizers write: floats are quantized and dequantized around each operator, or sums of integers
//! are scaled by hand. Where the target multiplies bytes, the operators of integers take their place.
//!
//! First DequantizeLinear moves down and QuantizeLinear up through what only moves elements, so that they meet
//! the operators that compute; then each of these is replaced together with its neighbours.

mod dynamic;
mod elementwise;
mod lookup;
mod moved;
mod pools;
mod products;
mod saturation;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::graph::{NodeId, ValueId};
use crate::ops;
use crate::ops::normalize_axis;
use crate::ops::quantize::{Dequantize, Quantize};
use crate::tensor::{Element, ElementType, Tensor};

use super::Rule;
use super::rewriter::Rewriter;

pub(super) use dynamic::bias;

pub(super) const RULES: &[Rule] = &[
    moved::shape,
    moved::down,
    moved::up,
    moved::back,
    lookup::lookup,
    saturation::limits,
    products::convolution,
    products::matmul,
    products::gemm,
    elementwise::binary,
    elementwise::choice,
    elementwise::softmax,
    elementwise::concat,
    pools::global,
    pools::average,
    pools::mean,
    products::residual,
    products::float,
    dynamic::scaled,
    dynamic::quantizing,
];

/// Scale and zero point, constants both, and the type of what they quantize.
#[derive(Clone, Copy)]
struct Parameters {
    scale: ValueId,
    zero: Option<ValueId>,
    ty: ElementType,
}

/// What stands before a DequantizeLinear that makes floats of 32 bits.
#[derive(Clone, Copy)]
struct Dequantized {
    x: ValueId,
    parameters: Parameters,
    /// The axis that has a scale for each index; `None`: one scale for all.
    axis: Option<usize>,
}

impl Dequantized {
    /// Only of bytes that share one scale.
    fn of_bytes(rw: &Rewriter<'_>, value: ValueId) -> Option<Self> {
        Self::of(rw, value).filter(|d| d.axis.is_none() && is_byte(d.parameters.ty))
    }

    /// What is dequantized to this value; blocks with scales of their own are not.
    fn of(rw: &Rewriter<'_>, value: ValueId) -> Option<Self> {
        let id = rw.producer(value)?;
        let (_, op) = ops::resolve(rw.node(id)).ok()?;
        let granularity = op.downcast::<Dequantize>()?.granularity;
        let (x, scale, zero) = (rw.input(id, 0)?, rw.input(id, 1)?, rw.input(id, 2));
        let count = rw.constant(scale)?.len();
        let known = zero.is_none_or(|zero| rw.constant(zero).is_some());
        let floats = [value, scale].iter().all(|&v| rw.element_type(v) == Some(ElementType::F32));
        if granularity.block != 0 || !known || !floats || !are_positive(rw, scale) {
            return None;
        }
        let axis = match count {
            1 => None,
            _ => Some(normalize_axis("axis", granularity.axis, rw.shape(x)?.len()).ok()?),
        };
        let parameters = Parameters { scale, zero, ty: rw.element_type(x)? };
        Some(Dequantized { x, parameters, axis })
    }

    /// The inputs of the node that makes floats of this.
    fn inputs(self) -> Vec<Option<ValueId>> {
        let mut inputs = vec![Some(self.x), Some(self.parameters.scale)];
        inputs.extend(self.parameters.zero.map(Some));
        inputs
    }

    /// The numbers that a constant stands for, where it has one axis at most.
    fn numbers(self, rw: &Rewriter<'_>) -> Option<Vec<f64>> {
        let elements = ints(rw.constant(self.x)?)?;
        let (scales, zeros) = (self.parameters.scales(rw)?, self.parameters.zeros(rw)?);
        if rw.constant(self.x)?.shape().len() > 1 && scales.len() > 1 {
            return None;
        }
        let one = |(i, x): (usize, &i64)| Some((x - at(&zeros, i)?) as f64 * at(&scales, i)?);
        elements.iter().enumerate().map(one).collect()
    }
}

/// Whether constant scales keep the order of numbers, as every scale that means something does.
fn are_positive(rw: &Rewriter<'_>, scale: ValueId) -> bool {
    rw.floats(scale).is_some_and(|scales| scales.iter().all(|&scale| scale > 0.0))
}

impl Parameters {
    /// Those of a QuantizeLinear from floats of 32 bits to bytes that share one scale.
    fn of_quantize(rw: &Rewriter<'_>, root: NodeId) -> Option<Self> {
        let (_, op) = ops::resolve(rw.node(root)).ok()?;
        let op = op.downcast::<Quantize>()?;
        let (x, scale, zero) = (rw.input(root, 0)?, rw.input(root, 1)?, rw.input(root, 2));
        let ty = rw.element_type(rw.output(root)?).filter(|&ty| is_byte(ty))?;
        let known = zero.is_none_or(|zero| rw.constant(zero).is_some());
        let floats = [x, scale].iter().all(|&v| rw.element_type(v) == Some(ElementType::F32))
            && op.precision.is_none_or(|ty| ty == ElementType::F32);
        let single = op.granularity.block == 0 && rw.constant(scale)?.len() == 1;
        (known && floats && single && are_positive(rw, scale)).then_some(Parameters { scale, zero, ty })
    }

    fn scales(self, rw: &Rewriter<'_>) -> Option<Vec<f64>> {
        rw.floats(self.scale)
    }

    fn zeros(self, rw: &Rewriter<'_>) -> Option<Vec<i64>> {
        self.zero.map_or(Some(vec![0]), |zero| ints(rw.constant(zero)?))
    }

    fn same(self, rw: &Rewriter<'_>, other: Self) -> bool {
        self.ty == other.ty
            && self.scales(rw).is_some_and(|scales| Some(scales) == other.scales(rw))
            && self.zeros(rw).is_some_and(|zeros| Some(zeros) == other.zeros(rw))
    }

    /// The zero point as a value, which many operators want even if it is 0.
    fn zero_point(self, rw: &mut Rewriter<'_>) -> Option<ValueId> {
        match self.zero {
            Some(zero) => Some(zero),
            None => byte(rw, self.ty, 0),
        }
    }

    /// Scale and zero point as inputs of a node.
    fn inputs(self, rw: &mut Rewriter<'_>) -> Option<[Option<ValueId>; 2]> {
        Some([Some(self.scale), Some(self.zero_point(rw)?)])
    }
}

fn is_byte(ty: ElementType) -> bool {
    matches!(ty, ElementType::U8 | ElementType::I8)
}

/// One for all, or one for each.
fn at<T: Copy>(values: &[T], i: usize) -> Option<T> {
    values.get(if values.len() == 1 { 0 } else { i }).copied()
}

/// The elements of a constant of integers that models are quantized to.
fn ints(tensor: &Tensor) -> Option<Vec<i64>> {
    fn of<T: Element + Into<i64>>(tensor: &Tensor) -> Vec<i64> {
        tensor.view().slice::<T>().iter().map(|&x| x.into()).collect()
    }
    let tensor = tensor.aligned().ok()?;
    match tensor.ty() {
        ElementType::U8 => Some(of::<u8>(&tensor)),
        ElementType::I8 => Some(of::<i8>(&tensor)),
        ElementType::I32 => Some(of::<i32>(&tensor)),
        _ => None,
    }
}

/// A constant of one byte, which is a scalar; `None` for what the type does not have.
fn byte(rw: &mut Rewriter<'_>, ty: ElementType, value: i64) -> Option<ValueId> {
    let tensor = match ty {
        ElementType::U8 => Tensor::from_slice(&[], &[u8::try_from(value).ok()?]),
        ElementType::I8 => Tensor::from_slice(&[], &[i8::try_from(value).ok()?]),
        _ => return None,
    };
    Some(rw.add_constant("byte", Arc::new(tensor.ok()?)))
}
