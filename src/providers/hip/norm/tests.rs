//! Normalisations and softmax of short and long rows against the CPU.

use crate::graph::Attribute;
use crate::tensor::ElementType::{BF16, F16, F32, F64};
use crate::tensor::{Tensor, Value};

use super::super::testing::data::{mixed, tolerance};
use super::super::testing::nhwc::both_nhwc;
use super::super::testing::{Both, both, both_in, both_with, node, on_cpu, on_device, provider};

#[test]
fn softmax_of_rows_and_columns() {
    let cases: [(&[usize], i64); 9] = [
        (&[3, 1], -1),
        (&[300, 10], -1),
        (&[5, 1000], -1),
        (&[2, 8192], -1),
        (&[2, 20_001], -1),
        (&[2, 70, 33], 1),
        (&[2, 513, 3], 1),
        (&[3, 4, 5, 6], 0),
        (&[2, 9001, 2], 1),
    ];
    for (shape, axis) in cases {
        for ty in [F32, F16, BF16, F64] {
            for name in ["Softmax", "LogSoftmax", "Hardmax"] {
                let attributes = [("axis", Attribute::Int(axis))];
                let Some(both) = both(name, 13, &attributes, &[mixed(ty, shape)], 1) else { return };
                both.assert_close(&format!("{name} of {ty} {shape:?}"), tolerance(ty));
            }
        }
    }
}

#[test]
fn layer_norm_of_any_row() {
    for shape in [[3, 5], [40, 100], [3, 8192], [2, 30_001]] {
        for ty in [F32, F16, BF16, F64] {
            let inputs = [mixed(ty, &shape), mixed(ty, &shape[1..]), mixed(ty, &shape[1..])];
            let Some(device) = both("LayerNormalization", 17, &[], &inputs, 3) else { return };
            device.assert_close(&format!("LayerNormalization of {ty} {shape:?}"), 4.0 * tolerance(ty));
            let Some(device) = both("RMSNormalization", 23, &[], &inputs[..2], 1) else { return };
            device.assert_close(&format!("RMSNormalization of {ty} {shape:?}"), 4.0 * tolerance(ty));
        }
    }
    // Parameters that broadcast in every other way.
    for given in [&[2usize, 1, 4][..], &[3, 1], &[1], &[2, 3, 4], &[1, 1, 4]] {
        let inputs = [mixed(F32, &[2, 3, 4]), mixed(F32, given), mixed(F32, given)];
        let Some(device) = both("LayerNormalization", 17, &[], &inputs, 1) else { return };
        device.assert_close(&format!("LayerNormalization by {given:?}"), 1e-5);
    }
}

/// Scales and shifts that are read before the kernels before have ended: whole packs, others, more of a row than is on its way at
/// once, rows that follow each other where there are such kernels, and one element for all.
#[test]
fn parameters_that_are_constants() {
    for shape in [[3, 5], [16, 2048], [2, 8192], [5000, 64], [2, 30_001]] {
        for ty in [F32, F16, F64] {
            for parameters in [&shape[1..], &[1]] {
                let inputs = [mixed(ty, &shape), mixed(ty, parameters), mixed(ty, parameters)];
                let Some(device) = both_with("", "LayerNormalization", 17, &[], &inputs, &[1, 2]) else {
                    return;
                };
                let what = format!("of {ty} {shape:?} by {parameters:?}");
                device.assert_close(&format!("LayerNormalization {what}"), 4.0 * tolerance(ty));
                let Some(device) = both_with("", "RMSNormalization", 23, &[], &inputs[..2], &[1]) else {
                    return;
                };
                device.assert_close(&format!("RMSNormalization {what}"), 4.0 * tolerance(ty));
            }
        }
    }
}

