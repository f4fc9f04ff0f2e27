//! Operators by index and by order on the device against those of the CPU.

use crate::graph::Attribute;
use crate::tensor::{Element, ElementType as E, Tensor, Value, f16};

use super::super::testing::{both, both_with, pattern};

fn t<T: Element>(shape: &[usize], elements: &[T]) -> Option<Value> {
    Some(Value::Tensor(Tensor::from_slice(shape, elements).expect("memory for a test")))
}

/// `count` indices within −length…length−1, many of them more than once.
fn indices(count: usize, length: i64) -> Vec<i64> {
    (0..count as i64).map(|i| i * i * 7919 % (2 * length) - length).collect()
}

#[test]
fn gathers() {
    for ty in [E::U8, E::F16, E::F32, E::I64, E::C128] {
        for (shape, axis) in [(&[7, 5, 16][..], 0), (&[7, 5, 9], 1), (&[4, 3, 33], -1), (&[50, 1], 0)] {
            let axis_attribute = [("axis", Attribute::Int(axis))];
            let length = shape[axis.rem_euclid(shape.len() as i64) as usize] as i64;
            let picks = indices(6, length);
            let picks32: Vec<i32> = picks.iter().map(|&i| i as i32).collect();
            for picks in [t(&[2, 3], &picks), t(&[6], &picks32), t::<i64>(&[0], &[]), t(&[], &[-1i64])] {
                let inputs = [pattern(ty, shape), picks];
                let Some(result) = both("Gather", 13, &axis_attribute, &inputs, 1) else { return };
                result.assert_equal(&format!("Gather {ty} {shape:?} {axis}"));
                let Some(result) = both_with("", "Gather", 13, &axis_attribute, &inputs, &[0]) else {
                    return;
                };
                result.assert_equal(&format!("Gather of a constant {ty} {shape:?} {axis}"));
            }
            let count = shape.iter().product();
            let inputs = [pattern(ty, shape), t(shape, &indices(count, length))];
            let Some(result) = both("GatherElements", 13, &axis_attribute, &inputs, 1) else { return };
            result.assert_equal(&format!("GatherElements {ty} {shape:?} {axis}"));
        }
        for (batch, shape, picks) in
            [(0, &[4, 5, 16][..], &[9, 2][..]), (1, &[4, 5, 6], &[4, 3, 1]), (0, &[8], &[5, 1])]
        {
            let attributes = [("batch_dims", Attribute::Int(batch))];
            let least = *shape.iter().min().expect("dimensions") as i64;
            let inputs = [pattern(ty, shape), t(picks, &indices(picks.iter().product(), least))];
            let Some(result) = both("GatherND", 13, &attributes, &inputs, 1) else { return };
            result.assert_equal(&format!("GatherND {ty} {shape:?}"));
        }
        let attributes = [("time_axis", Attribute::Int(1)), ("batch_axis", Attribute::Int(0))];
        let inputs = [pattern(ty, &[3, 6, 5]), t(&[3], &[6i64, 0, 4])];
        let Some(result) = both("ReverseSequence", 10, &attributes, &inputs, 1) else { return };
        result.assert_equal(&format!("ReverseSequence {ty}"));
    }
}

#[test]
fn many_long_slices() {
    let picks = indices(60, 9);
    let inputs = [pattern(E::F32, &[9, 20_001, 4]), t(&[60], &picks)];
    let Some(result) = both("Gather", 13, &[("axis", Attribute::Int(0))], &inputs, 1) else { return };
    result.assert_equal("Gather of many units");
}

#[test]
fn the_last_update_stays() {
    for ty in [E::U8, E::F16, E::F32, E::I64, E::C128] {
        for (shape, updates, axis) in [(&[40, 9][..], &[700, 9][..], 0), (&[3, 50], &[3, 600], 1)] {
            let attributes = [("axis", Attribute::Int(axis))];
            let picks = indices(updates.iter().product(), shape[axis as usize] as i64);
            let inputs = [pattern(ty, shape), t(updates, &picks), pattern(ty, updates)];
            let Some(result) = both("ScatterElements", 18, &attributes, &inputs, 1) else { return };
            result.assert_equal(&format!("ScatterElements {ty} {shape:?}"));
        }
        let inputs = [pattern(ty, &[6, 7, 12]), t(&[90, 2], &indices(180, 6)), pattern(ty, &[90, 12])];
        let Some(result) = both("ScatterND", 18, &[], &inputs, 1) else { return };
        result.assert_equal(&format!("ScatterND {ty}"));
    }
}

