//! How exact the device's elementary functions are, in units in the last place of f32.

use crate::tensor::{Tensor, Value};

use super::super::super::testing::both;
use super::super::super::testing::data::tensor;

/// Units in the last place that a result may be off.
const LIMIT: f64 = 2.0;

/// erf to about 1e-15: its series of positive terms, and the continued fraction of erfc beyond 3.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    let scale = std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp();
    if a < 3.0 {
        let (mut term, mut sum) = (a, a);
        for n in 1..80 {
            term *= 2.0 * a * a / (2 * n + 1) as f64;
            sum += term;
        }
        return (scale * sum).copysign(x);
    }
    let fraction = (1..=60).rev().fold(0.0, |c, k| k as f64 * 0.5 / (a + c));
    (1.0 - 0.5 * scale / (a + fraction)).copysign(x)
}

/// The distance in units in the last place of the wanted number as f32.
fn error(got: f32, want: f64) -> f64 {
    if got as f64 == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let nearest = want as f32;
    if !nearest.is_finite() || !got.is_finite() {
        // One unit beyond the largest number is infinity.
        let limit = |x: f32| (x as f64).clamp(-f32::MAX as f64, f32::MAX as f64);
        return if limit(got) == limit(nearest) { 1.0 } else { f64::INFINITY };
    }
    let exponent = ((nearest.to_bits() >> 23 & 0xff) as i32).max(1) - 150;
    (got as f64 - want).abs() / 2f64.powi(exponent)
}

/// Numbers of every magnitude between two powers of two, with both signs.
fn magnitudes(low: i32, high: i32) -> Vec<f32> {
    let each = |e: i32| (0..96).map(move |k| (2f64.powi(e) * (1.0 + (k as f64 + 0.37) / 96.0)) as f32);
    (low..high).flat_map(each).flat_map(|x| [x, -x]).collect()
}

fn range(low: f32, high: f32) -> Vec<f32> {
    (0..20_000).map(|i| low + (high - low) * (i as f32 / 20_000.0)).collect()
}

fn elements(tensor: &Tensor) -> &[f32] {
    tensor.view().slice::<f32>()
}

/// An operator with its version, the function, and the numbers to try.
type Case = (&'static str, i64, fn(f64) -> f64, Vec<f32>);

#[test]
fn functions_are_exact_to_two_units() {
    let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, -1.0];
    let cases: [Case; 6] = [
        ("Exp", 13, f64::exp, [range(-105.0, 90.0), magnitudes(-40, 7)].concat()),
        ("Log", 13, f64::ln, [range(0.5, 2.0), magnitudes(-148, 128)].concat()),
        ("Tanh", 13, f64::tanh, [range(-10.0, 10.0), magnitudes(-126, 6)].concat()),
        ("Erf", 13, erf, [range(-4.5, 4.5), magnitudes(-126, 4)].concat()),
        ("Sin", 7, f64::sin, [range(-1000.0, 1000.0), magnitudes(-126, 20)].concat()),
        ("Cos", 7, f64::cos, [range(-1000.0, 1000.0), magnitudes(-126, 20)].concat()),
    ];
    let mut bad = Vec::new();
    for (name, opset, f, mut x) in cases {
        x.extend(special);
        let Some(both) = both(name, opset, &[], &[tensor(&[x.len()], x.iter().copied())], 1) else { return };
        let worst = x.iter().zip(elements(&both.device[0])).map(|(&x, &y)| (error(y, f(x as f64)), x, y));
        let worst = worst.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are numbers");
        if worst.0 > LIMIT {
            bad.push((name, worst));
        }
    }
    let (x, y): (Vec<f32>, Vec<f32>) = range(-30.0, 30.0)
        .into_iter()
        .enumerate()
        .map(|(i, y)| (1.02f32.powi((i * 37 % 1000) as i32 - 500), y))
        .chain((0..400).map(|i| ((i % 20) as f32 - 10.0, (i / 20) as f32 - 10.0)))
        .unzip();
    let inputs: [Option<Value>; 2] =
        [tensor(&[x.len()], x.iter().copied()), tensor(&[x.len()], y.iter().copied())];
    let Some(both) = both("Pow", 15, &[], &inputs, 1) else { return };
    for ((&x, &y), &got) in x.iter().zip(&y).zip(elements(&both.device[0])) {
        let off = error(got, (x as f64).powf(y as f64));
        if off > LIMIT {
            bad.push(("Pow", (off, x, y)));
            break;
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}
