//! Activations as functions of one vector. Comparisons are written so that NaN stays NaN.

use rten_simd::ops::{BitOps, FloatOps, NumOps};
use rten_simd::{Isa, SimdUnaryOp};

use crate::gemm::activate;
use crate::loops::exponential::inverse_sigmoid;
use crate::ops::activation::Activation;

/// Runs an expression with `$f` the function of a vector that an activation is, if it is one of a list (all, if none is
/// given); else another one, with `$other` the activation. Without a list `$f` is `Identity` then, and the rest is left
/// to `activate_rest`.
macro_rules! with_activation {
    ($activation:expr, $f:ident => $body:expr) => {
        $crate::conv::common::activation::with_activation!(
            $activation, [Relu, LeakyRelu, Clip, HardSigmoid, HardSwish, Sigmoid, Silu],
            $f => $body,
            _other => { let $f = $crate::conv::common::activation::Identity; $body }
        )
    };
    ($activation:expr, [$($name:ident),*], $f:ident => $body:expr, $other:ident => $else:expr) => {
        {
            let activation = $activation;
            $(if let Some($f) = $crate::conv::common::activation::$name::of(activation) {
                $body
            } else)* {
                let $other = activation;
                $else
            }
        }
    };
}
pub(crate) use with_activation;

/// Applies to what is written the functions that `with_activation` has no form for.
#[inline(always)]
pub(crate) fn activate_rest(activation: Activation, written: &mut [f32]) {
    if has_rest(activation) {
        activate(activation, written);
    }
}

/// Whether `with_activation` has no form for it.
#[inline(always)]
pub(crate) fn has_rest(activation: Activation) -> bool {
    use Activation::*;
    !matches!(
        activation,
        Identity | Relu | LeakyRelu { .. } | Clip { .. } | HardSigmoid { .. } | HardSwish | Sigmoid | Silu
    )
}

/// Applies an activation to vectors.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn activate_vectors<I: Isa, const N: usize>(
    isa: I,
    activation: Activation,
    mut x: [I::F32; N],
) -> [I::F32; N] {
    with_activation!(activation, f => {
        for x in &mut x {
            *x = f.eval(isa, *x);
        }
    });
    x
}

/// Functions, and which activations they are.
macro_rules! functions {
    ($($(#[$doc:meta])* $pattern:pat => $name:ident $(($($field:ident),*))?;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name $(($(functions!(@float $field)),*))?;

        impl $name {
            #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
            #[inline(always)]
            pub(crate) fn of(activation: Activation) -> Option<Self> {
                match activation {
                    $pattern => Some($name $(($($field),*))?),
                    _ => None,
                }
            }
        }
    )*};
    (@float $field:ident) => { f32 };
}
functions! {
    /// `x`
    Activation::Identity => Identity;
    /// `max(x, 0)`
    Activation::Relu => Relu;
    /// `x`, negative numbers times a factor
    Activation::LeakyRelu { alpha } => LeakyRelu(alpha);
    /// `clamp(x, min, max)`
    Activation::Clip { min, max } => Clip(min, max);
    /// `clamp(a·x + b, 0, 1)`
    Activation::HardSigmoid { alpha, beta } => HardSigmoid(alpha, beta);
    /// `x · clamp(x/6 + 1/2, 0, 1)`
    Activation::HardSwish => HardSwish;
    /// `1 / (1 + exp(-x))`
    Activation::Sigmoid => Sigmoid;
    /// `x · sigmoid(x)`
    Activation::Silu => Silu;
    /// The same within 2e-4 of itself, for results that are rounded to bfloat16: a twentieth of what that makes.
    Activation::Silu => RoughSilu;
}

impl SimdUnaryOp<f32> for Identity {
    #[inline(always)]
    fn eval<I: Isa>(&self, _isa: I, x: I::F32) -> I::F32 {
        x
    }
}

impl SimdUnaryOp<f32> for Relu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.select(ops.zero(), x, ops.lt(x, ops.zero()))
    }
}

impl SimdUnaryOp<f32> for LeakyRelu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.select(ops.mul(x, ops.splat(self.0)), x, ops.lt(x, ops.zero()))
    }
}

impl SimdUnaryOp<f32> for Clip {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        let (min, max) = (ops.splat(self.0), ops.splat(self.1));
        let x = ops.select(min, x, ops.lt(x, min));
        ops.select(max, x, ops.gt(x, max))
    }
}

impl SimdUnaryOp<f32> for HardSigmoid {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.clamp(ops.mul_add(x, ops.splat(self.0), ops.splat(self.1)), ops.zero(), ops.one())
    }
}

impl SimdUnaryOp<f32> for HardSwish {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        isa.f32().mul(x, HardSigmoid(1.0 / 6.0, 0.5).eval(isa, x))
    }
}

impl SimdUnaryOp<f32> for Sigmoid {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        isa.f32().div(isa.f32().one(), inverse_sigmoid(isa, x))
    }
}

impl SimdUnaryOp<f32> for Silu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        isa.f32().div(x, inverse_sigmoid(isa, x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmoid_and_silu_are_close() {
        for i in -30_000..=30_000i32 {
            let x = i as f32 * 0.003_7;
            let want = 1.0 / (1.0 + (-x as f64).exp());
            let (sigmoid, silu) = (Sigmoid.scalar_eval(x) as f64, Silu.scalar_eval(x) as f64);
            assert!((sigmoid - want).abs() <= 4e-7 * want + 1e-36, "{x}: {sigmoid} {want}");
            assert!((silu - x as f64 * want).abs() <= 4e-7 * (x as f64 * want).abs() + 1e-34, "{x}: {silu}");
        }
        assert!(Sigmoid.scalar_eval(f32::NAN).is_nan() && Silu.scalar_eval(f32::NAN).is_nan());
        assert_eq!([f32::INFINITY, f32::NEG_INFINITY].map(|x| Sigmoid.scalar_eval(x).round()), [1.0, 0.0]);
    }
}
