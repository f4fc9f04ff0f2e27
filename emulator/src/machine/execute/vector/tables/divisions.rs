//! The steps of a division: scale what would overflow or underflow, refine, mend (ISA manual, V_DIV_SCALE, V_DIV_FMAS,
//! V_DIV_FIXUP).

use super::super::kernel::{carry3, map3, select3};
use super::super::types::F16;
use super::Row;
use super::rounding::scale;

pub fn rows() -> Vec<Row> {
    vec![
        ("v_div_scale_f32", carry3(scale_single)),
        ("v_div_scale_f64", carry3(scale_double)),
        (
            "v_div_fmas_f32",
            select3(|a: f32, b: f32, c: f32, scaled| {
                let sum = a.mul_add(b, c);
                let power = if exponent(c) > 127 { 64 } else { -64 };
                if scaled { scale(f64::from(sum), power) as f32 } else { sum }
            }),
        ),
        (
            "v_div_fmas_f64",
            select3(|a: f64, b: f64, c: f64, scaled| {
                let sum = a.mul_add(b, c);
                let power = if exponent64(c) > 1023 { 128 } else { -128 };
                if scaled { scale(sum, power) } else { sum }
            }),
        ),
        ("v_div_fixup_f32", map3(fix_single)),
        ("v_div_fixup_f64", map3(fix_double)),
        ("v_div_fixup_f16", map3(fix_half)),
    ]
}

fn exponent(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xff) as i32
}

fn exponent64(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32
}

/// `value` is the divisor or the dividend; whether the quotient has to be scaled back.
fn scale_single(value: f32, divisor: f32, dividend: f32) -> (f32, bool) {
    let up = |condition: bool, power| if condition { scale(f64::from(value), power) as f32 } else { value };
    let distance = exponent(dividend) - exponent(divisor);
    let is_divisor = value.to_bits() == divisor.to_bits();
    let is_dividend = value.to_bits() == dividend.to_bits();
    let tiny_reciprocal =
        (1.0 / f64::from(divisor)).abs() < f64::from(f32::MIN_POSITIVE) && !divisor.is_infinite();
    let tiny_quotient = distance <= -126;
    if dividend == 0.0 || divisor == 0.0 {
        (f32::NAN, true)
    } else if distance >= 96 {
        (up(is_divisor, 64), true)
    } else if divisor.is_subnormal() {
        (up(true, 64), false)
    } else if tiny_reciprocal && tiny_quotient {
        (up(is_divisor, 64), true)
    } else if tiny_reciprocal {
        (up(true, -64), false)
    } else if tiny_quotient {
        (up(is_dividend, 64), true)
    } else {
        (up(exponent(dividend) <= 23, 64), false)
    }
}

fn scale_double(value: f64, divisor: f64, dividend: f64) -> (f64, bool) {
    let up = |condition: bool, power| if condition { scale(value, power) } else { value };
    let distance = exponent64(dividend) - exponent64(divisor);
    let is_divisor = value.to_bits() == divisor.to_bits();
    let is_dividend = value.to_bits() == dividend.to_bits();
    let tiny_reciprocal = divisor.abs() > f64::from_bits(2045 << 52) && !divisor.is_infinite();
    let tiny_quotient = distance <= -1022;
    if dividend == 0.0 || divisor == 0.0 {
        (f64::NAN, true)
    } else if distance >= 768 {
        (up(is_divisor, 128), true)
    } else if divisor.is_subnormal() {
        (up(true, 128), false)
    } else if tiny_reciprocal && tiny_quotient {
        (up(is_divisor, 128), true)
    } else if tiny_reciprocal {
        (up(true, -128), false)
    } else if tiny_quotient {
        (up(is_dividend, 128), true)
    } else {
        (up(exponent64(dividend) <= 53, 128), false)
    }
}

/// What a division of special values gives; `None` of others.
fn special(divisor: f64, dividend: f64) -> Option<f64> {
    let sign = if divisor.is_sign_negative() != dividend.is_sign_negative() { -1.0 } else { 1.0 };
    if dividend.is_nan() {
        Some(dividend)
    } else if divisor.is_nan() {
        Some(divisor)
    } else if divisor == 0.0 && dividend == 0.0 || divisor.is_infinite() && dividend.is_infinite() {
        Some(-f64::NAN)
    } else if divisor == 0.0 || dividend.is_infinite() {
        Some(f64::INFINITY * sign)
    } else if divisor.is_infinite() || dividend == 0.0 {
        Some(0.0 * sign)
    } else {
        None
    }
}

fn fix_single(quotient: f32, divisor: f32, dividend: f32) -> f32 {
    let negative = divisor.is_sign_negative() != dividend.is_sign_negative();
    let sign = if negative { -1.0f32 } else { 1.0 };
    match special(f64::from(divisor), f64::from(dividend)) {
        Some(value) => value as f32,
        None if exponent(dividend) - exponent(divisor) < -150 => 0f32.copysign(sign),
        None if exponent(divisor) == 255 => f32::INFINITY.copysign(sign),
        None => quotient.copysign(sign),
    }
}

fn fix_double(quotient: f64, divisor: f64, dividend: f64) -> f64 {
    let negative = divisor.is_sign_negative() != dividend.is_sign_negative();
    let sign = if negative { -1.0f64 } else { 1.0 };
    match special(divisor, dividend) {
        Some(value) => value,
        None if exponent64(dividend) - exponent64(divisor) < -1075 => 0f64.copysign(sign),
        None if exponent64(divisor) == 2047 => f64::INFINITY.copysign(sign),
        None => quotient.copysign(sign),
    }
}

fn fix_half(quotient: F16, divisor: F16, dividend: F16) -> F16 {
    let negative = divisor.0.is_sign_negative() != dividend.0.is_sign_negative();
    match special(f64::from(divisor.0), f64::from(dividend.0)) {
        Some(value) => F16(value as f32),
        None => F16(quotient.0.copysign(if negative { -1.0 } else { 1.0 })),
    }
}
