//! Products of a decoder's layer behind its attention, which one launch does where the device has its kernel.

use super::on_hip::{on_hip_with, open_with};
use super::{elements, environment, open, run, t};
use crate::model::testing::{ModelBuilder, int, raw};
use crate::plan::{OutputPlace, ShapedPlan, Signature, StepPlan};
use crate::providers::hip::PATIENCE_OF_TESTS;
use crate::session::Session;
use crate::tensor::ElementType::{F16, U8};
use crate::tensor::{ValueRef, f16};

#[test]
fn a_layer_of_packed_weights_in_one_launch() {
    let Some(options) = on_hip_with(&[], &[]) else { return };
    let small = [512, 1024, 768];
    let cpu_and_device = |[width, middle, queries]: [usize; 3]| {
        let model = one_layer(width, middle, queries);
        (open(&model).unwrap(), open_with(environment(), &model, &options))
    };
    let (cpu, device) = cpu_and_device(small);
    assert_alike(&cpu, &device, small[0]);
    if chains_products(&device) {
        // Several tiles for each workgroup, slots that are not full, and the ring more than once around.
        let large = [2560, 10752, 3072];
        let (cpu, device) = cpu_and_device(large);
        assert_alike(&cpu, &device, large[0]);
    }
}

/// Each launch clears what the one before has exchanged, of other sizes and by other workgroups.
#[test]
fn two_layers_of_different_sizes() {
    let Some(options) = on_hip_with(&[], &[]) else { return };
    let first = [512, 1024, 2560];
    let model = layer(given(first[0]), "", first, ["a", "residual"]);
    let model = model.node("Neg", &["queries"], &["b"]).node("Relu", &["queries"], &["rest"]);
    let model = layer(model, "2", [2560, 512, 512], ["b", "rest"]).output("sum").output("queries2");
    let model = model.output("sum2");
    let (cpu, device) = (open(&model).unwrap(), open_with(environment(), &model, &options));
    for _ in 0..3 {
        assert_chains_alike(&cpu, &device, first[0], 2);
    }
}

/// No number of a result is taken for one that is still to come; and the next run is as ever.
#[test]
fn elements_that_are_no_numbers() {
    let Some(options) = on_hip_with(&[], &[]) else { return };
    let [width, middle, queries] = [512, 1024, 1024];
    let model = one_layer(width, middle, queries);
    let (cpu, device) = (open(&model).unwrap(), open_with(environment(), &model, &options));
    for element in [f16::INFINITY, f16::NEG_INFINITY, f16::NAN, f16::from_bits(0xffff)] {
        let mut row = vec![f16::from_f32(0.5); width];
        row[77] = element;
        let inputs = [t(&[1, width], &row), t(&[1, width], &vec![f16::from_f32(0.25); width])];
        let got = run(&device, &inputs).unwrap();
        assert!(elements::<f16>(&got[0]).iter().all(|x| !x.is_finite()), "queries of a row with {element}");
        assert_alike(&cpu, &device, width);
    }
}

/// Where no workgroup waits for the others, the last one to begin does all the work, unless all have begun before the first one
/// asks; and the words are as before for the next run.
#[test]
fn a_layer_by_one_workgroup() {
    let Some(options) = on_hip_with(&[], &[]) else { return };
    for [width, middle, queries] in [[512, 1024, 768], [2560, 3072, 2560]] {
        let model = one_layer(width, middle, queries);
        let cpu = open(&model).unwrap();
        let patience = PATIENCE_OF_TESTS.replace(0);
        let device = open_with(environment(), &model, &options);
        assert_alike(&cpu, &device, width);
        assert_alike(&cpu, &device, width);
        PATIENCE_OF_TESTS.set(patience);
    }
}

fn chains_products(session: &Session) -> bool {
    session.opened.program.device.as_ref().is_some_and(|device| device.provider.chains_products())
}

fn assert_alike(cpu: &Session, device: &Session, width: usize) {
    assert_chains_alike(cpu, device, width, 1);
}

