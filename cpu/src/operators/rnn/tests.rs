use crate::graph::Attribute;
use crate::tensor::{Value, f16};
use crate::testing::{checksum, elements, noise, run_constant, run_on, t};
use crate::threads::Pool;

const STEPS: usize = 4;
const BATCH: usize = 3;
const INPUT: usize = 5;
const HIDDEN: usize = 6;

fn ramp(shape: &[usize], scale: f32) -> Vec<f32> {
    (0..shape.iter().product()).map(|i| ((i % 7) as f32 - 3.0) * scale).collect()
}

/// Which optional inputs a case has: `b`ias, `l`engths, states (`h`), `p`eepholes.
fn inputs(op: &str, directions: usize, optional: &str) -> Vec<Option<Value>> {
    let gates = match op {
        "RNN" => 1,
        "GRU" => 3,
        _ => 4,
    };
    let tensor = |shape: &[usize], scale: f32| t(shape, &ramp(shape, scale));
    let given = |c: char, value: Option<Value>| value.filter(|_| optional.contains(c));
    let state = [directions, BATCH, HIDDEN];
    let mut inputs = vec![
        tensor(&[STEPS, BATCH, INPUT], 0.2),
        tensor(&[directions, gates * HIDDEN, INPUT], 0.2),
        tensor(&[directions, gates * HIDDEN, HIDDEN], 0.2),
        given('b', tensor(&[directions, 2 * gates * HIDDEN], 0.2)),
        given('l', t(&[BATCH], &[4i32, 2, 3])),
        given('h', tensor(&state, 0.2)),
    ];
    if op == "LSTM" {
        inputs.push(given('h', tensor(&state, 0.4)));
        inputs.push(given('p', tensor(&[directions, 3 * HIDDEN], 0.2)));
    }
    inputs
}

#[test]
fn as_onnxruntime_does() {
    let strings = |list: &[&str]| Attribute::Strings(list.iter().map(|s| s.as_bytes().to_vec()).collect());
    let floats = |list: &[f32]| Attribute::Floats(list.to_vec());
    let (forward, reverse, both) = ("forward", "reverse", "bidirectional");
    // Operator, direction, optional inputs, attributes, checksums of the outputs (onnxruntime 1.31.1).
    type Case<'a> = (&'a str, &'a str, &'a str, Vec<(&'a str, Attribute)>, &'a [f64]);
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        ("RNN", forward, "b", vec![], &[-3.01639497, 8.60142225]),
        ("RNN", reverse, "blh", vec![], &[-12.25898528, -7.63426828]),
        ("RNN", both, "blh", vec![], &[-6.94651001, 10.08872771]),
        ("RNN", forward, "", vec![], &[-15.57193762, 2.79247671]),
        ("GRU", forward, "b", vec![], &[-2.89259782, -2.45226033]),
        ("GRU", reverse, "blh", vec![], &[-5.68755156, 1.05261383]),
        ("GRU", both, "blh", vec![], &[5.31530167, 0.57393238]),
        ("GRU", forward, "", vec![], &[-2.80771254, -2.31551069]),
        ("GRU", both, "blh", vec![("linear_before_reset", Attribute::Int(1))], &[2.26817807, -6.87975736]),
        ("LSTM", forward, "b", vec![], &[3.19375031, 0.96275877, 2.58744493]),
        ("LSTM", reverse, "blh", vec![], &[2.75969267, 1.98097286, 1.23587802]),
        ("LSTM", both, "blh", vec![], &[0.71040599, 5.97800861, 12.81162200]),
        ("LSTM", forward, "", vec![], &[1.47838805, 0.62925752, 1.67689469]),
        ("LSTM", both, "blhp", vec![], &[0.10712306, 5.49548617, 11.23632859]),
        ("LSTM", forward, "bhp", vec![("clip", Attribute::Float(0.3))], &[0.01304398, 0.37237258, 0.66995494]),
        ("LSTM", forward, "bh", vec![("input_forget", Attribute::Int(1))], &[2.43360968, 2.13042435, 4.24654817]),
        ("LSTM", forward, "bh", vec![
            ("activations", strings(&["HardSigmoid", "LeakyRelu", "Softsign"])),
            ("activation_alpha", floats(&[0.3, 0.05])), ("activation_beta", floats(&[0.4])),
        ], &[1.32902190, -0.13204119, -0.32793164]),
        ("GRU", forward, "bh", vec![
            ("activations", strings(&["Affine", "Elu"])),
            ("activation_alpha", floats(&[0.3, 0.5])), ("activation_beta", floats(&[0.4])),
        ], &[3.11931639, -3.49769420]),
        ("RNN", reverse, "b", vec![
            ("activations", strings(&["ScaledTanh"])), ("clip", Attribute::Float(0.5)),
            ("activation_alpha", floats(&[0.7])), ("activation_beta", floats(&[0.9])),
        ], &[0.63522615, -1.99405375]),
    ];
    for (op, direction, optional, mut attributes, want) in cases {
        let directions = if direction == both { 2 } else { 1 };
        attributes.push(("direction", Attribute::String(direction.into())));
        attributes.push(("hidden_size", Attribute::Int(HIDDEN as i64)));
        for constants in [&[][..], &[1, 2]] {
            let inputs = inputs(op, directions, optional);
            let out = run_constant("", op, 14, &attributes, &inputs, constants, want.len()).unwrap();
            for (i, (out, want)) in out.iter().zip(want).enumerate() {
                let got = checksum(&elements::<f32>(out).1);
                assert!(
                    (got - want).abs() < 2e-4,
                    "{op} {direction} {optional}, output {i}: {got}, not {want}"
                );
            }
        }
    }
}

