//! The operators of ai.onnx.ml. They compute in f64 and return values of their own: their models are
//! small, and labels may be strings.

mod encode;
mod features;
mod linear;
mod svm;
mod tree;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::ml::{Labels, PostTransform};
use crate::tensor::{Tensor, Value, ValueRef, bf16, f16};

use crate::kernel::Entry;
use crate::loops::item::shape_of;
use crate::loops::number::dispatch;

/// The name of the operator set.
const DOMAIN: &str = "ai.onnx.ml";

/// Every family's table.
pub(super) const FAMILIES: [&[Entry]; 5] =
    [encode::KERNELS, features::KERNELS, linear::KERNELS, svm::KERNELS, tree::KERNELS];

/// A numeric input as f64.
fn numbers(inputs: &[Option<ValueRef<'_>>], i: usize) -> Result<Vec<f64>, OpError> {
    let view = inputs.get(i).copied().flatten().and_then(ValueRef::view);
    let view = view.ok_or_else(|| OpError::Data(format!("input {i} must be a tensor of numbers")))?;
    dispatch!(
        Some(view.ty()),
        T in [f32, f64, i32, i64, f16, bf16] => Ok(view.slice::<T>().iter().map(|x| x.as_()).collect()),
        else Err(OpError::Unsupported(format!("input {i} is {}; allowed are floats, int32, int64", view.ty())))
    )
}

/// Rows and columns of input 0; a vector is one row.
fn matrix(inputs: &[Option<ValueRef<'_>>]) -> Result<(usize, usize), OpError> {
    match shape_of(inputs, 0)? {
        [c] => Ok((1, *c)),
        [n, c] => Ok((*n, *c)),
        shape => Err(OpError::Data(format!("the input has shape {shape:?}; allowed are [C] and [N, C]"))),
    }
}

/// A tensor of f32 from what was computed in f64.
fn floats(shape: &[usize], values: &[f64]) -> Result<Value, OpError> {
    let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    Ok(Value::Tensor(Tensor::from_slice(shape, &values)?))
}

/// The labels of chosen classes.
fn label_tensor(labels: &Labels, classes: &[usize]) -> Result<Value, OpError> {
    let n = [classes.len()];
    Ok(Value::Tensor(match labels {
        Labels::Ints(v) => Tensor::from_slice(&n, &classes.iter().map(|&c| v[c]).collect::<Vec<_>>())?,
        Labels::Strings(v) => Tensor::from_strings(&n, classes.iter().map(|&c| v[c].clone()).collect()),
    }))
}

/// The first of the greatest scores.
fn best(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, s) in scores.iter().enumerate() {
        if *s > scores[best] {
            best = i;
        }
    }
    best
}

/// Transforms the scores of one row.
fn transform(scores: &mut [f64], post: PostTransform) {
    match post {
        PostTransform::None => {}
        PostTransform::Logistic => scores.iter_mut().for_each(|s| *s = logistic(*s)),
        PostTransform::Probit => scores.iter_mut().for_each(|s| *s = probit(*s)),
        PostTransform::Softmax | PostTransform::SoftmaxZero => {
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for s in scores.iter_mut() {
                // A score of zero stays near it in the variant for sparse scores.
                let zero = post == PostTransform::SoftmaxZero && s.abs() <= 1e-7;
                *s = if zero { *s * (-top).exp() } else { (*s - top).exp() };
            }
            let sum: f64 = scores.iter().sum();
            if sum == 0.0 {
                scores.fill(0.5);
            } else {
                scores.iter_mut().for_each(|s| *s /= sum);
            }
        }
    }
}

/// The two scores of a binary classifier that computes one: that of the second class. `probability`
/// tells that the score is one already, so that the other is what is missing to 1.
fn two_scores(score: f64, post: PostTransform, probability: bool) -> [f64; 2] {
    if probability {
        return [1.0 - score, score];
    }
    let mut scores = [-score, score];
    transform(&mut scores, post);
    scores
}

fn logistic(x: f64) -> f64 {
    let v = 1.0 / (1.0 + (-x.abs()).exp());
    if x < 0.0 { 1.0 - v } else { v }
}

/// √2 · erf⁻¹(2x − 1), by Winitzki's approximation of the inverse error function.
fn probit(x: f64) -> f64 {
    let y = 2.0 * x - 1.0;
    let log = ((1.0 - y) * (1.0 + y)).ln();
    // At the very ends the approximation has no value; outside of 0…1 the result is NaN.
    if log.is_infinite() {
        return 0.0;
    }
    let half = 2.0 / (std::f64::consts::PI * 0.147) + 0.5 * log;
    let root = ((half * half - log / 0.147).sqrt() - half).sqrt();
    std::f64::consts::SQRT_2 * root * if y < 0.0 { -1.0 } else { 1.0 }
}
