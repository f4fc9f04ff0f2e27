mod products;

use super::super::super::testing::GraphBuilder;
use super::super::testing::{assert_fused, assert_fused_within};
use crate::graph::Attribute;

/// Scales and zero points by name: `s…` of floats; `z…` of uint8, `i…` of int8.
fn parameters(builder: GraphBuilder) -> GraphBuilder {
    builder
        .floats("s1", &[], &[0.02])
        .floats("s2", &[], &[0.03])
        .floats("s3", &[], &[0.011])
        .constant("z0", &[], &[0u8])
        .constant("z1", &[], &[120u8])
        .constant("z2", &[], &[7u8])
        .constant("i1", &[], &[-3i8])
}

/// Quantizes `x` to `x_q` and makes floats of it again, as `x_f`.
fn around(builder: GraphBuilder, x: &str, scale: &str, zero: &str) -> GraphBuilder {
    let (q, f) = (format!("{x}_q"), format!("{x}_f"));
    builder.node("QuantizeLinear", &[x, scale, zero], &[&q]).node(
        "DequantizeLinear",
        &[&q, scale, zero],
        &[&f],
    )
}

/// An input `x` of this shape, quantized with `s1` and `z1`.
fn start(shape: &[&str]) -> GraphBuilder {
    around(parameters(GraphBuilder::new().input("x", shape)), "x", "s1", "z1")
}

/// The lines around those in the middle, where `x_q` comes in and `y_q` goes out.
fn lines<'a>(first: &'a str, middle: &[&'a str], last: &'a str) -> Vec<&'a str> {
    let mut lines = vec![first];
    lines.extend(middle);
    lines.extend([last, "return y_f"]);
    lines
}

fn ints(name: &'static str, values: &[i64]) -> (&'static str, Attribute) {
    (name, Attribute::Ints(values.to_vec()))
}

#[test]
fn bytes_move_as_floats_do() {
    type Case<'a> = (&'a str, Vec<(&'a str, Attribute)>, Vec<&'a str>, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("Transpose", vec![ints("perm", &[0, 2, 1])], vec![], "[n, 6, 4] = Transpose<perm=[0, 2, 1]>(x_q)"),
        ("Reshape", vec![], vec!["shape"], "[n, 24] = Reshape(x_q, shape)"),
        ("Unsqueeze", vec![], vec!["one"], "[n, 1, 4, 6] = Unsqueeze(x_q, one)"),
        ("Slice", vec![], vec!["one", "two", "one"], "[n, 1, 6] = Slice(x_q, one, two, one)"),
        ("Gather", vec![("axis", Attribute::Int(1))], vec!["two"], "[n, 1, 6] = Gather<axis=1>(x_q, two)"),
        ("Pad", vec![], vec!["around"], "[n, 5, 8] = Pad(x_q, around, byte)"),
        (
            "MaxPool",
            vec![ints("kernel_shape", &[3]), ints("pads", &[1, 1])],
            vec![],
            "[n, 4, 6] = MaxPool<kernel_shape=[3], pads=[1, 1]>(x_q)",
        ),
    ];
    for (op, attributes, rest, moved) in cases {
        let inputs: Vec<&str> = ["x_f"].into_iter().chain(rest).collect();
        let builder = start(&["n", "4", "6"])
            .ints("around", &[6], &[0, 1, 0, 0, 0, 2])
            .ints("shape", &[2], &[-1, 24])
            .ints("one", &[1], &[1])
            .ints("two", &[1], &[2])
            .node_with(op, &attributes, &inputs, &["y"]);
        let (shape, _) = moved.split_once(" =").unwrap();
        let first = "x_q: uint8[n, 4, 6] = QuantizeLinear(x, s1, z1)";
        let moved = format!("{op}_node/{op}: uint8{moved}");
        let last = format!("y_f: float{shape} = DequantizeLinear({op}_node/{op}, s1, z1)");
        let expected = lines(first, &[&moved], &last);
        assert_fused(around(builder, "y", "s1", "z1").output("y_f"), &expected);
    }
}

