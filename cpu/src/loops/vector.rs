//! Functions over vectors of f32: the error function, GELU, and what exponentials are made of.

use crate::loops::together::{Together, each, in_step, polynomial};
use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

use rten_simd::ops::{BitOps, FloatOps, IntOps, NumOps};
use rten_simd::{Isa, Simd, SimdUnaryOp};

/// The error function, within 2 ulp.
#[derive(Default)]
pub(crate) struct Erf;

/// `x·Φ(x)`, the exact form of GELU.
#[derive(Default)]
pub(crate) struct Gelu;

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

/// `erf(|x|) / |x| − 1` (right below SPLIT) and two factors of `erfc(|x|)` (right above; not 0 beyond 4, but less than half of
/// what 1 is apart from the next number).
#[inline(always)]
fn parts<I: Isa, const N: usize>(isa: I, x: [I::F32; N]) -> ([I::F32; N], [[I::F32; N]; 2]) {
    let ops = isa.f32();
    let far = polynomial(isa, each!(isa, i => ops.min(ops.abs(x[i]), ops.splat(4.0))), FAR);
    let factors = many_exp_factors(isa, far);
    (polynomial(isa, each!(isa, i => ops.mul(x[i], x[i])), NEAR), factors)
}

/// `(exp(r) − 1 − r) / r²`, a minimax fit on [−log(2)/2, log(2)/2]; relative error of the exponential 3e-9.
const EXP: [f32; 5] = [4.999_999_4e-1, 1.666_652e-1, 4.166_839_3e-2, 8.368_781e-3, 1.381_446_6e-3];
/// log(2), in a part that has few digits and the rest.
const LOG_2: [f32; 2] = [6.931_457_5e-1, 1.428_606_8e-6];
/// Below -86.99 the exponential is taken for 0, while it is still a normal number. Its power of two has no bits left there.
pub(super) const LOWEST: f32 = -87.3;
/// Added to a small float it leaves the nearest whole number in the lowest bits.
pub(super) const ROUND: f32 = 12_582_912.0;

/// What is added to the exponent of a power of two that is half as large.
pub(super) const BIAS: f32 = 126.0;

/// Two factors of `exp(x)`, within 1 ulp, for `x` from `LOWEST` to 89, where it is infinite; NaN stays NaN in their product.
#[inline(always)]
pub(crate) fn exp_factors<I: Isa>(isa: I, x: I::F32) -> (I::F32, I::F32) {
    let [[y], [power]] = many_exp_factors(isa, [x]);
    (y, power)
}

/// The same of each of several vectors.
#[inline(always)]
pub(crate) fn many_exp_factors<I: Isa, const N: usize>(isa: I, x: [I::F32; N]) -> [[I::F32; N]; 2] {
    let (ops, ints) = (isa.f32(), isa.i32());
    // The power of two is half as large and the other factor twice, so that the bits of powers are all zeros before they are
    // those of negative numbers.
    let biased = ops.splat(ROUND + BIAS);
    let rounded = in_step(isa, each!(isa, i => ops.mul_add(x[i], ops.splat(LOG2_E), biased)));
    let y = rest::<I, 2, N>(isa, x, each!(isa, i => ops.sub(rounded[i], biased)));
    let power = each!(isa, i => {
        let power: I::I32 = ints.shift_left::<23>(rounded[i].reinterpret_cast());
        power.reinterpret_cast()
    });
    [y, power]
}

/// `exp(x − k·log(2))` of what is at most half of log(2) away from `k` times it.
#[inline(always)]
pub(super) fn exp_of_rest<I: Isa>(isa: I, x: I::F32, k: I::F32) -> I::F32 {
    let [y] = rest::<I, 1, 1>(isa, [x], [k]);
    y
}

/// The same, so many times.
#[inline(always)]
fn rest<I: Isa, const TIMES: i32, const N: usize>(isa: I, x: [I::F32; N], k: [I::F32; N]) -> [I::F32; N] {
    let (ops, times) = (isa.f32(), TIMES as f32);
    let r = each!(isa, i => ops.mul_add(k[i], ops.splat(-LOG_2[0]), x[i]));
    let r = in_step(isa, each!(isa, i => ops.mul_add(k[i], ops.splat(-LOG_2[1]), r[i])));
    let [a, b, c, d, e] = EXP;
    polynomial(isa, r, [times, times, times * a, times * b, times * c, times * d, times * e])
}

/// `x`, and `lowest` where it is less; NaN stays NaN.
#[inline(always)]
pub(super) fn at_least<I: Isa>(isa: I, lowest: f32, x: I::F32) -> I::F32 {
    let (ops, lowest) = (isa.f32(), isa.f32().splat(lowest));
    // The operands in this order let NaN through, where there is an instruction of that kind.
    if ops.len() >= 8 { ops.max(lowest, x) } else { ops.select(lowest, x, ops.lt(x, lowest)) }
}

/// `x`, and `highest` where it is more; NaN stays NaN.
#[inline(always)]
pub(super) fn at_most<I: Isa>(isa: I, highest: f32, x: I::F32) -> I::F32 {
    let (ops, highest) = (isa.f32(), isa.f32().splat(highest));
    if ops.len() >= 8 { ops.min(highest, x) } else { ops.select(highest, x, ops.gt(x, highest)) }
}

/// `exp(x)` of what is not above zero (a few thousandths more do no harm), within 1 ulp; 0 below -86.99.
#[inline(always)]
pub(crate) fn exp_below_zero<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (y, power) = exp_factors(isa, at_least(isa, LOWEST, x));
    isa.f32().mul(y, power)
}

