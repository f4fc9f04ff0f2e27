//! Functions over vectors of f32 that an exponential and at most one division make.

use std::f32::consts::{E, FRAC_2_SQRT_PI, LN_2, LOG2_E, SQRT_2};

use rten_simd::ops::{BitOps, FloatOps, IntOps, NumOps};
use rten_simd::{Isa, Simd, SimdUnaryOp};

use super::together::{Together, each, in_step, polynomial};
use super::vector::{
    LOWEST, ROUND, at_least, at_most, exp_below_zero, exp_factors, exp_of_rest, many_exp_factors,
};

/// The exponential, within 1 ulp.
pub(crate) struct Exp;

/// `1 / (1 + exp(-x))`, within 3 ulp of what is no denormal number.
pub(crate) struct Sigmoid;

/// `x / (1 + exp(-alpha·x))`
pub(crate) struct Swish {
    pub(crate) alpha: f32,
}

/// The hyperbolic tangent, within 3.6 ulp.
pub(crate) struct Tanh;

/// `x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))`, which is `x · sigmoid(2√(2/π)·(x + 0.044715·x³))`.
pub(crate) struct TanhGelu;

/// `log(1 + exp(x))`, within 3 ulp of what is no denormal number.
pub(crate) struct Softplus;

/// `x · tanh(log(1 + exp(x)))`
pub(crate) struct Mish;

/// The hyperbolic sine or cosine, within 4 ulp.
pub(crate) struct Hyperbolic<const IS_COSINE: bool>;

/// `x`, below zero `below · (exp(x · factor) − 1)`, and all of it times `scale`: Elu, Selu and Celu.
pub(crate) struct Elu {
    pub(crate) below: f32,
    pub(crate) factor: f32,
    pub(crate) scale: f32,
}

/// From here on an exponential is infinite.
const HIGHEST: f32 = 89.0;

/// `(2ʳ − 1) / r`, a minimax fit on [−1/2, 1/2]; relative error 1.1e-8.
pub(crate) const POWER: [f32; 6] =
    [LN_2, 0.240_226_5, 5.550_357_3e-2, 9.618_238e-3, 1.339_073_5e-3, 1.540_351_1e-4];

/// `(2·atanh(s) − 2s) / s³` over s², a minimax fit on [0, 1/9]; relative error of the whole 4.5e-9.
const ATANH: [f32; 4] = [0.666_664_2, 0.400_215_27, 0.280_018_03, 0.280_119_9];

/// `(sinh(x) / x − 1) / x²` over x² for x up to 1.
const SINH: [f32; 4] = [1.0 / 6.0, 1.0 / 120.0, 1.0 / 5040.0, 1.0 / 362_880.0];

/// A number in an interval; NaN stays NaN.
#[inline(always)]
fn within<I: Isa>(isa: I, x: I::F32, lowest: f32, highest: f32) -> I::F32 {
    at_most(isa, highest, at_least(isa, lowest, x))
}

/// `1 + exp(-x)`; infinite where the exponential is.
#[inline(always)]
pub(crate) fn inverse_sigmoid<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let ops = isa.f32();
    let (exp, power) = exp_factors(isa, within(isa, ops.neg(x), LOWEST, HIGHEST));
    ops.mul_add(exp, power, ops.one())
}

/// `2ˣ − 1` for numbers from −126 to 127, as exact near zero as elsewhere.
#[inline(always)]
fn power_less_one<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (ops, ints) = (isa.f32(), isa.i32());
    let biased = ops.splat(ROUND + 127.0);
    let rounded = ops.add(x, biased);
    let r = ops.sub(x, ops.sub(rounded, biased));
    let mut y = ops.splat(POWER[5]);
    for i in (0..5).rev() {
        y = ops.mul_add(y, r, ops.splat(POWER[i]));
    }
    let power: I::I32 = ints.shift_left::<23>(rounded.reinterpret_cast());
    let power: I::F32 = power.reinterpret_cast();
    ops.mul_add(ops.mul(y, r), power, ops.sub(power, ops.one()))
}

