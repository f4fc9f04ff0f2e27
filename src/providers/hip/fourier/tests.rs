//! Transforms on the device against those of the CPU, which computes in f64.

use crate::graph::Attribute;
use crate::tensor::{ElementType as E, Tensor, Value};

use super::super::testing::{Both, both, both_on, provider};
use super::plans::Key;

fn ints(shape: &[usize], values: &[i64]) -> Option<Value> {
    Some(Value::Tensor(Tensor::from_slice(shape, values).expect("memory for a test")))
}

/// Points without a pattern, of the size of one.
fn signal(ty: E, shape: &[usize]) -> Option<Value> {
    let count: usize = shape.iter().product();
    let value = |i: usize| {
        let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x ^ x >> 29) >> 40) as f64 / (1 << 23) as f64 - 1.0
    };
    let values: Vec<f64> = (0..count).map(value).collect();
    let floats: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let made =
        if ty == E::F64 { Tensor::from_slice(shape, &values) } else { Tensor::from_slice(shape, &floats) };
    Some(Value::Tensor(made.expect("memory for a test")))
}

/// The difference's norm over the result's is at most 1e-6·log2(n) in f32, and 1e-15·log2(n) in f64.
fn assert_near(result: &Both, ty: E, length: usize, what: &str) {
    let numbers = |tensor: &Tensor| -> Vec<f64> {
        match ty {
            E::F64 => tensor.view().slice::<f64>().to_vec(),
            _ => tensor.view().slice::<f32>().iter().map(|&x| f64::from(x)).collect(),
        }
    };
    let (device, cpu) = (numbers(&result.device[0]), numbers(&result.cpu[0]));
    assert_eq!(device.len(), cpu.len(), "{what}");
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let error = norm(&mut device.iter().zip(&cpu).map(|(a, b)| a - b)) / norm(&mut cpu.iter().copied());
    let most = if ty == E::F64 { 1e-15 } else { 1e-6 } * (length.max(2) as f64).log2();
    assert!(error <= most, "{what}: the error is {error}, {most} is allowed");
}

#[test]
fn every_length_and_direction() {
    for length in [
        1, 2, 3, 5, 7, 8, 11, 13, 16, 30, 97, 128, 210, 256, 500, 1000, 1021, 1024, 2048, 2187, 4096, 5000,
        16384,
    ] {
        for ty in [E::F32, E::F64] {
            for (inverse, one_sided) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let attributes =
                    [("inverse", Attribute::Int(inverse)), ("onesided", Attribute::Int(one_sided))];
                let half = inverse == 1 && one_sided == 1;
                // A one-sided transform there takes real numbers.
                let parts = if one_sided == 1 && !half { 1 } else { 2 };
                let points = if half { length / 2 + 1 } else { length };
                let inputs = [signal(ty, &[2, points, parts]), ints(&[], &[length as i64]), None];
                let Some(result) = both("DFT", 20, &attributes, &inputs, 1) else { return };
                let what = format!("{length} points of {ty}, inverse {inverse}, one-sided {one_sided}");
                assert_near(&result, ty, length, &what);
            }
        }
    }
}

#[test]
fn lengths_of_two_passes_of_many_and_of_chirps() {
    for (length, lines, ty) in [
        (65536, 1, E::F32),
        (100_003, 1, E::F32),
        (3 * 5 * 7 * 64, 3, E::F32),
        (4099, 2, E::F32),
        // No two factors of it fit into a workgroup's memory.
        (7_usize.pow(7), 1, E::F64),
    ] {
        let inputs = [signal(ty, &[lines, length, 1]), None, None];
        let Some(result) = both("DFT", 20, &[], &inputs, 1) else { return };
        assert_near(&result, ty, length, &format!("{length} points of {ty}"));
    }
}

#[test]
fn axes_padding_and_halves() {
    for axis in [0, 1, 2] {
        for length in [4, 12, 20] {
            for parts in [1, 2] {
                let inputs = [signal(E::F32, &[12, 12, 12, parts]), ints(&[], &[length]), ints(&[], &[axis])];
                let Some(result) = both("DFT", 20, &[], &inputs, 1) else { return };
                let what = format!("axis {axis}, {length} points, {parts} parts");
                assert_near(&result, E::F32, 20, &what);
            }
        }
    }
}

#[test]
fn frames_with_and_without_a_window() {
    for (frame, step, window, parts) in
        [(16, 4, Some(16), 1), (400, 160, Some(400), 1), (512, 160, Some(400), 1), (50, 50, None, 2)]
    {
        for one_sided in [0, 1] {
            if one_sided == 1 && parts == 2 {
                continue;
            }
            let inputs = [
                signal(E::F32, &[2, 2000, parts]),
                ints(&[], &[step]),
                window.and_then(|n| signal(E::F32, &[n])),
                ints(&[], &[frame]),
            ];
            let attributes = [("onesided", Attribute::Int(one_sided))];
            let Some(result) = both("STFT", 17, &attributes, &inputs, 1) else { return };
            assert_near(&result, E::F32, frame as usize, &format!("frames of {frame}"));
        }
    }
}

#[test]
fn plans_are_kept_up_to_a_number() {
    let Some(provider) = provider(&[]) else { return };
    let plans = provider.fourier_plans();
    let run = |length: usize| {
        let inputs = [signal(E::F32, &[1, length, 1]), None, None];
        let result = both_on(&provider, "", "DFT", 20, &[], &inputs, 1);
        assert_near(&result, E::F32, length, "a transform");
    };
    let key = |length| Key { length, inverse: false, double: false };
    [8, 11, 8, 16].iter().for_each(|&length| run(length));
    assert_eq!(plans.count(), 3);
    // The one of 11 points was not used for longest.
    plans.set_limit(2);
    assert_eq!((plans.count(), plans.limit()), (2, 2));
    let get = |length| plans.get(key(length), |tables| super::on_device(0, tables)).unwrap();
    let kept = get(8).unwrap();
    assert_eq!(plans.count(), 2);
    run(11);
    // Now 16 has gone, and 8 is the one that was kept.
    assert!(std::sync::Arc::ptr_eq(&kept, &get(8).unwrap()));
    plans.clear();
    assert_eq!(plans.count(), 0);
    plans.set_limit(0);
    run(8);
    assert_eq!(plans.count(), 0);
    assert!(get(1 << 31).is_none());
}
