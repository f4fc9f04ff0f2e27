//! Quantization and narrow types against the CPU, byte by byte.

use crate::graph::Attribute;
use crate::tensor::ElementType::{self, BF16, F16, F32, F64, I32, U8};

use super::super::testing::data::{mixed, tensor};
use super::super::testing::{both, pattern};
use super::convert::converts;

/// Numbers around every limit of the narrow formats.
fn edges() -> Vec<f32> {
    let mut all = vec![f32::NAN, f32::INFINITY, 0.0, 1e-45, 1e-39, 1.5e-40];
    for exponent in -20..20 {
        for digits in 0..32 {
            all.push((1.0 + digits as f32 / 32.0) * 2f32.powi(exponent));
        }
    }
    for exponent in [-127, -126, -125, 125, 126, 127] {
        all.push(2f32.powi(exponent) * 1.5);
        all.push(2f32.powi(exponent) * 1.25);
    }
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

#[test]
fn casts_to_narrow_types() {
    let all = edges();
    for to in ElementType::all().filter(|&ty| converts(ty)) {
        for saturate in [0, 1] {
            for mode in ["up", "down", "nearest"] {
                let attributes = [
                    ("to", Attribute::Int(to as i64)),
                    ("saturate", Attribute::Int(saturate)),
                    ("round_mode", Attribute::String(mode.into())),
                ];
                let inputs = [tensor(&[all.len()], all.iter().copied())];
                let Some(both) = both("Cast", 28, &attributes, &inputs, 1) else { return };
                both.assert_equal(&format!("Cast to {to}, saturate {saturate}, {mode}"));
            }
        }
    }
}

#[test]
fn casts_from_narrow_types() {
    for from in ElementType::all().filter(|&ty| converts(ty)) {
        for to in [F32, F16, BF16, F64, I32, U8] {
            let x = pattern(from, &[1000]);
            let attributes = [("to", Attribute::Int(to as i64))];
            let Some(both) = both("Cast", 28, &attributes, &[x], 1) else { return };
            both.assert_close(&format!("Cast from {from} to {to}"), 0.0);
        }
    }
}

#[test]
fn scales_of_every_granularity() {
    let positive = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        tensor(shape, (0..count).map(|i| 0.01 + 0.001 * (i % 7) as f32))
    };
    for (block, scales) in [(0, vec![]), (0, vec![10]), (4, vec![6, 3, 5])] {
        let shape = [6, 10, 5];
        let attributes = [("axis", Attribute::Int(1)), ("block_size", Attribute::Int(block))];
        let inputs = [mixed(F32, &shape), positive(&scales), mixed(U8, &scales)];
        let Some(device) = both("QuantizeLinear", 21, &attributes, &inputs, 1) else { return };
        device.assert_equal(&format!("QuantizeLinear {block} {scales:?}"));
        let inputs = [pattern(U8, &shape), positive(&scales), mixed(U8, &scales)];
        let Some(device) = both("DequantizeLinear", 21, &attributes, &inputs, 1) else { return };
        device.assert_equal(&format!("DequantizeLinear {block} {scales:?}"));
    }
    for count in [1, 1000, 70_001] {
        let Some(device) = both("DynamicQuantizeLinear", 11, &[], &[mixed(F32, &[count])], 3) else { return };
        device.assert_equal(&format!("DynamicQuantizeLinear of {count}"));
    }
}

#[test]
fn one_scale_for_many() {
    // Halves between two integers, numbers beyond all of them, and what no tile of whole packs takes.
    let count = 9001;
    let numbers = |i: usize| match i % 64 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => 3e38,
        4 => -3e38,
        5 => 1e-42,
        _ => (i as f32 - 4500.0) * 0.0625 + if i.is_multiple_of(7) { 1e-6 } else { 0.0 },
    };
    for (scale, zero) in [(0.125, 3u8), (0.1, 128), (1e-3, 0), (1e-35, 7), (3e36, 7), (1.7, 255)] {
        for ty in [F32, F16, BF16] {
            let of = |all: Vec<f32>, shape: &[usize]| match ty {
                F16 => tensor(shape, all.into_iter().map(crate::tensor::f16::from_f32)),
                BF16 => tensor(shape, all.into_iter().map(crate::tensor::bf16::from_f32)),
                _ => tensor(shape, all.into_iter()),
            };
            // Half precision has no such scales.
            if ty == F16 && !(1e-3..1e3).contains(&scale) {
                continue;
            }
            let x = of((0..count).map(numbers).collect(), &[count]);
            let inputs = [x, of(vec![scale], &[]), tensor(&[], [zero].into_iter())];
            let Some(device) = both("QuantizeLinear", 21, &[], &inputs, 1) else { return };
            device.assert_equal(&format!("QuantizeLinear of {ty} by {scale}"));
            let inputs = [pattern(U8, &[count]), of(vec![scale], &[]), tensor(&[], [zero].into_iter())];
            let Some(device) = both("DequantizeLinear", 21, &[], &inputs, 1) else { return };
            device.assert_equal(&format!("DequantizeLinear to {ty} by {scale}"));
        }
    }
}
