//! Minima, maxima and roundings as the hardware defines them, for floats of both sizes.

/// What minima and roundings need of a float.
pub trait Float: Copy + PartialOrd {
    fn is_nan(self) -> bool;
    fn is_sign_negative(self) -> bool;
}

impl Float for f32 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }

    #[inline(always)]
    fn is_sign_negative(self) -> bool {
        self.is_sign_negative()
    }
}

impl Float for f64 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }

    #[inline(always)]
    fn is_sign_negative(self) -> bool {
        self.is_sign_negative()
    }
}

/// minNum of IEEE 754-2008: a number before what is none, and −0 before +0.
#[inline(always)]
pub fn min_num<T: Float>(a: T, b: T) -> T {
    // Without branches, so that loops over lanes become vector code.
    let less = (a < b) | (a == b) & a.is_sign_negative();
    if b.is_nan() | less { a } else { b }
}

/// maxNum of IEEE 754-2008: a number before what is none, and +0 before −0.
#[inline(always)]
pub fn max_num<T: Float>(a: T, b: T) -> T {
    let greater = (a > b) | (a == b) & !a.is_sign_negative();
    if b.is_nan() | greater { a } else { b }
}

/// minimum of IEEE 754-2019: what is no number goes on.
#[inline(always)]
pub fn minimum<T: Float>(a: T, b: T) -> T {
    if a.is_nan() {
        a
    } else if b.is_nan() {
        b
    } else {
        min_num(a, b)
    }
}

/// maximum of IEEE 754-2019: what is no number goes on.
#[inline(always)]
pub fn maximum<T: Float>(a: T, b: T) -> T {
    if a.is_nan() {
        a
    } else if b.is_nan() {
        b
    } else {
        max_num(a, b)
    }
}

/// The middle one of three; with what is no number the smallest of the numbers.
#[inline(always)]
pub fn median<T: Float>(a: T, b: T, c: T) -> T {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min_num(min_num(a, b), c);
    }
    max_num(min_num(a, b), min_num(max_num(a, b), c))
}

/// The binary exponent and a significand between a half and one (the C function frexp).
pub fn split(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    if exponent == 0 {
        // A subnormal number becomes a normal one.
        let (significand, exponent) = split(x * f64::from_bits((1023 + 64) << 52));
        return (significand, exponent - 64);
    }
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent - 1022)
}

/// `x` times 2 to the power of `exponent`, rounded once (the C function ldexp).
pub fn scale(x: f64, exponent: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let power = |e: i32| f64::from_bits(((1023 + e) as u64) << 52);
    let mut exponent = exponent.clamp(-2200, 2200);
    let mut x = x;
    while exponent > 1000 {
        x *= power(1000);
        exponent -= 1000;
    }
    if exponent < -1000 {
        // In one step from a normal number, so that it is rounded once.
        let (significand, own) = split(x);
        let total = own.saturating_add(exponent);
        return if total < -1074 {
            if total == -1074 - 1 && significand.abs() > 0.5 {
                f64::from_bits(1).copysign(x)
            } else {
                0f64.copysign(x)
            }
        } else {
            significand * power(total.max(-1000)) * power((total + 1000).min(0))
        };
    }
    x * power(exponent.max(-1000)) * power((exponent + 1000).min(0))
}

/// Subnormal numbers become 0 with their sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x }
}
