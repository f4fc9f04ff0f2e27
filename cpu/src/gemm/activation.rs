//! Activation functions over a row of floats.

use num_traits::Float;

use super::few_rows::{self, Rows};
use crate::isa::Dispatch;
use crate::loops::exponential::{Sigmoid, Softplus, Swish, Tanh, TanhGelu};
use crate::loops::map::apply;
use crate::loops::softmax_row::{ExpBelowZero, Exponentials, Largest, PowerBelowOne};
use crate::loops::together::apply_together;
use crate::loops::vector;
use crate::operators::unary::function;
use crate::ops::activation::Activation;
use crate::ops::unary::Unary;

/// A float that activations can be applied to.
pub(crate) trait Activate: Float + 'static {
    fn of(x: f32) -> Self;
    fn of_f64(x: f64) -> Self;

    /// `out[row, i] = few[row] · many[i]`
    fn dots(few: &[Self], many: Rows<'_, Self>, out: &mut [Self]) {
        few_rows::plain_dots(few, many, out);
    }

    /// `few[row] += Σ weights[row, i] · many[i]`
    fn sums(weights: &[Self], many: Rows<'_, Self>, few: &mut [Self]) {
        few_rows::plain_sums(weights, many, few);
    }

    /// The largest of scores and of another number; a score that is no number counts as none.
    fn largest(scores: &[Self], other: Self) -> Self {
        let larger = |most, x| if x > most { x } else { most };
        // Eight maxima, so that none waits for the one before it.
        let (eights, rest) = scores.as_chunks::<8>();
        let mut most = [other; 8];
        for x in eights {
            most = std::array::from_fn(|i| larger(most[i], x[i]));
        }
        most.into_iter().chain(rest.iter().copied()).fold(other, larger)
    }

    /// Turns scores into the exponentials of `score − largest`, which no score exceeds, and sums them.
    fn exponentials(scores: &mut [Self], largest: Self) -> Self {
        let mut sum = Self::zero();
        for x in scores {
            *x = (*x - largest).exp();
            sum = sum + *x;
        }
        sum
    }

    /// The same of powers of two in place of exponentials.
    fn powers_of_two(scores: &mut [Self], largest: Self) -> Self {
        let mut sum = Self::zero();
        for x in scores {
            *x = (*x - largest).exp2();
            sum = sum + *x;
        }
        sum
    }

    /// Applies the functions that need an exponential to all of `values`.
    fn sigmoid(values: &mut [Self]) {
        let one = Self::one();
        values.iter_mut().for_each(|x| *x = one / (one + (-*x).exp()));
    }

    fn tanh_all(values: &mut [Self]) {
        values.iter_mut().for_each(|x| *x = x.tanh());
    }

    fn silu(values: &mut [Self]) {
        let one = Self::one();
        values.iter_mut().for_each(|x| *x = *x / (one + (-*x).exp()));
    }

    /// In the form that does not overflow.
    fn softplus(values: &mut [Self]) {
        values.iter_mut().for_each(|x| *x = x.max(Self::zero()) + (-x.abs()).exp().ln_1p());
    }

    fn gelu(values: &mut [Self], tanh: bool);
}

impl Activate for f64 {
    fn of(x: f32) -> f64 {
        x as f64
    }

    fn of_f64(x: f64) -> f64 {
        x
    }

    fn gelu(values: &mut [f64], tanh: bool) {
        if let Some(f) = function::<f64>(Unary::Gelu { tanh }) {
            f.map_mut(values);
        }
    }
}

impl Activate for f32 {
    fn of(x: f32) -> f32 {
        x
    }

    fn of_f64(x: f64) -> f32 {
        x as f32
    }

    fn dots(few: &[f32], many: Rows<'_, f32>, out: &mut [f32]) {
        few_rows::dots(few, many, out);
    }

    fn sums(weights: &[f32], many: Rows<'_, f32>, few: &mut [f32]) {
        few_rows::sums(weights, many, few);
    }

    fn largest(scores: &[f32], other: f32) -> f32 {
        Largest { scores, other }.widest()
    }

    fn exponentials(scores: &mut [f32], largest: f32) -> f32 {
        Exponentials { scores, largest, below_zero: ExpBelowZero }.widest()
    }

    fn powers_of_two(scores: &mut [f32], largest: f32) -> f32 {
        Exponentials { scores, largest, below_zero: PowerBelowOne }.widest()
    }

    fn sigmoid(values: &mut [f32]) {
        apply_together(&Sigmoid, values);
    }

    fn tanh_all(values: &mut [f32]) {
        apply_together(&Tanh, values);
    }

    fn silu(values: &mut [f32]) {
        apply(&Swish { alpha: 1.0 }, values);
    }

    fn softplus(values: &mut [f32]) {
        apply(&Softplus, values);
    }

    fn gelu(values: &mut [f32], tanh: bool) {
        match tanh {
            true => apply(&TanhGelu, values),
            false => apply_together(&vector::Gelu, values),
        }
    }
}

/// Applies a function to each value.
pub(crate) fn activate<F: Activate>(activation: Activation, values: &mut [F]) {
    let (zero, one) = (F::zero(), F::one());
    match activation {
        Activation::Identity => {}
        // Written so that NaN stays NaN.
        Activation::Relu => each(values, |x| if x < zero { zero } else { x }),
        Activation::LeakyRelu { alpha } => {
            let alpha = F::of(alpha);
            each(values, |x| if x < zero { alpha * x } else { x });
        }
        Activation::Clip { min, max } => {
            let (min, max) = (F::of(min), F::of(max));
            each(values, |x| {
                let x = if x < min { min } else { x };
                if x > max { max } else { x }
            });
        }
        Activation::Sigmoid => F::sigmoid(values),
        Activation::Tanh => F::tanh_all(values),
        Activation::HardSigmoid { alpha, beta } => {
            let (alpha, beta) = (F::of(alpha), F::of(beta));
            each(values, |x| (alpha * x + beta).max(zero).min(one));
        }
        Activation::HardSwish => {
            let (sixth, half) = (one / F::of(6.0), F::of(0.5));
            each(values, |x| x * (x * sixth + half).max(zero).min(one));
        }
        Activation::Silu => F::silu(values),
        Activation::Gelu { tanh } => F::gelu(values, tanh),
        Activation::Affine { alpha, beta } => {
            let (alpha, beta) = (F::of(alpha), F::of(beta));
            each(values, |x| alpha * x + beta);
        }
        Activation::ThresholdedRelu { alpha } => {
            let alpha = F::of(alpha);
            each(values, |x| if x < alpha { zero } else { x });
        }
        Activation::ScaledTanh { alpha, beta } => {
            let (alpha, beta) = (F::of(alpha), F::of(beta));
            each(values, |x| alpha * (beta * x).tanh());
        }
        Activation::Elu { alpha } => {
            let alpha = F::of(alpha);
            each(values, |x| if x < zero { alpha * x.exp_m1() } else { x });
        }
        Activation::Softsign => each(values, |x| x / (one + x.abs())),
        Activation::Softplus => F::softplus(values),
    }
}

#[inline(always)]
fn each<F: Copy>(values: &mut [F], f: impl Fn(F) -> F) {
    values.iter_mut().for_each(|x| *x = f(*x));
}