/// `y · 2ᵏ`, rounded once, where there is an instruction for that: it takes less time than two powers of two and two products.
#[inline(always)]
fn scaled<I: Isa>(isa: I, y: I::F32, k: I::F32) -> Option<I::F32> {
    #[cfg(target_arch = "x86_64")]
    if isa.f32().len() == 16 {
        use std::arch::x86_64::{__m512, _mm512_scalef_ps};
        use std::mem::transmute_copy;
        assert!(size_of::<I::F32>() == size_of::<__m512>(), "a vector of sixteen floats");
        // SAFETY: vectors of sixteen floats are those of AVX-512, which the processor has: there is an `Isa` of it. Both types
        // are 64 bytes of floats, by the assertion.
        return unsafe {
            let (y, k): (__m512, __m512) = (transmute_copy(&y), transmute_copy(&k));
            Some(transmute_copy(&_mm512_scalef_ps(y, k)))
        };
    }
    let _ = (isa, y, k);
    None
}

impl SimdUnaryOp<f32> for Exp {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let (ops, ints) = (isa.f32(), isa.i32());
        // From −104 on it is 0 in f32.
        let x = within(isa, x, -104.0, HIGHEST);
        // Two powers of two, which are normal numbers where their product is none.
        let biased = ops.splat(ROUND + 254.0);
        let rounded = ops.mul_add(x, ops.splat(LOG2_E), biased);
        let times = ops.sub(rounded, biased);
        let y = exp_of_rest(isa, x, times);
        if let Some(y) = scaled(isa, y, times) {
            return y;
        }
        let both: I::I32 = rounded.reinterpret_cast();
        let half = ints.shift_right::<1>(both);
        let power = |exponent: I::I32| -> I::F32 { ints.shift_left::<23>(exponent).reinterpret_cast() };
        ops.mul(ops.mul(y, power(half)), power(ints.sub(both, half)))
    }
}

impl SimdUnaryOp<f32> for Sigmoid {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let [y] = self.together(isa, [x]);
        y
    }
}

impl Together for Sigmoid {
    #[inline(always)]
    fn together<I: Isa, const N: usize>(&self, isa: I, x: [I::F32; N]) -> [I::F32; N] {
        let ops = isa.f32();
        let x = each!(isa, i => within(isa, ops.neg(x[i]), LOWEST, HIGHEST));
        let [exp, power] = many_exp_factors(isa, x);
        each!(isa, i => ops.div(ops.one(), ops.mul_add(exp[i], power[i], ops.one())))
    }
}

impl SimdUnaryOp<f32> for Swish {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.div(x, inverse_sigmoid(isa, ops.mul(x, ops.splat(self.alpha))))
    }
}

impl SimdUnaryOp<f32> for TanhGelu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        const TWICE: f32 = SQRT_2 * FRAC_2_SQRT_PI;
        let ops = isa.f32();
        let slope = ops.mul_add(ops.mul(x, x), ops.splat(0.044715 * TWICE), ops.splat(TWICE));
        ops.div(x, inverse_sigmoid(isa, ops.mul(x, slope)))
    }
}

impl SimdUnaryOp<f32> for Tanh {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let [y] = self.together(isa, [x]);
        y
    }
}

impl Together for Tanh {
    #[inline(always)]
    fn together<I: Isa, const N: usize>(&self, isa: I, x: [I::F32; N]) -> [I::F32; N] {
        let (ops, ints) = (isa.f32(), isa.i32());
        // From 9.02 on it is 1 in f32.
        let size = each!(isa, i => at_most(isa, 9.02, ops.abs(x[i])));
        // 2ᵗ − 1 as in `power_less_one`, of a `t` that is not rounded where there is an instruction for that.
        let (factor, biased) = (ops.splat(2.0 * LOG2_E), ops.splat(ROUND + 127.0));
        let rounded = in_step(isa, each!(isa, i => ops.mul_add(size[i], factor, biased)));
        let r = each!(isa, i => ops.mul_add(size[i], factor, ops.sub(biased, rounded[i])));
        let r = in_step(isa, r);
        let y = polynomial(isa, r, POWER);
        each!(isa, i => {
            let power: I::I32 = ints.shift_left::<23>(rounded[i].reinterpret_cast());
            let power: I::F32 = power.reinterpret_cast();
            let e = ops.mul_add(ops.mul(y[i], r[i]), power, ops.sub(power, ops.one()));
            let y = ops.div(e, ops.add(e, ops.splat(2.0)));
            ops.or(y, ops.and(x[i], ops.splat(-0.0)))
        })
    }
}

