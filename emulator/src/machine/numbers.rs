//! Small floating point numbers, to and from `f32`. All functions round to the nearest, ties to even, unless they say
//! otherwise. They have no branches, so that loops over lanes become vector code.

/// The formats of 8 bits: `E4m3` has four bits of exponent and three of mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fp8 {
    /// OCP: no infinities; 0x7f and 0xff are not numbers.
    E4m3,
    /// OCP: like a half with a short mantissa.
    E5m2,
    /// gfx942: neither infinities nor a negative zero; 0x80 is not a number.
    E4m3Fnuz,
    E5m2Fnuz,
}

/// What defines a format of 8 bits.
struct Format {
    mantissa: u32,
    bias: u32,
    /// The largest code of a finite number.
    top: u32,
    /// What is not a number has exactly this code (0x80), or its magnitude is larger than `infinity`.
    fnuz: bool,
    /// The magnitude behind which codes are not numbers; where there are infinities it is theirs.
    infinity: u32,
}

impl Fp8 {
    #[inline(always)]
    fn format(self) -> Format {
        match self {
            Fp8::E4m3 => Format { mantissa: 3, bias: 7, top: 0x7e, fnuz: false, infinity: 0x7f },
            Fp8::E5m2 => Format { mantissa: 2, bias: 15, top: 0x7b, fnuz: false, infinity: 0x7c },
            Fp8::E4m3Fnuz => Format { mantissa: 3, bias: 8, top: 0x7f, fnuz: true, infinity: 0x80 },
            Fp8::E5m2Fnuz => Format { mantissa: 2, bias: 16, top: 0x7f, fnuz: true, infinity: 0x80 },
        }
    }
}

/// 2 to the power of `exponent`, of a normal number.
#[inline(always)]
fn power(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) as u32) << 23)
}

/// Exact. What is not a number becomes quiet and keeps its payload.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let shifted = magnitude << 13;
    let subnormal = (magnitude as i32 as f32 * power(-24)).to_bits();
    let quiet = u32::from(magnitude > 0x7c00) << 22;
    let special = (shifted + (224 << 23)) | quiet;
    let finite = if magnitude < 0x0400 { subnormal } else { shifted + (112 << 23) };
    f32::from_bits(sign | if magnitude >= 0x7c00 { special } else { finite })
}

#[inline(always)]
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // The unit in the last place of 0.5 is that of subnormal halves.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let rounded = magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    let normal = rounded.wrapping_sub(112 << 10).min(0x7c00);
    let nan = 0x7e00 | magnitude >> 13 & 0x3ff;
    let number = if magnitude < 0x3880_0000 { subnormal } else { normal };
    (sign | if magnitude > 0x7f80_0000 { nan } else { number }) as u16
}

/// Finite numbers that are too large become the largest one.
#[inline(always)]
pub fn f32_to_f16_toward_zero(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let small = f32::from_bits(magnitude.min(0x3880_0000));
    let subnormal = (small * power(24)) as i32 as u32;
    let normal = (magnitude >> 13).wrapping_sub(112 << 10).min(0x7bff);
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let quiet = u32::from(magnitude > 0x7f80_0000) << 9;
    let special = 0x7c00 | magnitude >> 13 & 0x3ff | quiet;
    (sign | if magnitude >= 0x7f80_0000 { special } else { finite }) as u16
}

/// Rounds once.
#[inline(always)]
pub fn f64_to_f16(value: f64) -> u16 {
    // A number of 24 bits whose last bit is set whenever something was cut off rounds as the whole would.
    let nearest = value as f32;
    let inexact = f64::from(nearest) != value;
    let too_large = f64::from(nearest).abs() > value.abs();
    f32_to_f16(f32::from_bits((nearest.to_bits() - u32::from(too_large)) | u32::from(inexact)))
}

#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
pub fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let nan = bits >> 16 | 0x40;
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }) as u16
}

/// Exact.
#[inline(always)]
pub fn fp8_to_f32(code: u8, format: Fp8) -> f32 {
    let Format { mantissa, bias, fnuz, infinity, .. } = format.format();
    let sign = u32::from(code & 0x80) << 24;
    let magnitude = u32::from(code & 0x7f);
    let subnormal = (magnitude as i32 as f32 * power(1 - bias as i32 - mantissa as i32)).to_bits();
    let normal = (magnitude << (23 - mantissa)) + ((127 - bias) << 23);
    let finite = if magnitude >> mantissa == 0 { subnormal } else { normal };
    let is_infinity = magnitude == infinity && format == Fp8::E5m2;
    let is_nan = if fnuz { code == 0x80 } else { magnitude >= infinity && !is_infinity };
    let number = sign | if is_infinity { 0x7f80_0000 } else { finite };
    f32::from_bits(if is_nan { 0x7fc0_0000 } else { number })
}

/// What is too large becomes infinity where the format has one, else not a number.
#[inline(always)]
pub fn f32_to_fp8(value: f32, format: Fp8) -> u8 {
    let Format { mantissa, bias, top, fnuz, infinity } = format.format();
    let bits = value.to_bits();
    let sign = bits >> 24 & 0x80;
    let magnitude = bits & 0x7fff_ffff;
    // A number whose unit in the last place is that of the format's subnormal numbers.
    let unit = power(24 - bias as i32 - mantissa as i32);
    let subnormal = (f32::from_bits(magnitude) + unit).to_bits().wrapping_sub(unit.to_bits());
    let cut = 23 - mantissa;
    let rounded = magnitude.wrapping_add((1 << (cut - 1)) - 1 + (magnitude >> cut & 1)) >> cut;
    let normal = rounded.wrapping_sub((127 - bias) << mantissa);
    let code = if magnitude < (128 - bias) << 23 { subnormal } else { normal };
    let nan = if fnuz { 0x80 } else { sign | 0x7f };
    let large = if fnuz { 0x80 } else { sign | infinity };
    let zero = fnuz && code == 0;
    let number = if zero { 0 } else { sign | code };
    let number = if code > top { large } else { number };
    (if magnitude > 0x7f80_0000 { nan } else { number }) as u8
}

#[cfg(test)]
mod tests;