/// Packed weights and plain ones go by different kernels, whose sums may be rounded differently.
fn assert_near(x: &[f32], want: &[f32]) {
    assert!(
        x.len() == want.len() && x.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-6),
        "{x:?}\n{want:?}"
    );
}

/// Exchanges the first two of the dimensions.
fn batch_first(value: &Value, from: [usize; 2], rest: usize) -> Vec<f32> {
    let x = elements::<f32>(value).1;
    let [a, b] = from;
    (0..a * b * rest).map(|i| x[((i / rest % a) * b + i / rest / a) * rest + i % rest]).collect()
}

#[test]
fn batch_first_is_a_transposition() {
    let attributes = |layout| {
        vec![("direction", Attribute::String(b"bidirectional".to_vec())), ("layout", Attribute::Int(layout))]
    };
    let inputs = inputs("LSTM", 2, "blh");
    let want = run_constant("", "LSTM", 14, &attributes(0), &inputs, &[], 3).unwrap();
    let swapped = |i: usize, from: [usize; 2], rest: usize| {
        inputs[i].as_ref().and_then(|v| t(&[from[1], from[0], rest], &batch_first(v, from, rest)))
    };
    let mut transposed = inputs.clone();
    transposed[0] = swapped(0, [STEPS, BATCH], INPUT);
    transposed[5] = swapped(5, [2, BATCH], HIDDEN);
    transposed[6] = swapped(6, [2, BATCH], HIDDEN);
    let out = run_constant("", "LSTM", 14, &attributes(1), &transposed, &[1, 2], 3).unwrap();
    // Y: [steps, 2, batch, hidden] against [batch, steps, 2, hidden].
    let (shape, y) = elements::<f32>(&out[0]);
    assert_eq!(shape, [BATCH, STEPS, 2, HIDDEN]);
    assert_near(&y, &batch_first(&want[0], [STEPS * 2, BATCH], HIDDEN));
    assert_near(&elements::<f32>(&out[1]).1, &batch_first(&want[1], [2, BATCH], HIDDEN));
    assert_near(&elements::<f32>(&out[2]).1, &batch_first(&want[2], [2, BATCH], HIDDEN));
}

