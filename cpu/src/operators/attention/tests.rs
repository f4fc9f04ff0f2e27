//! com.microsoft's attention operators against ONNX Runtime.

use crate::graph::Attribute;
use crate::tensor::{Value, f16};

use crate::testing::{checksum, elements, run, run_in, t};

/// An input: omitted, floats of a pattern that differs from input to input, or given integers.
#[derive(Clone, Copy)]
enum Given<'a> {
    X,
    F(&'a [usize]),
    I(&'a [usize], &'a [i32]),
}
use Given::{F, I, X};

fn pattern(k: usize, shape: &[usize]) -> Vec<f32> {
    (0..shape.iter().product()).map(|i| ((i * (7 + 2 * k) + k) % 13) as f32 / 8.0 - 0.75).collect()
}

fn value((k, given): (usize, &Given<'_>)) -> Option<Value> {
    match *given {
        X => None,
        F(shape) => t(shape, &pattern(k, shape)),
        I(shape, elements) => t(shape, elements),
    }
}

fn attributes(given: &[(&'static str, f32)]) -> Vec<(&'static str, Attribute)> {
    let floats = ["scale", "softcap", "mask_filter_value"];
    let attribute =
        |x: f32, name| if floats.contains(name) { Attribute::Float(x) } else { Attribute::Int(x as i64) };
    given.iter().map(|(name, x)| (*name, attribute(*x, name))).collect()
}

/// Operator, attributes, inputs, and the checksums of the outputs.
type Case<'a> = (&'a str, &'a [(&'static str, f32)], &'a [Given<'a>], &'a [f64]);

