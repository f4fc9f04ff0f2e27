//! Pairs of a pointwise and a depthwise convolution are what the two would be.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::{ElementType, Value, bf16};
use crate::testing::{block_channels, elements, noise, ramp, run_constant, run_on, t};
use crate::threads::Pool;

#[test]
fn a_pair_is_two_convolutions() {
    let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
    for (x, m, kernel, stride, pads) in [
        ([1, 5, 9, 11], 20, 3, 1, [1, 1, 1, 1]),
        ([2, 3, 7, 6], 33, 5, 1, [2, 2, 2, 2]),
        ([3, 4, 14, 14], 17, 5, 2, [1, 2, 2, 1]),
        ([1, 2, 75, 70], 40, 3, 2, [0, 0, 1, 1]),
        // Tiles of other sizes, and images that are no whole one.
        ([2, 6, 7, 7], 48, 5, 1, [2, 2, 2, 2]),
        ([1, 6, 4, 4], 24, 3, 1, [1, 1, 1, 1]),
        ([1, 6, 2, 3], 20, 3, 2, [1, 1, 1, 1]),
        ([2, 3, 50, 90], 18, 3, 1, [1, 1, 1, 1]),
        ([1, 2, 3, 1400], 5, 3, 1, [1, 1, 1, 1]),
        ([1, 2, 40, 300], 5, 5, 2, [2, 2, 2, 2]),
        ([1, 2, 0, 4], 5, 3, 1, [2, 1, 2, 1]),
        ([0, 2, 8, 4], 5, 3, 1, [1, 1, 1, 1]),
    ] {
        let tensor = |shape: &[usize]| t(shape, &ramp::<f32>(shape.iter().product()));
        let (w1, w2, bias) = (tensor(&[m, x[1], 1, 1]), tensor(&[m, 1, kernel, kernel]), tensor(&[m]));
        // One that vectors have a form for, and one that they have not.
        let function = |name, params| match m % 2 {
            0 => vec![(name, Attribute::String(b"Relu".to_vec()))],
            _ => vec![
                (name, Attribute::String(b"Affine".to_vec())),
                (params, Attribute::Floats(vec![2.0, 1.0])),
            ],
        };
        let window = [
            ("kernel_shape", ints(&[kernel as i64; 2])),
            ("strides", ints(&[stride; 2])),
            ("pads", ints(&pads)),
            ("group", Attribute::Int(m as i64)),
        ];
        let conv = |x: Option<Value>, w: &Option<Value>, attributes: &[(&str, Attribute)]| {
            let inputs = [x, w.clone(), bias.clone()];
            run_constant("com.microsoft", "FusedConv", 1, attributes, &inputs, &[1], 1).unwrap().remove(0)
        };
        let between = conv(tensor(&x), &w1, &function("activation", "activation_params"));
        let want = elements::<f32>(&conv(Some(between), &w2, &window));
        let first = function("first_activation", "first_activation_params");
        let attributes = [&window[..], &first].concat();
        let inputs = [tensor(&x), w1, bias.clone(), w2, bias.clone()];
        for constants in [&[][..], &[1, 3]] {
            let out = run_constant("rukh", "ConvPair", 1, &attributes, &inputs, constants, 1).unwrap();
            assert_eq!(elements::<f32>(&out[0]), want, "{x:?} {m} {kernel} {stride} {constants:?}");
        }
    }
}

