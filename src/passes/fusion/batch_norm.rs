//! Puts a scale and a shift of each channel (BatchNormalization, or Mul, Div, Add, Sub with constants) into
//! the constant weight and bias of the convolution or product before it.

use crate::graph::{NodeId, ValueId};
use crate::ops;
use crate::ops::conv::transpose::ConvTranspose;
use crate::ops::matmul::Gemm;
use crate::ops::norm::BatchNorm;

use super::rewriter::Rewriter;

/// `x · scale + shift`, a pair for each channel.
struct Affine {
    x: ValueId,
    scale: Vec<f64>,
    shift: Vec<f64>,
}

impl Affine {
    fn scales(&self) -> bool {
        self.scale.iter().any(|&s| s != 1.0)
    }

    fn shifts(&self) -> bool {
        self.shift.iter().any(|&s| s != 0.0)
    }
}

/// After Conv and ConvTranspose.
pub(super) fn into_convolution(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let output = rw.output(root)?;
    let affine = affine(rw, root, output, 1)?;
    let transposed = rw.private(affine.x, "ConvTranspose");
    let conv = transposed.or_else(|| rw.private(affine.x, "Conv"))?;
    let w = rw.input(conv, 1)?;
    let weight = affine.scales().then(|| {
        let shape = rw.constant(w)?.shape().to_vec();
        let mut elements = rw.floats(w)?;
        let channels = affine.scale.len();
        let volume: usize = shape.get(2..)?.iter().product();
        // The weight is [channels, channels of the input, volume…], or for the transposed one
        // [channels of the input, channels of a group, volume…].
        let (within, group) = match transposed {
            None => (1, 1),
            Some(_) => {
                let (_, op) = ops::resolve(rw.node(conv)).ok()?;
                (*shape.get(1)?, op.downcast::<ConvTranspose>()?.group)
            }
        };
        let per_group = shape.first()?.checked_div(group)?.max(1);
        let inner = if transposed.is_some() { volume } else { elements.len() / channels.max(1) };
        for (i, block) in elements.chunks_mut(inner.max(1)).enumerate() {
            let channel = match transposed {
                None => i,
                Some(_) => i / within / per_group * within + i % within,
            };
            let scale = affine.scale.get(channel)?;
            block.iter_mut().for_each(|x| *x *= scale);
        }
        Some((shape, elements))
    });
    let weight = match weight {
        Some(changed) => Some(changed?),
        None => None,
    };
    let bias = match rw.input(conv, 2) {
        Some(bias) => Some(rw.floats(bias)?),
        None => None,
    };
    let ty = rw.element_type(w)?;
    let name = rw.node(root).name.clone();
    let bias = shifted(bias, &affine)?;
    let mut new = rw.node(conv).clone();
    if let Some((shape, elements)) = weight {
        new.inputs[1] = Some(rw.add_floats(&format!("{name}/weight"), ty, &shape, &elements)?);
    }
    new.inputs.resize(3, None);
    new.inputs[2] = Some(rw.add_floats(&format!("{name}/bias"), ty, &[bias.len()], &bias)?);
    new.outputs = rw.node(root).outputs.clone();
    rw.replace(root, new).then_some(())
}

