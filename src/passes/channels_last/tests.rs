//! Graphs before and after.

use crate::graph::{Attribute, Graph, Node};
use crate::ops::Operator;
use crate::tensor::{ElementType, ValueType};

use super::super::testing::{Cpu, GraphBuilder, assert_lines};
use super::super::{Target, infer};
use super::channels_last;

/// Runs everything but operators with this in their names.
struct Gpu(&'static str);

impl Target for Gpu {
    fn runs(&self, node: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
        self.0.is_empty() || !node.op.name.contains(self.0)
    }

    fn prefers_bytes(&self) -> bool {
        false
    }

    fn prefers_channels_last(&self) -> bool {
        true
    }

    fn keeps_floats(&self) -> bool {
        true
    }
}

fn ints(list: &[i64]) -> Attribute {
    Attribute::Ints(list.to_vec())
}

fn laid_out(builder: GraphBuilder, target: &Gpu) -> Graph {
    let mut graph = builder.0;
    infer::infer(&mut graph).unwrap();
    channels_last(&mut graph, target, &Cpu::new()).unwrap();
    graph
}

fn assert_laid_out(builder: GraphBuilder, lines: &[&str]) {
    assert_lines(&laid_out(builder, &Gpu("")), lines);
}

/// An image and weights of these shapes.
fn start(image: &[&str], weights: &[(&str, &[usize])]) -> GraphBuilder {
    weights.iter().fold(GraphBuilder::new().input("x", image), |builder, (name, shape)| {
        builder.floats(name, shape, &vec![1.0; shape.iter().product()])
    })
}

const PADS: &[i64] = &[1, 1, 1, 1];

#[test]
fn transposes_stay_at_the_borders() {
    let pads = [("pads", ints(PADS))];
    let pool = [("kernel_shape", ints(&[3, 3])), ("strides", ints(&[2, 2])), ("pads", ints(PADS))];
    let builder = start(&["n", "4", "8", "8"], &[("v", &[8, 4, 3, 3]), ("w", &[8, 8, 3, 3])])
        .node_with("Conv", &pads, &["x", "v"], &["a"])
        .node_with("MaxPool", &pool, &["a"], &["b"])
        .node_with("com.microsoft.FusedConv", &pads, &["b", "w", "", "b"], &["c"])
        .node("Relu", &["c"], &["d"])
        .output("d");
    assert_laid_out(
        builder,
        &[
            "x_nhwc: float[n, 8, 8, 4] = Transpose<perm=[0, 2, 3, 1]>(x)",
            "a_nhwc: float[n, 8, 8, 8] = rukh.NhwcConv<pads=[1, 1, 1, 1]>(x_nhwc, v_nhwc)",
            "b_nhwc: float[n, 4, 4, 8] = rukh.NhwcMaxPool<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(a_nhwc)",
            "c_nhwc: float[n, 4, 4, 8] = rukh.NhwcConv<pads=[1, 1, 1, 1]>(b_nhwc, w_nhwc, _, b_nhwc)",
            "d_nhwc: float[n, 4, 4, 8] = Relu(c_nhwc)",
            "d: float[n, 8, 4, 4] = Transpose<perm=[0, 3, 1, 2]>(d_nhwc)",
            "return d",
        ],
    );
}

/// Blocks of an image with few channels are its pixels; one image serves all convolutions that take it so.
#[test]
fn few_channels_go_by_blocks() {
    let strides = [("strides", ints(&[2, 2])), ("pads", ints(&[1, 1, 1, 1]))];
    let graph = laid_out(
        start(&["n", "3", "8", "h"], &[("w", &[8, 3, 3, 3]), ("v", &[8, 3, 3, 3]), ("u", &[8, 3, 2, 2])])
            .node_with("Conv", &strides, &["x", "w"], &["a"])
            .node_with("Conv", &strides, &["x", "v"], &["b"])
            .node_with("Conv", &strides[..1], &["x", "u"], &["c"])
            .output("a")
            .output("b")
            .output("c"),
        &Gpu(""),
    );
    let lines = graph.to_string();
    let made: Vec<&str> = lines.lines().map(str::trim).filter(|line| line.contains("rukh.")).collect();
    let of = |pads: &str, height: &str| {
        format!(
            "x_blocks2x2: float[n, {height}] = rukh.NhwcSpaceToDepth<blocks=[2, 2], pads={pads}, channels=12>(x)"
        )
    };
    assert_eq!(made[0], of("[1, 1, 2, 2]", "5, floor((h + 3)/(2)), 12"), "{lines}");
    assert_eq!(
        made[1],
        "a_nhwc: float[n, 4, floor((h + 3)/(2)) - 1, 8] = rukh.NhwcConv(x_blocks2x2, w_nhwc)"
    );
    assert_eq!(made.len(), 5, "{lines}");
    // Of a window of 3 by 3 the last line and column of the second blocks are zeros.
    let weight = graph.find_value("w_nhwc").and_then(|w| graph.value(w).constant.clone()).unwrap();
    assert_eq!((weight.shape(), weight.ty()), (&[8, 2, 2, 12][..], ElementType::F32));
    let (view, block) = (weight.view(), |taps: [f32; 4]| taps.repeat(3));
    let blocks = [[1.0; 4], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]].map(block);
    assert_eq!(view.slice::<f32>()[..48], blocks.concat());
}