/// In bfloat16, whatever is channel-blocked, beside the same numbers in `f32`.
#[test]
fn pairs_in_bfloat16() {
    let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
    for (i, (x, m, kernel, stride, pads)) in [
        ([1, 6, 9, 11], 20, 3, 1, [1, 1, 1, 1]),
        ([2, 4, 7, 7], 34, 5, 1, [2, 2, 2, 2]),
        ([3, 8, 14, 14], 18, 5, 2, [1, 2, 2, 1]),
        ([1, 2, 75, 70], 40, 3, 2, [0, 0, 1, 1]),
        ([1, 6, 4, 4], 24, 3, 1, [1, 1, 1, 1]),
        ([1, 6, 2, 3], 20, 3, 2, [1, 1, 1, 1]),
        ([1, 2, 3, 1400], 6, 3, 1, [1, 1, 1, 1]),
        // A channel without a neighbour.
        ([2, 5, 10, 6], 20, 3, 1, [1, 1, 1, 1]),
        ([1, 2, 0, 4], 6, 3, 1, [2, 1, 2, 1]),
        ([0, 2, 8, 4], 6, 3, 1, [1, 1, 1, 1]),
    ]
    .into_iter()
    .enumerate()
    {
        let shapes: [&[usize]; 5] = [&x, &[m, x[1], 1, 1], &[m], &[m, 1, kernel, kernel], &[m]];
        let halves: Vec<Vec<bf16>> = shapes
            .iter()
            .enumerate()
            .map(|(k, shape)| {
                noise(5 * i + k, shape.iter().product()).into_iter().map(bf16::from_f32).collect()
            })
            .collect();
        let floats: Vec<Option<Value>> = shapes
            .iter()
            .zip(&halves)
            .map(|(shape, halves)| t(shape, &halves.iter().map(|x| x.to_f32()).collect::<Vec<_>>()))
            .collect();
        let function = |name: &str| Attribute::String(name.as_bytes().to_vec());
        let attributes = [
            ("kernel_shape", ints(&[kernel as i64; 2])),
            ("strides", ints(&[stride; 2])),
            ("pads", ints(&pads)),
            ("group", Attribute::Int(m as i64)),
            ("first_activation", function(["HardSwish", "Silu", "Relu"][i % 3])),
            ("activation", function(["Relu", "Tanh", "Silu"][i % 3])),
        ];
        let want = run_constant("rukh", "ConvPair", 1, &attributes, &floats, &[1, 3], 1).unwrap();
        let want = elements::<f32>(&want[0]);
        for [input, output] in [[false, false], [true, false], [false, true], [true, true]] {
            if input && x[1] % 2 == 1 {
                continue;
            }
            let mut inputs: Vec<Option<Value>> =
                shapes.iter().zip(&halves).map(|(shape, halves)| t(shape, halves)).collect();
            if input {
                let (shape, blocked) = block_channels((x.to_vec(), halves[0].clone()), 2);
                inputs[0] = t(&shape, &blocked);
            }
            let blocked = [
                ("channel_blocked_input", Attribute::Int(input.into())),
                ("channel_blocked_output", Attribute::Int(output.into())),
            ];
            let attributes = [&attributes[..], &blocked].concat();
            for constants in [&[][..], &[1, 3]] {
                let got = run_constant("rukh", "ConvPair", 1, &attributes, &inputs, constants, 1);
                if !crate::conv::pairs_bf16() {
                    assert!(matches!(got, Err(OpError::Unsupported(_))));
                    continue;
                }
                let got = elements::<bf16>(&got.unwrap()[0]);
                let want = if output { block_channels(want.clone(), 2) } else { want.clone() };
                assert_eq!(got.0, want.0);
                for (k, (got, want)) in got.1.iter().zip(&want.1).enumerate() {
                    let near = (got.to_f32() - want).abs() <= 0.01 * want.abs().max(1.0);
                    assert!(near, "{x:?} {m} {kernel} {stride} {input} {output}, {k}: {got} {want}");
                }
            }
        }
    }
}