#[test]
fn parts_move_too() {
    let builder = start(&["n", "4"]).node_with(
        "Split",
        &[("axis", Attribute::Int(1)), ("num_outputs", Attribute::Int(2))],
        &["x_f"],
        &["y", "z"],
    );
    let builder = around(around(builder, "y", "s1", "z1"), "z", "s2", "z2");
    assert_fused(
        builder.output("y_f").output("z_f"),
        &[
            "x_q: uint8[n, 4] = QuantizeLinear(x, s1, z1)",
            "Split_node/Split: uint8[n, 2], Split_node/Split_17: uint8[n, 2] = \
             Split<axis=1, num_outputs=2>(x_q)",
            "y_f: float[n, 2] = DequantizeLinear(Split_node/Split, s1, z1)",
            "z_q: uint8[n, 2] = rukh.Lookup(Split_node/Split_17, QuantizeLinear_node/table)",
            "z_f: float[n, 2] = DequantizeLinear(z_q, s2, z2)",
            "return y_f, z_f",
        ],
    );
}

#[test]
fn quantizing_comes_before_what_moves() {
    let builder = parameters(GraphBuilder::new().input("x", &["n", "4", "6"]))
        .node_with("Transpose", &[ints("perm", &[0, 2, 1])], &["x"], &["t"])
        .ints("shape", &[2], &[-1, 24])
        .node("Reshape", &["t", "shape"], &["y"]);
    assert_fused(
        around(builder, "y", "s2", "z2").output("y_f"),
        &[
            "QuantizeLinear_node/QuantizeLinear_14: uint8[n, 4, 6] = QuantizeLinear(x, s2, z2)",
            "QuantizeLinear_node/QuantizeLinear: uint8[n, 6, 4] = \
             Transpose<perm=[0, 2, 1]>(QuantizeLinear_node/QuantizeLinear_14)",
            "y_q: uint8[n, 24] = Reshape(QuantizeLinear_node/QuantizeLinear, shape)",
            "y_f: float[n, 24] = DequantizeLinear(y_q, s2, z2)",
            "return y_f",
        ],
    );
}

#[test]
fn another_grid_is_a_table() {
    let builder = start(&["n", "4"]).node("QuantizeLinear", &["x_f", "s2", "i1"], &["y_q"]);
    let builder = builder.node("DequantizeLinear", &["y_q", "s2", "i1"], &["y_f"]).output("y_f");
    assert_fused(
        builder,
        &lines(
            "x_q: uint8[n, 4] = QuantizeLinear(x, s1, z1)",
            &["y_q: int8[n, 4] = rukh.Lookup(x_q, QuantizeLinear_node/table)"],
            "y_f: float[n, 4] = DequantizeLinear(y_q, s2, i1)",
        ),
    );
}