impl SimdUnaryOp<f32> for Erf {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let [y] = self.together(isa, [x]);
        y
    }
}

impl Together for Erf {
    #[inline(always)]
    fn together<I: Isa, const N: usize>(&self, isa: I, x: [I::F32; N]) -> [I::F32; N] {
        let ops = isa.f32();
        let (near, [exp, power]) = parts(isa, x);
        each!(isa, i => {
            let near = ops.mul_add(near[i], x[i], x[i]);
            let far = ops.mul_sub_from(exp[i], power[i], ops.one());
            let far = ops.or(far, ops.and(x[i], ops.splat(-0.0)));
            // NaN fails the comparison, and is NaN near zero.
            ops.select(far, near, ops.ge(ops.abs(x[i]), ops.splat(SPLIT)))
        })
    }
}

impl SimdUnaryOp<f32> for Gelu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let [y] = self.together(isa, [x]);
        y
    }
}

impl Together for Gelu {
    #[inline(always)]
    fn together<I: Isa, const N: usize>(&self, isa: I, x: [I::F32; N]) -> [I::F32; N] {
        let ops = isa.f32();
        // −∞·0 is NaN, where the limit is 0.
        let x = each!(isa, i => at_least(isa, f32::MIN, x[i]));
        let t = each!(isa, i => ops.mul(x[i], ops.splat(FRAC_1_SQRT_2)));
        let (near, [exp, power]) = parts(isa, t);
        each!(isa, i => {
            let size = ops.abs(t[i]);
            // 2·Φ(x) = 1 + erf(t); for negative t that is erfc(|t|), which does not cancel.
            let near = ops.add(ops.one(), ops.mul_add(near[i], t[i], t[i]));
            let erfc = ops.select(ops.zero(), ops.mul(exp[i], power[i]), ops.ge(size, ops.splat(4.0)));
            let sign = ops.and(x[i], ops.splat(-0.0));
            let negated = ops.xor(ops.xor(erfc, sign), ops.splat(-0.0));
            let far = ops.add(ops.select(ops.zero(), ops.splat(2.0), ops.lt(x[i], ops.zero())), negated);
            // NaN fails the comparison, and is NaN near zero.
            let twice = ops.select(far, near, ops.ge(size, ops.splat(SPLIT)));
            ops.mul(ops.mul(x[i], ops.splat(0.5)), twice)
        })
    }
}

/// `x·Φ(x)` within 3e-4 of itself above −4, and within 1e-6 below: for results that are rounded to bfloat16.
#[derive(Default)]
pub(crate) struct RoughGelu;

/// `log₂(erfc(x / √2))`, a minimax fit on [0, FARTHEST]; erfc's relative error 1.5e-4 up to 3, 1.3e-3 up to 5.
const ROUGH_ERFC: [f32; 6] =
    [-2.129_376e-4, -1.147_941_1, -4.667_166_5e-1, -4.635_723_5e-2, 5.279_233e-3, -2.654_159_3e-4];
/// 2ʳ, a minimax fit on [−1/2, 1/2]; relative error 7.5e-5, a fiftieth of what rounding to bfloat16 makes.
pub(crate) const ROUGH_POWER: [f32; 4] = [0.999_928_06, 0.693_261, 0.242_611_13, 0.055_171_665];
/// Where the result no longer differs from 0 or `x`.
const FARTHEST: f32 = 6.0;

impl SimdUnaryOp<f32> for RoughGelu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let (ops, ints) = (isa.f32(), isa.i32());
        let near = ops.min(ops.max(x, ops.splat(-FARTHEST)), ops.splat(FARTHEST));
        let u = ops.abs(near);
        let mut log = ops.splat(ROUGH_ERFC[5]);
        for i in (0..5).rev() {
            log = ops.mul_add(log, u, ops.splat(ROUGH_ERFC[i]));
        }
        let rounded = ops.add(log, ops.splat(ROUND));
        let r = ops.sub(log, ops.sub(rounded, ops.splat(ROUND)));
        let mut y = ops.splat(ROUGH_POWER[3]);
        for i in (0..3).rev() {
            y = ops.mul_add(y, r, ops.splat(ROUGH_POWER[i]));
        }
        let power: I::I32 = ints.shift_left::<23>(rounded.reinterpret_cast());
        let erfc: I::F32 = ints.add(y.reinterpret_cast(), power).reinterpret_cast();
        let part = ops.mul(ops.mul(near, ops.splat(0.5)), erfc);
        let result = ops.select(part, ops.sub(x, part), ops.lt(x, ops.zero()));
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

    #[test]
    fn rough_gelu_is_close_enough_for_bfloat16() {
        for i in -10_000..=10_000i32 {
            let x = i as f32 * 1e-3;
            let want = 0.5 * f64::from(x) * libm::erfc(f64::from(-x) * std::f64::consts::FRAC_1_SQRT_2);
            let (got, relative) = (f64::from(RoughGelu.scalar_eval(x)), if x > -4.0 { 3e-4 } else { 0.0 });
            assert!((got - want).abs() <= 1e-6 + relative * want.abs(), "{x}: {got} {want}");
        }
        assert_eq!(RoughGelu.scalar_eval(f32::INFINITY), f32::INFINITY);
        assert!(RoughGelu.scalar_eval(f32::NEG_INFINITY).abs() < 1e-7);
        assert!(RoughGelu.scalar_eval(f32::NAN).is_nan());
    }
}