impl SimdUnaryOp<f32> for Softplus {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        // max(x, 0) + log(1 + e), and the logarithm is 2·atanh(e / (2 + e)).
        let e = exp_below_zero(isa, ops.neg(ops.abs(x)));
        let s = ops.div(e, ops.add(e, ops.splat(2.0)));
        let square = ops.mul(s, s);
        let mut y = ops.splat(ATANH[3]);
        for i in (0..3).rev() {
            y = ops.mul_add(y, square, ops.splat(ATANH[i]));
        }
        let log = ops.mul(s, ops.mul_add(y, square, ops.splat(2.0)));
        ops.add(at_least(isa, 0.0, x), log)
    }
}

impl SimdUnaryOp<f32> for Mish {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        // tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2); from 20 on it is 1, and e² may overflow.
        let (exp, power) = exp_factors(isa, within(isa, x, LOWEST, 20.0));
        let e = ops.mul(exp, power);
        let n = ops.mul_add(e, e, ops.add(e, e));
        ops.mul(x, ops.div(n, ops.add(n, ops.splat(2.0))))
    }
}

impl SimdUnaryOp<f32> for Elu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        // From −104 on the exponential is 0 in f32.
        let low = within(isa, ops.mul(x, ops.splat(self.factor * LOG2_E)), -126.0, 0.0);
        let low = ops.mul(power_less_one(isa, low), ops.splat(self.below));
        ops.mul(ops.select(low, x, ops.lt(x, ops.zero())), ops.splat(self.scale))
    }
}