/// The outputs, and that `chains` launches have several steps.
fn assert_chains_alike(cpu: &Session, device: &Session, width: usize, chains: usize) {
    for seed in [1, 2, 5] {
        let row = |by: usize, scale: f32| {
            let values: Vec<f16> = (0..width)
                .map(|i| f16::from_f32(((i * by * seed + i / 7) % 29) as f32 * scale - 14.0 * scale))
                .collect();
            t(&[1, width], &values)
        };
        let inputs = [row(11, 0.07), row(5, 0.2)];
        let [expected, got] = [cpu, device].map(|session| run(session, &inputs).unwrap());
        for (output, (expected, got)) in expected.iter().zip(&got).enumerate() {
            let [expected, got] = [expected, got].map(elements::<f16>);
            let most = expected.iter().fold(0.0, |most: f32, x| most.max(x.to_f32().abs()));
            for (i, (x, y)) in expected.iter().zip(&got).enumerate() {
                let apart = (x.to_f32() - y.to_f32()).abs();
                assert!(
                    apart <= 5e-3 * most,
                    "output {output}, {i} of seed {seed}: {y}, on the CPU {x}, most {most}"
                );
            }
        }
        let values = inputs.each_ref().map(ValueRef::Value);
        let signature = Signature { inputs: &values, outputs: &vec![OutputPlace::Host; expected.len()] };
        let plan = ShapedPlan::new(&device.opened.program, signature, &device.pool).unwrap();
        let joined = |step: &&StepPlan| matches!(step, StepPlan::Device(step) if step.values.is_some());
        let count = plan.steps.iter().filter(joined).count();
        assert_eq!(count, chains * usize::from(chains_products(device)), "launches of several steps");
    }
}

fn one_layer(width: usize, middle: usize, queries: usize) -> ModelBuilder {
    let model = layer(given(width), "", [width, middle, queries], ["a", "residual"]);
    model.output("queries").output("sum")
}

fn given(width: usize) -> ModelBuilder {
    let model = ModelBuilder::new().import("com.microsoft", 1);
    model.input("a", F16, &["1", &width.to_string()]).input("residual", F16, &["1", "width"])
}

/// The projection behind attention, gate and up, down, and the next layer's queries, keys and values: `queries` and `sum`, with `of`
/// behind their names and those of all between.
fn layer(
    mut model: ModelBuilder,
    of: &str,
    [width, middle, queries]: [usize; 3],
    [a, residual]: [&str; 2],
) -> ModelBuilder {
    let named = |name: &str| format!("{name}{of}");
    let halves =
        |values: Vec<f32>| values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect::<Vec<u8>>();
    for (at, (name, n, k)) in [
        ("o", width, width),
        ("gate", middle, width),
        ("up", middle, width),
        ("down", width, middle),
        ("qkv", queries, width),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes: Vec<u8> = (0..n * k / 2).map(|i| ((i * 37 + i / 251 + at * 91) % 256) as u8).collect();
        let scales = (0..n * k / 32).map(|i| 0.002 + (i % 17) as f32 * 0.0004).collect();
        let [weight, of_blocks] = ["w", "s"].map(|part| named(&format!("{name}.{part}")));
        model = model
            .initializer(raw(&weight, U8, &[n, k / 32, 16].map(|n| n as i64), &bytes))
            .initializer(raw(&of_blocks, F16, &[(n * k / 32) as i64], &halves(scales)));
    }
    for name in ["first", "second"] {
        let scale = (0..width).map(|i| 0.75 + (i % 5) as f32 * 0.125).collect();
        model = model.initializer(raw(&named(name), F16, &[width as i64], &halves(scale)));
    }
    let product = |model: ModelBuilder, name: &str, from: &str, to: &str, n: usize, k: usize| {
        let sizes =
            [("N", n), ("K", k), ("bits", 4), ("block_size", 32)].map(|(name, n)| int(name, n as i64));
        let [weight, scales] = ["w", "s"].map(|part| named(&format!("{name}.{part}")));
        model.node_with("com.microsoft.MatMulNBits", &sizes, &[from, &weight, &scales], &[&named(to)])
    };
    let norm = "com.microsoft.SkipSimplifiedLayerNormalization";
    let [p, h, s, g, u, f, silu, m, d, i, sum] =
        ["p", "h", "s", "g", "u", "f", "silu", "m", "d", "i", "sum"].map(named);
    model = product(model, "o", a, "p", width, width);
    model = model.node(norm, &[residual, &p, &named("first")], &[&h, "", "", &s]);
    model = product(model, "gate", &h, "g", middle, width);
    model = product(model, "up", &h, "u", middle, width);
    model = model.node("Sigmoid", &[&g], &[&f]).node("Mul", &[&g, &f], &[&silu]);
    model = model.node("Mul", &[&silu, &u], &[&m]);
    model = product(model, "down", &m, "d", width, middle);
    model = model.node(norm, &[&s, &d, &named("second")], &[&i, "", "", &sum]);
    product(model, "qkv", &i, "queries", queries, width)
}