#[test]
fn functions_of_one_byte_are_tables() {
    // Gelu as it is written out, each step quantized, and a product with a sigmoid.
    let gelu = || {
        let builder = start(&["n", "4"])
            .floats("root", &[], &[std::f32::consts::SQRT_2])
            .floats("one", &[1, 1], &[1.0])
            .constant("half_q", &[], &[200u8])
            .floats("half_s", &[], &[0.0025])
            .node("DequantizeLinear", &["half_q", "half_s", "z0"], &["half"])
            .node("Div", &["x_f", "root"], &["d"]);
        let builder = around(builder, "d", "s1", "z1").node("Erf", &["d_f"], &["e"]);
        let builder = around(builder, "e", "s3", "z1").node("Add", &["e_f", "one"], &["a"]);
        let builder = around(builder, "a", "s3", "z0").node("Mul", &["x_f", "a_f"], &["m"]);
        around(builder, "m", "s2", "z2").node("Mul", &["m_f", "half"], &["y"])
    };
    let swish = || {
        let builder = start(&["n", "4"]).node("HardSigmoid", &["x_f"], &["h"]);
        around(builder, "h", "s3", "z0").node("Mul", &["h_f", "x_f"], &["y"])
    };
    let integers = || {
        start(&["n", "4"]).node("Sigmoid", &["x_f"], &["h"]).node(
            "QuantizeLinear",
            &["h", "s3", "z0"],
            &["h_q"],
        )
    };
    let last = "y_f: float[n, 4] = DequantizeLinear(y_q, s2, z2)";
    let first = "x_q: uint8[n, 4] = QuantizeLinear(x, s1, z1)";
    for (builder, table) in [(gelu(), "table_34"), (swish(), "table_17")] {
        let middle = format!("y_q: uint8[n, 4] = rukh.Lookup(x_q, QuantizeLinear_node/{table})");
        assert_fused(around(builder, "y", "s2", "z2").output("y_f"), &lines(first, &[&middle], last));
    }
    let inputs = ["x_q", "s1", "z1", "h_q", "s3", "z0", "s2", "z2"];
    let builder = integers()
        .node("com.microsoft.QLinearMul", &inputs, &["y_q"])
        .node("DequantizeLinear", &["y_q", "s2", "z2"], &["y_f"])
        .output("y_f");
    let middle = "y_q: uint8[n, 4] = rukh.Lookup(x_q, QLinearMul_node/table)";
    assert_fused(builder, &lines(first, &[middle], last));
}

#[test]
fn what_has_two_sources_is_no_table() {
    let builder = start(&["n", "4"]).input("w", &["n", "4"]);
    let builder = around(builder, "w", "s2", "z2").node("Mul", &["x_f", "w_f"], &["y"]);
    assert_fused_within(
        around(builder, "y", "s2", "z1").output("y_f"),
        &[
            "x_q: uint8[n, 4] = QuantizeLinear(x, s1, z1)",
            "w_q: uint8[n, 4] = QuantizeLinear(w, s2, z2)",
            "y_q: uint8[n, 4] = com.microsoft.QLinearMul(x_q, s1, z1, w_q, s2, z2, s2, z1)",
            "y_f: float[n, 4] = DequantizeLinear(y_q, s2, z1)",
            "return y_f",
        ],
        0.03,
    );
}

