//! Element types: ONNX's `TensorProto.DataType`, and the Rust type that holds each.

use super::{C64, C128, F6E2M3, F6E3M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, bf16, f16};

/// The type of a tensor's elements. The numbers are those of ONNX's `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum ElementType {
    F32 = 1,
    U8 = 2,
    I8 = 3,
    U16 = 4,
    I16 = 5,
    I32 = 6,
    I64 = 7,
    String = 8,
    Bool = 9,
    F16 = 10,
    F64 = 11,
    U32 = 12,
    U64 = 13,
    C64 = 14,
    C128 = 15,
    BF16 = 16,
    F8E4M3FN = 17,
    F8E4M3FNUZ = 18,
    F8E5M2 = 19,
    F8E5M2FNUZ = 20,
    U4 = 21,
    I4 = 22,
    F4E2M1 = 23,
    F8E8M0 = 24,
    U2 = 25,
    I2 = 26,
    F6E2M3 = 27,
    F6E3M2 = 28,
}

use ElementType as T;

/// Every element type with its ONNX name and its size in bytes (0 for strings).
const TABLE: [(ElementType, &str, usize); 28] = [
    (T::F32, "float", 4),
    (T::U8, "uint8", 1),
    (T::I8, "int8", 1),
    (T::U16, "uint16", 2),
    (T::I16, "int16", 2),
    (T::I32, "int32", 4),
    (T::I64, "int64", 8),
    (T::String, "string", 0),
    (T::Bool, "bool", 1),
    (T::F16, "float16", 2),
    (T::F64, "double", 8),
    (T::U32, "uint32", 4),
    (T::U64, "uint64", 8),
    (T::C64, "complex64", 8),
    (T::C128, "complex128", 16),
    (T::BF16, "bfloat16", 2),
    (T::F8E4M3FN, "float8e4m3fn", 1),
    (T::F8E4M3FNUZ, "float8e4m3fnuz", 1),
    (T::F8E5M2, "float8e5m2", 1),
    (T::F8E5M2FNUZ, "float8e5m2fnuz", 1),
    (T::U4, "uint4", 1),
    (T::I4, "int4", 1),
    (T::F4E2M1, "float4e2m1", 1),
    (T::F8E8M0, "float8e8m0", 1),
    (T::U2, "uint2", 1),
    (T::I2, "int2", 1),
    (T::F6E2M3, "float6e2m3", 1),
    (T::F6E3M2, "float6e3m2", 1),
];

impl ElementType {
    /// The type with this ONNX number.
    pub fn from_onnx(number: i32) -> Option<Self> {
        TABLE.iter().map(|row| row.0).find(|&t| t as i32 == number)
    }

    /// Every type.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// ONNX's name: `float`, `int64`, `bfloat16`, …
    pub fn name(self) -> &'static str {
        TABLE[self as usize - 1].1
    }

    /// Bytes one element takes in a rukh tensor; 0 for strings.
    pub fn size(self) -> usize {
        TABLE[self as usize - 1].2
    }

    /// Bits one element takes in an ONNX file's `raw_data`; 0 for strings.
    pub fn file_bits(self) -> usize {
        match self {
            T::U4 | T::I4 | T::F4E2M1 => 4,
            T::U2 | T::I2 => 2,
            T::F6E2M3 | T::F6E3M2 => 6,
            _ => self.size() * 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, T::F32 | T::F64 | T::F16 | T::BF16)
    }

    pub fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    pub fn is_signed_integer(self) -> bool {
        matches!(self, T::I8 | T::I16 | T::I32 | T::I64 | T::I4 | T::I2)
    }

    pub fn is_unsigned_integer(self) -> bool {
        matches!(self, T::U8 | T::U16 | T::U32 | T::U64 | T::U4 | T::U2)
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that holds one element of a tensor.
///
/// # Safety
/// Every bit pattern must be a valid value of the type, and its size must be `TYPE.size()`.
pub unsafe trait Element:
    Copy + Default + Send + Sync + PartialEq + std::fmt::Debug + 'static
{
    const TYPE: ElementType;
}

/// A boolean element: any non-zero byte is true, so foreign memory can be viewed as it is.
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl From<bool> for Bool {
    #[inline(always)]
    fn from(b: bool) -> Self {
        Bool(b as u8)
    }
}

/// Four-bit and two-bit elements, one a byte; the value is already sign-extended.
macro_rules! narrow {
    ($($name:ident($inner:ty) $min:literal..=$max:literal),*) => {$(
        #[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            pub const MIN: i64 = $min;
            pub const MAX: i64 = $max;
        }
    )*};
}
narrow!(U4(u8) 0..=15, I4(i8) -8..=7, U2(u8) 0..=3, I2(i8) -2..=1);