/// Where blocks do not serve, channels of zeros fill the packs.
#[test]
fn few_channels_are_padded() {
    let same = [("auto_pad", Attribute::String(b"SAME_UPPER".to_vec()))];
    let graph = laid_out(
        start(&["n", "3", "8", "8"], &[("w", &[8, 3, 3, 3])])
            .node_with("Conv", &same, &["x", "w"], &["a"])
            .node("GlobalAveragePool", &["a"], &["y"])
            .output("y"),
        &Gpu(""),
    );
    assert_lines(
        &graph,
        &[
            "x_nhwc: float[n, 8, 8, 3] = Transpose<perm=[0, 2, 3, 1]>(x)",
            "x_channels4: float[n, 8, 8, 4] = Pad<mode=\"constant\">(x_nhwc, x_channels4/pads)",
            "a_nhwc: float[n, 8, 8, 8] = rukh.NhwcConv<auto_pad=\"SAME_UPPER\">(x_channels4, w_nhwc_nhwc)",
            "y_nhwc: float[n, 1, 1, 8] = ReduceMean<keepdims=1>(a_nhwc, GlobalAveragePool_node/axes)",
            "y: float[n, 8, 1, 1] = Reshape(y_nhwc, y/shape)",
            "return y",
        ],
    );
    let weight = graph.find_value("w_nhwc_nhwc").and_then(|w| graph.value(w).constant.clone()).unwrap();
    let lines = weight.view().slice::<f32>().chunks(4).all(|pixel| pixel == [1.0, 1.0, 1.0, 0.0]);
    assert!(lines && weight.shape() == [8, 3, 3, 4] && weight.ty() == ElementType::F32);
}

/// Squeeze and excite: what has one position changes its shape only, and not even that in between.
#[test]
fn one_position_needs_no_transpose() {
    let builder = start(
        &["n", "8", "8", "8"],
        &[("w", &[8, 1, 3, 3]), ("v", &[4, 8, 1, 1]), ("u", &[8, 4, 1, 1]), ("z", &[4, 8, 1, 1])],
    )
    .node_with("Conv", &[("group", Attribute::Int(8))], &["x", "w"], &["a"])
    .node("GlobalAveragePool", &["a"], &["b"])
    .node("Conv", &["b", "v"], &["c"])
    .node("Conv", &["c", "u"], &["d"])
    .node("Mul", &["a", "d"], &["e"])
    .node("Conv", &["e", "z"], &["y"])
    .output("y");
    assert_laid_out(
        builder,
        &[
            "x_nhwc: float[n, 8, 8, 8] = Transpose<perm=[0, 2, 3, 1]>(x)",
            "a_nhwc: float[n, 6, 6, 8] = rukh.NhwcConv<group=8>(x_nhwc, w_nhwc)",
            "b_nhwc: float[n, 1, 1, 8] = ReduceMean<keepdims=1>(a_nhwc, GlobalAveragePool_node/axes)",
            "c_nhwc: float[n, 1, 1, 4] = rukh.NhwcConv(b_nhwc, v_nhwc)",
            "e_nhwc: float[n, 6, 6, 8] = rukh.NhwcExcite(a_nhwc, c_nhwc, u_nhwc, _)",
            "y_nhwc: float[n, 6, 6, 4] = rukh.NhwcConv(e_nhwc, z_nhwc)",
            "y: float[n, 4, 6, 6] = Transpose<perm=[0, 3, 1, 2]>(y_nhwc)",
            "return y",
        ],
    );
}

