//! Convolutions on a device against the CPU's.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::super::testing::{both, both_in, small_integers as numbers};

fn ints(list: &[i64]) -> Attribute {
    Attribute::Ints(list.to_vec())
}

fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F16 => 1e-3,
        ElementType::BF16 => 8e-3,
        _ => 1e-6,
    }
}

const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

/// Image, weight, group, strides, dilations, pads.
type Case = (&'static [usize], &'static [usize], i64, &'static [i64], &'static [i64], &'static [i64]);

#[test]
fn convolutions() {
    let cases: &[Case] = &[
        (&[2, 5, 19, 17], &[70, 5, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
        (&[1, 6, 20, 21], &[8, 3, 3, 2], 2, &[2, 1], &[1, 2], &[0, 2, 1, 1]),
        (&[2, 7, 40], &[9, 7, 5], 1, &[3], &[2], &[4, 1]),
        (&[1, 3, 6, 7, 8], &[4, 3, 2, 3, 3], 1, &[1, 2, 1], &[1, 1, 2], &[1, 0, 1, 0, 1, 1]),
        (&[2, 12, 9, 9], &[12, 1, 3, 3], 12, &[2, 2], &[1, 1], &[1, 1, 1, 1]),
        (&[2, 6, 9, 9], &[12, 1, 3, 3], 6, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
        (&[2, 30, 7, 7], &[33, 30, 1, 1], 1, &[1, 1], &[1, 1], &[0, 0, 0, 0]),
        (&[1, 16, 60, 60], &[130, 16, 3, 3], 1, &[1, 1], &[1, 1], &[1, 1, 1, 1]),
    ];
    for ty in TYPES {
        for &(x, w, group, strides, dilations, pads) in cases {
            let attributes = [
                ("group", Attribute::Int(group)),
                ("strides", ints(strides)),
                ("dilations", ints(dilations)),
                ("pads", ints(pads)),
            ];
            let inputs = [numbers(ty, x), numbers(ty, w), numbers(ty, &[w[0]])];
            let Some(out) = both("Conv", 22, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} {x:?} {w:?}"), tolerance(ty));
        }
    }
}

#[test]
fn fused_convolutions() {
    for ty in TYPES {
        for (activation, group) in [("Relu", 1), ("Sigmoid", 1), ("Silu", 4)] {
            let w: &[usize] = if group == 1 { &[4, 4, 3, 3] } else { &[4, 1, 3, 3] };
            let inputs = [numbers(ty, &[2, 4, 8, 8]), numbers(ty, w), None, numbers(ty, &[2, 4, 6, 6])];
            let attributes = [
                ("activation", Attribute::String(activation.as_bytes().into())),
                ("group", Attribute::Int(group)),
            ];
            let Some(out) = both_in("com.microsoft", "FusedConv", 1, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} {activation} {group}"), tolerance(ty));
        }
    }
}

#[test]
fn transposed_convolutions() {
    let cases: &[Case] = &[
        (&[2, 5, 9, 8], &[5, 7, 3, 3], 1, &[2, 2], &[1, 1], &[1, 1, 0, 1]),
        (&[1, 6, 11], &[6, 2, 4], 3, &[3], &[2], &[0, 2]),
        (&[1, 2, 3, 4, 5], &[2, 3, 2, 2, 3], 1, &[1, 2, 1], &[1, 1, 1], &[0, 0, 1, 0, 0, 1]),
    ];
    for ty in TYPES {
        for &(x, w, group, strides, dilations, pads) in cases {
            let attributes = [
                ("group", Attribute::Int(group)),
                ("strides", ints(strides)),
                ("dilations", ints(dilations)),
                ("pads", ints(pads)),
            ];
            let bias = w[1] * group as usize;
            let inputs = [numbers(ty, x), numbers(ty, w), numbers(ty, &[bias])];
            let Some(out) = both("ConvTranspose", 22, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} {x:?} {w:?}"), tolerance(ty));
        }
    }
}