/// More rows than workgroups, so that rows follow each other (`Norm::follow`): in a wave and in several, where the last ones
/// are fewer than the teams of a workgroup. Only NVIDIA's kernels do that; an emulated device would take long for as many.
#[test]
fn rows_that_follow_each_other() {
    if !provider(&[]).is_some_and(|provider| provider.unit().mma_sync) {
        return;
    }
    for (ty, shape) in [(F32, [30_001, 64]), (F32, [500, 4096]), (F16, [1801, 2048]), (BF16, [960, 4096])] {
        let inputs = [mixed(ty, &shape), mixed(ty, &shape[1..]), mixed(ty, &shape[1..])];
        let Some(device) = both("LayerNormalization", 17, &[], &inputs, 3) else { return };
        device.assert_close(&format!("LayerNormalization of {ty} {shape:?}"), 4.0 * tolerance(ty));
        let Some(device) = both("RMSNormalization", 23, &[], &inputs[..2], 1) else { return };
        device.assert_close(&format!("RMSNormalization of {ty} {shape:?}"), 4.0 * tolerance(ty));
    }
}

#[test]
fn what_is_added_before() {
    for shape in [[2, 3, 20], [2, 2, 9000]] {
        for ty in [F32, F16] {
            let row = || mixed(ty, &shape[2..]);
            let inputs = [mixed(ty, &shape), mixed(ty, &shape[1..]), row(), row(), row()];
            for (name, count) in [("SkipLayerNormalization", 5), ("SkipSimplifiedLayerNormalization", 4)] {
                let Some(device) = both_in("com.microsoft", name, 1, &[], &inputs[..count], 4) else {
                    return;
                };
                device.assert_close(&format!("{name} of {ty} {shape:?}"), 4.0 * tolerance(ty));
            }
        }
    }
}

#[test]
fn groups_and_batches() {
    let groups = [("num_groups", Attribute::Int(2))];
    for shape in [[2, 6, 7], [1, 4, 5000], [2, 4, 64]] {
        for ty in [F32, BF16, F64] {
            let channels = || mixed(ty, &shape[1..2]);
            let inputs = [mixed(ty, &shape), channels(), channels()];
            for (name, opset, attributes) in
                [("GroupNormalization", 21, &groups[..]), ("InstanceNormalization", 6, &[][..])]
            {
                let Some(device) = both(name, opset, attributes, &inputs, 1) else { return };
                device.assert_close(&format!("{name} of {ty} {shape:?}"), 4.0 * tolerance(ty));
            }
            let Some(device) = both("LpNormalization", 22, &[], &inputs[..1], 1) else { return };
            device.assert_close("LpNormalization", tolerance(ty));
            let axes = [("axes", Attribute::Ints(vec![0, 2]))];
            let Some(device) = both("MeanVarianceNormalization", 13, &axes, &inputs[..1], 1) else { return };
            device.assert_close("MeanVarianceNormalization", 4.0 * tolerance(ty));
        }
    }
}

#[test]
fn batch_norm_trains() {
    let channels = || mixed(F32, &[6]);
    let positive = super::super::testing::data::tensor(&[6], (1..7).map(|i| i as f32));
    let inputs = [mixed(F32, &[3, 6, 50]), channels(), channels(), channels(), positive];
    for training in [0, 1] {
        let attributes = [("training_mode", Attribute::Int(training))];
        let outputs = if training == 1 { 3 } else { 1 };
        let Some(device) = both("BatchNormalization", 15, &attributes, &inputs, outputs) else { return };
        device.assert_close("BatchNormalization", 1e-5);
    }
}

#[test]
fn groups_of_channels_that_are_innermost() {
    // Packs of every length, one launch and several, and one axis.
    let cases: [(&[usize], i64); 6] = [
        (&[2, 32, 9, 9], 4),
        (&[1, 20, 40, 41], 2),
        (&[3, 12, 5, 7], 2),
        (&[2, 9, 6, 6], 3),
        (&[2, 64, 70], 2),
        (&[1, 8, 70, 70], 1),
    ];
    for (shape, groups) in cases {
        for ty in [F32, F16, BF16] {
            for (opset, parameters) in [(18, groups as usize), (21, shape[1])] {
                let inputs = [mixed(ty, shape), mixed(ty, &[parameters]), mixed(ty, &[parameters])];
                let attributes = [("num_groups", Attribute::Int(groups))];
                let own: &[_] = &[("by_group", Attribute::Int((opset < 21) as i64))];
                let (cpu, device) = (("", "GroupNormalization", opset), ("NhwcGroupNormalization", own));
                let made = both_nhwc(cpu, device, &attributes, &inputs, &[0]);
                let Some(made) = made else { return };
                made.assert_close(
                    &format!("{ty} {shape:?} {groups} groups, opset {opset}"),
                    4.0 * tolerance(ty),
                );
            }
        }
    }
}

