//! 8-bit products and convolutions on a device against the CPU's.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Tensor, Value};

use super::super::testing::{both, both_with, pattern, provider};

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

/// Shapes of two operands, large enough for matrix cores, where there are some: odd sizes; a sum of several parts, and K
/// divided among workgroups; K that fills its lines; a row; stacks of one operand or of both.
const LARGE: [Shapes; 7] = [
    (&[130, 301], &[301, 149]),
    (&[67, 2100], &[2100, 33]),
    (&[5, 4000], &[4000, 130]),
    (&[2, 128, 256], &[256, 128]),
    (&[1, 1024], &[1024, 2100]),
    (&[3, 60, 200], &[3, 200, 72]),
    (&[90, 200], &[2, 200, 72]),
];
/// As many tiles as sm_90's own kernels want, for a processor each and for more; whole lines of signed bytes. Too much for an
/// emulated device, which lacks these kernels.
const FOR_HOPPER: [Shapes; 4] = [
    (&[500, 96], &[96, 650]),
    (&[2, 450, 80], &[2, 80, 760]),
    (&[1500, 70], &[70, 1451]),
    (&[1030, 64], &[64, 2100]),
];
type Shapes = (&'static [usize], &'static [usize]);

#[test]
fn large_products() {
    use ElementType::{I8, U8};
    let Some(provider) = provider(&[]) else { return };
    let hopper = FOR_HOPPER.into_iter().filter(|_| provider.unit().wgmma);
    let shapes: Vec<Shapes> = LARGE.into_iter().chain(hopper).collect();
    for (a, b) in [(U8, I8), (U8, U8), (I8, I8), (I8, U8)] {
        for &(left, right) in &shapes {
            let (rows, columns) = (left[left.len() - 2], right[right.len() - 1]);
            let what = format!("{a} {left:?}, {b} {right:?}");
            let inputs = [pattern(a, left), pattern(b, right), pattern(a, &[]), pattern(b, &[columns])];
            let Some(out) = both("MatMulInteger", 10, &[], &inputs, 1) else { return };
            out.assert_equal(&what);

            // By row, and none.
            for zero in [pattern(a, &[rows]).filter(|_| left.len() == 2), None] {
                let out = both("MatMulInteger", 10, &[], &[pattern(a, left), pattern(b, right), zero], 1);
                out.expect("there is a device").assert_equal(&what);
            }

            let scale = |i: usize| 0.001 + 0.0001 * (i % 7) as f32;
            let inputs = [
                pattern(a, left),
                scales(&[0.013]),
                pattern(a, &[]),
                pattern(b, right),
                scales(&(0..columns).map(scale).collect::<Vec<_>>()),
                pattern(b, &[columns]),
                scales(&[0.7]),
                pattern(a, &[]),
            ];
            let out = both("QLinearMatMul", 21, &[], &inputs, 1).expect("there is a device");
            out.assert_rounded(&format!("QLinearMatMul {what}"));
        }
    }
}

#[test]
fn large_convolutions() {
    use ElementType::{I8, U8};
    // Image, weight, groups, strides, dilations.
    type Case<'a> = (&'a [usize], &'a [usize], i64, [i64; 2], [i64; 2]);
    let cases: [Case<'_>; 7] = [
        (&[2, 20, 15, 17], &[66, 20, 3, 3], 1, [1, 1], [1, 1]),
        (&[1, 3, 41, 37], &[32, 3, 7, 7], 1, [2, 2], [1, 1]),
        (&[3, 64, 13, 13], &[80, 64, 1, 1], 1, [1, 1], [1, 1]),
        (&[2, 48, 14, 11], &[72, 24, 3, 3], 2, [1, 2], [2, 1]),
        (&[1, 130, 9, 9], &[40, 130, 3, 3], 1, [1, 1], [1, 1]),
        (&[2, 33, 19, 14], &[70, 33, 3, 2], 1, [2, 1], [1, 3]),
        (&[1, 520, 8, 7], &[30, 520, 3, 3], 1, [1, 1], [1, 1]),
    ];
    for (x, w, group, strides, dilations) in cases {
        for (image, weight) in [(U8, I8), (I8, I8), (U8, U8)] {
            let what = format!("{image} {x:?}, {weight} {w:?}");
            let attributes = [
                ("group", Attribute::Int(group)),
                ("pads", Attribute::Ints(vec![1, 0, 1, 1])),
                ("strides", Attribute::Ints(strides.to_vec())),
                ("dilations", Attribute::Ints(dilations.to_vec())),
            ];
            let zero = Some(Value::Tensor(match image {
                U8 => Tensor::from_slice(&[], &[113u8]).expect("memory for a test"),
                _ => Tensor::from_slice(&[], &[-7i8]).expect("memory for a test"),
            }));
            // With zero points of the weight, and without.
            for w_zero in [pattern(weight, &[w[0]]), None] {
                let inputs = [pattern(image, x), pattern(weight, w), zero.clone(), w_zero];
                let Some(out) = both("ConvInteger", 10, &attributes, &inputs, 1) else { return };
                out.assert_equal(&format!("ConvInteger {what}"));
            }

            let bias: Vec<i32> = (0..w[0] as i32).map(|i| i * 100 - 300).collect();
            let inputs = [
                pattern(image, x),
                scales(&[0.02]),
                zero,
                pattern(weight, w),
                scales(&(0..w[0]).map(|i| 0.001 * (i % 5 + 1) as f32).collect::<Vec<_>>()),
                pattern(weight, &[w[0]]),
                scales(&[0.9]),
                pattern(image, &[]),
                Some(Value::Tensor(Tensor::from_slice(&[w[0]], &bias).expect("memory for a test"))),
            ];
            let out = both("QLinearConv", 10, &attributes, &inputs, 1).expect("there is a device");
            out.assert_rounded(&format!("QLinearConv {what}"));
        }
    }
}

#[test]
fn constant_operands() {
    use ElementType::{I8, U8};
    let zeros =
        |n: usize| Some(Value::Tensor(Tensor::from_slice(&[n], &vec![0i8; n]).expect("memory for a test")));
    for weight in [I8, U8] {
        // The matrix, and its zero points too.
        let w_zero = if weight == I8 { zeros(70) } else { pattern(U8, &[70]) };
        let inputs = [pattern(U8, &[2, 40, 700]), pattern(weight, &[700, 70]), pattern(U8, &[]), w_zero];
        for constants in [&[1][..], &[1, 3]] {
            let Some(out) = both_with("", "MatMulInteger", 10, &[], &inputs, constants) else { return };
            out.assert_equal(&format!("MatMulInteger {weight}, constants {constants:?}"));
        }
        let pads = [("pads", Attribute::Ints(vec![1, 1, 1, 0]))];
        let w_zero = if weight == I8 { zeros(40) } else { pattern(U8, &[40]) };
        let inputs =
            [pattern(U8, &[2, 36, 14, 13]), pattern(weight, &[40, 36, 3, 3]), pattern(U8, &[]), w_zero];
        let out = both_with("", "ConvInteger", 10, &pads, &inputs, &[1, 3]).expect("there is a device");
        out.assert_equal(&format!("ConvInteger {weight}"));
        // A window of one place, without anything around the image.
        let w_zero = zeros(40).filter(|_| weight == I8);
        let inputs =
            [pattern(U8, &[3, 72, 13, 13]), pattern(weight, &[40, 72, 1, 1]), pattern(U8, &[]), w_zero];
        let out = both_with("", "ConvInteger", 10, &[], &inputs, &[1, 3]).expect("there is a device");
        out.assert_equal(&format!("ConvInteger of one place {weight}"));
    }
}