#[test]
fn updates_are_combined_in_their_order() {
    // More than are compared with each other, so that they are sorted.
    let many = 40_000;
    for reduction in ["add", "mul", "max", "min"] {
        let attributes = [("reduction", Attribute::String(reduction.into()))];
        for count in [700, many] {
            let picks = t(&[count], &indices(count, 500));
            let numbers: Vec<f32> = (0..count).map(|i| 0.75 + (i * 31 % 64) as f32 / 128.0).collect();
            let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
            let longs: Vec<i64> = (0..count as i64).map(|i| i * 977 - 9).collect();
            let bytes: Vec<u8> = (0..count).map(|i| i as u8).collect();
            let what = format!("{reduction} {count}");
            let inputs = [t(&[500], &numbers[..500]), picks.clone(), t(&[count], &numbers)];
            let Some(result) = both("ScatterElements", 18, &attributes, &inputs, 1) else { return };
            // The order is that of the CPU, so are the bits.
            result.assert_equal(&what);
            for inputs in [
                [t(&[500], &longs[..500]), picks.clone(), t(&[count], &longs)],
                [t(&[500], &bytes[..500]), picks.clone(), t(&[count], &bytes)],
            ] {
                let Some(result) = both("ScatterElements", 18, &attributes, &inputs, 1) else { return };
                result.assert_equal(&what);
            }
            if count < many {
                let inputs = [t(&[500], &halves[..500]), picks, t(&[count], &halves)];
                let Some(result) = both("ScatterElements", 18, &attributes, &inputs, 1) else { return };
                result.assert_close(&what, 4e-3);
            }
        }
        let numbers: Vec<f64> = (0..240).map(|i| i as f64 / 3.0).collect();
        let inputs =
            [t(&[5, 4, 3], &numbers[..60]), t(&[40, 2], &indices(80, 4)), t(&[40, 3], &numbers[..120])];
        let Some(result) = both("ScatterND", 18, &attributes, &inputs, 1) else { return };
        result.assert_equal(&format!("ScatterND {reduction}"));
    }
}

#[test]
fn orders() {
    let nan = f32::NAN;
    let mut floats: Vec<f32> = (0..6000).map(|i| ((i * 7919 + 13) % 1009) as f32 - 500.0).collect();
    (floats[17], floats[2500], floats[40], floats[41]) = (nan, nan, 0.0, -0.0);
    let longs: Vec<i64> = (0..6000).map(|i| (i * i * 31 % 4001) << 30).collect();
    let bytes: Vec<i8> = (0..6000).map(|i| (i * 37 % 256) as u8 as i8).collect();
    let halves: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
    for (shape, axis, k) in [
        (&[3, 2000][..], 1, 7i64),
        (&[6000], 0, 50),
        (&[2, 3000], 1, 1024),
        (&[2, 3000], -1, 2999),
        (&[3000, 2], 0, 1500),
        (&[20, 300], 0, 20),
        (&[1, 6000], 0, 1),
    ] {
        for (largest, sorted) in [(1, 1), (0, 1)] {
            let attributes = [
                ("axis", Attribute::Int(axis)),
                ("largest", Attribute::Int(largest)),
                ("sorted", Attribute::Int(sorted)),
            ];
            for x in [t(shape, &floats), t(shape, &longs), t(shape, &bytes), t(shape, &halves)] {
                let Some(result) = both("TopK", 11, &attributes, &[x, t(&[1], &[k])], 2) else { return };
                result.assert_equal(&format!("TopK {shape:?} {axis} {k} {largest}"));
            }
        }
        for op in ["ArgMax", "ArgMin"] {
            for last in [0, 1] {
                let attributes =
                    [("axis", Attribute::Int(axis)), ("select_last_index", Attribute::Int(last))];
                for x in [t(shape, &floats), t(shape, &longs), t(shape, &bytes), t(shape, &halves)] {
                    let Some(result) = both(op, 13, &attributes, &[x], 1) else { return };
                    result.assert_equal(&format!("{op} {shape:?} {axis} {last}"));
                }
            }
        }
    }
}

#[test]
fn long_rows_are_cut() {
    let x: Vec<f32> = (0..60_000).map(|i| ((i * 7919 + 13) % 20_011) as f32 - 500.0).collect();
    for shape in [&[60_000][..], &[2, 30_000]] {
        let axis = shape.len() as i64 - 1;
        for k in [1i64, 50, 256] {
            let inputs = [t(shape, &x), t(&[1], &[k])];
            let Some(result) = both("TopK", 11, &[("axis", Attribute::Int(axis))], &inputs, 2) else {
                return;
            };
            result.assert_equal(&format!("TopK {shape:?} {k}"));
        }
        for last in [0, 1] {
            let attributes = [("axis", Attribute::Int(axis)), ("select_last_index", Attribute::Int(last))];
            let Some(result) = both("ArgMax", 13, &attributes, &[t(shape, &x)], 1) else { return };
            result.assert_equal(&format!("ArgMax {shape:?} {last}"));
        }
    }
}

#[test]
fn scans() {
    let floats: Vec<f32> = (0..6000).map(|i| ((i * 7919 + 13) % 1009) as f32 / 4.0 - 120.0).collect();
    let ints: Vec<i32> = (0..6000).map(|i| i * 7919).collect();
    for (shape, axis) in
        [(&[2, 3000][..], 1i64), (&[3000, 2], 0), (&[6000], 0), (&[4, 5, 300], 1), (&[1500, 4], -1)]
    {
        for (exclusive, reverse) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let attributes = [("exclusive", Attribute::Int(exclusive)), ("reverse", Attribute::Int(reverse))];
            for x in [t(shape, &floats), t(shape, &ints)] {
                let Some(result) = both("CumSum", 14, &attributes, &[x, t(&[], &[axis])], 1) else { return };
                // Sums of quarters below 2^24 are exact in any order.
                result.assert_equal(&format!("CumSum {shape:?} {axis} {exclusive} {reverse}"));
            }
        }
    }
}
