//! Logarithm and arctangent over vectors of f32.
//!
//! The coefficients are minimax fits made for these intervals (least squares on Chebyshev nodes, reweighted).

use std::f32::consts::{FRAC_PI_2, SQRT_2};

use rten_simd::ops::{BitOps, FloatOps, IntOps, NumOps, ToFloat};
use rten_simd::{Isa, Simd, SimdUnaryOp};

/// The natural logarithm, within 1 ulp.
#[derive(Default)]
pub(super) struct Log;

/// The arctangent, within 2 ulp.
#[derive(Default)]
pub(super) struct Atan;

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
fn polynomial<I: Isa>(isa: I, x: I::F32, coefficients: &[f32; 9]) -> I::F32 {
    let ops = isa.f32();
    let mut y = ops.splat(coefficients[8]);
    for i in (0..8).rev() {
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
}
