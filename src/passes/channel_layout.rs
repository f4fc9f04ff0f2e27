//! Layout of images in 8 bits and bfloat16: between convolutions by dot products, neighbouring channels lie side by side
//! (channel-blocked), as the next convolution reads them. Nobody takes channels apart and puts them together again, a block
//! is written at once, and threads that have neighbouring positions share fewer lines of cache.
//!
//! A value is channel-blocked where whoever makes and whoever uses it can: convolutions, and between them maxima and means
//! over positions.

use std::collections::HashSet;

use crate::error::Result;
use crate::graph::{Attribute, Graph, Node, NodeId, OpName, ValueId};
use crate::ops;
use crate::ops::channel_blocked::channels_of_block;
use crate::ops::conv::{self, Conv, ConvPair};
use crate::ops::pool::{GlobalPool, Pool, Reduction};
use crate::ops::qlinear::pool::{MeanAxes, QLinearMean};
use crate::ops::qlinear::{self, QuantizedConv};

use super::{Target, infer};

/// Rewrites a main graph whose facts were inferred, and infers it again.
pub(crate) fn channel_layout(graph: &mut Graph, target: &dyn Target) -> Result<()> {
    let role = |id: NodeId| (id, Role::of(graph, id, target).unwrap_or(Role::Other));
    let roles: Vec<(NodeId, Role)> = graph.node_ids().map(role).collect();
    let channel_blocked = channel_blocked_values(graph, &roles);
    if channel_blocked.is_empty() {
        return Ok(());
    }
    for (id, role) in roles {
        let node = graph.node(id);
        let is_channel_blocked = |value: Option<&Option<ValueId>>| {
            value.copied().flatten().is_some_and(|value| channel_blocked.contains(&value))
        };
        let [input, output] = [node.inputs.first(), node.outputs.first()].map(is_channel_blocked);
        match role {
            Role::Convolution { .. } => convolution(graph.node_mut(id), input, output),
            Role::Maximum if input => maximum(graph.node_mut(id)),
            Role::Mean if input => mean(graph.node_mut(id)),
            _ => {}
        }
    }
    infer::infer(graph)
}

/// What a node can do with channel-blocked values.
enum Role {
    /// Takes them as its image, and gives them, with a residual, at this input if there can be one, that is channel-blocked
    /// then.
    Convolution {
        takes: bool,
        gives: bool,
        residual: Option<usize>,
    },
    /// Takes one and gives one.
    Maximum,
    /// Takes one.
    Mean,
    Other,
}

impl Role {
    fn of(graph: &Graph, id: NodeId, target: &dyn Target) -> Option<Self> {
        let node = graph.node(id);
        let ty = graph.value((*node.inputs.first()?)?).fact.element_type()?;
        let count = channels_of_block(ty).filter(|_| target.blocks_channels(ty))?;
        let (_, op) = ops::resolve(node).ok()?;
        if let Some(pool) = op.downcast::<Pool>() {
            let alone = node.outputs.iter().flatten().count() == 1;
            return (alone && pool.reduction == Reduction::Max).then_some(Role::Maximum);
        }
        let quantized = op.downcast::<QLinearMean>().map(|mean| &mean.axes);
        let whole =
            op.downcast::<GlobalPool>().filter(|pool| !pool.channel_blocked).map(|pool| pool.reduction);
        if quantized == Some(&MeanAxes::Spatial { channels_last: false })
            || whole == Some(Reduction::Average { count_padding: false })
        {
            return Some(Role::Mean);
        }
        let constant = |i: usize| graph.value((*node.inputs.get(i)?)?).constant.as_ref();
        let whole_blocks = |channels: usize| channels > 0 && channels.is_multiple_of(count);
        if let Some(pair) = op.downcast::<ConvPair>().filter(|pair| pair.second.channel_blocked == [false; 2])
        {
            constant(3)?;
            let takes = constant(1)?.shape().get(1).is_some_and(|&channels| whole_blocks(channels));
            let gives = whole_blocks(pair.second.group);
            return Some(Role::Convolution { takes, gives, residual: None });
        }
        let (weight, group, residual) = match (op.downcast::<QuantizedConv>(), op.downcast::<Conv>()) {
            (Some(conv), _)
                if conv.requantized && !conv.channels_last && conv.channel_blocked == [false; 2] =>
            {
                let weight = constant(conv.weight())?;
                let zeros = constant(conv.weight_zero())?.len();
                [1, weight.shape()[0]].contains(&zeros).then_some((weight, conv.group, qlinear::RESIDUAL))?
            }
            (_, Some(conv)) if conv.channel_blocked == [false; 2] => {
                (constant(1)?, conv.group, conv::RESIDUAL)
            }
            _ => return None,
        };
        let (&[m, channels, ..], rank) = (weight.shape(), weight.shape().len()) else { return None };
        let by_channel = group > 1 && channels == 1;
        (rank <= 4 && !by_channel).then_some(Role::Convolution {
            takes: whole_blocks(channels),
            gives: whole_blocks(m / group),
            residual: Some(residual),
        })
    }
}

