//! A pointwise convolution and the depthwise one of what it gives become one, which keeps what lies between them in a
//! processor's own cache: MobileNet's and EfficientNet's blocks have most of their memory there.

use crate::graph::{Attribute, NodeId};
use crate::ops;
use crate::ops::conv::{Conv, ConvPair};
use crate::ops::window::Padding;

use super::epilogue::CONV as FUSED_CONV;
use super::rewriter::Rewriter;

/// `depthwise(activation(pointwise(x)))`
pub(super) fn depthwise(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let between = rw.input(root, 0)?;
    if !rw.pairs_convolutions(between) {
        return None;
    }
    let mut second = convolution(rw, root)?;
    let &[outputs, 1, height, width] = rw.constant(rw.input(root, 1)?)?.shape() else { return None };
    second.window.kernel = vec![height as i64, width as i64];
    if second.group != outputs || !ConvPair::allows(&second.window) {
        return None;
    }
    let node = rw.private(between, "Conv").or_else(|| rw.private(between, FUSED_CONV))?;
    let first = convolution(rw, node)?;
    let &[_, channels, 1, 1] = rw.constant(rw.input(node, 1)?)?.shape() else { return None };
    let padded = matches!(&first.window.padding, Padding::Explicit(pads) if pads.iter().any(|&pad| pad != 0));
    if channels == 0 || first.group != 1 || padded || first.window.strides.iter().any(|&stride| stride != 1) {
        return None;
    }
    let inputs = [(node, 0), (node, 1), (node, 2), (root, 1), (root, 2)].map(|(id, i)| rw.input(id, i));
    let mut new = rw.draft(root, "rukh.ConvPair", &[], &inputs);
    new.attributes = rw.node(root).attributes.clone();
    new.attributes.0.retain(|(name, _)| name != "kernel_shape");
    new.attributes.0.push(("kernel_shape".to_owned(), Attribute::Ints(second.window.kernel)));
    for (name, value) in &rw.node(node).attributes.0 {
        if name.starts_with("activation") {
            new.attributes.0.push((format!("first_{name}"), value.clone()));
        }
    }
    rw.replace(root, new).then_some(())
}

/// A convolution without residual.
fn convolution(rw: &Rewriter<'_>, id: NodeId) -> Option<Conv> {
    if !(rw.is(id, "Conv") || rw.is(id, FUSED_CONV)) || rw.input(id, 3).is_some() {
        return None;
    }
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    op.downcast::<Conv>().cloned()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::{assert_fused, fused};
    use crate::graph::Attribute;

    /// A pointwise convolution with an activation and one by channel, with these attributes.
    fn builder(pads: &[i64], strides: &[i64], group: usize) -> GraphBuilder {
        let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
        let number = |i: usize| (i * 37 % 23) as f32 / 8.0 - 1.4;
        let numbers = |count: usize| (0..count).map(number).collect::<Vec<_>>();
        let attributes = [
            ("pads", ints(&[1, 1, 1, 1])),
            ("strides", ints(strides)),
            ("group", Attribute::Int(group as i64)),
        ];
        GraphBuilder::new()
            .input("x", &["n", "3", "9", "11"])
            .floats("w1", &[20, 3, 1, 1], &numbers(60))
            .floats("b1", &[20], &numbers(20))
            .floats("w2", &[20, 20 / group, 3, 3], &numbers(180 * 20 / group))
            .node_with("Conv", &[("pads", ints(pads))], &["x", "w1", "b1"], &["p"])
            .node_with("HardSigmoid", &[("alpha", Attribute::Float(0.25))], &["p"], &["q"])
            .node_with("Conv", &attributes, &["q", "w2"], &["r"])
            .node("Relu", &["r"], &["y"])
            .output("y")
    }

    #[test]
    fn of_each_channel_by_itself() {
        for (strides, [height, width]) in [([1, 1], [9, 11]), ([2, 2], [5, 6])] {
            let line = format!(
                "y: float[n, 20, {height}, {width}] = rukh.ConvPair<pads=[1, 1, 1, 1], strides={strides:?}, group=20, \
                 activation=\"Relu\", kernel_shape=[3, 3], first_activation=\"HardSigmoid\", \
                 first_activation_params=[0.25, 0.5]>(x, w1, b1, w2, _)"
            );
            assert_fused(builder(&[0; 4], &strides, 20), &[&line, "return y"]);
        }
    }

    #[test]
    fn not_where_the_first_has_padding_or_the_second_is_none_by_channel() {
        for builder in [
            builder(&[1, 0, 0, 0], &[1, 1], 20),
            builder(&[0; 4], &[1, 2], 20),
            builder(&[0; 4], &[1, 1], 10),
        ] {
            let graph = fused(builder);
            assert!(!graph.to_string().contains("ConvPair"), "{graph}");
        }
    }
}