/// A block of ConvNeXt, and the patches of a vision transformer.
#[test]
fn transposes_of_the_model_go() {
    let pads = [("pads", ints(PADS)), ("group", Attribute::Int(8))];
    let last = [("perm", ints(&[0, 2, 3, 1]))];
    let first = [("perm", ints(&[0, 3, 1, 2]))];
    let builder = start(
        &["n", "8", "8", "8"],
        &[("w", &[8, 1, 3, 3]), ("s", &[8]), ("v", &[8, 8]), ("g", &[8, 1, 1]), ("u", &[8, 8, 3, 3])],
    )
    .node("Conv", &["x", "u"], &["a"])
    .node_with("Conv", &pads, &["a", "w"], &["b"])
    .node_with("Transpose", &last, &["b"], &["c"])
    .node("LayerNormalization", &["c", "s"], &["d"])
    .node("MatMul", &["d", "v"], &["e"])
    .node_with("Transpose", &first, &["e"], &["f"])
    .node("Mul", &["f", "g"], &["h"])
    .node("Add", &["a", "h"], &["i"])
    .node_with("Conv", &pads, &["i", "w"], &["j"])
    .ints("tokens", &[3], &[0, 8, -1])
    .node("Reshape", &["j", "tokens"], &["k"])
    .node_with("Transpose", &[("perm", ints(&[0, 2, 1]))], &["k"], &["l"])
    .node("MatMul", &["l", "v"], &["y"])
    .output("y");
    assert_laid_out(
        builder,
        &[
            "x_nhwc: float[n, 8, 8, 8] = Transpose<perm=[0, 2, 3, 1]>(x)",
            "a_nhwc: float[n, 6, 6, 8] = rukh.NhwcConv(x_nhwc, u_nhwc)",
            "b_nhwc: float[n, 6, 6, 8] = rukh.NhwcConv<pads=[1, 1, 1, 1], group=8>(a_nhwc, w_nhwc)",
            "d: float[n, 6, 6, 8] = LayerNormalization(b_nhwc, s)",
            "e: float[n, 6, 6, 8] = MatMul(d, v)",
            "h_nhwc: float[n, 6, 6, 8] = Mul(e, g_nhwc_nhwc)",
            "i_nhwc: float[n, 6, 6, 8] = Add(a_nhwc, h_nhwc)",
            "j_nhwc: float[n, 6, 6, 8] = rukh.NhwcConv<pads=[1, 1, 1, 1], group=8>(i_nhwc, w_nhwc)",
            "k_nhwc: float[n, 36, 8] = Reshape(j_nhwc, Reshape_node/shape)",
            "y: float[n, 36, 8] = MatMul(k_nhwc, v)",
            "return y",
        ],
    );
}

/// Operators with axes: Concat, Split, Pad, Slice, Resize, Softmax, reductions, and Shape.
#[test]
fn axes_move() {
    let axis = [("axis", Attribute::Int(1))];
    let builder = start(&["n", "8", "8", "8"], &[("w", &[8, 8, 3, 3])])
        .ints("half", &[1], &[4])
        .ints("one", &[1], &[0])
        .ints("channels", &[1], &[1])
        .ints("rows", &[1], &[-2])
        .ints("pads", &[8], &[0, 1, 2, 3, 0, 0, 0, 4])
        .floats("scales", &[4], &[1.0, 1.0, 2.0, 2.0])
        .node("Conv", &["x", "w"], &["a"])
        .node_with(
            "Split",
            &[("axis", Attribute::Int(1)), ("num_outputs", Attribute::Int(2))],
            &["a"],
            &["b", "c"],
        )
        .node_with("Concat", &axis, &["c", "b"], &["d"])
        .node("Pad", &["d", "pads"], &["e"])
        .node("Slice", &["e", "one", "half", "rows"], &["f"])
        .node("Resize", &["f", "", "scales"], &["g"])
        .node_with("Softmax", &axis, &["g"], &["h"])
        .node_with("ReduceMax", &[("keepdims", Attribute::Int(0))], &["h", "channels"], &["y"])
        .node("Shape", &["h"], &["z"])
        .output("y")
        .output("z");
    assert_laid_out(
        builder,
        &[
            "x_nhwc: float[n, 8, 8, 8] = Transpose<perm=[0, 2, 3, 1]>(x)",
            "a_nhwc: float[n, 6, 6, 8] = rukh.NhwcConv(x_nhwc, w_nhwc)",
            "b_nhwc: float[n, 6, 6, 4], c_nhwc: float[n, 6, 6, 4] = Split<num_outputs=2, axis=3>(a_nhwc)",
            "d_nhwc: float[n, 6, 6, 8] = Concat<axis=3>(c_nhwc, b_nhwc)",
            "e_nhwc: float[n, 8, 13, 9] = Pad(d_nhwc, Pad_node/pads)",
            "f_nhwc: float[n, 4, 13, 9] = Slice(e_nhwc, one, half, Slice_node/axes)",
            "g_nhwc: float[n, 8, 26, 9] = Resize<axes=[0, 3, 1, 2]>(f_nhwc, _, scales)",
            "h_nhwc: float[n, 8, 26, 9] = Softmax<axis=3>(g_nhwc)",
            "y: float[n, 8, 26] = ReduceMax<keepdims=0>(h_nhwc, ReduceMax_node/axes)",
            "Shape_node/form: int64[4] = Shape(h_nhwc)",
            "z: int64[4] = Gather(Shape_node/form, Shape_node/order)",
            "return y, z",
        ],
    );
}

