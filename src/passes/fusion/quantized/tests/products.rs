use super::super::super::super::testing::GraphBuilder;
use super::super::super::testing::{assert_fused, assert_fused_within, fused};
use super::{around, parameters, start};
use crate::graph::Attribute;

fn some<T>(count: usize, of: impl Fn(i32) -> T) -> Vec<T> {
    (0..count).map(|i| of((i * 37 % 101) as i32 - 50)).collect()
}

const FIRST: &str = "x_q: uint8[n, 3, 5] = QuantizeLinear(x, s1, z1)";

/// A convolution of 3 channels to 4 whose weight has a scale for each, and whose bias counts their products.
fn conv(bias: bool) -> GraphBuilder {
    let scales = [0.01, 0.02, 0.005, 0.012];
    let builder = start(&["n", "3", "5"])
        .constant("w_q", &[4, 3, 3], &some(36, |i| i as i8))
        .floats("w_s", &[4], &scales)
        .constant("w_z", &[4], &[0i8; 4])
        .constant("b_q", &[4], &[500i32, -300, 20, 0])
        .floats("b_s", &[4], &scales.map(|s| s * 0.02))
        .constant("b_z", &[4], &[0i32; 4])
        .node_with("DequantizeLinear", &[("axis", Attribute::Int(0))], &["w_q", "w_s", "w_z"], &["w"])
        .node_with("DequantizeLinear", &[("axis", Attribute::Int(0))], &["b_q", "b_s", "b_z"], &["b"]);
    let inputs = ["x_f", "w", "b"];
    builder.node("Conv", &inputs[..if bias { 3 } else { 2 }], &["c"])
}

#[test]
fn convolutions() {
    for (bias, inputs) in [(true, "s2, z1, b_q"), (false, "s2, z1")] {
        let middle = format!("c_q: uint8[n, 4, 3] = QLinearConv(x_q, s1, z1, w_q, w_s, w_z, {inputs})");
        let lines = [FIRST, &middle, "c_f: float[n, 4, 3] = DequantizeLinear(c_q, s2, z1)", "return c_f"];
        assert_fused_within(around(conv(bias), "c", "s2", "z1").output("c_f"), &lines, 0.03);
    }
}

#[test]
fn convolutions_stay_that_others_use_or_that_no_integers_fit() {
    // Somebody wants the floats as well.
    let shared = around(conv(true).output("c"), "c", "s2", "z1").output("c_f");
    // A scale for each channel of the image; and 16 bits.
    let axis = [("axis", Attribute::Int(1))];
    let weight = |builder: GraphBuilder| {
        builder
            .constant("w_q", &[4, 3, 3], &some(36, |i| i as i8))
            .node("DequantizeLinear", &["w_q", "s2"], &["w"])
            .node("Conv", &["x_f", "w"], &["c"])
    };
    let channels_differ = parameters(GraphBuilder::new().input("x", &["n", "3", "5"]))
        .floats("s", &[3], &[0.02, 0.03, 0.01])
        .node_with("QuantizeLinear", &axis, &["x", "s"], &["x_q"])
        .node_with("DequantizeLinear", &axis, &["x_q", "s"], &["x_f"]);
    let wide = parameters(GraphBuilder::new().input("x", &["n", "3", "5"])).constant("z", &[], &[300u16]);
    let wide = around(wide, "x", "s1", "z");
    let end = |builder| around(weight(builder), "c", "s2", "z1").output("c_f");
    for builder in [shared, end(channels_differ), end(wide)] {
        let text = fused(builder).to_string();
        assert!(text.contains("= Conv(") && !text.contains("QLinearConv"), "{text}");
    }
}