/// Checksums of ONNX Runtime's outputs.
#[test]
fn as_onnx_runtime() {
    let cases: &[Case<'_>] = &[
        ("Attention", &[("num_heads", 2.0)], &[F(&[2, 3, 5]), F(&[5, 24]), F(&[24])], &[-2.21807, 21.96875]),
        (
            "Attention",
            &[("num_heads", 2.0), ("unidirectional", 1.0)],
            &[F(&[2, 3, 5]), F(&[5, 24]), F(&[24]), X, F(&[2, 2, 2, 2, 4])],
            &[-3.39807, 16.28125],
        ),
        (
            "Attention",
            &[("num_heads", 2.0), ("unidirectional", 1.0)],
            &[
                F(&[2, 3, 5]),
                F(&[5, 24]),
                F(&[24]),
                I(&[2, 5], &[1, 1, 0, 1, 0, 0, 0, 0, 0, 0]),
                F(&[2, 2, 2, 2, 4]),
            ],
            &[-3.23625, 16.28125],
        ),
        (
            "Attention",
            &[("num_heads", 2.0), ("scale", 0.3)],
            &[F(&[2, 3, 5]), F(&[5, 24]), F(&[24]), I(&[2], &[2, 3])],
            &[1.48074, 21.96875],
        ),
        (
            "Attention",
            &[("num_heads", 2.0), ("mask_filter_value", -3.5)],
            &[F(&[2, 3, 5]), F(&[5, 24]), F(&[24]), I(&[4], &[3, 2, 1, 0])],
            &[-4.20830, 21.96875],
        ),
        (
            "Attention",
            &[("num_heads", 2.0)],
            &[F(&[2, 3, 5]), F(&[5, 24]), F(&[24]), I(&[8], &[2, 3, 0, 2, 5, 0, 2, 5])],
            &[0.94967, 21.96875],
        ),
        (
            "Attention",
            &[("num_heads", 2.0)],
            &[
                F(&[2, 3, 5]),
                F(&[5, 24]),
                F(&[24]),
                I(&[2, 3, 3], &[1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1]),
                X,
                F(&[1, 2, 3, 3]),
            ],
            &[-2.14279, 21.96875],
        ),
        (
            "MultiHeadAttention",
            &[("num_heads", 2.0)],
            &[F(&[2, 3, 8]), F(&[2, 4, 8]), F(&[2, 4, 8])],
            &[1.04060, -11.12500, -2.25000],
        ),
        (
            "MultiHeadAttention",
            &[("num_heads", 2.0)],
            &[F(&[2, 3, 8]), F(&[2, 4, 8]), F(&[2, 4, 6]), F(&[22])],
            &[6.59583],
        ),
        (
            "MultiHeadAttention",
            &[("num_heads", 2.0)],
            &[
                F(&[2, 3, 8]),
                F(&[2, 4, 8]),
                F(&[2, 4, 8]),
                F(&[24]),
                I(&[2, 4], &[1, 1, 0, 1, 0, 1, 1, 1]),
                F(&[1, 2, 3, 4]),
            ],
            &[5.93836, -7.75000, 1.12500, 40007.71875],
        ),
        // Several tiles of queries and blocks of keys.
        ("MultiHeadAttention", &[("num_heads", 2.0)], &[F(&[1, 600, 8]); 3], &[0.39330]),
        (
            "MultiHeadAttention",
            &[("num_heads", 2.0), ("unidirectional", 1.0)],
            &[F(&[1, 600, 8]); 3],
            &[4.63260],
        ),
        (
            "MultiHeadAttention",
            &[("num_heads", 2.0), ("unidirectional", 1.0)],
            &[
                F(&[2, 3, 8]),
                F(&[2, 3, 8]),
                F(&[2, 3, 8]),
                F(&[24]),
                I(&[2, 5], &[1, 1, 1, 0, 1, 0, 1, 1, 1, 1]),
                X,
                F(&[2, 2, 2, 4]),
                F(&[2, 2, 2, 4]),
            ],
            &[4.11841, 7.75000, -24.00000],
        ),
        (
            "MultiHeadAttention",
            &[("num_heads", 2.0)],
            &[F(&[2, 3, 8]), F(&[2, 2, 4, 4]), F(&[2, 2, 4, 4]), F(&[24])],
            &[-1.82212],
        ),
        (
            "DecoderMaskedMultiHeadAttention",
            &[("num_heads", 2.0), ("past_present_share_buffer", 1.0)],
            &[
                F(&[2, 1, 8]),
                F(&[2, 1, 8]),
                F(&[2, 1, 8]),
                X,
                X,
                F(&[2, 2, 6, 4]),
                F(&[2, 2, 6, 4]),
                I(&[1], &[3]),
                X,
                X,
                F(&[24]),
            ],
            &[3.91585, 9.12500, -6.87500],
        ),
        (
            "GroupQueryAttention",
            &[("num_heads", 2.0), ("kv_num_heads", 1.0)],
            &[
                F(&[2, 4, 32]),
                F(&[2, 4, 16]),
                F(&[2, 4, 16]),
                F(&[2, 1, 0, 16]),
                F(&[2, 1, 0, 16]),
                I(&[2], &[3, 3]),
                I(&[], &[4]),
            ],
            &[7.41933, 1.00000, 9.62500],
        ),
        (
            "GroupQueryAttention",
            &[("num_heads", 2.0), ("kv_num_heads", 1.0)],
            &[F(&[2, 1, 64]), X, X, F(&[2, 1, 6, 16]), F(&[2, 1, 6, 16]), I(&[2], &[5, 2]), I(&[], &[6])],
            &[-4.75547, -2.12500, 18.50000],
        ),
        (
            "GroupQueryAttention",
            &[("do_rotary", 1.0), ("local_window_size", 3.0), ("num_heads", 2.0), ("kv_num_heads", 1.0)],
            &[
                F(&[1, 3, 32]),
                F(&[1, 3, 16]),
                F(&[1, 3, 16]),
                F(&[1, 1, 8, 16]),
                F(&[1, 1, 8, 16]),
                I(&[1], &[6]),
                I(&[], &[7]),
                F(&[9, 8]),
                F(&[9, 8]),
            ],
            &[-5.55001, 4.60938, 8.75000],
        ),
        (
            "GroupQueryAttention",
            &[
                ("do_rotary", 1.0),
                ("rotary_interleaved", 1.0),
                ("softcap", 1.5),
                ("qk_output", 1.0),
                ("num_heads", 2.0),
                ("kv_num_heads", 1.0),
            ],
            &[
                F(&[2, 1, 32]),
                F(&[2, 1, 16]),
                F(&[2, 1, 16]),
                F(&[2, 1, 8, 16]),
                F(&[2, 1, 8, 16]),
                I(&[2], &[6, 3]),
                I(&[], &[7]),
                F(&[9, 8]),
                F(&[9, 8]),
            ],
            &[4.26134, -6.25000, 0.12500, 0.37433],
        ),
        (
            "GroupQueryAttention",
            &[("qk_output", 2.0), ("scale", 0.5), ("num_heads", 2.0), ("kv_num_heads", 1.0)],
            &[
                F(&[2, 4, 32]),
                F(&[2, 4, 16]),
                F(&[2, 4, 16]),
                F(&[2, 1, 0, 16]),
                F(&[2, 1, 0, 16]),
                I(&[2], &[3, 3]),
                I(&[], &[4]),
                X,
                X,
                X,
                F(&[2, 1, 4, 4]),
                F(&[2]),
            ],
            &[9.57021, 1.00000, 9.62500, -0.65795],
        ),
        (
            "GroupQueryAttention",
            &[("smooth_softmax", 1.0), ("causal", 0.0), ("num_heads", 2.0), ("kv_num_heads", 1.0)],
            &[
                F(&[2, 4, 32]),
                F(&[2, 4, 16]),
                F(&[2, 4, 16]),
                F(&[2, 1, 0, 16]),
                F(&[2, 1, 0, 16]),
                I(&[2], &[3, 3]),
                I(&[], &[4]),
            ],
            &[2.18210],
        ),
    ];
    for (name, given, inputs, want) in cases {
        let inputs: Vec<Option<Value>> = inputs.iter().enumerate().map(value).collect();
        let out = run_in("com.microsoft", name, 1, &attributes(given), &inputs, want.len()).unwrap();
        for (i, (out, want)) in out.iter().zip(*want).enumerate() {
            let got = checksum(&elements::<f32>(out).1);
            assert!(
                (got - want).abs() < 2e-4 + 1e-6 * want.abs(),
                "{name} {given:?} output {i}: {got}, {want}"
            );
        }
    }
}

