//! Layer and RMS normalisation over the last axis, which exporters write out, and the sum before one.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::layer_norm::LayerNorm;

use super::rewriter::Rewriter;

/// `(x − mean(x)) / √(mean((x − mean(x))²) + ε) · scale`, and the same without means: the mean square of x.
pub(super) fn normalisation(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Mul") {
        return None;
    }
    let output = rw.output(root)?;
    let last = rw.shape(output)?.last()?.clone();
    let (x, scale, epsilon, rms) = rw.operands(root).into_iter().find_map(|[normal, scale]| {
        if rw.shape(scale)? != std::slice::from_ref(&last) {
            return None;
        }
        let (centred, square, epsilon) = over_root(rw, normal)?;
        if square_of(rw, mean_of(rw, square)?)? != centred {
            return None;
        }
        let mean = rw.maker(centred, "Sub").and_then(|sub| {
            let (x, mean) = (rw.input(sub, 0)?, rw.input(sub, 1)?);
            (mean_of(rw, mean)? == x).then_some(x)
        });
        Some((mean.unwrap_or(centred), scale, epsilon as f32, mean.is_none()))
    })?;
    let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(epsilon))];
    let op = if rms { "RMSNormalization" } else { "LayerNormalization" };
    let new = rw.draft(root, op, &attributes, &[Some(x), Some(scale)]);
    rw.replace(root, new).then_some(())
}

/// The shift after a layer normalisation without one.
pub(super) fn shift(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    rw.operands(root).into_iter().find_map(|[normal, shift]| {
        let node = rw.private(normal, "LayerNormalization").filter(|&id| rw.input(id, 2).is_none())?;
        let (x, scale) = (rw.input(node, 0)?, rw.input(node, 1)?);
        if rw.shape(scale)? != rw.shape(shift)? {
            return None;
        }
        let mut new = rw.node(node).clone();
        new.inputs = vec![Some(x), Some(scale), Some(shift)];
        new.outputs = rw.node(root).outputs.clone();
        rw.replace(root, new).then_some(())
    })
}

/// The sum of two tensors of one shape before a normalisation; the sum stays an output where others need
/// it.
pub(super) fn skip(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let layer = rw.is(root, "LayerNormalization");
    if !layer && !rw.is(root, "RMSNormalization") {
        return None;
    }
    rw.output(root)?;
    let (x, scale) = (rw.input(root, 0)?, rw.input(root, 1)?);
    let sum = rw.maker(x, "Add")?;
    let [a, b] = *rw.operands(sum).first()?;
    let (_, op) = ops::resolve(rw.node(root)).ok()?;
    let op = *op.downcast::<LayerNorm>()?;
    let rank = rw.shape(x)?.len();
    if op.axis != -1 && op.axis != rank as i64 - 1
        || rw.shape(a)? != rw.shape(b)?
        || rw.constant(b).is_some()
        || rw.shape(scale)?.len() != 1
    {
        return None;
    }
    let name = match layer {
        true => "com.microsoft.SkipLayerNormalization",
        false => "com.microsoft.SkipSimplifiedLayerNormalization",
    };
    let mut inputs = vec![Some(a), Some(b), Some(scale)];
    inputs.extend(rw.input(root, 2).map(Some));
    let mut new = rw.draft(root, name, &[("epsilon", Attribute::Float(op.epsilon))], &inputs);
    if rw.uses(x) > 1 {
        new.outputs.truncate(1);
        new.outputs.extend([None, None, Some(x)]);
    }
    rw.replace(root, new).then_some(())
}

/// What is divided by a root, of what the root is taken, and the constant that is added to that.
fn over_root(rw: &Rewriter<'_>, normal: ValueId) -> Option<(ValueId, ValueId, f64)> {
    if let Some(id) = rw.private(normal, "Div") {
        let (square, epsilon) = root_of(rw, rw.input(id, 1)?)?;
        return Some((rw.input(id, 0)?, square, epsilon));
    }
    let id = rw.private(normal, "Mul")?;
    rw.operands(id).into_iter().find_map(|[x, inverse]| {
        let root = match rw.private(inverse, "Reciprocal") {
            Some(id) => rw.input(id, 0)?,
            None => {
                let id = rw.private(inverse, "Div")?;
                rw.is_scalar(rw.input(id, 0)?, 1.0).then_some(rw.input(id, 1)?)?
            }
        };
        let (square, epsilon) = root_of(rw, root)?;
        Some((x, square, epsilon))
    })
}

/// `v` and `ε` of `√(v + ε)`.
fn root_of(rw: &Rewriter<'_>, root: ValueId) -> Option<(ValueId, f64)> {
    let sum = match rw.private(root, "Sqrt") {
        Some(id) => rw.input(id, 0)?,
        None => {
            let id = rw.private(root, "Pow")?;
            rw.is_scalar(rw.input(id, 1)?, 0.5).then_some(rw.input(id, 0)?)?
        }
    };
    let id = rw.private(sum, "Add")?;
    rw.operands(id).into_iter().find_map(|[v, epsilon]| Some((v, rw.scalar(epsilon)?)))
}