#[test]
fn a_sum_becomes_the_residual_of_the_convolution_before_it() {
    let residual = |zero: &str| {
        let builder = around(conv(true), "c", "s2", "z1").input("r", &["n", "4", "3"]);
        let builder = around(builder, "r", "s3", zero).node("Add", &["r_f", "c_f"], &["y"]);
        around(builder, "y", "s1", "z2").output("y_f")
    };
    assert_fused_within(
        residual("z2"),
        &[
            FIRST,
            "r_q: uint8[n, 4, 3] = QuantizeLinear(r, s3, z2)",
            "y_q: uint8[n, 4, 3] = \
             rukh.QLinearConv(x_q, s1, z1, w_q, w_s, w_z, s2, z1, b_q, r_q, s3, z2, s1, z2)",
            "y_f: float[n, 4, 3] = DequantizeLinear(y_q, s1, z2)",
            "return y_f",
        ],
        0.03,
    );
    // Somebody else wants what the convolution gives; a row for all.
    let shared = |builder: GraphBuilder| {
        let builder = around(builder.node("Add", &["r_f", "c_f"], &["y"]), "y", "s1", "z2");
        fused(builder.output("y_f")).to_string()
    };
    let both = around(conv(true), "c", "s2", "z1").input("r", &["n", "4", "3"]).output("c_f");
    let row = around(conv(true), "c", "s2", "z1").input("r", &["1", "4", "3"]);
    for builder in [both, row] {
        let text = shared(around(builder, "r", "s3", "z2"));
        assert!(text.contains("= QLinearConv(") && text.contains("com.microsoft.QLinearAdd("), "{text}");
    }
}

#[test]
fn limits_become_the_types_or_limits_of_bytes() {
    let limited = |op: &str, rest: &[&str], zero: &str| {
        let builder = conv(true).floats("six", &[], &[6.0]).floats("zero", &[], &[0.0]);
        let inputs: Vec<&str> = ["c"].iter().chain(rest).copied().collect();
        around(builder.node(op, &inputs, &["y"]), "y", "s2", zero).output("y_f")
    };
    for (op, rest) in [("Relu", &[][..]), ("Clip", &["zero"])] {
        assert_fused_within(
            limited(op, rest, "z0"),
            &[
                FIRST,
                "y_q: uint8[n, 4, 3] = QLinearConv(x_q, s1, z1, w_q, w_s, w_z, s2, z0, b_q)",
                "y_f: float[n, 4, 3] = DequantizeLinear(y_q, s2, z0)",
                "return y_f",
            ],
            0.03,
        );
    }
    // 6 is 207 there, and 0 is 7.
    assert_fused_within(
        limited("Clip", &["zero", "six"], "z2"),
        &[
            FIRST,
            "QuantizeLinear_node/QuantizeLinear: uint8[n, 4, 3] = \
             QLinearConv(x_q, s1, z1, w_q, w_s, w_z, s2, z2, b_q)",
            "y_q: uint8[n, 4, 3] = Clip(QuantizeLinear_node/QuantizeLinear, byte, byte_26)",
            "y_f: float[n, 4, 3] = DequantizeLinear(y_q, s2, z2)",
            "return y_f",
        ],
        0.03,
    );
}

#[test]
fn a_bias_of_floats_is_rounded_where_that_is_fine_enough() {
    let builder = |scale: &str| {
        let builder = start(&["n", "3", "5"])
            .constant("w_q", &[4, 3, 3], &some(36, |i| i as i8))
            .floats("w_s", &[], &[0.01])
            .node("DequantizeLinear", &["w_q", "w_s"], &["w"])
            .floats("b", &[4], &[0.31, -0.07, 0.0, 1.5])
            .floats("tiny", &[], &[0.001])
            .node("Conv", &["x_f", "w", "b"], &["c"]);
        around(builder, "c", scale, "z1").output("c_f")
    };
    assert_fused_within(
        builder("s2"),
        &[
            FIRST,
            "c_q: uint8[n, 4, 3] = QLinearConv(x_q, s1, z1, w_q, w_s, byte, s2, z1, bias)",
            "c_f: float[n, 4, 3] = DequantizeLinear(c_q, s2, z1)",
            "return c_f",
        ],
        0.03,
    );
    // The output's steps are of the size of the sums'.
    assert_fused(
        builder("tiny"),
        &[
            FIRST,
            "x_f: float[n, 3, 5] = DequantizeLinear(x_q, s1, z1)",
            "c: float[n, 4, 3] = Conv(x_f, w, b)",
            "c_q: uint8[n, 4, 3] = QuantizeLinear(c, tiny, z1)",
            "c_f: float[n, 4, 3] = DequantizeLinear(c_q, tiny, z1)",
            "return c_f",
        ],
    );
}