/// After Gemm, and after MatMul with a matrix on its right, its bias in between or not.
pub(super) fn into_product(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let output = rw.output(root)?;
    let axis = rw.shape(output)?.len().checked_sub(1)?;
    let affine = affine(rw, root, output, axis)?;
    let gemm = rw.private(affine.x, "Gemm");
    let fused = rw.private(affine.x, "rukh.MatMul").filter(|&id| rw.node(id).attributes.0.is_empty());
    let product = gemm.or(fused).or_else(|| rw.private(affine.x, "MatMul"))?;
    if (gemm.is_none() && fused.is_none() && !affine.scales()) || rw.input(product, 3).is_some() {
        return None;
    }
    let w = rw.input(product, 1)?;
    let &[rows, columns] = rw.constant(w)?.shape() else { return None };
    let (_, op) = ops::resolve(rw.node(product)).ok()?;
    let gemm_op = gemm.and_then(|_| op.downcast::<Gemm>());
    let transposed = gemm_op.is_some_and(|op| op.transpose[1]);
    let n = if transposed { rows } else { columns };
    if affine.scale.len() != n {
        return None;
    }
    let weight = if affine.scales() {
        let mut elements = rw.floats(w)?;
        for (row, elements) in elements.chunks_mut(columns.max(1)).enumerate() {
            for (column, x) in elements.iter_mut().enumerate() {
                *x *= affine.scale[if transposed { row } else { column }];
            }
        }
        Some(elements)
    } else {
        None
    };
    let ty = rw.element_type(w)?;
    let bias = match rw.input(product, 2) {
        Some(c) => {
            let shape = rw.constant(c)?.shape();
            let row = matches!(*shape, [] | [_] | [1, _]);
            let (c, beta) = (rw.floats(c).filter(|_| row)?, gemm_op.map_or(1.0, |op| op.beta as f64));
            Some((0..n).map(|i| beta * if c.len() == 1 { c[0] } else { c[i] }).collect::<Vec<_>>())
        }
        None => None,
    };
    let name = rw.node(root).name.clone();
    let mut new = rw.node(product).clone();
    if gemm.is_none() && fused.is_none() && affine.shifts() {
        new = rw.draft(root, "Gemm", &[], &new.inputs);
    }
    if let Some(elements) = weight {
        new.inputs[1] = Some(rw.add_floats(&format!("{name}/weight"), ty, &[rows, columns], &elements)?);
    }
    if bias.is_some() || affine.shifts() {
        let bias = shifted(bias, &affine)?;
        new.inputs.resize(3, None);
        new.inputs[2] = Some(rw.add_floats(&format!("{name}/bias"), ty, &[n], &bias)?);
        new.attributes.0.retain(|(name, _)| name != "beta");
    }
    new.outputs = rw.node(root).outputs.clone();
    rw.replace(root, new).then_some(())
}

/// What the node does to each channel of `axis`, with constants.
fn affine(rw: &Rewriter<'_>, root: NodeId, output: ValueId, axis: usize) -> Option<Affine> {
    let channels = usize::try_from(rw.shape(output)?.get(axis)?.known()?).ok()?;
    if rw.is(root, "BatchNormalization") {
        let (_, op) = ops::resolve(rw.node(root)).ok()?;
        let op = *op.downcast::<BatchNorm>()?;
        if op.training || !op.spatial || axis != 1 {
            return None;
        }
        let parameter = |i: usize| rw.floats(rw.input(root, i)?).filter(|p| p.len() == channels);
        let (factor, bias, mean, variance) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
        let scale: Vec<f64> =
            factor.iter().zip(&variance).map(|(f, v)| f / (v + op.epsilon as f64).sqrt()).collect();
        let shift = (0..channels).map(|i| bias[i] - mean[i] * scale[i]).collect();
        return Some(Affine { x: rw.input(root, 0)?, scale, shift });
    }
    let name = ["Mul", "Add", "Div", "Sub"].into_iter().find(|op| rw.is(root, op))?;
    let rank = rw.shape(output)?.len();
    rw.operands(root).into_iter().enumerate().find_map(|(swapped, [x, c])| {
        if swapped == 1 && matches!(name, "Div" | "Sub") {
            return None;
        }
        let values = per_channel(rw, c, rank, axis, channels)?;
        let (scale, shift) = match name {
            "Mul" => (values, vec![0.0; channels]),
            "Div" => (values.iter().map(|v| 1.0 / v).collect(), vec![0.0; channels]),
            "Add" => (vec![1.0; channels], values),
            _ => (vec![1.0; channels], values.iter().map(|v| -v).collect()),
        };
        (scale.iter().chain(&shift).all(|v: &f64| v.is_finite())).then_some(Affine { x, scale, shift })
    })
}

/// A constant as one number for each channel, when it broadcasts along all other axes.
fn per_channel(rw: &Rewriter<'_>, c: ValueId, rank: usize, axis: usize, channels: usize) -> Option<Vec<f64>> {
    let shape = rw.constant(c)?.shape().to_vec();
    let elements = rw.floats(c)?;
    if shape.len() > rank {
        return None;
    }
    if elements.len() == 1 {
        return Some(vec![elements[0]; channels]);
    }
    let at = axis.checked_sub(rank - shape.len())?;
    (elements.len() == channels && shape.get(at) == Some(&channels)).then_some(elements)
}

