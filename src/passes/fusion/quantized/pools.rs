//! Means over windows and axes between DequantizeLinear and QuantizeLinear.

use crate::graph::{Attribute, NodeId};
use crate::ops;
use crate::ops::pool::Pool;
use crate::ops::reduce::{Axes, Reduce};

use super::super::rewriter::Rewriter;
use super::Parameters;
use super::elementwise::quantized;

/// GlobalAveragePool.
pub(super) fn global(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    pooled(rw, root, "GlobalAveragePool", "com.microsoft.QLinearGlobalAveragePool", |_, _| Some(vec![]))
}

/// AveragePool.
pub(super) fn average(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    pooled(rw, root, "AveragePool", "com.microsoft.QLinearAveragePool", |rw, id| {
        let (_, op) = ops::resolve(rw.node(id)).ok()?;
        op.downcast::<Pool>()?;
        Some(rw.node(id).attributes.0.clone())
    })
}

/// ReduceMean over known axes.
pub(super) fn mean(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    pooled(rw, root, "ReduceMean", "com.microsoft.QLinearReduceMean", |rw, id| {
        let (_, op) = ops::resolve(rw.node(id)).ok()?;
        let op = op.downcast::<Reduce>()?;
        let given = match &op.axes {
            Axes::Attribute(axes) => axes.clone(),
            Axes::Input => rw.input(id, 1).map(|axes| rw.constant(axes)?.to_ints()).unwrap_or_default(),
        };
        let axes = given.filter(|axes| !axes.is_empty())?;
        let keep = Attribute::Int(op.keepdims.into());
        Some(vec![("axes".to_owned(), Attribute::Ints(axes)), ("keepdims".to_owned(), keep)])
    })
}

/// The operator of integers in the place of one of floats with one input.
fn pooled(
    rw: &mut Rewriter<'_>,
    root: NodeId,
    op: &str,
    integer: &str,
    attributes: impl Fn(&Rewriter<'_>, NodeId) -> Option<Vec<(String, Attribute)>>,
) -> Option<()> {
    let to = Parameters::of_quantize(rw, root)?;
    let id = rw.private(rw.input(root, 0)?, op)?;
    let attributes = attributes(rw, id)?;
    let mut inputs = quantized(rw, &[rw.input(id, 0)?])?;
    inputs.extend(to.inputs(rw)?);
    let mut new = rw.draft(root, integer, &[], &inputs);
    new.attributes.0 = attributes;
    rw.replace(root, new).then_some(())
}
