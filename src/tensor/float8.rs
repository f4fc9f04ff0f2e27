//! The 8-bit floating-point formats of ONNX: OCP e4m3fn, e5m2, e8m0 and the FNUZ variants.
//!
//! Source of the formats: the ONNX documents "Float stored in 8 bits" and OCP's OFP8 specification.

/// What distinguishes one 8-bit float format from another.
struct Format {
    mantissa_bits: u32,
    bias: i32,
    /// The largest finite code without its sign.
    max_code: u8,
    /// The code of +infinity, where the format has one.
    infinity: Option<u8>,
    /// The code written for NaN (without sign for the OCP formats).
    nan: u8,
    /// FNUZ formats have no negative zero.
    negative_zero: bool,
}

const E4M3FN: Format =
    Format { mantissa_bits: 3, bias: 7, max_code: 0x7e, infinity: None, nan: 0x7f, negative_zero: true };
const E4M3FNUZ: Format =
    Format { mantissa_bits: 3, bias: 8, max_code: 0x7f, infinity: None, nan: 0x80, negative_zero: false };
const E5M2: Format = Format {
    mantissa_bits: 2,
    bias: 15,
    max_code: 0x7b,
    infinity: Some(0x7c),
    // Of the three codes, the one that the standard's reference data have.
    nan: 0x7e,
    negative_zero: true,
};
const E5M2FNUZ: Format =
    Format { mantissa_bits: 2, bias: 16, max_code: 0x7f, infinity: None, nan: 0x80, negative_zero: false };

fn decode(f: &Format, code: u8) -> f32 {
    if !f.negative_zero && code == f.nan {
        return f32::NAN;
    }
    let magnitude = code & 0x7f;
    let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
    if Some(magnitude) == f.infinity {
        return sign * f32::INFINITY;
    }
    if magnitude > f.max_code {
        return f32::NAN;
    }
    let mantissa = (magnitude & ((1 << f.mantissa_bits) - 1)) as f32;
    let exponent = (magnitude >> f.mantissa_bits) as i32;
    let scale = (1u32 << f.mantissa_bits) as f32;
    if exponent == 0 {
        sign * mantissa / scale * 2f32.powi(1 - f.bias)
    } else {
        sign * (1.0 + mantissa / scale) * 2f32.powi(exponent - f.bias)
    }
}

/// Rounds to nearest even. Beyond the largest finite value: that value when `saturate`, else the
/// format's infinity, or NaN where it has none.
fn encode(f: &Format, x: f32, saturate: bool) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let nan = if f.negative_zero { sign | f.nan } else { f.nan };
    if x.is_nan() {
        return nan;
    }
    let overflow = || match (saturate, f.infinity) {
        (true, _) => sign | f.max_code,
        (false, Some(infinity)) => sign | infinity,
        (false, None) => nan,
    };
    let a = x.abs();
    if a.is_infinite() {
        return overflow();
    }
    // a = m * 2^(e - mantissa_bits) with m an integer after rounding; exact in f64.
    let exponent = if a == 0.0 { 1 - f.bias } else { (a as f64).log2().floor() as i32 };
    let exponent = exponent.max(1 - f.bias);
    let quantum = 2f64.powi(exponent - f.mantissa_bits as i32);
    let m = (a as f64 / quantum).round_ties_even() as u32;
    let one = 1u32 << f.mantissa_bits;
    // m may have rounded up to the next binade (2 * one), which the sum below carries by itself.
    let code = if m < one { m } else { (((exponent + f.bias) as u32) << f.mantissa_bits) + (m - one) };
    if code > f.max_code as u32 {
        return overflow();
    }
    if code == 0 && !f.negative_zero { 0 } else { sign | code as u8 }
}

macro_rules! float8 {
    ($($name:ident = $format:ident),*) => {$(
        #[derive(Clone, Copy, Default, Debug, PartialEq)]
        #[repr(transparent)]
        pub(crate) struct $name(pub u8);

        impl $name {
            pub(crate) fn to_f32(self) -> f32 {
                decode(&$format, self.0)
            }

            pub(crate) fn from_f32(x: f32, saturate: bool) -> Self {
                $name(encode(&$format, x, saturate))
            }
        }
    )*};
}
float8!(F8E4M3FN = E4M3FN, F8E4M3FNUZ = E4M3FNUZ, F8E5M2 = E5M2, F8E5M2FNUZ = E5M2FNUZ);

/// float8e8m0: an unsigned power of two, 2^(code − 127); 0xff is NaN.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
#[repr(transparent)]
pub(crate) struct F8E8M0(pub u8);

impl F8E8M0 {
    pub(crate) fn to_f32(self) -> f32 {
        match self.0 {
            0xff => f32::NAN,
            0 => f32::from_bits(0x0040_0000),
            e => f32::from_bits((e as u32) << 23),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_code_survives_a_round_trip() {
        for f in [&E4M3FN, &E4M3FNUZ, &E5M2, &E5M2FNUZ] {
            for code in 0..=255u8 {
                let x = decode(f, code);
                if x.is_finite() {
                    assert_eq!(encode(f, x, true), code, "{x}");
                }
            }
        }
    }

    #[test]
    fn limits() {
        assert_eq!(F8E4M3FN::from_f32(1e9, true).to_f32(), 448.0);
        assert!(F8E4M3FN::from_f32(1e9, false).to_f32().is_nan());
        assert_eq!(F8E4M3FNUZ::from_f32(1e9, true).to_f32(), 240.0);
        assert_eq!(F8E5M2::from_f32(1e9, true).to_f32(), 57344.0);
        assert_eq!(F8E5M2::from_f32(-1e9, false).to_f32(), f32::NEG_INFINITY);
        assert_eq!(F8E5M2FNUZ::from_f32(-0.0, true).0, 0);
        assert_eq!(F8E8M0(127).to_f32(), 1.0);
    }
}