/// However many threads there are, more than blocks of channels and lines too, a pair is the same; where the run is cancelled it
/// ends, with anything.
#[test]
fn pairs_on_any_number_of_threads() {
    for (ty, x, m, stride) in [
        (ElementType::F32, [1, 6, 14, 14], 40, 1),
        (ElementType::F32, [2, 3, 9, 90], 18, 2),
        (ElementType::F32, [1, 2, 1, 5], 4, 1),
        (ElementType::BF16, [1, 6, 14, 14], 40, 1),
        (ElementType::BF16, [2, 4, 9, 90], 18, 2),
        (ElementType::BF16, [1, 2, 1, 5], 4, 1),
    ] {
        if ty == ElementType::BF16 && !crate::conv::pairs_bf16() {
            // The processor has no products of bfloat16 that pairs are made of.
            continue;
        }
        let tensor = |shape: &[usize]| match ty {
            ElementType::BF16 => t(shape, &ramp::<bf16>(shape.iter().product())),
            _ => t(shape, &ramp::<f32>(shape.iter().product())),
        };
        let inputs = [&x[..], &[m, x[1], 1, 1], &[m], &[m, 1, 3, 3], &[m]].map(tensor);
        let ints = |x: i64, count| Attribute::Ints(vec![x; count]);
        let attributes = [
            ("kernel_shape", ints(3, 2)),
            ("strides", ints(stride, 2)),
            ("pads", ints(1, 4)),
            ("group", Attribute::Int(m as i64)),
        ];
        let run = |pool: &Pool| {
            let out = run_on(pool, "rukh", "ConvPair", 1, &attributes, &inputs, &[1, 3], 1).unwrap();
            match ty {
                ElementType::BF16 => elements::<bf16>(&out[0]).1.iter().map(|x| x.to_f32()).collect(),
                _ => elements::<f32>(&out[0]).1,
            }
        };
        let want = run(&Pool::new(1));
        for threads in [2, 3, 8] {
            assert_eq!(run(&Pool::new(threads)), want, "{ty:?} {x:?} on {threads} threads");
        }
        let cancelled = Pool::new(2).until(Some(Arc::new(AtomicBool::new(true))));
        assert_eq!(run(&cancelled).len(), want.len());
    }
}

#[test]
fn pairs_that_are_not_allowed() {
    let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
    let tensor = |shape: &[usize]| t(shape, &ramp::<f32>(shape.iter().product()));
    let error = |x: &[usize], w1: &[usize], w2: &[usize], group: i64, kernel: i64| {
        let attributes = [("kernel_shape", ints(&[kernel; 2])), ("group", Attribute::Int(group))];
        let inputs = [tensor(x), tensor(w1), None, tensor(w2)];
        run_constant("rukh", "ConvPair", 1, &attributes, &inputs, &[], 1).unwrap_err().to_string()
    };
    for (ty, m, name, want) in [
        ("floats", 4, "channel_blocked_input", "its type is float"),
        ("halves", 4, "channel_blocked_input", "its last dimension, the channels of a block"),
        ("halves", 5, "channel_blocked_output", "there are 5 channels; allowed are multiples of 2"),
    ] {
        let attributes =
            [("kernel_shape", ints(&[3; 2])), ("group", Attribute::Int(m as i64)), (name, Attribute::Int(1))];
        let halves = |shape: &[usize]| t(shape, &ramp::<bf16>(shape.iter().product()));
        let of = |shape: &[usize]| if ty == "floats" { tensor(shape) } else { halves(shape) };
        let x: &[usize] = if name == "channel_blocked_input" { &[1, 2, 8, 8, 3] } else { &[1, 4, 8, 8] };
        let inputs = [of(x), of(&[m, 4, 1, 1]), None, of(&[m, 1, 3, 3])];
        let error =
            run_constant("rukh", "ConvPair", 1, &attributes, &inputs, &[], 1).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    for (x, w1, w2, group, kernel, want) in [
        (&[1, 3, 8, 8][..], [4, 3, 1, 1], [4, 1, 2, 2], 4, 2, "allowed are kernels of 3 x 3"),
        (&[1, 3, 8, 8], [4, 2, 1, 1], [4, 1, 3, 3], 4, 3, "input 1 (W1)"),
        (&[1, 3, 8, 8], [4, 3, 1, 2], [4, 1, 3, 3], 4, 3, "the kernel of W1"),
        (&[1, 3, 8, 8], [4, 3, 1, 1], [4, 2, 3, 3], 4, 3, "input 3 (W2)"),
        (&[1, 3, 8, 8], [4, 3, 1, 1], [8, 1, 3, 3], 4, 3, "input 3 (W2)"),
        (&[1, 3, 8], [4, 3, 1, 1], [4, 1, 3, 3], 4, 3, "its rank is 3; allowed is 4"),
        (&[1, 0, 8, 8], [4, 0, 1, 1], [4, 1, 3, 3], 4, 3, "not convolved in pairs"),
    ] {
        let error = error(x, &w1, &w2, group, kernel);
        assert!(error.contains(want), "{error}");
    }
}
