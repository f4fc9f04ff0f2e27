use half::{bf16, f16};

use super::*;

const FORMATS: [Fp8; 4] = [Fp8::E4m3, Fp8::E5m2, Fp8::E4m3Fnuz, Fp8::E5m2Fnuz];

/// Numbers next to which 16 bits round differently, and a walk through all the others.
fn singles() -> impl Iterator<Item = f32> {
    let edges = (0..=u16::MAX).flat_map(|high| {
        let ends = [0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xffff];
        ends.map(|low| u32::from(high) << 16 | low)
    });
    edges.chain((0..=u32::MAX).step_by(4099)).map(f32::from_bits)
}

#[test]
fn halves_are_those_of_the_crate_half() {
    for bits in 0..=u16::MAX {
        assert_eq!(f16_to_f32(bits).to_bits(), f16::from_bits(bits).to_f32().to_bits(), "{bits:#06x}");
        let exact = f16::from_bits(bits);
        if !exact.is_nan() {
            assert_eq!(f32_to_f16(exact.to_f32()), bits);
            assert_eq!(f64_to_f16(exact.to_f64()), bits);
            assert_eq!(f32_to_f16_toward_zero(exact.to_f32()), bits);
        }
    }
    for value in singles() {
        assert_eq!(f32_to_f16(value), f16::from_f32(value).to_bits(), "{:#010x}", value.to_bits());
    }
}

#[test]
fn bfloats_are_those_of_the_crate_half() {
    for bits in 0..=u16::MAX {
        let expected = bf16::from_bits(bits);
        assert!(expected.is_nan() || bf16_to_f32(bits) == expected.to_f32(), "{bits:#06x}");
    }
    for value in singles() {
        assert_eq!(f32_to_bf16(value), bf16::from_f32(value).to_bits(), "{:#010x}", value.to_bits());
    }
}

#[test]
fn doubles_are_rounded_once() {
    // Between each half and the next: their middle, and a little beside it that a single would lose.
    for bits in 0..0x7bff_u16 {
        let (low, high) = (f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64());
        let middle = (low + high) / 2.0;
        let even = bits + (bits & 1);
        let around = [
            (middle, even),
            (f64::from_bits(middle.to_bits() - 1), bits),
            (f64::from_bits(middle.to_bits() + 1), bits + 1),
        ];
        for (value, expected) in around {
            assert_eq!(f64_to_f16(value), expected, "{value:e}");
            assert_eq!(f64_to_f16(-value), 0x8000 | expected, "{value:e}");
        }
    }
    let rows = [(1e300, 0x7c00), (-1e300, 0xfc00), (1e-300, 0), (f64::INFINITY, 0x7c00), (65519.999, 0x7bff)];
    for (value, expected) in rows {
        assert_eq!(f64_to_f16(value), expected, "{value:e}");
    }
    assert!(f16::from_bits(f64_to_f16(f64::NAN)).is_nan());
}

#[test]
fn toward_zero_is_never_further_from_zero() {
    for value in singles() {
        let bits = f32_to_f16_toward_zero(value);
        let half = f16::from_bits(bits);
        if value.is_nan() {
            assert!(half.is_nan());
        } else if value.is_infinite() {
            assert_eq!(half.to_f32(), value);
        } else {
            let next = f16::from_bits(bits + 1).to_f32();
            assert!(half.to_f32().abs() <= value.abs() && half.is_finite(), "{value:e}");
            assert!(bits & 0x7fff == 0x7bff || next.abs() > value.abs(), "{value:e}");
            assert_eq!(half.is_sign_negative(), value.is_sign_negative());
        }
    }
}

/// A code's value by the definition of its format.
fn reference(code: u8, format: Fp8) -> f64 {
    let (mantissa, bias) = match format {
        Fp8::E4m3 => (3, 7),
        Fp8::E5m2 => (2, 15),
        Fp8::E4m3Fnuz => (3, 8),
        Fp8::E5m2Fnuz => (2, 16),
    };
    let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(code & 0x7f) >> mantissa, f64::from(code & ((1 << mantissa) - 1)));
    let unit = f64::from(1 << mantissa);
    match (format, code & 0x7f) {
        (Fp8::E4m3, 0x7f) => f64::NAN,
        (Fp8::E5m2, 0x7c) => sign * f64::INFINITY,
        (Fp8::E5m2, 0x7d..) => f64::NAN,
        (Fp8::E4m3Fnuz | Fp8::E5m2Fnuz, 0) if sign < 0.0 => f64::NAN,
        _ if exponent == 0 => sign * fraction / unit * 2f64.powi(1 - bias),
        _ => sign * (1.0 + fraction / unit) * 2f64.powi(exponent - bias),
    }
}

#[test]
fn codes_of_8_bits_have_their_values() {
    for format in FORMATS {
        for code in 0..=u8::MAX {
            let (got, expected) = (f64::from(fp8_to_f32(code, format)), reference(code, format));
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{format:?} {code:#x}: {got} is not {expected}");
        }
    }
}

/// The nearest code by trying all of them; ties to the even code.
fn nearest(value: f32, format: Fp8) -> u8 {
    let fnuz = matches!(format, Fp8::E4m3Fnuz | Fp8::E5m2Fnuz);
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let nan = if fnuz { 0x80 } else { sign | 0x7f };
    if value.is_nan() {
        return nan;
    }
    let finite: Vec<u8> = (0..0x80).filter(|&code| reference(code, format).is_finite()).collect();
    let wanted = f64::from(value.abs());
    let top = finite[finite.len() - 1];
    let (last, before) = (reference(top, format), reference(top - 1, format));
    let limit = last + (last - before) / 2.0;
    if wanted > limit || wanted == limit && top % 2 == 1 {
        return if format == Fp8::E5m2 { sign | 0x7c } else { nan };
    }
    let distance = |code: u8| (reference(code, format) - wanted).abs();
    let best = finite
        .iter()
        .copied()
        .min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    let code = best.unwrap_or(0);
    if fnuz && code == 0 { 0 } else { sign | code }
}

#[test]
fn numbers_become_the_nearest_code_of_8_bits() {
    for format in FORMATS {
        // All codes and the middles between them, and what lies beside those.
        let codes: Vec<f32> = (0..=u8::MAX).map(|code| reference(code, format) as f32).collect();
        let mut values: Vec<f32> = codes.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        values.extend(&codes);
        let beside =
            |value: &f32| [value.to_bits().wrapping_sub(1), value.to_bits(), value.to_bits().wrapping_add(1)];
        let mut all: Vec<f32> = values.iter().flat_map(beside).map(f32::from_bits).collect();
        all.extend((0..=u32::MAX).step_by(1_000_003).map(f32::from_bits));
        for value in all {
            assert_eq!(f32_to_fp8(value, format), nearest(value, format), "{format:?} {value:e}");
        }
    }
}
