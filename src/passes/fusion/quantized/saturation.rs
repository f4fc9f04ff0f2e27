//! Limits before a QuantizeLinear become limits of bytes after it: quantizing keeps the order of numbers. Where
//! the type's own range is as narrow, nothing is left of them.

use crate::graph::NodeId;
use crate::ops;
use crate::ops::choose::Clip;
use crate::ops::unary::Unary;
use crate::tensor::ElementType;

use super::super::rewriter::Rewriter;
use super::{Parameters, byte};

/// What has an operator of integers, so that its limits are worth moving.
const COMPUTING: &[&str] = &["Conv", "Gemm", "MatMul", "Add", "Mul", "Concat", "GlobalAveragePool"];

pub(super) fn limits(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let limited = rw.input(root, 0).filter(|&v| rw.uses(v) == 1)?;
    let id = rw.producer(limited)?;
    let x = rw.input(id, 0)?;
    COMPUTING.iter().find_map(|op| rw.private(x, op))?;
    let [low, high] = interval(rw, id)?;
    let (scale, zero) = (*to.scales(rw)?.first()? as f32, *to.zeros(rw)?.first()?);
    let (least, largest) = if to.ty == ElementType::U8 { (0, 255) } else { (-128, 127) };
    let quantized = |x: f32| {
        let y = (x / scale).round_ties_even() + zero as f32;
        (y.max(least as f32).min(largest as f32)) as i64
    };
    let (low, high) = (quantized(low), quantized(high));
    let mut plain = rw.node(root).clone();
    plain.inputs[0] = Some(x);
    if low == least && high == largest {
        return rw.replace(root, plain).then_some(());
    }
    let plain = rw.insert_node(plain)?;
    let limits = [byte(rw, to.ty, low)?, byte(rw, to.ty, high)?];
    let new = rw.draft(root, "Clip", &[], &[Some(plain), Some(limits[0]), Some(limits[1])]);
    rw.replace(root, new).then_some(())
}

/// The limits that the node sets, when they are all that it does.
fn interval(rw: &Rewriter<'_>, id: NodeId) -> Option<[f32; 2]> {
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    if op.downcast::<Unary>() == Some(&Unary::Relu) {
        return Some([0.0, f32::INFINITY]);
    }
    let clip = op.downcast::<Clip>()?;
    let limit = |i: usize, attribute: Option<f32>, none: f32| match rw.input(id, i) {
        Some(value) => rw.scalar(value).map(|x| x as f32),
        None => Some(attribute.unwrap_or(none)),
    };
    let limits = [limit(1, clip.min, f32::NEG_INFINITY)?, limit(2, clip.max, f32::INFINITY)?];
    limits.iter().all(|x| !x.is_nan()).then_some(limits)
}
