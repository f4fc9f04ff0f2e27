//! A network of convolutions in 8 bits or bfloat16 gives the same whether its images are channel-blocked or not.

use super::*;
use crate::model::testing::{floats, int, int_list, raw};
use crate::session::options::Optimization;
use crate::tensor::ElementType::{BF16, F32, I8, U8};

/// A stem, pooling, and two blocks with residuals: of 8 channels, and, with stride 2, of 16. The second has a way of
/// its own around it.
fn network() -> ModelBuilder {
    let weight = |name: &str, dims: [i64; 4]| {
        let count = dims.iter().product::<i64>();
        raw(name, I8, &dims, &(0..count).map(|i| (i * 37 % 251) as u8).collect::<Vec<_>>())
    };
    let pads = |pad: i64| int_list("pads", &[pad; 4]);
    let strides = |stride: i64| int_list("strides", &[stride; 2]);
    let conv = |model: ModelBuilder, x: &str, w: &str, attributes: Vec<_>, y: &str| {
        model.node_with("QLinearConv", &attributes, &[x, "s", "z", w, "t", "v", "u", "z"], &[y])
    };
    let model = ModelBuilder::new()
        .import("com.microsoft", 1)
        .input("x", F32, &["n", "3", "height", "width"])
        .initializer(floats("s", &[], &[0.02]))
        .initializer(floats("t", &[], &[0.003]))
        .initializer(floats("u", &[], &[0.07]))
        .initializer(raw("z", U8, &[], &[100]))
        .initializer(raw("v", I8, &[], &[2]))
        .initializer(weight("w1", [8, 3, 3, 3]))
        .initializer(weight("w2", [8, 8, 3, 3]))
        .initializer(weight("w3", [16, 8, 3, 3]))
        .initializer(weight("w4", [16, 8, 1, 1]))
        .node("QuantizeLinear", &["x", "s", "z"], &["q"]);
    let model = conv(model, "q", "w1", vec![pads(1)], "a").node_with(
        "MaxPool",
        &[int_list("kernel_shape", &[3, 3]), strides(2), pads(1)],
        &["a"],
        &["b"],
    );
    let model = conv(model, "b", "w2", vec![pads(1)], "c").node(
        "com.microsoft.QLinearAdd",
        &["c", "u", "z", "b", "u", "z", "s", "z"],
        &["d"],
    );
    let model = conv(model, "d", "w3", vec![pads(1), strides(2)], "e");
    conv(model, "d", "w4", vec![strides(2)], "f")
        .node("com.microsoft.QLinearAdd", &["e", "u", "z", "f", "u", "z", "s", "z"], &["g"])
        .node("com.microsoft.QLinearGlobalAveragePool", &["g", "s", "z", "s", "z"], &["h"])
        .node("DequantizeLinear", &["h", "s", "z"], &["y"])
        .output("y")
}

#[test]
fn images_of_words_change_nothing() {
    let model = network().bytes();
    let open = |optimization| {
        let options = SessionOptions { optimization, ..SessionOptions::default() };
        Session::open(environment(), Source::Bytes(&model), &options).unwrap()
    };
    let (plain, channel_blocked) = (open(Optimization::None), open(Optimization::All));
    for [n, height, width] in [[1, 32, 30], [2, 7, 9], [3, 1, 1], [0, 8, 8]] {
        let image: Vec<f32> =
            (0..n * 3 * height * width).map(|i| (i * 37 % 251) as f32 / 50.0 - 2.0).collect();
        let x = [t(&[n, 3, height, width], &image)];
        let [want, got] =
            [&plain, &channel_blocked].map(|session| elements::<f32>(&run(session, &x).unwrap()[0]));
        assert_eq!((got.len(), got), (16 * n, want), "{n} x {height} x {width}");
    }
}

/// The same of floats, to be computed in bfloat16.
fn floats_network() -> ModelBuilder {
    let weight = |name: &str, dims: [i64; 4]| {
        let count = dims.iter().product::<i64>();
        floats(name, &dims, &(0..count).map(|i| (i * 37 % 251) as f32 / 1024.0 - 0.125).collect::<Vec<_>>())
    };
    let (pads, strides) = ([int_list("pads", &[1; 4])], [int_list("strides", &[2; 2])]);
    let window = [&[int_list("kernel_shape", &[3, 3])], &strides[..], &pads[..]].concat();
    let depthwise = [int("group", 24), pads[0].clone()];
    ModelBuilder::new()
        .input("x", F32, &["n", "3", "height", "width"])
        .initializer(weight("w1", [8, 3, 3, 3]))
        .initializer(weight("w2", [8, 8, 3, 3]))
        .initializer(weight("w3", [16, 24, 1, 1]))
        .initializer(weight("w4", [24, 8, 1, 1]))
        .initializer(weight("w5", [24, 1, 3, 3]))
        .node_with("Conv", &pads, &["x", "w1"], &["a"])
        .node("Relu", &["a"], &["b"])
        .node_with("MaxPool", &window, &["b"], &["c"])
        .node_with("Conv", &pads, &["c", "w2"], &["d"])
        .node("Add", &["d", "c"], &["e"])
        .node("Relu", &["e"], &["f"])
        // A pair.
        .node("Conv", &["f", "w4"], &["p"])
        .node("HardSwish", &["p"], &["q"])
        .node_with("Conv", &depthwise, &["q", "w5"], &["r"])
        .node("Relu", &["r"], &["s"])
        .node_with("Conv", &strides, &["s", "w3"], &["g"])
        .node("GlobalAveragePool", &["g"], &["y"])
        .output("y")
}

#[test]
fn images_of_pairs_change_little() {
    let model = floats_network().bytes();
    let open = |optimization| {
        let options = SessionOptions { optimization, precision: Some(BF16), ..SessionOptions::default() };
        Session::open(environment(), Source::Bytes(&model), &options).unwrap()
    };
    let (plain, channel_blocked) = (open(Optimization::None), open(Optimization::All));
    for [n, height, width] in [[1, 32, 30], [2, 7, 9], [3, 1, 1], [0, 8, 8]] {
        let image: Vec<f32> =
            (0..n * 3 * height * width).map(|i| (i * 37 % 251) as f32 / 50.0 - 2.0).collect();
        let x = [t(&[n, 3, height, width], &image)];
        let [want, got] =
            [&plain, &channel_blocked].map(|session| elements::<f32>(&run(session, &x).unwrap()[0]));
        assert_eq!(got.len(), 16 * n);
        let close = got.iter().zip(&want).all(|(y, want)| (y - want).abs() <= 0.02);
        assert!(close, "{n} x {height} x {width}: {got:?} {want:?}");
    }
}
