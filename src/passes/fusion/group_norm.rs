//! Group normalisation, which exporters for older operator sets write as an instance normalisation of
//! channels gathered in groups, with scale and shift of channels after it.

use std::sync::Arc;

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::norm::GroupNorm;

use super::rewriter::Rewriter;

/// `reshape(instance_norm(reshape(x, [n, groups, …]))) · scale + shift`
pub(super) fn group_norm(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    let output = rw.output(root)?;
    let [_, channels, ..] = rw.shape(output)? else { return None };
    let channels = usize::try_from(channels.known()?).ok()?;
    let rank = rw.shape(output)?.len();
    let (x, groups, epsilon, scale, shift) = rw.operands(root).into_iter().find_map(|[scaled, shift]| {
        let product = rw.private(scaled, "Mul")?;
        rw.operands(product).into_iter().find_map(|[back, scale]| {
            let of_channels = |v: ValueId| is_of_channels(rw, v, channels, rank).then_some(v);
            let (scale, shift) = (of_channels(scale)?, of_channels(shift)?);
            let grouped = rw.input(rw.private(back, "Reshape")?, 0)?;
            let node = rw.private(grouped, "InstanceNormalization")?;
            let (_, op) = ops::resolve(rw.node(node)).ok()?;
            let epsilon = op.downcast::<GroupNorm>()?.epsilon;
            let all = |i: usize, want: f64| Some(rw.floats(rw.input(node, i)?)?.iter().all(|&v| v == want));
            if !(all(1, 1.0)? && all(2, 0.0)?) {
                return None;
            }
            let gathered = rw.input(node, 0)?;
            let x = rw.input(rw.private(gathered, "Reshape")?, 0)?;
            let (shape, gathered) = (rw.shape(x)?, rw.shape(gathered)?);
            let groups = gathered.get(1)?.known()?;
            // Samples stay samples, so groups are of neighbouring channels when they divide them.
            let fits = shape == rw.shape(output)?
                && gathered.first() == shape.first()
                && groups > 0
                && channels.is_multiple_of(groups as usize);
            fits.then_some((x, groups, epsilon, scale, shift))
        })
    })?;
    let attributes = [("num_groups", Attribute::Int(groups)), ("epsilon", Attribute::Float(epsilon))];
    let name = rw.node(root).name.clone();
    let mut vector = |value: ValueId, part: &str| {
        let row = rw.constant(value)?.reshaped(&[channels])?;
        Some(rw.add_constant(&format!("{name}/{part}"), Arc::new(row)))
    };
    let inputs = [Some(x), Some(vector(scale, "scale")?), Some(vector(shift, "shift")?)];
    let new = rw.draft(root, "GroupNormalization", &attributes, &inputs);
    rw.replace(root, new).then_some(())
}

/// Whether a constant has one number for each channel of a tensor `[n, channels, …]`.
fn is_of_channels(rw: &Rewriter<'_>, value: ValueId, channels: usize, rank: usize) -> bool {
    rw.constant(value).is_some_and(|tensor| {
        let shape = tensor.shape();
        tensor.len() == channels
            && shape.len() < rank + 1
            && (shape.len() + 1).checked_sub(rank).and_then(|at| shape.get(at)) == Some(&channels)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;

    #[test]
    fn instances_of_gathered_channels() {
        let builder = |scale: f32| {
            GraphBuilder::new()
                .input("x", &["n", "4", "3", "5"])
                .floats("one", &[2], &[scale; 2])
                .floats("zero", &[2], &[0.0; 2])
                .floats("s", &[4, 1, 1], &[1.0, -2.0, 0.5, 3.0])
                .floats("b", &[1, 4, 1, 1], &[0.5, 0.25, 0.0, -1.0])
                .ints("groups", &[3], &[0, 2, -1])
                .node("Shape", &["x"], &["shape"])
                .node("Reshape", &["x", "groups"], &["g"])
                .node("InstanceNormalization", &["g", "one", "zero"], &["i"])
                .node("Reshape", &["i", "shape"], &["r"])
                .node("Mul", &["r", "s"], &["m"])
                .node("Add", &["m", "b"], &["y"])
                .output("y")
        };
        let line = "y: float[n, 4, 3, 5] = GroupNormalization<num_groups=2, epsilon=1e-5>(x, \
                    Add_node/scale, Add_node/shift)";
        assert_fused(builder(1.0), &[line, "return y"]);
        // The instance normalisation's own scale is one of groups.
        assert_fused(
            builder(2.0),
            &[
                "shape: int64[4] = Shape(x)",
                "g: float[n, 2, 30] = Reshape(x, groups)",
                "i: float[n, 2, 30] = InstanceNormalization(g, one, zero)",
                "r: float[n, 4, 3, 5] = Reshape(i, shape)",
                "m: float[n, 4, 3, 5] = Mul(r, s)",
                "y: float[n, 4, 3, 5] = Add(m, b)",
                "return y",
            ],
        );
    }
}