#[test]
fn half_precision_and_bad_lengths() {
    let mut inputs = inputs("GRU", 1, "b");
    let mut half = inputs.clone();
    for value in half.iter_mut().flatten() {
        let (shape, x) = elements::<f32>(value);
        *value = t(&shape, &x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>()).unwrap();
    }
    let out = run_constant("", "GRU", 14, &[], &half, &[1], 1).unwrap();
    assert!((checksum(&elements::<f16>(&out[0]).1) + 2.892597).abs() < 0.05);
    inputs[4] = t(&[BATCH], &[1i32, 5, 2]);
    let error = run_constant("", "GRU", 14, &[], &inputs, &[], 1).unwrap_err().to_string();
    assert!(error.contains("sequence_lens has 5; allowed is 0 to 4"), "{error}");
}

#[test]
fn layers_without_inputs_have_packed_weights_too() {
    for op in ["RNN", "GRU", "LSTM"] {
        let mut inputs = inputs(op, 2, "bh");
        let gates = inputs[1].as_ref().map(|w| elements::<f32>(w).0[1]).unwrap();
        inputs[0] = t(&[STEPS, BATCH, 0], &[0f32; 0]);
        inputs[1] = t(&[2, gates, 0], &[0f32; 0]);
        let attributes = [("direction", Attribute::String(b"bidirectional".to_vec()))];
        let want = run_constant("", op, 14, &attributes, &inputs, &[], 2).unwrap();
        let packed = run_constant("", op, 14, &attributes, &inputs, &[1, 2], 2).unwrap();
        let ((shape, packed), (wanted_shape, want)) =
            (elements::<f32>(&packed[0]), elements::<f32>(&want[0]));
        assert_eq!(shape, wanted_shape, "{op}");
        assert_near(&packed, &want);
        assert!(checksum(&want) != 0.0, "{op}");
    }
}

/// Of a sequence of many steps the inputs are multiplied while states are, where each thread has a direction; of weights that
/// are no constants, all before.
#[test]
fn inputs_multiplied_ahead_are_those_multiplied_before() {
    const SEED: usize = 20;
    let weight = |seed: usize, shape: &[usize]| {
        let scale = (shape[2] as f32).sqrt().recip();
        let elements: Vec<f32> =
            noise(SEED + seed, shape.iter().product()).iter().map(|x| x * scale).collect();
        t(shape, &elements)
    };
    for (op, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        for (steps, input, hidden, length) in
            [(32, 40, 136, 32), (50, 300, 130, 50), (70, 8, 144, 51), (40, 30, 128, 31), (33, 64, 160, 0)]
        {
            for (direction, directions) in [("forward", 1), ("reverse", 1), ("bidirectional", 2)] {
                for reset in [0, 1] {
                    let inputs = [
                        t(&[steps, 1, input], &noise(SEED, steps * input)),
                        weight(1, &[directions, gates * hidden, input]),
                        weight(2, &[directions, gates * hidden, hidden]),
                        t(
                            &[directions, 2 * gates * hidden],
                            &noise(SEED + 3, directions * 2 * gates * hidden),
                        ),
                        t(&[1], &[length]),
                        t(&[directions, 1, hidden], &noise(SEED + 4, directions * hidden)),
                    ];
                    let mut attributes = vec![("direction", Attribute::String(direction.into()))];
                    if op == "GRU" {
                        attributes.push(("linear_before_reset", Attribute::Int(reset)));
                    } else if reset == 1 {
                        continue;
                    }
                    let run = |constants: &[usize]| {
                        run_on(&Pool::new(directions), "", op, 14, &attributes, &inputs, constants, 2)
                            .unwrap()
                    };
                    for (packed, want) in run(&[1, 2]).iter().zip(run(&[])) {
                        let (packed, want) = (elements::<f32>(packed).1, elements::<f32>(&want).1);
                        let worst = packed.iter().zip(&want).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
                        assert!(
                            packed.len() == want.len() && worst < 2e-5,
                            "{op} {direction} {reset}, {steps} × {input} × {hidden}, {length} steps, seed {SEED}: {worst}"
                        );
                    }
                }
            }
        }
    }
}
