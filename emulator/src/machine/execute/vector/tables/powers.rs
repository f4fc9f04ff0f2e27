//! Powers of two and their logarithms, in double precision and rounded from there. They have no branches, so that loops over
//! lanes become vector code, and give the same on all processors.

/// Added to a small number, it leaves a whole one in the low bits of the sum.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Coefficients of 2^r, |r| ≤ ½: powers of ln 2 over factorials, the highest first.
const EXPONENTIAL: [f64; 10] = [
    1.01780860092397e-07,
    1.321548679014431e-06,
    1.5252733804059841e-05,
    0.0001540353039338161,
    0.0013333558146428443,
    0.009618129107628477,
    0.05550410866482158,
    0.24022650695910072,
    std::f64::consts::LN_2,
    1.0,
];

/// 2 to the power of `a`.
#[inline(always)]
pub fn exp2(a: f32) -> f32 {
    let x = f64::from(a);
    // Beyond there are 0 and ∞. What is no number fails both comparisons.
    let x = if x > 200.0 { 200.0 } else { x };
    let x = if x < -200.0 { -200.0 } else { x };
    let whole = x + WHOLE;
    let rest = x - (whole - WHOLE);
    let mut power = EXPONENTIAL[0];
    for coefficient in &EXPONENTIAL[1..] {
        power = power * rest + coefficient;
    }
    let scale = f64::from_bits((whole.to_bits() << 52).wrapping_add(1023 << 52));
    (power * scale) as f32
}

/// The logarithm to base 2.
#[inline(always)]
pub fn log2(a: f32) -> f32 {
    // As a double no number is subnormal.
    let bits = f64::from(a).to_bits();
    // A significand from √½ to √2, and the exponent that belongs to it.
    const ROOT: u64 = 0x3fe6_a09e_0000_0000;
    let shifted = bits.wrapping_sub(ROOT);
    let significand = f64::from_bits(bits.wrapping_sub(shifted & 0xfff0_0000_0000_0000));
    let exponent = f64::from(((shifted as i64) >> 52) as i32);
    // ln m = 2 artanh s.
    let s = (significand - 1.0) / (significand + 1.0);
    let square = s * s;
    let mut sum = 1.0 / 17.0;
    for divisor in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * square + 1.0 / divisor;
    }
    let result = (exponent + s * sum * (2.0 * std::f64::consts::LOG2_E)) as f32;
    let result = if a == f32::INFINITY { a } else { result };
    let result = if a == 0.0 { f32::NEG_INFINITY } else { result };
    if a >= 0.0 { result } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two floats are neighbours at most.
    fn is_near(a: f32, b: f32) -> bool {
        a == b || a.is_nan() && b.is_nan() || (a.to_bits() as i32).abs_diff(b.to_bits() as i32) <= 1
    }

    #[test]
    fn they_are_those_of_the_host_but_for_the_last_place() {
        for step in 0..1 << 16 {
            let a = f32::from_bits(step << 16 | step);
            let (power, logarithm) = (f64::from(a).exp2() as f32, f64::from(a).log2() as f32);
            assert!(is_near(exp2(a), power), "2^{a}: {}, not {power}", exp2(a));
            assert!(is_near(log2(a), logarithm), "log2 {a}: {}, not {logarithm}", log2(a));
        }
    }

    #[test]
    fn whole_powers_are_exact() {
        for exponent in -149..128 {
            let power = 2f64.powi(exponent) as f32;
            assert_eq!(exp2(exponent as f32), power);
            assert_eq!(log2(power), exponent as f32);
        }
    }
}