/// The values that are to be channel-blocked: all that somebody can make so, but for those that others do not take.
fn channel_blocked_values(graph: &Graph, roles: &[(NodeId, Role)]) -> HashSet<ValueId> {
    let captured = graph.nodes().flat_map(|(_, node)| graph.captures_of(node));
    let kept: HashSet<ValueId> = captured.chain(graph.outputs.iter().copied()).collect();
    let mut values = HashSet::new();
    for (id, role) in roles {
        if matches!(role, Role::Convolution { gives: true, .. } | Role::Maximum) {
            values.extend(graph.node(*id).outputs.iter().flatten().filter(|value| !kept.contains(value)));
        }
    }
    loop {
        let count = values.len();
        for (id, role) in roles {
            let node = graph.node(*id);
            let channel_blocked = |value: Option<ValueId>| value.is_some_and(|value| values.contains(&value));
            let (made, given) =
                (node.outputs.first().copied().flatten(), |i: usize| node.inputs.get(i).copied().flatten());
            let gives = match role {
                Role::Convolution { residual, .. } => {
                    let residual = residual.and_then(given);
                    residual.is_none() || channel_blocked(residual)
                }
                Role::Maximum => channel_blocked(given(0)),
                _ => false,
            };
            let takes = |i: usize| match *role {
                Role::Convolution { takes, residual, .. } => {
                    (takes && i == 0) || (Some(i) == residual && channel_blocked(made))
                }
                Role::Maximum => i == 0 && channel_blocked(made),
                Role::Mean => i == 0,
                Role::Other => false,
            };
            let refused = (0..node.inputs.len()).filter(|&i| !takes(i)).filter_map(given);
            let refused: Vec<ValueId> = refused.chain(made.filter(|_| !gives)).collect();
            refused.iter().for_each(|value| {
                values.remove(value);
            });
        }
        if values.len() == count {
            return values;
        }
    }
}

fn convolution(node: &mut Node, input: bool, output: bool) {
    if input || output {
        of_rukh(node);
        let channel_blocked = [("channel_blocked_input", input), ("channel_blocked_output", output)]
            .into_iter()
            .filter(|(_, channel_blocked)| *channel_blocked);
        node.attributes.0.extend(channel_blocked.map(|(name, _)| (name.to_owned(), Attribute::Int(1))));
    }
}

/// The mean says where channels are by its domain alone.
fn mean(node: &mut Node) {
    of_rukh(node);
    node.attributes.0.retain(|(name, _)| name != "channels_last");
}

/// Makes the node the like of its operator that takes channel-blocked images.
fn of_rukh(node: &mut Node) {
    let name = if node.op.name == "Conv" { "FusedConv" } else { &node.op.name };
    node.op = OpName { domain: "rukh".into(), name: name.to_owned(), opset: 1 };
}

