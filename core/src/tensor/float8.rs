//! The floating-point formats of ONNX in 8 and 6 bits: OCP e4m3fn, e5m2, e8m0 and the FNUZ variants;
//! e2m3 and e3m2.
//!
//! Source of the formats: the ONNX documents "Float stored in 8 bits" and OCP's OFP8 specification.

/// What distinguishes one format from another. Codes have their sign in bit 7.
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

/// The 6-bit formats have neither infinity nor NaN, for which the standard's reference data have −0.
const E2M3: Format =
    Format { mantissa_bits: 3, bias: 1, max_code: 0x1f, infinity: None, nan: 0, negative_zero: true };
const E3M2: Format =
    Format { mantissa_bits: 2, bias: 3, max_code: 0x1f, infinity: None, nan: 0, negative_zero: true };

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
        pub struct $name(pub u8);

        impl $name {
            pub fn to_f32(self) -> f32 {
                decode(&$format, self.0)
            }

            pub fn from_f32(x: f32, saturate: bool) -> Self {
                $name(encode(&$format, x, saturate))
            }
        }
    )*};
}
float8!(F8E4M3FN = E4M3FN, F8E4M3FNUZ = E4M3FNUZ, F8E5M2 = E5M2, F8E5M2FNUZ = E5M2FNUZ);

macro_rules! float6 {
    ($($name:ident = $format:ident),*) => {$(
        /// Six bits, in the low ones of a byte: a sign, exponent, mantissa.
        #[derive(Clone, Copy, Default, Debug, PartialEq)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            const SIGN: u8 = 0x20;

            pub fn to_f32(self) -> f32 {
                decode(&$format, (self.0 & Self::SIGN) << 2 | (self.0 & 0x1f))
            }

            /// Rounds to nearest even; beyond the largest value it becomes that.
            pub fn from_f32(x: f32) -> Self {
                if x.is_nan() {
                    return $name(Self::SIGN);
                }
                let code = encode(&$format, x, true);
                $name((code & 0x80) >> 2 | (code & 0x1f))
            }
        }
    )*};
}
float6!(F6E2M3 = E2M3, F6E3M2 = E3M2);

/// float8e8m0: an unsigned power of two, 2^(code − 127); 0xff is NaN.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
#[repr(transparent)]
pub struct F8E8M0(pub u8);

impl F8E8M0 {
    pub fn to_f32(self) -> f32 {
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

    /// Numbers of ml_dtypes.
    #[test]
    fn float6_rounds_and_saturates() {
        for (x, e2m3, e3m2) in [
            (f32::NAN, 32, 32),
            (f32::INFINITY, 31, 31),
            (-100.0, 63, 63),
            (-0.0, 32, 32),
            (0.0625, 0, 1),
            (0.1875, 2, 3),
            (7.4, 31, 23),
            (7.3, 31, 23),
            (26.0, 31, 30),
            (0.05, 0, 1),
        ] {
            assert_eq!((F6E2M3::from_f32(x).0, F6E3M2::from_f32(x).0), (e2m3, e3m2), "{x}");
        }
        assert_eq!((F6E2M3(63).to_f32(), F6E3M2(63).to_f32()), (-7.5, -28.0));
        for code in 0..64 {
            assert_eq!(F6E2M3::from_f32(F6E2M3(code).to_f32()).0, code);
            assert_eq!(F6E3M2::from_f32(F6E3M2(code).to_f32()).0, code);
        }
    }

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
