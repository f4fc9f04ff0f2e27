//! 8-bit products and convolutions on a device against the CPU's.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Tensor, Value};

use super::super::testing::{both, pattern};

fn scales(values: &[f32]) -> Option<Value> {
    let shape: &[usize] = if values.len() == 1 { &[] } else { &[values.len()] };
    Some(Value::Tensor(Tensor::from_slice(shape, values).expect("memory for a test")))
}

#[test]
fn products() {
    for (a, b) in [(ElementType::U8, ElementType::I8), (ElementType::I8, ElementType::I8)] {
        let inputs = [pattern(a, &[2, 70, 90]), pattern(b, &[90, 33]), pattern(a, &[]), pattern(b, &[33])];
        let Some(out) = both("MatMulInteger", 10, &[], &inputs, 1) else { return };
        out.assert_equal(&format!("{a} {b}"));

        let inputs = [
            pattern(a, &[3, 20, 30]),
            scales(&[0.01]),
            pattern(a, &[]),
            pattern(b, &[3, 30, 4]),
            scales(&[0.02, 0.03, 0.01, 0.04]),
            pattern(b, &[4]),
            scales(&[0.5]),
            pattern(a, &[]),
        ];
        let Some(out) = both("QLinearMatMul", 21, &[], &inputs, 1) else { return };
        out.assert_close(&format!("QLinearMatMul {a} {b}"), 0.0);
    }
}

#[test]
fn convolutions() {
    let cases: &[(&[usize], &[usize], i64)] = &[
        (&[2, 5, 13, 11], &[66, 5, 3, 3], 1),
        (&[2, 6, 9, 9], &[6, 1, 3, 3], 6),
        (&[1, 6, 9, 9], &[12, 3, 2, 3], 2),
    ];
    for &(x, w, group) in cases {
        let attributes = [("group", Attribute::Int(group)), ("pads", Attribute::Ints(vec![1, 0, 1, 1]))];
        let (u8s, i8s) = (ElementType::U8, ElementType::I8);
        let inputs = [pattern(u8s, x), pattern(u8s, w), pattern(u8s, &[]), pattern(u8s, &[w[0]])];
        let Some(out) = both("ConvInteger", 10, &attributes, &inputs, 1) else { return };
        out.assert_equal(&format!("ConvInteger {x:?} {w:?}"));

        let bias: Vec<i32> = (0..w[0] as i32).map(|i| i * 100 - 300).collect();
        let inputs = [
            pattern(u8s, x),
            scales(&[0.02]),
            pattern(u8s, &[]),
            pattern(i8s, w),
            scales(&(0..w[0]).map(|i| 0.001 * (i + 1) as f32).collect::<Vec<_>>()),
            pattern(i8s, &[w[0]]),
            scales(&[0.3]),
            pattern(u8s, &[]),
            Some(Value::Tensor(Tensor::from_slice(&[w[0]], &bias).expect("memory for a test"))),
        ];
        let Some(out) = both("QLinearConv", 10, &attributes, &inputs, 1) else { return };
        out.assert_close(&format!("QLinearConv {x:?} {w:?}"), 0.0);
    }
}