/// float4e2m1: a sign, two exponent bits, one mantissa bit, in the low four bits of a byte.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
#[repr(transparent)]
pub struct F4E2M1(pub u8);

impl F4E2M1 {
    const VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

    pub fn to_f32(self) -> f32 {
        let magnitude = Self::VALUES[(self.0 & 7) as usize];
        if self.0 & 8 != 0 { -magnitude } else { magnitude }
    }

    /// Rounds to nearest even and saturates at ±6. The type has no NaN; as in the standard's reference
    /// data it becomes −0.
    pub fn from_f32(x: f32) -> Self {
        let sign = if x.is_sign_negative() { 8 } else { 0 };
        let a = x.abs();
        if a.is_nan() {
            return F4E2M1(8);
        }
        // Midpoints between neighbours; a tie goes to the even code.
        const MID: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
        let mut code = 0u8;
        for (i, &mid) in MID.iter().enumerate() {
            let above = if i % 2 == 0 { a > mid } else { a >= mid };
            if above {
                code = i as u8 + 1;
            }
        }
        F4E2M1(sign | code)
    }
}

macro_rules! elements {
    ($($rust:ty => $ty:ident),* $(,)?) => {$(
        // SAFETY: plain integers, floats or transparent wrappers of bytes: every bit pattern is valid,
        // and the size equals the table's (checked by `sizes_match`).
        unsafe impl Element for $rust { const TYPE: ElementType = ElementType::$ty; }
    )*
        #[cfg(test)]
        fn rust_sizes() -> Vec<(ElementType, usize)> {
            vec![$((ElementType::$ty, size_of::<$rust>())),*]
        }
    };
}
elements! {
    f32 => F32, f64 => F64, f16 => F16, bf16 => BF16,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    Bool => Bool, C64 => C64, C128 => C128,
    F8E4M3FN => F8E4M3FN, F8E4M3FNUZ => F8E4M3FNUZ, F8E5M2 => F8E5M2, F8E5M2FNUZ => F8E5M2FNUZ, F8E8M0 => F8E8M0,
    U4 => U4, I4 => I4, F4E2M1 => F4E2M1, U2 => U2, I2 => I2, F6E2M3 => F6E2M3, F6E3M2 => F6E3M2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_match() {
        assert_eq!(rust_sizes().len(), TABLE.len() - 1, "every type but string has a Rust type");
        for (ty, size) in rust_sizes() {
            assert_eq!(ty.size(), size, "{ty}");
        }
    }

    #[test]
    fn numbers_and_rows_agree() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, i + 1);
            assert_eq!(ElementType::from_onnx(i as i32 + 1), Some(row.0));
        }
        assert_eq!(ElementType::from_onnx(0), None);
        assert_eq!(ElementType::from_onnx(29), None);
    }

    #[test]
    fn float4_rounds_to_nearest_even() {
        for (x, want) in [
            (0.25, 0.0),
            (0.26, 0.5),
            (0.75, 1.0),
            (1.25, 1.0),
            (2.5, 2.0),
            (5.0, 4.0),
            (5.1, 6.0),
            (1e9, 6.0),
            (-3.4, -3.0),
        ] {
            assert_eq!(F4E2M1::from_f32(x).to_f32(), want, "{x}");
        }
    }
}