/// A product with a weight that has a scale for each column.
fn product() -> GraphBuilder {
    start(&["n", "2", "6"])
        .constant("w_q", &[6, 4], &some(24, |i| i as i8))
        .floats("w_s", &[4], &[0.01, 0.02, 0.005, 0.012])
        .floats("b", &[4], &[0.5, -0.5, 0.25, 0.0])
        .node_with("DequantizeLinear", &[("axis", Attribute::Int(1))], &["w_q", "w_s"], &["w"])
}

const PRODUCT: &str = "x_q: uint8[n, 2, 6] = QuantizeLinear(x, s1, z1)";

#[test]
fn products_of_matrices() {
    assert_fused_within(
        around(product().node("MatMul", &["x_f", "w"], &["y"]), "y", "s2", "i1").output("y_f"),
        &[
            PRODUCT,
            "y_q: int8[n, 2, 4] = QLinearMatMul(x_q, s1, z1, w_q, w_s, byte, s2, i1)",
            "y_f: float[n, 2, 4] = DequantizeLinear(y_q, s2, i1)",
            "return y_f",
        ],
        0.03,
    );
    let float = "com.microsoft.MatMulIntegerToFloat(x_q, w_q, s1, w_s, z1, byte";
    assert_fused(
        product().node("MatMul", &["x_f", "w"], &["y"]).output("y"),
        &[PRODUCT, &format!("y: float[n, 2, 4] = {float})"), "return y"],
    );
    assert_fused(
        product().node("MatMul", &["x_f", "w"], &["p"]).node("Add", &["b", "p"], &["y"]).output("y"),
        &[PRODUCT, &format!("y: float[n, 2, 4] = {float}, b)"), "return y"],
    );
    // Somebody wants the floats as well.
    let builder = product().node("MatMul", &["x_f", "w"], &["y"]).output("y");
    assert_fused_within(
        around(builder, "y", "s2", "z2").output("y_f"),
        &[
            PRODUCT,
            &format!("y: float[n, 2, 4] = {float})"),
            "y_q: uint8[n, 2, 4] = QuantizeLinear(y, s2, z2)",
            "y_f: float[n, 2, 4] = DequantizeLinear(y_q, s2, z2)",
            "return y, y_f",
        ],
        0.03,
    );
}

#[test]
fn a_weight_of_floats_alone_is_folded() {
    let builder = parameters(GraphBuilder::new().input("x", &["n", "6"]))
        .constant("w_q", &[6, 4], &some(24, |i| i as i8))
        .node("DequantizeLinear", &["w_q", "s1"], &["w"])
        .node("MatMul", &["x", "w"], &["y"])
        .output("y");
    assert_fused(builder, &["y: float[n, 4] = MatMul(x, w)", "return y"]);
}

#[test]
fn gemm() {
    let builder = || {
        start(&["n", "6"])
            .constant("w_q", &[4, 6], &some(24, |i| i as i8))
            .floats("w_s", &[4], &[0.01, 0.02, 0.005, 0.012])
            .constant("c_q", &[4], &[500i32, -300, 20, 0])
            .floats("c_s", &[4], &[0.01, 0.02, 0.005, 0.012].map(|s| s * 0.02))
            .node_with("DequantizeLinear", &[("axis", Attribute::Int(0))], &["w_q", "w_s"], &["w"])
            .node_with("DequantizeLinear", &[("axis", Attribute::Int(0))], &["c_q", "c_s"], &["c"])
            .node_with("Gemm", &[("transB", Attribute::Int(1))], &["x_f", "w", "c"], &["y"])
    };
    let integer = "com.microsoft.QGemm<transB=1>(x_q, s1, z1, w_q, w_s, byte, c_q";
    let first = "x_q: uint8[n, 6] = QuantizeLinear(x, s1, z1)";
    assert_fused_within(
        around(builder(), "y", "s2", "z1").output("y_f"),
        &[
            first,
            &format!("y_q: uint8[n, 4] = {integer}, s2, z1)"),
            "y_f: float[n, 4] = DequantizeLinear(y_q, s2, z1)",
            "return y_f",
        ],
        0.03,
    );
    assert_fused(builder().output("y"), &[first, &format!("y: float[n, 4] = {integer})"), "return y"]);
}

