//! The types of elements.

/// The type of a tensor's elements, with its number in ONNX and in rukh.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Element {
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
    Complex64 = 14,
    Complex128 = 15,
    Bf16 = 16,
    F8E4M3Fn = 17,
    F8E4M3FnUz = 18,
    F8E5M2 = 19,
    F8E5M2FnUz = 20,
    U4 = 21,
    I4 = 22,
    F4E2M1 = 23,
    F8E8M0 = 24,
    U2 = 25,
    I2 = 26,
    F6E2M3 = 27,
    F6E3M2 = 28,
}

/// All, in the order of their numbers, with their names in texts of types ("tensor(float)") and their bits.
const ALL: [(Element, &str, usize); 28] = {
    use Element::*;
    [
        (F32, "float", 32),
        (U8, "uint8", 8),
        (I8, "int8", 8),
        (U16, "uint16", 16),
        (I16, "int16", 16),
        (I32, "int32", 32),
        (I64, "int64", 64),
        (String, "string", 0),
        (Bool, "bool", 8),
        (F16, "float16", 16),
        (F64, "double", 64),
        (U32, "uint32", 32),
        (U64, "uint64", 64),
        (Complex64, "complex64", 64),
        (Complex128, "complex128", 128),
        (Bf16, "bfloat16", 16),
        (F8E4M3Fn, "float8e4m3fn", 8),
        (F8E4M3FnUz, "float8e4m3fnuz", 8),
        (F8E5M2, "float8e5m2", 8),
        (F8E5M2FnUz, "float8e5m2fnuz", 8),
        (U4, "uint4", 4),
        (I4, "int4", 4),
        (F4E2M1, "float4e2m1", 4),
        (F8E8M0, "float8e8m0", 8),
        (U2, "uint2", 2),
        (I2, "int2", 2),
        (F6E2M3, "float6e2m3", 6),
        (F6E3M2, "float6e3m2", 6),
    ]
};

impl Element {
    pub fn from_number(number: i32) -> Option<Element> {
        ALL.iter().map(|(element, ..)| *element).find(|element| *element as i32 == number)
    }

    /// ONNX's name of the type.
    pub fn name(self) -> &'static str {
        ALL[self as usize - 1].1
    }

    /// The bytes of an element. `None` for strings, and for elements of less than a byte.
    pub fn size(self) -> Option<usize> {
        let bits = ALL[self as usize - 1].2;
        (bits > 0 && bits.is_multiple_of(8)).then_some(bits / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (index, (element, ..)) in ALL.iter().enumerate() {
            assert_eq!(*element as usize, index + 1);
            assert_eq!(Element::from_number(*element as i32), Some(*element));
        }
        assert_eq!(Element::from_number(0), None);
        assert_eq!(Element::from_number(29), None);
        assert_eq!(Element::U4.size(), None);
        assert_eq!(Element::String.size(), None);
        assert_eq!(Element::Complex128.size(), Some(16));
    }
}