/// What stays as it is: graphs without convolutions, products of pixels that nobody has in NHWC, weights that are not
/// known, and what the target does not run.
#[test]
fn not_without_need() {
    let plain = |weight: &str| {
        start(&["n", "8", "8", "8"], &[("w", &[8, 8, 3, 3]), ("v", &[8, 8, 1, 1])])
            .input("free", &["8", "8", "3", "3"])
            .node("Conv", &["x", weight], &["a"])
            .node("Relu", &["a"], &["y"])
            .output("y")
    };
    for (builder, target) in [(plain("v"), Gpu("")), (plain("free"), Gpu("")), (plain("w"), Gpu("NhwcConv"))]
    {
        let mut graph = builder.0;
        infer::infer(&mut graph).unwrap();
        let before = graph.to_string();
        channels_last(&mut graph, &target, &Cpu::new()).unwrap();
        assert_eq!(graph.to_string(), before);
    }
    // A pooling that the target lacks has its image transposed.
    let pool = [("kernel_shape", ints(&[2, 2]))];
    let builder = start(&["n", "8", "8", "8"], &[("w", &[8, 8, 3, 3])])
        .node("Conv", &["x", "w"], &["a"])
        .node_with("MaxPool", &pool, &["a"], &["y"])
        .output("y");
    let text = laid_out(builder, &Gpu("Pool")).to_string();
    assert!(text.contains("= MaxPool<kernel_shape=[2, 2]>(a)"), "{text}");
}

/// Gates that others need too, and gates of each pixel, are made by themselves.
#[test]
fn gates_of_their_own() {
    let weights = [("w", &[8usize, 8, 1, 1][..]), ("z", &[8, 8, 1, 1])];
    let builder = start(&["n", "8", "4", "4"], &weights)
        .node("GlobalAveragePool", &["x"], &["b"])
        .node("Conv", &["b", "w"], &["d"])
        .node("Mul", &["x", "d"], &["y"])
        .output("y")
        .output("d");
    let text = laid_out(builder, &Gpu("")).to_string();
    assert!(text.contains("Mul(") && !text.contains("Excite"), "{text}");
    let pads = [("pads", ints(PADS))];
    let builder = start(&["n", "8", "4", "4"], &[("v", &[8, 8, 3, 3]), weights[0]])
        .node_with("Conv", &pads, &["x", "v"], &["a"])
        .node("Conv", &["a", "w"], &["d"])
        .node("Mul", &["a", "d"], &["y"])
        .output("y");
    let text = laid_out(builder, &Gpu("")).to_string();
    let conv = "d_nhwc: float[n, 4, 4, 8] = rukh.NhwcConv(a_nhwc, w_nhwc)";
    let product = "y_nhwc: float[n, 4, 4, 8] = Mul(a_nhwc, d_nhwc)";
    assert!(text.contains(conv) && text.contains(product), "{text}");
}

/// A scale of each channel and a residual behind a product of pixels.
#[test]
fn products_take_what_the_layout_brings_behind_them() {
    let builder = start(&["n", "8", "4", "4"], &[("w", &[8, 1, 3, 3]), ("m", &[8, 8])])
        .floats("scale", &[8, 1, 1], &[0.5, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0])
        .node_with("Conv", &[("group", Attribute::Int(8)), ("pads", ints(PADS))], &["x", "w"], &["a"])
        .node_with("Transpose", &[("perm", ints(&[0, 2, 3, 1]))], &["a"], &["rows"])
        .node("MatMul", &["rows", "m"], &["p"])
        .node_with("Transpose", &[("perm", ints(&[0, 3, 1, 2]))], &["p"], &["image"])
        .node("Mul", &["scale", "image"], &["scaled"])
        .node("Add", &["scaled", "a"], &["y"])
        .output("y");
    assert_laid_out(
        builder,
        &[
            "x_nhwc: float[n, 4, 4, 8] = Transpose<perm=[0, 2, 3, 1]>(x)",
            "a_nhwc: float[n, 4, 4, 8] = rukh.NhwcConv<group=8, pads=[1, 1, 1, 1]>(x_nhwc, w_nhwc)",
            "y_nhwc: float[n, 4, 4, 8] = rukh.MatMul(a_nhwc, Mul_node/weight, _, a_nhwc)",
            "y: float[n, 8, 4, 4] = Transpose<perm=[0, 3, 1, 2]>(y_nhwc)",
            "return y",
        ],
    );
}