/// What the dynamic quantizers write: a product of bytes, as floats, by the product of both scales.
fn scaled(builder: GraphBuilder, name: &str) -> GraphBuilder {
    let [w, p, c, s, y] = ["w_q", "p", "c", "s", "y"].map(|v| format!("{v}{name}"));
    builder
        .constant(&w, &[6, 4], &some(24, |i| i as i8 + name.len() as i8))
        .node("MatMulInteger", &["x_q", &w, "x_z", "w_z"], &[&p])
        .node_with("Cast", &[("to", Attribute::Int(1))], &[&p], &[&c])
        .node("Mul", &["x_s", "w_s"], &[&s])
        .node("Mul", &[&c, &s], &[&y])
}

fn dynamic() -> GraphBuilder {
    GraphBuilder::new()
        .input("x", &["n", "6"])
        .floats("w_s", &[4], &[0.01, 0.02, 0.005, 0.012])
        .constant("w_z", &[], &[3i8])
        .floats("b", &[4], &[0.5, -0.5, 0.25, 0.0])
        .node("DynamicQuantizeLinear", &["x"], &["x_q", "x_s", "x_z"])
}

#[test]
fn dynamic_products() {
    let builder = scaled(dynamic(), "1").node("Add", &["y1", "b"], &["y"]).output("y");
    let line = "y: float[n, 4] = com.microsoft.DynamicQuantizeMatMul(x, w_q1, w_s, w_z, b)";
    assert_fused(builder, &[line, "return y"]);
    // Two products share what is quantized.
    let builder = scaled(scaled(dynamic(), "1"), "10").node("Add", &["y1", "b"], &["y"]);
    assert_fused(
        builder.output("y").output("y10"),
        &[
            "x_q: uint8[n, 6], x_s: float[], x_z: uint8[] = DynamicQuantizeLinear(x)",
            "y10: float[n, 4] = com.microsoft.MatMulIntegerToFloat(x_q, w_q10, x_s, w_s, x_z, w_z)",
            "y: float[n, 4] = com.microsoft.MatMulIntegerToFloat(x_q, w_q1, x_s, w_s, x_z, w_z, b)",
            "return y, y10",
        ],
    );
    // The sums themselves are an output: they stay.
    let graph = scaled(dynamic(), "1").output("p1").output("y1");
    let text = fused(graph).to_string();
    assert!(text.contains("= MatMulInteger(") && !text.contains("com.microsoft"), "{text}");
}

#[test]
fn weights_of_a_few_bits_take_a_bias() {
    let sizes = [("K", 32), ("N", 4), ("block_size", 32)].map(|(name, size)| (name, Attribute::Int(size)));
    let builder = GraphBuilder::new()
        .input("x", &["n", "32"])
        .constant("w", &[4, 1, 16], &some(64, |i| i as u8))
        .floats("s", &[4], &[0.01, 0.02, 0.005, 0.012])
        .floats("b", &[1, 4], &[0.5, -0.5, 0.25, 0.0])
        .node_with("com.microsoft.MatMulNBits", &sizes, &["x", "w", "s"], &["p"])
        .node("Add", &["b", "p"], &["y"])
        .output("y");
    let line =
        "y: float[n, 4] = com.microsoft.MatMulNBits<K=32, N=4, block_size=32>(x, w, s, _, _, Add_node/bias)";
    assert_fused(builder, &[line, "return y"]);
}