impl<const IS_COSINE: bool> SimdUnaryOp<f32> for Hyperbolic<IS_COSINE> {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        // Half of the exponential is a number up to log(2) beyond where the exponential is infinite.
        let size = ops.abs(x);
        let (exp, power) = exp_factors(isa, within(isa, ops.sub(size, ops.one()), -1.0, HIGHEST));
        let half = ops.mul(ops.mul(exp, ops.splat(E / 2.0)), power);
        let rest = ops.div(ops.splat(0.25), half);
        if IS_COSINE {
            return ops.add(half, rest);
        }
        let square = ops.mul(x, x);
        let mut y = ops.splat(SINH[3]);
        for i in (0..3).rev() {
            y = ops.mul_add(y, square, ops.splat(SINH[i]));
        }
        let small = ops.mul_add(ops.mul(y, square), size, size);
        let y = ops.select(small, ops.sub(half, rest), ops.lt(size, ops.one()));
        ops.or(y, ops.and(x, ops.splat(-0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps between two neighbouring floats, measured at `want`.
    fn ulps(got: f32, want: f64) -> f64 {
        let w = (want as f32).abs();
        (got as f64 - want).abs() / (f32::from_bits(w.to_bits() + 1) as f64 - w as f64)
    }

    /// The largest error where results are no denormal numbers, for arguments of all sizes.
    fn worst(f: impl SimdUnaryOp<f32>, want: impl Fn(f64) -> f64) -> f64 {
        let sizes = (1..150.0f32.to_bits()).step_by(49_991).map(f32::from_bits);
        let dense = (0..100_000).map(|i| i as f32 * 2e-4);
        let mut worst = 0.0f64;
        for x in sizes.chain(dense).flat_map(|x| [x, -x]) {
            let want = want(x as f64);
            if want as f32 == f32::INFINITY || want as f32 == f32::NEG_INFINITY {
                assert_eq!(f.scalar_eval(x), want as f32, "{x}");
            } else if want.abs() >= 2e-36 {
                worst = worst.max(ulps(f.scalar_eval(x), want));
            } else {
                assert!((f.scalar_eval(x) as f64 - want).abs() < 2.2e-36, "{x}");
            }
        }
        worst
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    #[test]
    fn errors_are_small() {
        let within = [
            ("exp", worst(Exp, f64::exp), 1.0),
            ("sigmoid", worst(Sigmoid, sigmoid), 3.0),
            ("swish", worst(Swish { alpha: 1.0 }, |x| x * sigmoid(x)), 3.0),
            ("tanh", worst(Tanh, libm::tanh), 3.1),
            ("softplus", worst(Softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()), 3.0),
            ("elu", worst(Elu { below: 1.0, factor: 1.0, scale: 1.0 }, |x| x.max(x.min(0.0).exp_m1())), 3.0),
            ("sinh", worst(Hyperbolic::<false>, libm::sinh), 4.0),
            ("cosh", worst(Hyperbolic::<true>, libm::cosh), 4.0),
            ("mish", worst(Mish, |x| x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh()), 5.0),
        ];
        for (name, got, most) in within {
            assert!(got <= most, "{name}: {got} ulp");
        }
        // Far below zero the rounding of its argument is what is seen.
        for i in -60_000..=100_000i32 {
            let x = i as f32 * 1e-4;
            let wide = x as f64;
            let want = wide * sigmoid((8.0 / std::f64::consts::PI).sqrt() * (wide + 0.044715 * wide.powi(3)));
            let got = TanhGelu.scalar_eval(x) as f64;
            assert!((got - want).abs() <= 1e-6 * want.abs() + 1e-9, "{x}: {got} {want}");
        }
    }

    #[test]
    fn what_is_no_usual_number() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let selu = Elu { below: 1.5, factor: 1.0, scale: 2.0 };
        assert!(
            Exp.scalar_eval(nan).is_nan()
                && Sigmoid.scalar_eval(nan).is_nan()
                && Tanh.scalar_eval(nan).is_nan()
                && Softplus.scalar_eval(nan).is_nan()
                && Mish.scalar_eval(nan).is_nan()
                && TanhGelu.scalar_eval(nan).is_nan()
                && selu.scalar_eval(nan).is_nan()
        );
        assert_eq!([-inf, 0.0, inf].map(|x| Exp.scalar_eval(x)), [0.0, 1.0, inf]);
        // Beyond the normal numbers.
        let small = Exp.scalar_eval(-95.0) as f64;
        assert!((small - (-95f64).exp()).abs() <= 0.5 * f64::from(f32::from_bits(1)), "{small}");
        assert_eq!([-inf, -100.0, inf].map(|x| Sigmoid.scalar_eval(x)), [0.0, 0.0, 1.0]);
        assert_eq!([-inf, -9.5, 9.5, inf].map(|x| Tanh.scalar_eval(x)), [-1.0, -1.0, 1.0, 1.0]);
        assert!(Tanh.scalar_eval(-0.0).is_sign_negative());
        assert_eq!([-inf, 1e30, inf].map(|x| Softplus.scalar_eval(x)), [0.0, 1e30, inf]);
        assert_eq!([1e30, inf].map(|x| Mish.scalar_eval(x)), [1e30, inf]);
        assert_eq!([-inf, -1e30, -0.0, 4.0, inf].map(|x| selu.scalar_eval(x)), [-3.0, -3.0, 0.0, 8.0, inf]);
        let (sinh, cosh) = (Hyperbolic::<false>, Hyperbolic::<true>);
        assert!(sinh.scalar_eval(nan).is_nan() && cosh.scalar_eval(nan).is_nan());
        assert_eq!([-inf, -0.0, 100.0, inf].map(|x| sinh.scalar_eval(x)), [-inf, 0.0, inf, inf]);
        assert_eq!([-inf, 0.0, inf].map(|x| cosh.scalar_eval(x)), [inf, 1.0, inf]);
        assert_eq!([-1e30, 1e30].map(|x| TanhGelu.scalar_eval(x)), [0.0, 1e30]);
    }
}