/// Queries, keys and values whose heads lie side by side are what they are apart.
#[test]
fn packed_forms() {
    let (rows, heads, size) = (6, 2, 4);
    let part = |all: &[f32], i: usize, parts: usize| -> Vec<f32> {
        all.chunks(size).skip(i).step_by(parts).flatten().copied().collect()
    };
    let run = |inputs: &[Option<Value>]| {
        let out =
            run_in("com.microsoft", "MultiHeadAttention", 1, &attributes(&[("num_heads", 2.0)]), inputs, 1);
        elements::<f32>(&out.unwrap()[0]).1
    };
    let (three, two) = (pattern(1, &[rows, heads, 3, size]), pattern(2, &[rows, heads, 2, size]));
    let plain = |x: Vec<f32>| t(&[2, 3, 8], &x);
    let [q, k, v] = [0, 1, 2].map(|i| plain(part(&three, i, 3)));
    let bias = value((3, &F(&[24])));
    for bias in [None, bias] {
        let apart = run(&[q.clone(), k.clone(), v.clone(), bias.clone()]);
        assert_eq!(run(&[t(&[2, 3, 2, 3, 4], &three), None, None, bias.clone()]), apart);
        let [k, v] = [0, 1].map(|i| plain(part(&two, i, 2)));
        let apart = run(&[q.clone(), k, v, bias.clone()]);
        assert_eq!(run(&[q.clone(), t(&[2, 3, 2, 2, 4], &two), None, bias]), apart);
    }
}

