//! Elementwise operators in straight code, on tensors that are large enough for `map_wide` and on small ones, against the
//! CPU.

use crate::graph::Attribute;
use crate::tensor::ElementType::{self, BF16, F16, F32};

use super::super::super::testing::both;
use super::super::super::testing::data::{between, tolerance};

/// A little more than `map_wide` wants, with a last tile that is not full.
const ROWS: usize = 1031;

fn check(name: &str, ty: ElementType, shapes: &[&[usize]], attributes: &[(&str, Attribute)]) -> bool {
    // Others for each operand, so that their order tells.
    let inputs: Vec<_> = (0..).zip(shapes).map(|(i, shape)| between(ty, shape, [-2.0, 2.0], i)).collect();
    let Some(result) = both(name, 22, attributes, &inputs, 1) else { return false };
    result.assert_close(&format!("{name} of {ty} {shapes:?}"), tolerance(ty));
    true
}

#[test]
fn functions() {
    let x: &[usize] = &[ROWS, 1024];
    for (name, ty) in [
        ("Gelu", F32),
        ("Gelu", F16),
        ("Sigmoid", BF16),
        ("Sigmoid", F32),
        ("Tanh", F32),
        ("Erf", F16),
        ("Exp", F32),
        ("Relu", F16),
        ("Sigmoid", F16),
        ("Gelu", BF16),
        ("Exp", BF16),
        ("Tanh", F16),
        ("HardSwish", F32),
    ] {
        if !check(name, ty, &[x], &[]) {
            return;
        }
    }
    check("Gelu", F16, &[x], &[("approximate", Attribute::String("tanh".into()))]);
    check("LeakyRelu", F32, &[x], &[("alpha", Attribute::Float(0.3))]);
    check("Cast", F32, &[x], &[("to", Attribute::Int(F16 as i64))]);
    check("Cast", BF16, &[x], &[("to", Attribute::Int(F32 as i64))]);
}

#[test]
fn operands() {
    let x: &[usize] = &[ROWS, 8, 128];
    for ty in [F32, F16] {
        for other in [&[ROWS, 8, 128][..], &[128], &[8, 1], &[ROWS, 1, 128], &[1], &[ROWS, 1, 1]] {
            for name in ["Add", "Mul", "Less"] {
                if !check(name, ty, &[x, other], &[]) {
                    return;
                }
            }
        }
        check("Sub", ty, &[x, x], &[]);
        // More than two, and both of the first two broadcast.
        check("Sum", ty, &[&[ROWS, 1, 128], &[8, 1], x, &[1]], &[]);
        // Rows of which no pack is whole.
        check("Sub", ty, &[&[ROWS, 1021], &[1021]], &[]);
    }
    check("Mul", BF16, &[x, x], &[]);
}

#[test]
fn small_tensors() {
    // Dense, one element, rows and what they broadcast over, whole packs and a rest.
    let cases: [(&str, &[&[usize]]); 7] = [
        ("Sub", &[&[3, 5, 24], &[24]]),
        ("Mul", &[&[2, 7, 40], &[2, 1, 40]]),
        ("Div", &[&[37], &[1]]),
        ("Add", &[&[9, 9], &[9, 1]]),
        ("Less", &[&[4, 16], &[4, 1]]),
        ("Sum", &[&[6, 8], &[6, 8], &[8], &[1]]),
        ("Max", &[&[2, 3, 8], &[3, 1], &[2, 3, 8], &[2, 1, 1], &[8]]),
    ];
    for ty in [F32, F16, BF16] {
        for (name, shapes) in cases {
            if !check(name, ty, shapes, &[]) {
                return;
            }
        }
    }
}
