//! Logarithm, arctangent, sine and cosine over vectors of f32.
//!
//! The coefficients are minimax fits made for these intervals (least squares on Chebyshev nodes, reweighted).

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2, LN_2, SQRT_2};

use rten_simd::ops::{BitOps, FloatOps, IntOps, MaskOps, NumOps, ToFloat};
use rten_simd::{Isa, Simd, SimdUnaryOp};

/// The natural logarithm, within 1 ulp.
#[derive(Default)]
pub(super) struct Log;

/// The arctangent, within 2 ulp.
#[derive(Default)]
pub(super) struct Atan;

/// The inverse hyperbolic sine, within 3 ulp.
#[derive(Default)]
pub(super) struct Asinh;

/// The sine, or the cosine: within 1e-7, and within 2 ulp of results above 0.01 for arguments up to [`REDUCED`].
#[derive(Default)]
pub(super) struct Wave<const COSINE: bool>;

/// Larger arguments are left to the C library, one at a time.
const REDUCED: f32 = 1024.0;

/// π/2 in three parts, the first with so few bits that multiples up to [`REDUCED`] are exact (after Cody and Waite).
const QUARTER: [f32; 3] = [1.570_312_5, 4.837_513e-4, 7.549_79e-8];

/// `(sin(r) / r − 1) / r²` over r² for r up to π/4.
const SINE: [f32; 4] = [-1.666_666_7e-1, 8.333_329e-3, -1.983_925_8e-4, 2.717_568_1e-6];

/// `(cos(r) − 1 + r²/2) / r⁴` over r² for r up to π/4.
const COSINE: [f32; 3] = [4.166_664_6e-2, -1.388_730_6e-3, 2.443_124e-5];

/// `(log(1 + f) − f + f²/2) / f³` for 1 + f from √½ to √2.
const LOG: [f32; 9] = [
    3.333_331e-1,
    -2.499_998_7e-1,
    2.000_222_7e-1,
    -1.666_925_1e-1,
    1.421_865_8e-1,
    -1.238_434_8e-1,
    1.187_297_6e-1,
    -1.178_980_8e-1,
    6.915_368e-2,
];

/// log 2 in two parts, the first with few bits, so that multiples by an exponent are exact.
const LOG_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// `(atan(t) / t − 1) / t²` over t² from 0 to 1.
const ATAN: [f32; 9] = [
    -3.333_330_2e-1,
    1.999_863_8e-1,
    -1.426_524_5e-1,
    1.095_757_2e-1,
    -8.419_446e-2,
    5.823_432e-2,
    -3.145_547e-2,
    1.106_431_5e-2,
    -1.827_184_7e-3,
];

/// A polynomial by Horner's rule, the constant term first.
#[inline(always)]
fn polynomial<I: Isa, const N: usize>(isa: I, x: I::F32, coefficients: &[f32; N]) -> I::F32 {
    let ops = isa.f32();
    let mut y = ops.splat(coefficients[N - 1]);
    for i in (0..N - 1).rev() {
        y = ops.mul_add(y, x, ops.splat(coefficients[i]));
    }
    y
}

impl SimdUnaryOp<f32> for Log {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let (ops, ints) = (isa.f32(), isa.i32());
        // Numbers without a leading bit get one.
        const TIMES: f32 = (1u32 << 23) as f32;
        let small = ops.lt(x, ops.splat(f32::MIN_POSITIVE));
        let scaled = ops.select(ops.mul(x, ops.splat(TIMES)), x, small);
        // x = m·2^e with m from √½ to √2.
        let bits: I::I32 = scaled.reinterpret_cast();
        let above = ints.sub(bits, ints.splat((SQRT_2 / 2.0).to_bits() as i32));
        let exponent = ints.shift_right::<23>(above);
        let m: I::F32 = ints.sub(bits, ints.shift_left::<23>(exponent)).reinterpret_cast();
        let e = ints.to_float(exponent);
        let e = ops.select(ops.sub(e, ops.splat(23.0)), e, small);
        let f = ops.sub(m, ops.one());
        let square = ops.mul(f, f);
        let y = ops.mul(ops.mul(polynomial(isa, f, &LOG), f), square);
        let y = ops.mul_add(e, ops.splat(LOG_2[1]), y);
        let y = ops.mul_add(square, ops.splat(-0.5), y);
        let y = ops.mul_add(e, ops.splat(LOG_2[0]), ops.add(f, y));
        // Infinity and NaN stay; of zero it is −∞, of what is below no number.
        let y = ops.select(y, x, ops.lt(x, ops.splat(f32::INFINITY)));
        let y = ops.select(ops.splat(f32::NEG_INFINITY), y, ops.eq(x, ops.zero()));
        ops.select(ops.splat(f32::NAN), y, ops.lt(x, ops.zero()))
    }
}

