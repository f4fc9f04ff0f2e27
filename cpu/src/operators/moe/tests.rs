use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::Value;
use crate::testing::{checksum, elements, run_in, t};

fn pattern(k: usize, shape: &[usize], sign: f32) -> Option<Value> {
    let element = |i| ((i * (7 + 2 * k) + k) % 13) as f32 / 8.0 - 0.75;
    let absolute = |x: f32| if sign < 0.0 { x.abs() } else { x };
    t(shape, &(0..shape.iter().product()).map(element).map(absolute).collect::<Vec<_>>())
}

fn bytes(k: usize, shape: &[usize]) -> Option<Value> {
    t(shape, &(0..shape.iter().product()).map(|i| ((i * (37 + 2 * k) + k) % 256) as u8).collect::<Vec<_>>())
}

/// Activation, fusion, experts of a row, whether their weights are normalised, bits (0: floats), block,
/// whether there are zero points.
type Case = (&'static str, i64, i64, i64, usize, usize, bool);

fn run((activation, fusion, k, norm, bits, block, points): Case) -> Result<Vec<Value>, OpError> {
    let (rows, experts, width) = (5, 3, if fusion > 0 { 2 } else { 1 });
    let mut attributes = vec![
        ("activation_type", Attribute::String(activation.into())),
        ("swiglu_fusion", Attribute::Int(fusion)),
        ("k", Attribute::Int(k)),
        ("normalize_routing_weights", Attribute::Int(norm)),
    ];
    if fusion > 0 {
        let floats = [("activation_alpha", 1.5), ("activation_beta", 0.5), ("swiglu_limit", 2.0)];
        attributes.extend(floats.map(|(name, x)| (name, Attribute::Float(x))));
    }
    let shared = |hidden| vec![pattern(0, &[rows, hidden], 1.0), pattern(1, &[rows, experts], 1.0)];
    if bits == 0 {
        let (hidden, inner) = (16, 8);
        let mut inputs = shared(hidden);
        inputs.extend([
            pattern(2, &[experts, width * inner, hidden], 1.0),
            pattern(3, &[experts, width * inner], 1.0),
            pattern(4, &[experts, hidden, inner], 1.0),
            pattern(5, &[experts, hidden], 1.0),
        ]);
        return run_in("com.microsoft", "MoE", 1, &attributes, &inputs, 1);
    }
    attributes.push(("expert_weight_bits", Attribute::Int(bits as i64)));
    attributes.push(("block_size", Attribute::Int(block as i64)));
    let size: usize = 32;
    let blocks = size.checked_div(block).unwrap_or(1);
    let mut inputs = shared(size);
    let points_of = |k, n: usize| match block {
        0 => bytes(k, &[experts, (n * bits).div_ceil(8)]),
        _ => bytes(k, &[experts, n, (blocks * bits).div_ceil(8)]),
    };
    inputs.extend([
        bytes(2, &[experts, width * size, size * bits / 8]),
        pattern(3, &[experts, width * size, blocks], -1.0),
        pattern(4, &[experts, width * size], 1.0),
        bytes(5, &[experts, size, size * bits / 8]),
        pattern(6, &[experts, size, blocks], -1.0),
        pattern(7, &[experts, size], 1.0),
        None,
        None,
        None,
        points_of(11, width * size).filter(|_| points),
        points_of(12, size).filter(|_| points),
    ]);
    run_in("com.microsoft", "QMoE", 1, &attributes, &inputs, 1)
}

/// Checksums of ONNX Runtime's outputs.
#[test]
fn as_onnx_runtime() {
    let cases: &[(Case, f64)] = &[
        (("relu", 0, 1, 0, 0, 0, false), -5.62993),
        (("gelu", 0, 2, 1, 0, 0, false), -6.61267),
        (("silu", 0, 2, 0, 0, 0, false), -5.38084),
        (("identity", 0, 3, 1, 0, 0, false), -23.26256),
        (("swiglu", 1, 2, 1, 0, 0, false), 2.19577),
        (("relu", 0, 1, 1, 4, 0, false), 264.73242),
        (("silu", 0, 2, 1, 2, 16, true), -75.94069),
        (("swiglu", 1, 2, 1, 4, 16, true), -265.57069),
        (("identity", 0, 2, 1, 8, 0, true), 109_360.702_18),
        (("swiglu", 1, 3, 0, 8, 32, false), 5218.88243),
    ];
    for &(case, want) in cases {
        let got = checksum(&elements::<f32>(&run(case).unwrap()[0]).1);
        assert!((got - want).abs() < 2e-4 + 2e-6 * want.abs(), "{case:?}: {got}, {want}");
    }
}

/// A gate's operands may lie apart, interleaved or one after the other.
#[test]
fn layouts_of_gates() {
    let (x, router) = (pattern(0, &[2, 4], 1.0), pattern(1, &[2, 2], 1.0));
    let (g, l) = (pattern(2, &[2, 3, 4], 1.0), pattern(6, &[2, 3, 4], 1.0));
    let second = pattern(4, &[2, 4, 3], 1.0);
    let (g_all, l_all) = (elements::<f32>(g.as_ref().unwrap()).1, elements::<f32>(l.as_ref().unwrap()).1);
    let mut joined = [Vec::new(), Vec::new()];
    for expert in 0..2 {
        let part = expert * 12..(expert + 1) * 12;
        for (g, l) in g_all[part.clone()].chunks(4).zip(l_all[part.clone()].chunks(4)) {
            joined[0].extend([g, l].concat());
        }
        joined[1].extend([&g_all[part.clone()], &l_all[part]].concat());
    }
    let run = |fusion: i64, first: Option<Value>, third: Option<Value>| {
        let attributes = [
            ("activation_type", Attribute::String("swiglu".into())),
            ("swiglu_fusion", Attribute::Int(fusion)),
        ];
        let inputs = [x.clone(), router.clone(), first, None, second.clone(), None, third];
        run_in("com.microsoft", "MoE", 1, &attributes, &inputs, 1)
            .map(|out| elements::<f32>(&out[0]).1)
            .map_err(|e| e.to_string())
    };
    let apart = run(0, g.clone(), l.clone()).unwrap();
    assert_eq!(run(1, t(&[2, 6, 4], &joined[0]), None).unwrap(), apart);
    assert_eq!(run(2, t(&[2, 6, 4], &joined[1]), None).unwrap(), apart);
    assert!(run(0, g.clone(), None).unwrap_err().contains("needs the third weights"));
    assert!(run(1, g, l).unwrap_err().contains("no third weights"));
}

#[test]
fn wrong_models_are_refused() {
    for (case, want) in [
        (("relu", 0, 4, 0, 0, 0, false), "it has 3 experts, of which 4 are wanted"),
        (("tanh", 0, 1, 0, 0, 0, false), "\"tanh\" is not known"),
        (("relu", 0, 1, 0, 3, 0, false), "allowed are 2, 4 and 8"),
        (("relu", 0, 1, 0, 4, 24, false), "no whole bytes or blocks of 24"),
    ] {
        let error = run(case).unwrap_err().to_string();
        assert!(error.contains(want), "{error}, not {want}");
    }
}
