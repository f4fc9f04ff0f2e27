//! Functions over vectors of f32 that rten-vecmath lacks, or has with a larger error.

use std::f32::consts::FRAC_1_SQRT_2;

use rten_simd::ops::{BitOps, FloatOps, NumOps};
use rten_simd::{Isa, SimdUnaryOp};
use rten_vecmath::{Elu, Exp};

/// The error function, within 2 ulp.
#[derive(Default)]
pub(super) struct Erf;

/// `x·Φ(x)`, the exact form of GELU.
#[derive(Default)]
pub(super) struct Gelu;

/// Below this erf is an odd polynomial, above it `1 − exp(polynomial)`.
const SPLIT: f32 = 0.92;

/// `erf(x) / x − 1` over x², a minimax fit on [0, SPLIT²]; relative error 1.5e-8.
const NEAR: [f32; 6] =
    [1.283_791_5e-1, -3.761_250_7e-1, 1.128_195_5e-1, -2.677_128_3e-2, 4.999_601_3e-3, -6.021_806e-4];

/// `log(erfc(x))`, a minimax fit on [SPLIT, 4] weighted by erfc; erf is 1 in f32 from 4 on.
const FAR: [f32; 8] = [
    1.758_745_7e-4,
    -1.129_520_8,
    -6.333_346_4e-1,
    -1.082_939_4e-1,
    2.512_862_5e-2,
    -4.174_643e-3,
    4.352_188_9e-4,
    -2.116_190_6e-5,
];

/// `erf(|x|) / |x| − 1` (right below SPLIT) and `erfc(|x|)` (right above).
#[inline(always)]
fn parts<I: Isa>(isa: I, x: I::F32) -> (I::F32, I::F32) {
    let ops = isa.f32();
    let square = ops.mul(x, x);
    let mut near = ops.splat(NEAR[5]);
    for i in (0..5).rev() {
        near = ops.mul_add(near, square, ops.splat(NEAR[i]));
    }
    let t = ops.min(ops.abs(x), ops.splat(4.0));
    let mut far = ops.splat(FAR[7]);
    for i in (0..7).rev() {
        far = ops.mul_add(far, t, ops.splat(FAR[i]));
    }
    let beyond = ops.ge(t, ops.splat(4.0));
    (near, ops.select(ops.zero(), Exp::apply(isa, far), beyond))
}

/// `gamma · x`, below zero `gamma · alpha · (exp(x) − 1)`.
pub(super) struct Selu {
    pub(super) alpha: f32,
    pub(super) gamma: f32,
}

impl SimdUnaryOp<f32> for Selu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.mul(Elu { alpha: self.alpha }.eval(isa, x), ops.splat(self.gamma))
    }
}

impl SimdUnaryOp<f32> for Erf {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        let (near, erfc) = parts(isa, x);
        let near = ops.mul_add(near, x, x);
        let far = ops.sub(ops.one(), erfc);
        let far = ops.select(ops.neg(far), far, ops.lt(x, ops.zero()));
        let result = ops.select(near, far, ops.lt(ops.abs(x), ops.splat(SPLIT)));
        // NaN fails every comparison above and would come out as a number.
        ops.select(result, x, ops.eq(x, x))
    }
}

impl SimdUnaryOp<f32> for Gelu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        let t = ops.mul(x, ops.splat(FRAC_1_SQRT_2));
        let (near, erfc) = parts(isa, t);
        // 2·Φ(x) = 1 + erf(t); for negative t that is erfc(|t|), which does not cancel.
        let near = ops.add(ops.one(), ops.mul_add(near, t, t));
        let far = ops.select(erfc, ops.sub(ops.splat(2.0), erfc), ops.lt(x, ops.zero()));
        let twice = ops.select(near, far, ops.lt(ops.abs(t), ops.splat(SPLIT)));
        // −∞·0 is NaN, where the limit is 0.
        let result = ops.mul(ops.mul(x, ops.splat(0.5)), twice);
        let lowest = ops.lt(x, ops.splat(f32::MIN));
        let result = ops.select(ops.neg(ops.zero()), result, lowest);
        ops.select(result, x, ops.eq(x, x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps between two neighbouring floats, measured at `want`.
    fn ulps(got: f32, want: f64) -> f64 {
        let w = want as f32;
        let step = f32::from_bits(w.abs().to_bits() + 1) as f64 - w.abs() as f64;
        (got as f64 - want).abs() / step
    }

    #[test]
    fn erf_is_within_two_ulps() {
        let mut worst = 0.0f64;
        for i in -60_000..=60_000i32 {
            let x = i as f32 * 1e-4;
            worst = worst.max(ulps(Erf.scalar_eval(x), libm::erf(x as f64)));
        }
        assert!(worst <= 2.0, "{worst}");
        assert_eq!(Erf.scalar_eval(f32::INFINITY), 1.0);
        assert_eq!(Erf.scalar_eval(f32::NEG_INFINITY), -1.0);
        assert!(Erf.scalar_eval(f32::NAN).is_nan());
    }

    #[test]
    fn gelu_is_close_where_it_does_not_vanish() {
        for i in -5_000..=20_000i32 {
            let x = i as f32 * 1e-3;
            let want = 0.5 * x as f64 * libm::erfc(-x as f64 * std::f64::consts::FRAC_1_SQRT_2);
            let got = Gelu.scalar_eval(x);
            assert!((got as f64 - want).abs() <= 1e-7 + 4e-7 * want.abs(), "{x}: {got} {want}");
        }
        for (x, want) in [(f32::INFINITY, f32::INFINITY), (f32::NEG_INFINITY, 0.0), (-30.0, 0.0)] {
            assert_eq!(Gelu.scalar_eval(x), want);
        }
        assert!(Gelu.scalar_eval(f32::NAN).is_nan());
    }
}