/// A permutation of `count` rows.
fn order(count: usize) -> Option<Value> {
    let rows: Vec<i32> = (0..count).map(|i| ((i * 5 + 2) % count) as i32).collect();
    Some(Value::Tensor(Tensor::from_slice(&[count], &rows).expect("memory for a test")))
}

#[test]
fn rows_at_other_places() {
    let Some(provider) = provider(&[]) else { return };
    // Rows of samples, of which each has the same order; one launch and several; packs of every length.
    for shape in [[2, 6, 20], [1, 49, 96], [3, 7, 33], [2, 3, 9000]] {
        for ty in [F32, F16, BF16, F64] {
            let (x, skip, rows) = (mixed(ty, &shape), mixed(ty, &shape[..]), order(shape[1]));
            let [scale, shift] = [mixed(ty, &shape[2..]), mixed(ty, &shape[2..])];
            let axis = [("axis", Attribute::Int(1))];
            let moved = |value: &Option<Value>| {
                let inputs = [value.clone(), rows.clone()];
                Some(Value::Tensor(on_cpu(&node("", "Gather", 13, &axis, &inputs, 1), &inputs).remove(0)))
            };
            let epsilon = ("epsilon", Attribute::Float(1e-3));
            for skip_only in [false, true] {
                for skip in [Some(skip.clone()), None] {
                    let zeros = skip.clone().unwrap_or_else(|| {
                        let inputs = [x.clone(), x.clone()];
                        Some(Value::Tensor(on_cpu(&node("", "Sub", 14, &[], &inputs, 1), &inputs).remove(0)))
                    });
                    let plain = |x: &Option<Value>, skip: &Option<Value>| {
                        let inputs = [x.clone(), skip.clone(), scale.clone(), shift.clone()];
                        let node = node(
                            "com.microsoft",
                            "SkipLayerNormalization",
                            1,
                            std::slice::from_ref(&epsilon),
                            &inputs,
                            4,
                        );
                        on_cpu(&node, &inputs)
                    };
                    let cpu = match skip_only {
                        true => plain(&x, &moved(&zeros)),
                        false => vec![
                            plain(&moved(&x), &moved(&zeros)).remove(0),
                            plain(&x, &zeros).pop().expect("the sum"),
                        ],
                    };
                    let cpu = vec![cpu[0].clone(), cpu[cpu.len() - 1].clone()];
                    let inputs =
                        [x.clone(), rows.clone(), scale.clone(), shift.clone(), skip.clone().flatten()];
                    let attributes = [epsilon.clone(), ("skip_only", Attribute::Int(skip_only.into()))];
                    let node = node("rukh", "PermutedLayerNormalization", 1, &attributes, &inputs, 2);
                    let device = on_device(&provider, &node, &inputs, &cpu)
                        .unwrap_or_else(|e| panic!("{ty} {shape:?}: {e}"));
                    let what = format!("{ty} {shape:?}, skip only {skip_only}, with {}", skip.is_some());
                    Both { device, cpu }.assert_close(&what, 4.0 * tolerance(ty));
                }
            }
        }
    }
    // What is no permutation is no order of rows.
    for wrong in [&[0i32, 0][..], &[0, 2], &[-1, 0], &[0, 1, 2], &[]] {
        let rows = Some(Value::Tensor(Tensor::from_slice(&[wrong.len()], wrong).expect("memory for a test")));
        let (x, scale) = (mixed(F32, &[2, 8]), mixed(F32, &[8]));
        let inputs = [x.clone(), rows, scale];
        let Some(Value::Tensor(x)) = x else { return };
        let node = node("rukh", "PermutedLayerNormalization", 1, &[], &inputs, 1);
        assert!(on_device(&provider, &node, &inputs, &[x]).is_err(), "{wrong:?}");
    }
}