/// MaxPool has one axis more, along which windows have one element.
fn maximum(node: &mut Node) {
    for (name, value) in &mut node.attributes.0 {
        let Attribute::Ints(list) = value else { continue };
        match name.as_str() {
            "kernel_shape" | "strides" | "dilations" => list.push(1),
            "pads" => {
                list.insert(list.len() / 2, 0);
                list.push(0);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GraphBuilder, assert_lines};
    use super::*;
    use crate::graph::Graph;
    use crate::ops::Operator;
    use crate::tensor::{ElementType, ValueType, bf16};

    struct BlocksChannels;

    impl Target for BlocksChannels {
        fn runs(&self, _: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
            true
        }

        fn prefers_bytes(&self) -> bool {
            true
        }

        fn blocks_channels(&self, _: ElementType) -> bool {
            true
        }

        fn keeps_floats(&self) -> bool {
            true
        }
    }

    fn ints(list: &[i64]) -> Attribute {
        Attribute::Ints(list.to_vec())
    }

    /// A graph with a quantized image of three channels, and weights of so many channels each.
    fn start(weights: &[(&str, [usize; 2])]) -> GraphBuilder {
        let builder = GraphBuilder::new()
            .input("x", &["n", "3", "8", "8"])
            .floats("s", &[], &[0.02])
            .constant("z", &[], &[5u8])
            .constant("v", &[], &[0i8])
            .node("QuantizeLinear", &["x", "s", "z"], &["q"]);
        weights.iter().fold(builder, |builder, &(name, [m, c])| {
            builder.constant(name, &[m, c, 1, 1], &vec![1i8; m * c])
        })
    }

    /// A convolution of `x` by `w`.
    fn conv(builder: GraphBuilder, x: &str, w: &str, y: &str) -> GraphBuilder {
        builder.node("QLinearConv", &[x, "s", "z", w, "s", "v", "s", "z"], &[y])
    }

    fn laid_out(builder: GraphBuilder) -> Graph {
        let mut graph = builder.0;
        infer::infer(&mut graph).unwrap();
        channel_layout(&mut graph, &BlocksChannels).unwrap();
        graph
    }

    #[test]
    fn between_convolutions_maxima_and_means() {
        let pool =
            [("kernel_shape", ints(&[3, 3])), ("strides", ints(&[2, 2])), ("pads", ints(&[1, 1, 0, 0]))];
        let builder = conv(start(&[("w1", [8, 3]), ("w2", [8, 8])]), "q", "w1", "a").node_with(
            "MaxPool",
            &pool,
            &["a"],
            &["b"],
        );
        let residual = ["b", "s", "z", "w2", "s", "v", "s", "z", "", "b", "s", "z", "s", "z"];
        let graph = laid_out(
            builder
                .node("rukh.QLinearConv", &residual, &["c"])
                .node_with(
                    "com.microsoft.QLinearGlobalAveragePool",
                    &[("channels_last", Attribute::Int(0))],
                    &["c", "s", "z", "s", "z"],
                    &["d"],
                )
                .output("d"),
        );
        assert_lines(
            &graph,
            &[
                "q: uint8[n, 3, 8, 8] = QuantizeLinear(x, s, z)",
                "a: uint8[n, 2, 8, 8, 4] = rukh.QLinearConv<channel_blocked_output=1>(q, s, z, w1, s, v, s, z)",
                "b: uint8[n, 2, 4, 4, 4] = MaxPool<kernel_shape=[3, 3, 1], strides=[2, 2, 1], \
                 pads=[1, 1, 0, 0, 0, 0]>(a)",
                "c: uint8[n, 2, 4, 4, 4] = rukh.QLinearConv<channel_blocked_input=1, channel_blocked_output=1>(b, s, z, w2, s, v, s, z, _, \
                 b, s, z, s, z)",
                "d: uint8[n, 8, 1, 1] = rukh.QLinearGlobalAveragePool(c, s, z, s, z)",
                "return d",
            ],
        );
    }

    #[test]
    fn images_of_halves() {
        let to = [("to", Attribute::Int(16))];
        let pool = [("kernel_shape", ints(&[2, 2]))];
        let weight = |count: usize| vec![bf16::from_f32(0.5); count];
        let graph = laid_out(
            GraphBuilder::new()
                .input("x", &["n", "3", "8", "8"])
                .constant("w1", &[6, 3, 1, 1], &weight(18))
                .constant("w2", &[6, 6, 1, 1], &weight(36))
                .node_with("Cast", &to, &["x"], &["h"])
                .node("Conv", &["h", "w1"], &["a"])
                .node_with("MaxPool", &pool, &["a"], &["b"])
                .node("com.microsoft.FusedConv", &["b", "w2", "", "b"], &["c"])
                .node("GlobalAveragePool", &["c"], &["d"])
                .output("d"),
        );
        assert_lines(
            &graph,
            &[
                "h: bfloat16[n, 3, 8, 8] = Cast<to=16>(x)",
                "a: bfloat16[n, 3, 8, 8, 2] = rukh.FusedConv<channel_blocked_output=1>(h, w1)",
                "b: bfloat16[n, 3, 7, 7, 2] = MaxPool<kernel_shape=[2, 2, 1]>(a)",
                "c: bfloat16[n, 3, 7, 7, 2] = rukh.FusedConv<channel_blocked_input=1, channel_blocked_output=1>(b, w2, _, b)",
                "d: bfloat16[n, 6, 1, 1] = rukh.GlobalAveragePool(c)",
                "return d",
            ],
        );
    }

    #[test]
    fn pairs_of_convolutions() {
        let to = [("to", Attribute::Int(16))];
        let window = [("kernel_shape", ints(&[3, 3])), ("group", Attribute::Int(6))];
        let weight = |count: usize| vec![bf16::from_f32(0.5); count];
        let graph = laid_out(
            GraphBuilder::new()
                .input("x", &["n", "3", "8", "8"])
                .constant("w1", &[4, 3, 1, 1], &weight(12))
                .constant("w2", &[6, 4, 1, 1], &weight(24))
                .constant("w3", &[6, 1, 3, 3], &weight(54))
                .constant("w4", &[5, 6, 1, 1], &weight(30))
                .node_with("Cast", &to, &["x"], &["h"])
                .node("Conv", &["h", "w1"], &["a"])
                .node_with("rukh.ConvPair", &window, &["a", "w2", "", "w3"], &["b"])
                .node("Conv", &["b", "w4"], &["c"])
                .output("c"),
        );
        assert_lines(
            &graph,
            &[
                "h: bfloat16[n, 3, 8, 8] = Cast<to=16>(x)",
                "a: bfloat16[n, 2, 8, 8, 2] = rukh.FusedConv<channel_blocked_output=1>(h, w1)",
                "b: bfloat16[n, 3, 6, 6, 2] = rukh.ConvPair<kernel_shape=[3, 3], group=6, channel_blocked_input=1, \
                 channel_blocked_output=1>(a, w2, _, w3)",
                "c: bfloat16[n, 5, 6, 6] = rukh.FusedConv<channel_blocked_input=1>(b, w4)",
                "return c",
            ],
        );
    }

    /// What cannot be channel-blocked, and what must not be for its sake.
    #[test]
    fn not_where_somebody_wants_channels() {
        // By graphs: what stays. An output; channels that are no whole blocks; a residual, because the sum is an output; what
        // is added elsewhere; and a maximum that something else reads.
        let two =
            |m: usize| conv(conv(start(&[("w1", [m, 3]), ("w2", [8, m])]), "q", "w1", "a"), "a", "w2", "b");
        let residual = ["b", "s", "z", "w3", "s", "v", "s", "z", "", "a", "s", "z", "s", "z"];
        let chain = conv(
            conv(start(&[("w1", [8, 3]), ("w2", [8, 8]), ("w3", [8, 8])]), "q", "w1", "a"),
            "a",
            "w2",
            "b",
        );
        let add = ["a", "s", "z", "b", "s", "z", "s", "z"];
        let pool = [("kernel_shape", ints(&[2, 2]))];
        for (builder, stay, go) in [
            (two(8).output("b").output("a"), &["a", "b"][..], &[][..]),
            (two(6).output("b"), &["a", "b"], &[]),
            (chain.node("rukh.QLinearConv", &residual, &["c"]).output("c"), &["a", "c"], &["b"]),
            (two(8).node("com.microsoft.QLinearAdd", &add, &["c"]).output("c"), &["a", "b", "c"], &[]),
            (
                two(8)
                    .node_with("MaxPool", &pool, &["b"], &["c"])
                    .node("Identity", &["c"], &["d"])
                    .output("d"),
                &["b", "c"],
                &["a"],
            ),
        ] {
            let graph = laid_out(builder);
            let is_channel_blocked = |name: &str| {
                let value = graph.find_value(name).unwrap();
                graph.value(value).fact.shape.as_ref().unwrap().len() == 5
            };
            assert!(
                !stay.iter().any(|name| is_channel_blocked(name))
                    && go.iter().all(|name| is_channel_blocked(name)),
                "{graph}"
            );
        }
    }
}
