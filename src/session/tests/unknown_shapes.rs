//! Operators whose kernels pack a constant, behind values whose shape only the run tells.

use super::*;
use crate::model::testing::{Tensor as Weight, body, floats, graph_attribute, int, ints, node};
use crate::session::options::Optimization;
use crate::tensor::ElementType::{Bool, F32};

/// An operator with constant weights: its attributes' and inputs' names, and what it reads.
struct Case {
    op: &'static str,
    /// The shape of `x`.
    shape: &'static [usize],
    inputs: &'static [&'static str],
    weights: &'static [(&'static str, &'static [i64])],
    hidden: Option<i64>,
}

const fn case(
    op: &'static str,
    shape: &'static [usize],
    inputs: &'static [&'static str],
    weights: &'static [(&'static str, &'static [i64])],
) -> Case {
    Case { op, shape, inputs, weights, hidden: None }
}

const fn recurrent(op: &'static str, weights: &'static [(&'static str, &'static [i64])]) -> Case {
    Case { op, shape: &[3, 1, 2], inputs: &["a", "w", "r", "b"], weights, hidden: Some(2) }
}

const CASES: &[Case] = &[
    case("MatMul", &[2, 3], &["a", "w"], &[("w", &[3, 4])]),
    case("Gemm", &[2, 3], &["a", "w", "b"], &[("w", &[3, 4]), ("b", &[4])]),
    case("Conv", &[1, 2, 5, 5], &["a", "w", "b"], &[("w", &[3, 2, 3, 3]), ("b", &[3])]),
    case("Conv", &[1, 2, 7], &["a", "w"], &[("w", &[2, 2, 1])]),
    case("ConvTranspose", &[1, 2, 4, 4], &["a", "w"], &[("w", &[2, 3, 3, 3])]),
    recurrent("RNN", &[("w", &[1, 2, 2]), ("r", &[1, 2, 2]), ("b", &[1, 4])]),
    recurrent("GRU", &[("w", &[1, 6, 2]), ("r", &[1, 6, 2]), ("b", &[1, 12])]),
    recurrent("LSTM", &[("w", &[1, 8, 2]), ("r", &[1, 8, 2]), ("b", &[1, 16])]),
];

/// Numbers between -1 and 1 that differ.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + seed * 11) % 41) as f32 / 20.0 - 1.0).collect()
}

fn weights(case: &Case) -> Vec<Weight> {
    let weight = |(seed, (name, dims)): (usize, &(&str, &[i64]))| {
        floats(name, dims, &numbers(dims.iter().product::<i64>() as usize, seed))
    };
    case.weights.iter().enumerate().map(weight).collect()
}

/// `y` of the case, whose `a` is what the given node makes of `x`.
fn model(case: &Case, source: impl FnOnce(ModelBuilder) -> ModelBuilder) -> ModelBuilder {
    let dims: Vec<String> = case.shape.iter().map(ToString::to_string).collect();
    let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
    let model = ModelBuilder::new().input("x", F32, &dims).input("on", Bool, &[]);
    let model = weights(case).into_iter().fold(source(model), ModelBuilder::initializer);
    let attributes: Vec<_> = case.hidden.map(|n| int("hidden_size", n)).into_iter().collect();
    model.node_with(case.op, &attributes, case.inputs, &["y"]).output("y")
}

fn branch(name: &str) -> ModelBuilder {
    ModelBuilder::new().node("Relu", &["x"], &[name]).output(name)
}

/// Adds to a model what makes `a` of `x`.
type Source = fn(ModelBuilder) -> ModelBuilder;

/// What stands before the operator: the first of a known shape, the others of one that the run tells.
fn sources() -> [(&'static str, Source); 4] {
    [
        ("Relu", |m| m.node("Relu", &["x"], &["a"])),
        ("If", |m| {
            let then = graph_attribute("then_branch", body(branch("t")));
            m.node_with("If", &[then, graph_attribute("else_branch", body(branch("e")))], &["on"], &["a"])
        }),
        ("Loop", |m| {
            let inner = ModelBuilder::new()
                .input("i", crate::tensor::ElementType::I64, &[])
                .input("go", Bool, &[])
                .input("v", F32, &[])
                .node("Identity", &["go"], &["again"])
                .node("Relu", &["v"], &["next"])
                .output("again")
                .output("next");
            m.initializer(ints("twice", &[], &[2])).node_with(
                "Loop",
                &[graph_attribute("body", body(inner))],
                &["twice", "", "x"],
                &["a"],
            )
        }),
        ("sequence", |m| {
            m.initializer(ints("first", &[], &[0]))
                .node("Relu", &["x"], &["one"])
                .node("SequenceConstruct", &["one"], &["s"])
                .node("SequenceAt", &["s", "first"], &["a"])
        }),
    ]
}

#[test]
fn packed_weights_serve_inputs_of_any_shape() {
    for case in CASES {
        let x = t(case.shape, &numbers(case.shape.iter().product(), 3));
        let on = t(&[], &[crate::tensor::Bool::from(true)]);
        let mut want: Option<Vec<f32>> = None;
        for (name, source) in sources() {
            for optimization in [Optimization::None, Optimization::Basic, Optimization::All] {
                let options = SessionOptions { optimization, ..SessionOptions::default() };
                let bytes = model(case, source).bytes();
                let session = Session::open(environment(), super::Source::Bytes(&bytes), &options).unwrap();
                let y = run(&session, &[x.clone(), on.clone()])
                    .unwrap_or_else(|e| panic!("{} behind {name} at {optimization:?}: {e}", case.op));
                let y: Vec<f32> = elements(&y[0]);
                let want = want.get_or_insert_with(|| y.clone());
                let near = y.iter().zip(&*want).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(near && y.len() == want.len(), "{} behind {name} at {optimization:?}", case.op);
            }
        }
    }
}

#[test]
fn outputs_keep_their_names_whatever_makes_them() {
    let nothing: [(&str, &[&str], ModelBuilder); 6] = [
        ("Identity", &["r"], ModelBuilder::new()),
        ("Flatten", &["r"], ModelBuilder::new()),
        ("Dropout", &["r"], ModelBuilder::new()),
        ("Concat", &["r"], ModelBuilder::new()),
        ("Reshape", &["r", "shape"], ModelBuilder::new().initializer(ints("shape", &[2], &[2, 3]))),
        ("my.F", &["r"], ModelBuilder::new().function("F", vec![node("Identity", &[], &["v"], &["w"])])),
    ];
    for (op, inputs, model) in nothing {
        let attributes: Vec<_> = (op == "Concat").then(|| int("axis", 0)).into_iter().collect();
        let model = model
            .input("x", F32, &["2", "3"])
            .node("Relu", &["x"], &["r"])
            .node_with(op, &attributes, inputs, &["y"])
            .output("y");
        for optimization in [Optimization::None, Optimization::Basic, Optimization::All] {
            let options = SessionOptions { optimization, ..SessionOptions::default() };
            let session =
                Session::open(environment(), super::Source::Bytes(&model.bytes()), &options).unwrap();
            let names: Vec<&str> = session.outputs().iter().map(|port| port.name.as_str()).collect();
            assert_eq!(names, ["y"], "{op} at {optimization:?}");
            let y = run(&session, &[t(&[2, 3], &[-1.0f32, 0.0, 1.0, 2.0, 3.0, 4.0])]).unwrap();
            assert_eq!(elements::<f32>(&y[0]), [0.0, 0.0, 1.0, 2.0, 3.0, 4.0], "{op} at {optimization:?}");
        }
    }
}