/// `x` of the mean of x over its last axis, which stays as 1.
fn mean_of(rw: &Rewriter<'_>, mean: ValueId) -> Option<ValueId> {
    let x = rw.input(rw.private(mean, "ReduceMean")?, 0)?;
    let ([front @ .., last], [mean_front @ .., one]) = (rw.shape(x)?, rw.shape(mean)?) else { return None };
    (front == mean_front && one.known() == Some(1) && last.known() != Some(1)).then_some(x)
}

/// `x` of `x²`.
fn square_of(rw: &Rewriter<'_>, square: ValueId) -> Option<ValueId> {
    if let Some(id) = rw.private(square, "Pow") {
        return rw.is_scalar(rw.input(id, 1)?, 2.0).then_some(rw.input(id, 0)?);
    }
    let id = rw.private(square, "Mul")?;
    rw.operands(id).first().filter(|[a, b]| a == b).map(|[a, _]| *a)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    fn parameters() -> GraphBuilder {
        GraphBuilder::new()
            .input("x", &["n", "5", "4"])
            .floats("scale", &[4], &[1.0, -2.0, 0.5, 3.0])
            .floats("shift", &[4], &[0.5, 0.25, 0.0, -1.0])
            .floats("epsilon", &[], &[0.01])
            .floats("two", &[], &[2.0])
            .floats("one", &[1], &[1.0])
            .ints("last", &[1], &[-1])
    }

    fn root(builder: GraphBuilder, x: &str) -> GraphBuilder {
        builder
            .node("Pow", &[x, "two"], &["square"])
            .node("ReduceMean", &["square", "last"], &["v"])
            .node("Add", &["v", "epsilon"], &["w"])
            .node("Sqrt", &["w"], &["root"])
    }

    #[test]
    fn layer_normalisation() {
        let builder =
            parameters().node("ReduceMean", &["x", "last"], &["mean"]).node("Sub", &["x", "mean"], &["c"]);
        let builder = root(builder, "c")
            .node("Div", &["c", "root"], &["normal"])
            .node("Mul", &["normal", "scale"], &["scaled"])
            .node("Add", &["shift", "scaled"], &["y"])
            .output("y");
        let line = "y: float[n, 5, 4] = LayerNormalization<axis=-1, epsilon=0.01>(x, scale, shift)";
        assert_fused(builder, &[line, "return y"]);
    }

    #[test]
    fn rms_normalisation() {
        let line = "y: float[n, 5, 4] = RMSNormalization<axis=-1, epsilon=0.01>(x, scale)";
        let inverse = |op: &str, inputs: &[&str]| {
            let builder = root(parameters(), "x").node(op, inputs, &["inverse"]);
            let builder = builder.node("Mul", &["x", "inverse"], &["normal"]);
            assert_fused(builder.node("Mul", &["scale", "normal"], &["y"]).output("y"), &[line, "return y"]);
        };
        inverse("Reciprocal", &["root"]);
        inverse("Div", &["one", "root"]);
    }

    #[test]
    fn another_axis_stays() {
        let builder = parameters()
            .ints("first", &[1], &[1])
            .node("Pow", &["x", "two"], &["square"])
            .node("ReduceMean", &["square", "first"], &["v"])
            .node("Add", &["v", "epsilon"], &["w"])
            .node("Sqrt", &["w"], &["root"])
            .node("Div", &["x", "root"], &["normal"])
            .node("Mul", &["normal", "scale"], &["y"])
            .output("y");
        assert_fused(
            builder,
            &[
                "square: float[n, 5, 4] = Pow(x, two)",
                "v: float[n, 1, 4] = ReduceMean(square, first)",
                "w: float[n, 1, 4] = Add(v, epsilon)",
                "root: float[n, 1, 4] = Sqrt(w)",
                "normal: float[n, 5, 4] = Div(x, root)",
                "y: float[n, 5, 4] = Mul(normal, scale)",
                "return y",
            ],
        );
    }

    #[test]
    fn a_sum_before() {
        let sum = || parameters().input("z", &["n", "5", "4"]).node("Add", &["x", "z"], &["s"]);
        let norm = [("epsilon", Attribute::Float(0.5))];
        let builder =
            sum().node_with("LayerNormalization", &norm, &["s", "scale", "shift"], &["y"]).output("y");
        let line =
            "y: float[n, 5, 4] = com.microsoft.SkipLayerNormalization<epsilon=0.5>(x, z, scale, shift)";
        assert_fused(builder, &[line, "return y"]);
        let builder =
            sum().node_with("RMSNormalization", &norm, &["s", "scale"], &["y"]).output("y").output("s");
        let line = "y: float[n, 5, 4], _, _, s: float[n, 5, 4] = \
                    com.microsoft.SkipSimplifiedLayerNormalization<epsilon=0.5>(x, z, scale)";
        assert_fused(builder, &[line, "return y, s"]);
    }
}