#[test]
fn tensors_meet_as_integers() {
    let two = || around(start(&["n", "4"]).input("w", &["n", "4"]), "w", "s2", "z2");
    let quantized =
        ["x_q: uint8[n, 4] = QuantizeLinear(x, s1, z1)", "w_q: uint8[n, 4] = QuantizeLinear(w, s2, z2)"];
    let last = ["y_f: float[n, 4] = DequantizeLinear(y_q, s3, z1)", "return y_f"];
    let expect = |middle: &[&'static str]| [&quantized[..], middle, &last[..]].concat();
    let end = |builder: GraphBuilder| around(builder, "y", "s3", "z1").output("y_f");
    assert_fused_within(
        end(two().node("Add", &["x_f", "w_f"], &["y"])),
        &expect(&["y_q: uint8[n, 4] = com.microsoft.QLinearAdd(x_q, s1, z1, w_q, s2, z2, s3, z1)"]),
        0.011,
    );
    let choice = two().node("Greater", &["x", "w"], &["c"]).node("Where", &["c", "x_f", "w_f"], &["y"]);
    assert_fused_within(
        end(choice),
        &expect(&[
            "c: bool[n, 4] = Greater(x, w)",
            "y_q: uint8[n, 4] = com.microsoft.QLinearWhere(c, x_q, s1, z1, w_q, s2, z2, s3, z1)",
        ]),
        0.011,
    );
    let axis = [("axis", Attribute::Int(0))];
    let joined = end(two().node_with("Concat", &axis, &["x_f", "w_f"], &["y"]));
    let lines = [
        quantized[0],
        quantized[1],
        "y_q: uint8[2*n, 4] = com.microsoft.QLinearConcat<axis=0>(s3, z1, x_q, s1, z1, w_q, s2, z2)",
        "y_f: float[2*n, 4] = DequantizeLinear(y_q, s3, z1)",
        "return y_f",
    ];
    assert_fused_within(joined, &lines, 0.011);
    // What is quantized alike is joined as it is.
    let alike = start(&["n", "4"]).node_with("Concat", &axis, &["x_f", "x_f"], &["y"]);
    let lines = [
        quantized[0],
        "Concat_node/Concat: uint8[2*n, 4] = Concat<axis=0>(x_q, x_q)",
        "y_f: float[2*n, 4] = DequantizeLinear(Concat_node/Concat, s1, z1)",
        "return y_f",
    ];
    assert_fused(around(alike, "y", "s1", "z1").output("y_f"), &lines);
}

#[test]
fn means_and_softmax() {
    type Case<'a> = (&'a str, Vec<(&'a str, Attribute)>, Vec<&'a str>, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("GlobalAveragePool", vec![], vec![], "[n, 4, 1] = com.microsoft.QLinearGlobalAveragePool"),
        (
            "AveragePool",
            vec![ints("kernel_shape", &[3]), ints("pads", &[1, 1])],
            vec![],
            "[n, 4, 6] = com.microsoft.QLinearAveragePool<kernel_shape=[3], pads=[1, 1]>",
        ),
        (
            "ReduceMean",
            vec![("keepdims", Attribute::Int(0))],
            vec!["one"],
            "[n, 6] = com.microsoft.QLinearReduceMean<axes=[1], keepdims=0>",
        ),
        (
            "Softmax",
            vec![("axis", Attribute::Int(1))],
            vec![],
            "[n, 4, 6] = com.microsoft.QLinearSoftmax<axis=1, opset=28>",
        ),
    ];
    for (op, attributes, rest, fused) in cases {
        let inputs: Vec<&str> = ["x_f"].into_iter().chain(rest).collect();
        let builder =
            start(&["n", "4", "6"]).ints("one", &[1], &[1]).node_with(op, &attributes, &inputs, &["y"]);
        let (shape, _) = fused.split_once(" =").unwrap();
        let fused = format!("y_q: uint8{fused}(x_q, s1, z1, s3, z1)");
        let last = format!("y_f: float{shape} = DequantizeLinear(y_q, s3, z1)");
        let first = "x_q: uint8[n, 4, 6] = QuantizeLinear(x, s1, z1)";
        assert_fused_within(
            around(builder, "y", "s3", "z1").output("y_f"),
            &lines(first, &[&fused], &last),
            0.011,
        );
    }
}

#[test]
fn blocks_and_channels_stay_as_they_are() {
    // A scale for each channel of an activation, and for each block.
    for attributes in [
        vec![("axis", Attribute::Int(1))],
        vec![("axis", Attribute::Int(1)), ("block_size", Attribute::Int(2))],
    ] {
        let blocked = attributes.len() == 2;
        let builder = parameters(GraphBuilder::new().input("x", &["3", "4"]));
        let builder = match blocked {
            true => builder.floats("s", &[3, 2], &[0.02, 0.03, 0.01, 0.02, 0.04, 0.05]),
            false => builder.floats("s", &[4], &[0.02, 0.03, 0.01, 0.02]),
        };
        let builder = builder
            .node_with("QuantizeLinear", &attributes, &["x", "s"], &["q"])
            .node_with("DequantizeLinear", &attributes, &["q", "s"], &["f"])
            .node("Sigmoid", &["f"], &["y"]);
        let given = if blocked { "axis=1, block_size=2" } else { "axis=1" };
        assert_fused(
            around(builder, "y", "s3", "z0").output("y_f"),
            &[
                &format!("q: uint8[3, 4] = QuantizeLinear<{given}>(x, s)"),
                &format!("f: float[3, 4] = DequantizeLinear<{given}>(q, s)"),
                "y: float[3, 4] = Sigmoid(f)",
                "y_q: uint8[3, 4] = QuantizeLinear(y, s3, z0)",
                "y_f: float[3, 4] = DequantizeLinear(y_q, s3, z0)",
                "return y_f",
            ],
        );
    }
}