impl SimdUnaryOp<f32> for Atan {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        // atan(x) = π/2 − atan(1/x) above 1.
        let size = ops.abs(x);
        let large = ops.gt(size, ops.one());
        let t = ops.select(ops.div(ops.one(), size), size, large);
        let square = ops.mul(t, t);
        let y = ops.mul_add(ops.mul(polynomial(isa, square, &ATAN), square), t, t);
        let y = ops.select(ops.sub(ops.splat(FRAC_PI_2), y), y, large);
        let y = ops.select(ops.neg(y), y, ops.lt(x, ops.zero()));
        // Keeps the sign of a zero, and NaN.
        ops.select(y, x, ops.gt(size, ops.zero()))
    }
}

impl SimdUnaryOp<f32> for Asinh {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        /// From here on the square root is the number itself.
        const LARGE: f32 = 4096.0 * 4.0;
        let ops = isa.f32();
        let (size, one) = (ops.abs(x), ops.one());
        let large = ops.ge(size, ops.splat(LARGE));
        // log(1 + t) with t = |x| + x² / (1 + √(1 + x²)).
        let near = ops.min(size, ops.splat(LARGE));
        let square = ops.mul(near, near);
        let mut root = ops.add(square, one).to_array();
        for i in 0..ops.len() {
            root[i] = root[i].sqrt();
        }
        let t = ops.add(near, ops.div(square, ops.add(one, ops.load(root.as_ref()))));
        let sum = ops.add(one, t);
        // What the sum lost in rounding is added to its logarithm.
        let lost = ops.div(ops.sub(t, ops.sub(sum, one)), sum);
        let log = Log.eval(isa, ops.select(size, sum, large));
        let y = ops.add(log, ops.select(ops.splat(LN_2), lost, large));
        // Keeps the sign of a zero, and NaN.
        let y = ops.or(ops.abs(y), ops.and(x, ops.splat(-0.0)));
        ops.select(y, x, ops.eq(x, x))
    }
}

impl<const IS_COSINE: bool> SimdUnaryOp<f32> for Wave<IS_COSINE> {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let (ops, ints) = (isa.f32(), isa.i32());
        if !isa.m32().all(ops.le(ops.abs(x), ops.splat(REDUCED))) {
            let mut y = x.to_array();
            for i in 0..ops.len() {
                y[i] = if IS_COSINE { y[i].cos() } else { y[i].sin() };
            }
            return ops.load(y.as_ref());
        }
        // x = r + quarter·π/2 with r from −π/4 to π/4.
        let quarter = ops.round_ties_even(ops.mul(x, ops.splat(FRAC_2_PI)));
        let r = QUARTER.iter().fold(x, |r, &part| ops.mul_sub_from(quarter, ops.splat(part), r));
        let square = ops.mul(r, r);
        let sine = ops.mul_add(ops.mul(polynomial(isa, square, &SINE), square), r, r);
        let cosine = ops.mul_add(square, ops.splat(-0.5), ops.one());
        let cosine = ops.mul_add(ops.mul(polynomial(isa, square, &COSINE), square), square, cosine);
        // The cosine is the sine a quarter later; odd quarters swap the two, the second pair is negative.
        let count = ops.to_int_round(quarter);
        let count = if IS_COSINE { ints.add(count, ints.one()) } else { count };
        let odd: I::F32 = ints.to_float(ints.and(count, ints.one()));
        let y = ops.select(cosine, sine, ops.gt(odd, ops.zero()));
        let second: I::F32 = ints.to_float(ints.and(count, ints.splat(2)));
        let y = ops.select(ops.neg(y), y, ops.gt(second, ops.zero()));
        // The sine of numbers this small is the number, also of −0.
        if IS_COSINE { y } else { ops.select(x, y, ops.lt(ops.abs(x), ops.splat(2e-4))) }
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

