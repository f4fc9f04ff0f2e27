//! Convolutions of images with their channels innermost against the CPU's.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::super::testing::data::{mixed, tolerance};
use super::super::super::testing::nhwc::both_nhwc;
use super::super::super::testing::small_integers as numbers;

fn ints(list: &[i64]) -> Attribute {
    Attribute::Ints(list.to_vec())
}

const TYPES: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::BF16];

/// How a weight's axes go: those of a depthwise one differ.
fn permutation(rank: i64, depthwise: bool) -> Vec<i64> {
    match depthwise {
        true => (1..rank).chain([0]).collect(),
        false => [0].into_iter().chain(2..rank).chain([1]).collect(),
    }
}

/// Image, weight, group, strides, dilations, pads.
type Case = (&'static [usize], &'static [usize], i64, &'static [i64], &'static [i64], &'static [i64]);

const CASES: &[Case] = &[
    // Channels that are packs, parts of packs, and whole steps of K.
    (&[2, 3, 19, 17], &[70, 3, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[1, 8, 12, 13], &[16, 8, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[3, 12, 9, 10], &[20, 12, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[1, 16, 60, 20], &[130, 16, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[3, 64, 9, 9], &[64, 64, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[1, 100, 8, 8], &[33, 100, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    // Windows.
    (&[1, 24, 20, 21], &[40, 24, 3, 2], 1, &[2, 1], &[1, 2], &[0, 2, 1, 1]),
    (&[2, 8, 30, 30], &[64, 8, 7, 7], 1, &[2, 2], &[1, 1], &[3, 3, 3, 3]),
    (&[2, 16, 16, 16], &[32, 16, 4, 4], 1, &[4, 4], &[1, 1], &[0, 0, 0, 0]),
    (&[1, 16, 5, 5], &[8, 16, 5, 5], 1, &[1, 1], &[2, 2], &[4, 4, 4, 4]),
    // Taps of a line that are copied as one.
    (&[2, 16, 21, 18], &[64, 16, 4, 4], 1, &[1, 1], &[1, 1], &[0, 0, 0, 0]),
    (&[2, 8, 13, 14], &[24, 8, 3, 3], 1, &[2, 2], &[1, 1], &[1, 0, 1, 0]),
    // Pixels.
    (&[3, 30, 7, 7], &[33, 30, 1, 1], 1, &[1, 1], &[1, 1], &[0, 0, 0, 0]),
    (&[2, 64, 9, 9], &[72, 64, 1, 1], 1, &[1, 1], &[1, 1], &[0, 0, 0, 0]),
    (&[2, 64, 9, 9], &[72, 64, 1, 1], 1, &[2, 2], &[1, 1], &[0, 0, 0, 0]),
    // Groups, of few channels and of many.
    (&[2, 32, 9, 9], &[48, 16, 3, 3], 2, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[2, 6, 9, 8], &[12, 3, 3, 3], 2, &[2, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[1, 16, 9, 8], &[16, 4, 3, 3], 4, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[2, 6, 9, 9], &[12, 1, 3, 3], 6, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[2, 32, 5, 5], &[16, 16, 1, 1], 2, &[1, 1], &[1, 1], &[0, 0, 0, 0]),
    // A channel by itself.
    (&[2, 16, 9, 9], &[16, 1, 3, 3], 16, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[1, 24, 11, 13], &[24, 1, 5, 5], 24, &[2, 2], &[1, 1], &[2, 2, 2, 2]),
    (&[3, 12, 9, 9], &[12, 1, 3, 3], 12, &[2, 1], &[2, 1], &[1, 0, 2, 1]),
    (&[2, 512, 40, 47], &[512, 1, 3, 3], 512, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[3, 510, 40, 33], &[510, 1, 3, 3], 510, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    (&[1, 40, 12, 12], &[40, 1, 11, 11], 40, &[1, 1], &[1, 1], &[5, 5, 5, 5]),
    (&[2, 24, 9, 20], &[24, 1, 2, 9], 24, &[1, 2], &[1, 1], &[0, 4, 1, 4]),
    (&[1, 8, 20, 20], &[8, 1, 31, 31], 8, &[2, 2], &[1, 1], &[15, 15, 15, 15]),
    (&[1, 100, 14, 14], &[100, 1, 7, 7], 100, &[1, 1], &[1, 1], &[3, 3, 3, 3]),
    // One axis, and three.
    (&[2, 7, 40], &[9, 7, 5], 1, &[3], &[2], &[4, 1]),
    (&[3, 80, 50], &[96, 80, 3], 1, &[1], &[1], &[1, 1]),
    (&[2, 16, 30], &[16, 1, 4], 16, &[1], &[1], &[3, 0]),
    (&[1, 8, 6, 7, 8], &[12, 8, 2, 3, 3], 1, &[1, 2, 1], &[1, 1, 2], &[1, 0, 1, 0, 1, 1]),
    (&[2, 8, 5, 6, 7], &[8, 1, 3, 3, 3], 8, &[2, 1, 1], &[1, 1, 1], &[1, 1, 1, 1, 1, 1]),
];

#[test]
fn convolutions() {
    for ty in TYPES {
        for &(x, w, group, strides, dilations, pads) in CASES {
            let attributes = [
                ("group", Attribute::Int(group)),
                ("strides", ints(strides)),
                ("dilations", ints(dilations)),
                ("pads", ints(pads)),
            ];
            let inputs = [numbers(ty, x), numbers(ty, w), numbers(ty, &[w[0]])];
            let depthwise = w[1] == 1 && w[0] as i64 == group;
            let perm = permutation(w.len() as i64, depthwise);
            let Some(out) = both_nhwc(("", "Conv", 22), ("NhwcConv", &[]), &attributes, &inputs, &perm)
            else {
                return;
            };
            // Sums of small integers are exact in f32.
            let rounding = if ty == ElementType::F32 { 1e-6 } else { tolerance(ty) };
            out.assert_close(&format!("{ty} {x:?} {w:?} group {group}"), rounding);
        }
    }
}

#[test]
fn residuals_and_functions() {
    let functions: &[(&str, &[f32])] = &[
        ("", &[]),
        ("Relu", &[]),
        ("LeakyRelu", &[0.1]),
        ("Clip", &[0.0, 6.0]),
        ("Sigmoid", &[]),
        ("Tanh", &[]),
        ("HardSigmoid", &[0.2, 0.5]),
        ("HardSwish", &[]),
        ("Silu", &[]),
        ("Gelu", &[]),
        ("GeluTanh", &[]),
        ("Elu", &[1.0]),
        ("Softplus", &[]),
    ];
    // Products of patches, in parts of K too, of pixels, directly, and depthwise.
    let shapes: &[(&[usize], &[usize], i64)] = &[
        (&[2, 16, 8, 8], &[24, 16, 3, 3], 1),
        (&[1, 128, 5, 5], &[16, 128, 3, 3], 1),
        (&[2, 16, 6, 6], &[24, 16, 1, 1], 1),
        (&[1, 8, 6, 6], &[8, 4, 3, 3], 2),
        (&[2, 16, 8, 8], &[16, 1, 3, 3], 16),
        (&[2, 9, 8, 8], &[9, 1, 3, 3], 9),
    ];
    for ty in TYPES {
        for &(name, constants) in functions {
            for &(x, w, group) in shapes {
                let side = x[2] + 1 - w[2];
                let inputs = [mixed(ty, x), mixed(ty, w), None, mixed(ty, &[x[0], w[0], side, side])];
                let attributes = [
                    ("activation", Attribute::String(name.as_bytes().into())),
                    ("activation_params", Attribute::Floats(constants.to_vec())),
                    ("group", Attribute::Int(group)),
                ];
                let perm = permutation(4, group > 2);
                let cpu = ("com.microsoft", "FusedConv", 1);
                let Some(out) = both_nhwc(cpu, ("NhwcConv", &[]), &attributes, &inputs, &perm) else {
                    return;
                };
                // Sums of over a thousand products.
                let rounding = tolerance(ty).max(2e-4);
                out.assert_close(&format!("{ty} {name} {x:?} {w:?}"), rounding);
            }
        }
    }
}
