//! Reductions of every layout and type against the CPU.

use crate::graph::Attribute;
use crate::tensor::ElementType::{BF16, F16, F32, F64, I8, I32, I64, U8, U64};

use super::super::testing::data::{mixed, tensor, tolerance};
use super::super::testing::{both, both_in};

#[test]
fn layouts() {
    // One output and many, rows and columns, split and whole, runs that are no multiple of a pack.
    let cases: [(&[usize], &[i64]); 16] = [
        // Whole units of runs, a team of each size, and split; packs of columns, split.
        (&[1000, 8], &[1]),
        (&[30, 4100], &[1]),
        (&[2, 100_000], &[1]),
        (&[3, 9000, 64], &[1]),
        (&[3, 5], &[1]),
        (&[1000, 7], &[1]),
        (&[2, 100_003], &[1]),
        (&[40_001], &[0]),
        (&[20_001, 3], &[0]),
        (&[300, 260], &[0]),
        (&[3, 5, 7, 9], &[0, 2]),
        (&[3, 5, 7, 9], &[1, 3]),
        (&[6, 4, 1000], &[0, 2]),
        (&[2, 3000, 40], &[1]),
        (&[2, 0, 3], &[1]),
        (&[4, 6], &[]),
    ];
    for (shape, axes) in cases {
        for name in ["ReduceSum", "ReduceLogSumExp", "ReduceMax"] {
            let axes_value = tensor(&[axes.len()], axes.iter().copied());
            let opset = if name == "ReduceSum" { 13 } else { 18 };
            let inputs = [mixed(F32, shape), axes_value];
            let Some(both) = both(name, opset, &[], &inputs, 1) else { return };
            // A sum's rounding is of the size of its terms.
            both.assert_close(&format!("{name} {shape:?} {axes:?}"), 2e-4);
        }
    }
}

#[test]
fn types_and_reductions() {
    for name in [
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSumSquare",
    ] {
        for ty in [F32, F64, F16, BF16, I32, I8, U8, U64] {
            for (shape, axis) in [([3, 50], 1i64), ([50, 6], 0), ([3, 48], 1), ([50, 8], 0)] {
                // Exponentials of integers leave the range that truncation forgives.
                if !ty.is_float() && name.contains("Log") {
                    continue;
                }
                let inputs = [mixed(ty, &shape), tensor(&[1], [axis].into_iter())];
                let Some(both) = both(name, 18, &[], &inputs, 1) else { return };
                let what = format!("{name} of {ty} {shape:?}");
                if ty.is_float() {
                    both.assert_close(&what, 4.0 * tolerance(ty));
                } else {
                    both.assert_equal(&what);
                }
            }
        }
    }
}

#[test]
fn whole_units() {
    for ty in [F32, F16, BF16] {
        for (shape, axis) in
            [([7, 4096], 1i64), ([3, 9000], 1), ([1, 70_000], 1), ([700, 136], 0), ([9000, 8], 0)]
        {
            for name in ["ReduceMean", "ReduceMax", "ReduceL1", "ReduceL2"] {
                let inputs = [mixed(ty, &shape), tensor(&[1], [axis].into_iter())];
                let Some(both) = both(name, 18, &[], &inputs, 1) else { return };
                both.assert_close(&format!("{name} of {ty} {shape:?}"), 4.0 * tolerance(ty));
            }
        }
    }
}

#[test]
fn sums_and_a_constant() {
    let [int, long] = [6, 7];
    for (ty, to, added) in [(I64, int, -1), (I64, long, 1 << 40), (I32, int, i64::from(i32::MAX))] {
        for (shape, axes) in
            [(&[2, 2048][..], 1i64), (&[3, 7], 1), (&[50, 6], 0), (&[1, 100_002], 1), (&[2, 0], 1)]
        {
            let attributes = [("added", Attribute::Int(added)), ("to", Attribute::Int(to))];
            let inputs = [mixed(ty, shape), tensor(&[1], [axes].into_iter())];
            let Some(both) = both_in("rukh", "ReduceSum", 1, &attributes, &inputs, 1) else { return };
            both.assert_equal(&format!("{added} and {shape:?} of {ty} along {axes}"));
        }
    }
}

#[test]
fn nothing_and_infinities() {
    let minus = f32::NEG_INFINITY;
    for elements in [vec![], vec![minus, minus], vec![f32::INFINITY, 1.0], vec![f32::NAN, 1.0, minus]] {
        for name in ["ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSumExp", "ReduceProd"] {
            let inputs = [tensor(&[elements.len()], elements.iter().copied())];
            let Some(both) = both(name, 18, &[], &inputs, 1) else { return };
            both.assert_close(&format!("{name} {elements:?}"), 1e-6);
        }
    }
    for ty in [I8, I32, U8] {
        for name in ["ReduceMax", "ReduceMin"] {
            let Some(both) = both(name, 20, &[], &[mixed(ty, &[0])], 1) else { return };
            both.assert_equal(&format!("{name} of no {ty}"));
        }
    }
}