#[test]
fn wrong_values_are_refused() {
    let grouped: &[(&'static str, f32)] = &[("num_heads", 2.0), ("kv_num_heads", 1.0)];
    let rotary: &[(&'static str, f32)] = &[("num_heads", 2.0), ("kv_num_heads", 1.0), ("do_rotary", 1.0)];
    let heads: &[(&'static str, f32)] = &[("num_heads", 2.0)];
    let (q, kv, past) = (F(&[1, 1, 32]), F(&[1, 1, 16]), F(&[1, 1, 4, 16]));
    let cache = F(&[4, 8]);
    let one = F(&[1, 1, 8]);
    let room = F(&[1, 2, 4, 4]);
    type Case<'a> = (&'a str, &'a [(&'static str, f32)], &'a [Given<'a>], &'a str);
    let cases: &[Case<'_>] = &[
        (
            "GroupQueryAttention",
            grouped,
            &[q, kv, kv, past, past, I(&[1], &[7]), I(&[1], &[5])],
            "seqlens_k has 7",
        ),
        (
            "GroupQueryAttention",
            grouped,
            &[q, kv, kv, past, past, I(&[1], &[-1]), I(&[1], &[5])],
            "seqlens_k has -1",
        ),
        (
            "GroupQueryAttention",
            grouped,
            &[q, kv, kv, past, past, I(&[1], &[5]), I(&[1], &[6])],
            "seqlens_k has 5",
        ),
        (
            "GroupQueryAttention",
            grouped,
            &[q, kv, kv, past, past, I(&[1], &[5]), I(&[1], &[0])],
            "total_sequence_length is 0",
        ),
        (
            "GroupQueryAttention",
            rotary,
            &[q, kv, kv, past, past, I(&[1], &[4]), I(&[1], &[5]), cache, cache],
            "a position is 4",
        ),
        (
            "GroupQueryAttention",
            rotary,
            &[q, kv, kv, past, past, I(&[1], &[4]), I(&[1], &[5])],
            "needs cos_cache",
        ),
        (
            "MultiHeadAttention",
            heads,
            &[one, one, one, X, X, X, room, room, I(&[1], &[4])],
            "allowed is 0 to 3",
        ),
        ("MultiHeadAttention", heads, &[one, one, one, X, I(&[3], &[1, 1, 1])], "its shape is [3]"),
        ("Attention", heads, &[one, F(&[8, 25])], "its number of columns"),
        ("Attention", &[("num_heads", 0.0)], &[one, F(&[8, 24])], "num_heads"),
    ];
    for (name, given, inputs, want) in cases {
        let inputs: Vec<Option<Value>> = inputs.iter().enumerate().map(value).collect();
        let error = run_in("com.microsoft", name, 1, &attributes(given), &inputs, 1).unwrap_err().to_string();
        assert!(error.contains(want), "{name}: {error}, not {want}");
    }
}

/// Values of another type than queries and keys give what values of the same type give, rounded.
#[test]
fn values_of_another_type() {
    let (q, k) = (pattern(0, &[2, 2, 3, 4]), pattern(1, &[2, 2, 5, 4]));
    let (v, past) = (pattern(2, &[2, 2, 5, 3]), pattern(3, &[2, 2, 2, 3]));
    let past_k = t(&[2, 2, 2, 4], &pattern(4, &[2, 2, 2, 4]));
    let half = |x: &[f32]| x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let attend = |v: Option<Value>, past: Option<Value>| {
        let past_k = past_k.clone().filter(|_| past.is_some());
        let inputs = [t(&[2, 2, 3, 4], &q), t(&[2, 2, 5, 4], &k), v, None, past_k, past];
        run("Attention", 23, &[], &inputs, 3).unwrap()
    };
    let values = [t(&[2, 2, 5, 3], &v), t(&[2, 2, 5, 3], &half(&v))];
    let pasts = [t(&[2, 2, 2, 3], &past), t(&[2, 2, 2, 3], &half(&past))];
    for with_past in [false, true] {
        let [same, other] = [0, 1].map(|i| attend(values[i].clone(), pasts[i].clone().filter(|_| with_past)));
        // Eighths are exact in either type.
        assert_eq!(elements::<f32>(&same[0]), elements::<f32>(&other[0]));
        let present = elements::<f16>(&other[2]);
        let (shape, want) = elements::<f32>(&same[2]);
        assert_eq!(present, (shape, half(&want)));
    }
}
