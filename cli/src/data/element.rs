//! Element types: their ONNX numbers, names, sizes, and what each element is as a number.

use half::{bf16, f16};

/// The type of a tensor's elements; the numbers are those of ONNX's `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementType(pub i32);

/// ONNX name, bytes in memory, NumPy's type string (empty where NumPy has none).
const TABLE: [(&str, usize, &str); 28] = [
    ("float", 4, "<f4"),
    ("uint8", 1, "|u1"),
    ("int8", 1, "|i1"),
    ("uint16", 2, "<u2"),
    ("int16", 2, "<i2"),
    ("int32", 4, "<i4"),
    ("int64", 8, "<i8"),
    ("string", 0, ""),
    ("bool", 1, "|b1"),
    ("float16", 2, "<f2"),
    ("double", 8, "<f8"),
    ("uint32", 4, "<u4"),
    ("uint64", 8, "<u8"),
    ("complex64", 8, "<c8"),
    ("complex128", 16, "<c16"),
    ("bfloat16", 2, ""),
    ("float8e4m3fn", 1, ""),
    ("float8e4m3fnuz", 1, ""),
    ("float8e5m2", 1, ""),
    ("float8e5m2fnuz", 1, ""),
    ("uint4", 1, ""),
    ("int4", 1, ""),
    ("float4e2m1", 1, ""),
    ("float8e8m0", 1, ""),
    ("uint2", 1, ""),
    ("int2", 1, ""),
    ("float6e2m3", 1, ""),
    ("float6e3m2", 1, ""),
];

impl ElementType {
    pub const FLOAT: Self = ElementType(1);
    pub const INT32: Self = ElementType(6);
    pub const INT64: Self = ElementType(7);
    pub const STRING: Self = ElementType(8);
    pub const BOOL: Self = ElementType(9);
    pub const DOUBLE: Self = ElementType(11);
    pub const BFLOAT16: Self = ElementType(16);

    fn row(self) -> Option<&'static (&'static str, usize, &'static str)> {
        usize::try_from(self.0).ok()?.checked_sub(1).and_then(|i| TABLE.get(i))
    }

    /// ONNX's name of the type.
    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.0)
    }

    /// Bytes that one element takes in memory: 0 for strings, 1 for types narrower than a byte.
    pub fn size(self) -> usize {
        self.row().map_or(0, |row| row.1)
    }

    /// Bits that one element takes in a protobuf's `raw_data`.
    pub fn packed_bits(self) -> usize {
        match self.0 {
            21..=23 => 4,
            25 | 26 => 2,
            27 | 28 => 6,
            _ => self.size() * 8,
        }
    }

    pub fn is_string(self) -> bool {
        self == Self::STRING
    }

    /// Floating point of any width, so that a comparison needs a tolerance.
    pub fn is_float(self) -> bool {
        matches!(self.0, 1 | 10 | 11 | 14..=20 | 23 | 24 | 27 | 28)
    }

    /// NumPy's type string, when NumPy has the type.
    pub fn numpy(self) -> Option<&'static str> {
        self.row().map(|row| row.2).filter(|s| !s.is_empty())
    }

    /// The type that NumPy's type string stands for; strings have their own form.
    pub fn from_numpy(descr: &str) -> Option<Self> {
        TABLE.iter().position(|row| row.2 == descr && !descr.is_empty()).map(|i| ElementType(i as i32 + 1))
    }

    /// The elements of `bytes` as numbers; a complex element gives two. Integers beyond 2^53 lose
    /// their last digits.
    pub fn numbers(self, bytes: &[u8]) -> Vec<f64> {
        macro_rules! each {
            ($ty:ty) => {
                bytes
                    .chunks_exact(size_of::<$ty>())
                    .map(|b| {
                        let mut raw = [0; size_of::<$ty>()];
                        raw.copy_from_slice(b);
                        <$ty>::from_le_bytes(raw) as f64
                    })
                    .collect()
            };
        }
        let bytewise = |f: fn(u8) -> f64| bytes.iter().map(|&b| f(b)).collect();
        let pairs = |f: fn([u8; 2]) -> f64| bytes.chunks_exact(2).map(|b| f([b[0], b[1]])).collect();
        match self.0 {
            1 | 14 => each!(f32),
            11 | 15 => each!(f64),
            2 | 9 | 21 | 25 => each!(u8),
            3 | 22 | 26 => each!(i8),
            4 => each!(u16),
            5 => each!(i16),
            6 => each!(i32),
            7 => each!(i64),
            12 => each!(u32),
            13 => each!(u64),
            10 => pairs(|b| f16::from_le_bytes(b).to_f64()),
            16 => pairs(|b| bf16::from_le_bytes(b).to_f64()),
            17 => bytewise(|b| if b & 0x7f == 0x7f { f64::NAN } else { minifloat(b, 4, 3, 7) }),
            18 => bytewise(|b| if b == 0x80 { f64::NAN } else { minifloat(b, 4, 3, 8) }),
            19 => bytewise(|b| match b & 0x7f {
                0x7c if b & 0x80 != 0 => f64::NEG_INFINITY,
                0x7c => f64::INFINITY,
                0x7d.. => f64::NAN,
                _ => minifloat(b, 5, 2, 15),
            }),
            20 => bytewise(|b| if b == 0x80 { f64::NAN } else { minifloat(b, 5, 2, 16) }),
            23 => bytewise(|b| minifloat((b & 8) << 4 | (b & 7), 2, 1, 1)),
            27 => bytewise(|b| minifloat((b & 32) << 2 | (b & 31), 2, 3, 1)),
            28 => bytewise(|b| minifloat((b & 32) << 2 | (b & 31), 3, 2, 3)),
            24 => bytewise(|b| if b == 255 { f64::NAN } else { 2f64.powi(i32::from(b) - 127) }),
            _ => Vec::new(),
        }
    }
}

/// A small float of the given layout, its sign in bit 7; the special values are the caller's.
fn minifloat(bits: u8, exponent_bits: u32, mantissa_bits: u32, bias: i32) -> f64 {
    let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
    let exponent = i32::from(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(1 - bias),
        e => (1.0 + mantissa) * 2f64.powi(e - bias),
    };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.row() {
            Some(row) => f.write_str(row.0),
            None => write!(f, "type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values from ml_dtypes.
    #[test]
    fn small_floats_decode() {
        for (ty, bits, value) in [
            (17, 0x7e, 448.0),
            (17, 0x01, 0.001953125),
            (18, 0x7f, 240.0),
            (19, 0x7b, 57344.0),
            (19, 0xfc, f64::NEG_INFINITY),
            (20, 0x7f, 57344.0),
            (23, 0x0f, -6.0),
            (23, 0x01, 0.5),
            (24, 0x80, 2.0),
            (27, 0x3f, -7.5),
            (28, 0x1f, 28.0),
        ] {
            assert_eq!(ElementType(ty).numbers(&[bits]), [value], "type {ty}, bits {bits:#x}");
        }
        for (ty, bits) in [(17, 0xff), (18, 0x80), (19, 0x7f), (20, 0x80), (24, 0xff)] {
            assert!(ElementType(ty).numbers(&[bits])[0].is_nan(), "type {ty}, bits {bits:#x}");
        }
    }

    #[test]
    fn numpy_names_go_both_ways() {
        for number in 1..=28 {
            if let Some(descr) = ElementType(number).numpy() {
                assert_eq!(ElementType::from_numpy(descr), Some(ElementType(number)));
            }
        }
        assert_eq!(ElementType::from_numpy(""), None);
        assert_eq!(ElementType(0).name(), "unknown");
    }
}