    #[test]
    fn log_is_within_one_ulp() {
        let mut worst = 0.0f64;
        for bits in (1..f32::INFINITY.to_bits()).step_by(9_973) {
            let x = f32::from_bits(bits);
            worst = worst.max(ulps(Log.scalar_eval(x), libm::log(x as f64)));
        }
        for i in 500_000..2_000_000u32 {
            let x = i as f32 * 1e-6;
            worst = worst.max(ulps(Log.scalar_eval(x), libm::log(x as f64)));
        }
        assert!(worst <= 1.0, "{worst}");
        assert_eq!(Log.scalar_eval(f32::INFINITY), f32::INFINITY);
        assert_eq!(Log.scalar_eval(0.0), f32::NEG_INFINITY);
        assert_eq!(Log.scalar_eval(-0.0), f32::NEG_INFINITY);
        assert_eq!(Log.scalar_eval(1.0), 0.0);
        assert!(Log.scalar_eval(-1.0).is_nan() && Log.scalar_eval(f32::NAN).is_nan());
    }

    #[test]
    fn atan_is_within_two_ulps() {
        let mut worst = 0.0f64;
        for bits in (f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits()).step_by(4_999) {
            let x = f32::from_bits(bits);
            worst = worst.max(ulps(Atan.scalar_eval(x), libm::atan(x as f64)));
            assert_eq!(Atan.scalar_eval(-x), -Atan.scalar_eval(x));
        }
        assert!(worst <= 2.0, "{worst}");
        assert_eq!(Atan.scalar_eval(f32::INFINITY), FRAC_PI_2);
        assert_eq!(Atan.scalar_eval(f32::NEG_INFINITY), -FRAC_PI_2);
        assert!(Atan.scalar_eval(-0.0).is_sign_negative());
        assert!(Atan.scalar_eval(f32::NAN).is_nan());
    }

    #[test]
    fn inverse_hyperbolic_sine_is_within_three_ulps() {
        let mut worst = 0.0f64;
        for bits in (f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits()).step_by(4_999) {
            let x = f32::from_bits(bits);
            worst = worst.max(ulps(Asinh.scalar_eval(x), libm::asinh(x as f64)));
            assert_eq!(Asinh.scalar_eval(-x), -Asinh.scalar_eval(x));
        }
        for i in 0..2_000_000u32 {
            let x = i as f32 * 1e-6;
            worst = worst.max(ulps(Asinh.scalar_eval(x), libm::asinh(x as f64)));
        }
        assert!(worst <= 3.0, "{worst}");
        assert_eq!(Asinh.scalar_eval(f32::INFINITY), f32::INFINITY);
        assert_eq!(Asinh.scalar_eval(f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert_eq!(Asinh.scalar_eval(f32::from_bits(1)), f32::from_bits(1));
        assert!(Asinh.scalar_eval(-0.0).is_sign_negative() && Asinh.scalar_eval(f32::NAN).is_nan());
    }

    #[test]
    fn inverse_hyperbolic_sine_with_every_instruction_set() {
        fn check<I: Isa>(isa: I) {
            let ops = isa.f32();
            for x in
                [-1e30, -3.0, -0.0, 1e-30, 1e-3, 0.5, 16_383.0, 16_385.0, f32::MAX, f32::INFINITY, f32::NAN]
            {
                let got = Asinh.eval(isa, ops.splat(x)).to_array();
                for &got in got.as_ref() {
                    let want = libm::asinh(f64::from(x));
                    let near = (f64::from(got) - want).abs() <= 3e-7 * want.abs() || f64::from(got) == want;
                    assert!(near || got.is_nan() && x.is_nan(), "{x}: {got}, not {want}");
                }
            }
        }
        crate::testing::each_instruction_set!(isa => check(isa));
    }

    #[test]
    fn sine_and_cosine_are_close() {
        let check = |got: f32, want: f64, x: f32| {
            assert!((got as f64 - want).abs() <= 1e-7, "{x}: {got} {want}");
            assert!(want.abs() < 0.01 || ulps(got, want) <= 2.0, "{x}: {got} {want}");
        };
        for i in -400_000..=400_000i32 {
            let x = i as f32 * 2.5e-3;
            check(Wave::<false>.scalar_eval(x), libm::sin(x as f64), x);
            check(Wave::<true>.scalar_eval(x), libm::cos(x as f64), x);
        }
        // Beyond what is reduced here, and no numbers.
        check(Wave::<false>.scalar_eval(1e10), libm::sin(1e10), 1e10);
        assert!(
            Wave::<true>.scalar_eval(f32::INFINITY).is_nan() && Wave::<false>.scalar_eval(f32::NAN).is_nan()
        );
        assert!(Wave::<false>.scalar_eval(-0.0).is_sign_negative());
    }
}
