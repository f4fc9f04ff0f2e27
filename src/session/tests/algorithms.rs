//! The placement tells which algorithm a node got, where a provider has several.

use super::*;
use crate::model::testing::{floats, int};
use crate::tensor::ElementType::{self, F32, F64};

/// An operator, the shape of `x`, the constant weight's shape if there is one (else `w` is an input of shape `x`), the
/// attribute group, and what the placement must tell.
type Case = (&'static str, ElementType, &'static [i64], Option<&'static [i64]>, Option<i64>, &'static str);

const CASES: &[Case] = &[
    ("Conv", F32, &[1, 32, 8, 8], Some(&[32, 32, 3, 3]), None, "Winograd 3×3"),
    ("Conv", F32, &[1, 8, 8, 8], Some(&[8, 1, 3, 3]), Some(8), "depthwise"),
    ("Conv", F32, &[1, 2, 8, 8], Some(&[3, 2, 3, 3]), None, "direct"),
    ("Conv", F32, &[1, 2, 4, 4, 4], Some(&[3, 2, 3, 3, 3]), None, "direct"),
    ("Conv", F32, &[1, 4, 4, 4, 4], Some(&[4, 2, 3, 3, 3]), Some(2), "im2col"),
    ("MatMul", F32, &[4, 4], Some(&[4, 4]), None, "sgemm, packed"),
    ("MatMul", F32, &[4, 4], None, None, "sgemm"),
    ("MatMul", F64, &[4, 4], None, None, "plain"),
];

#[test]
fn the_placement_tells_the_algorithm() {
    for &(op, ty, x, weight, group, want) in CASES {
        let dims: Vec<String> = x.iter().map(ToString::to_string).collect();
        let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
        let model = ModelBuilder::new().input("x", ty, &dims);
        let model = match weight {
            Some(shape) => {
                model.initializer(floats("w", shape, &vec![0.5; shape.iter().product::<i64>() as usize]))
            }
            None => model.input("w", ty, &dims),
        };
        let attributes: Vec<_> = group.map(|n| int("group", n)).into_iter().collect();
        let session = open(&model.node_with(op, &attributes, &["x", "w"], &["y"]).output("y")).unwrap();
        let told: Vec<&str> = session.placement().iter().map(|row| row.reason.as_str()).collect();
        assert!(told.iter().any(|reason| reason.ends_with(want)), "{op} {x:?} {weight:?}: {told:?}");
    }
}
