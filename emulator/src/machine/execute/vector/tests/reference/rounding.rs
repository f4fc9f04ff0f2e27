//! Rounding by the definition of IEEE 754, one step after the other.

/// A number to the nearest that has `digits` binary digits behind the first and exponents from `lowest` to `highest`, ties
/// to even.
pub fn nearest(value: f64, digits: i32, lowest: i32, highest: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let mut exponent = lowest;
    while exponent < highest && value.abs() >= power(exponent + 1) {
        exponent += 1;
    }
    // The division is by a power of two and the quotient is far from the bounds of a double.
    let unit = power(exponent - digits);
    let rounded = ties_to_even(value.abs() / unit) * unit;
    let largest = power(highest) * (2.0 - power(-digits));
    (if rounded > largest { f64::INFINITY } else { rounded }).copysign(value)
}

pub fn single(value: f64) -> f32 {
    nearest(value, 23, -126, 127) as f32
}

pub fn half_bits(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    if value.is_nan() {
        return 0x7e00;
    }
    let rounded = nearest(value, 10, -14, 15).abs();
    if rounded.is_infinite() {
        return sign | 0x7c00;
    }
    // The codes of finite halves are in the order of their values.
    let (mut below, mut above) = (0u16, 0x7c00u16);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if half(middle) <= rounded { below = middle } else { above = middle }
    }
    sign | below
}

pub fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * power(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * power(exponent - 25),
    };
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

/// `a` times `b` plus `c`, rounded once to a half.
pub fn fused_half(a: f64, b: f64, c: f64) -> u16 {
    if !(a * b + c).is_finite() || a * b == 0.0 {
        return half_bits(a * b + c);
    }
    // All halves are multiples of 2⁻²⁴.
    let (x, y) = ((a * power(24)) as i128, (b * power(24)) as i128);
    let sum = x * y + ((c * power(24)) as i128 * (1 << 24));
    if sum == 0 {
        return 0;
    }
    // As many digits as a double has; the last says whether something was cut off.
    let cut = (128 - sum.abs().leading_zeros()).saturating_sub(50);
    let sticky = i128::from(sum.abs() & ((1 << cut) - 1) != 0);
    let magnitude = ((sum.abs() >> cut) * 2 + sticky) as f64 * power(cut as i32 - 49);
    half_bits(magnitude.copysign(if sum < 0 { -1.0 } else { 1.0 }))
}

/// `a` times `b` plus `c`, rounded once to single precision.
pub fn fused_single(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    if !sum.is_finite() || sum == 0.0 {
        return sum as f32;
    }
    // What the sum lost (Knuth's exact addition). The sum is made odd where it lost something.
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let odd = if lost == 0.0 || sum.to_bits() & 1 != 0 {
        sum
    } else if (lost > 0.0) == (sum > 0.0) {
        f64::from_bits(sum.to_bits() + 1)
    } else {
        f64::from_bits(sum.to_bits() - 1)
    };
    single(odd)
}

/// Of what is not negative.
fn ties_to_even(value: f64) -> f64 {
    if value >= power(52) {
        return value;
    }
    let whole = value as u64;
    let rest = value - whole as f64;
    let up = rest > 0.5 || rest == 0.5 && whole % 2 == 1;
    (whole + u64::from(up)) as f64
}

/// A number to an integer: what `direction` makes of the integer part and the rest of its magnitude.
pub fn integral(value: f64, direction: fn(negative: bool, rest: f64, odd: bool) -> bool) -> f64 {
    if !value.is_finite() || value.abs() >= power(52) {
        return value;
    }
    let whole = value.abs() as u64;
    let rest = value.abs() - whole as f64;
    let away = direction(value.is_sign_negative(), rest, whole % 2 == 1);
    ((whole + u64::from(away)) as f64).copysign(value)
}

pub fn toward_zero(value: f64) -> f64 {
    integral(value, |_, _, _| false)
}

pub fn down(value: f64) -> f64 {
    integral(value, |negative, rest, _| negative && rest > 0.0)
}

pub fn up(value: f64) -> f64 {
    integral(value, |negative, rest, _| !negative && rest > 0.0)
}

pub fn even(value: f64) -> f64 {
    integral(value, |_, rest, odd| rest > 0.5 || rest == 0.5 && odd)
}

/// 2 to the power of an exponent from −1074 to 1023.
pub fn power(exponent: i32) -> f64 {
    let bits = if exponent < -1022 { 1 << (exponent + 1074) } else { ((exponent + 1023) as u64) << 52 };
    f64::from_bits(bits)
}
