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
        let model = layer(width, middle, queries);
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

/// Where no workgroup waits for the others, the last one to begin does all the work; and the words are as before for the next run.
#[test]
fn a_layer_by_one_workgroup() {
    let Some(options) = on_hip_with(&[], &[]) else { return };
    let [width, middle, queries] = [512, 1024, 768];
    let model = layer(width, middle, queries);
    let cpu = open(&model).unwrap();
    let patience = PATIENCE_OF_TESTS.replace(0);
    let device = open_with(environment(), &model, &options);
    assert_alike(&cpu, &device, width);
    assert_alike(&cpu, &device, width);
    PATIENCE_OF_TESTS.set(patience);
}

fn chains_products(session: &Session) -> bool {
    session.opened.program.device.as_ref().is_some_and(|device| device.provider.chains_products())
}

fn assert_alike(cpu: &Session, device: &Session, width: usize) {
    for seed in [1, 2, 5] {
        let row = |by: usize, scale: f32| {
            let values: Vec<f16> = (0..width)
                .map(|i| f16::from_f32(((i * by * seed + i / 7) % 29) as f32 * scale - 14.0 * scale))
                .collect();
            t(&[1, width], &values)
        };
        let inputs = [row(11, 0.07), row(5, 0.2)];
        let [expected, got] = [cpu, device].map(|session| run(session, &inputs).unwrap());
        for (name, (expected, got)) in ["queries", "sum"].into_iter().zip(expected.iter().zip(&got)) {
            let [expected, got] = [expected, got].map(elements::<f16>);
            let most = expected.iter().fold(0.0, |most: f32, x| most.max(x.to_f32().abs()));
            for (i, (x, y)) in expected.iter().zip(&got).enumerate() {
                let apart = (x.to_f32() - y.to_f32()).abs();
                assert!(apart <= 5e-3 * most, "{name} {i} of seed {seed}: {y}, on the CPU {x}, most {most}");
            }
        }
        let values = inputs.each_ref().map(ValueRef::Value);
        let signature = Signature { inputs: &values, outputs: &[OutputPlace::Host; 2] };
        let plan = ShapedPlan::new(&device.opened.program, signature, &device.pool).unwrap();
        let joined = |step: &&StepPlan| matches!(step, StepPlan::Device(step) if step.values.is_some());
        let count = plan.steps.iter().filter(joined).count();
        assert_eq!(count, usize::from(chains_products(device)), "launches of several steps");
    }
}

/// The projection behind attention, gate and up, down, and the next layer's queries, keys and values.
fn layer(width: usize, middle: usize, queries: usize) -> ModelBuilder {
    let halves =
        |values: Vec<f32>| values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect::<Vec<u8>>();
    let side = width.to_string();
    let mut model = ModelBuilder::new().import("com.microsoft", 1).input("a", F16, &["1", &side]).input(
        "residual",
        F16,
        &["1", "width"],
    );
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
        model = model
            .initializer(raw(&format!("{name}.w"), U8, &[n, k / 32, 16].map(|n| n as i64), &bytes))
            .initializer(raw(&format!("{name}.s"), F16, &[(n * k / 32) as i64], &halves(scales)));
    }
    for name in ["first", "second"] {
        let scale = (0..width).map(|i| 0.75 + (i % 5) as f32 * 0.125).collect();
        model = model.initializer(raw(name, F16, &[width as i64], &halves(scale)));
    }
    let product = |model: ModelBuilder, name: &str, from: &str, to: &str, n: usize, k: usize| {
        let sizes =
            [("N", n), ("K", k), ("bits", 4), ("block_size", 32)].map(|(name, n)| int(name, n as i64));
        let [weight, scales] = ["w", "s"].map(|part| format!("{name}.{part}"));
        model.node_with("com.microsoft.MatMulNBits", &sizes, &[from, &weight, &scales], &[to])
    };
    let norm = "com.microsoft.SkipSimplifiedLayerNormalization";
    model = product(model, "o", "a", "p", width, width);
    model = model.node(norm, &["residual", "p", "first"], &["h", "", "", "s"]);
    model = product(model, "gate", "h", "g", middle, width);
    model = product(model, "up", "h", "u", middle, width);
    model = model.node("Sigmoid", &["g"], &["f"]).node("Mul", &["g", "f"], &["silu"]).node(
        "Mul",
        &["silu", "u"],
        &["m"],
    );
    model = product(model, "down", "m", "d", width, middle);
    model = model.node(norm, &["s", "d", "second"], &["i", "", "", "sum"]);
    product(model, "qkv", "i", "queries", queries, width).output("queries").output("sum")
}