fn shifted(bias: Option<Vec<f64>>, affine: &Affine) -> Option<Vec<f64>> {
    let bias = bias.unwrap_or_else(|| vec![0.0; affine.scale.len()]);
    let sum = |((b, scale), shift): ((&f64, &f64), &f64)| b * scale + shift;
    (bias.len() == affine.scale.len())
        .then(|| bias.iter().zip(&affine.scale).zip(&affine.shift).map(sum).collect())
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;

    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;

    /// Numbers without a pattern, from 0.5 to 1.5.
    fn some(count: usize) -> Vec<f32> {
        (0..count).map(|i| 0.5 + (i * 37 % 64) as f32 / 64.0).collect()
    }

    fn normalised(builder: GraphBuilder, x: &str, channels: usize) -> GraphBuilder {
        let numbers = some(4 * channels);
        let mut builder = builder;
        for (i, name) in ["s", "b", "m", "v"].into_iter().enumerate() {
            builder = builder.floats(name, &[channels], &numbers[i * channels..][..channels]);
        }
        builder.node("BatchNormalization", &[x, "s", "b", "m", "v"], &["y"]).output("y")
    }

    #[test]
    fn convolutions_take_the_normalisation() {
        let group = [("group", Attribute::Int(2))];
        for (op, shape, channels) in [("Conv", [4, 2, 3, 3], 4), ("ConvTranspose", [4, 3, 2, 2], 6)] {
            let weight = some(shape.iter().product());
            let builder = GraphBuilder::new()
                .input("x", &["n", "4", "5", "6"])
                .floats("w", &shape, &weight)
                .node_with(op, &group, &["x", "w"], &["c"]);
            let size = if op == "Conv" { "3, 4" } else { "6, 7" };
            let line = format!(
                "y: float[n, {channels}, {size}] = {op}<group=2>(x, BatchNormalization_node/weight, \
                 BatchNormalization_node/bias)"
            );
            assert_fused(normalised(builder, "c", channels), &[&line, "return y"]);
        }
    }

    #[test]
    fn channels_are_scaled_and_shifted() {
        let builder = GraphBuilder::new()
            .input("x", &["n", "2", "4"])
            .floats("w", &[3, 2, 2], &some(12))
            .floats("b", &[3], &some(3))
            .floats("scale", &[1, 3, 1], &[2.0, -1.0, 0.5])
            .floats("shift", &[3, 1], &[1.0, 0.0, -1.0])
            .node("Conv", &["x", "w", "b"], &["c"])
            .node("Mul", &["scale", "c"], &["d"])
            .node("Sub", &["d", "shift"], &["y"])
            .output("y");
        assert_fused(builder, &["y: float[n, 3, 3] = Conv(x, Mul_node/weight, Sub_node/bias)", "return y"]);
    }

    #[test]
    fn products_take_it_too() {
        let gemm = [("transB", Attribute::Int(1)), ("beta", Attribute::Float(0.5))];
        let builder = GraphBuilder::new()
            .input("x", &["n", "4"])
            .floats("w", &[3, 4], &some(12))
            .floats("c", &[1, 3], &some(3))
            .node_with("Gemm", &gemm, &["x", "w", "c"], &["g"]);
        assert_fused(
            normalised(builder, "g", 3),
            &[
                "y: float[n, 3] = Gemm<transB=1>(x, BatchNormalization_node/weight, \
                 BatchNormalization_node/bias)",
                "return y",
            ],
        );
        let builder = GraphBuilder::new().input("x", &["n", "4"]).floats("w", &[4, 3], &some(12)).node(
            "MatMul",
            &["x", "w"],
            &["g"],
        );
        assert_fused(
            normalised(builder, "g", 3),
            &[
                "y: float[n, 3] = Gemm(x, BatchNormalization_node/weight, BatchNormalization_node/bias)",
                "return y",
            ],
        );
    }

    #[test]
    fn a_result_that_others_need_stays() {
        let builder = GraphBuilder::new()
            .input("x", &["n", "2", "4"])
            .floats("w", &[3, 2, 2], &some(12))
            .floats("two", &[], &[2.0])
            .node("Conv", &["x", "w"], &["c"])
            .node("Mul", &["c", "two"], &["y"])
            .output("y")
            .output("c");
        assert_fused(
            builder,
            &["c: float[n, 3, 3] = Conv(x, w)", "y: float[n, 3, 3] = Mul(c, two)", "return y, c"],
        );
    }
}
