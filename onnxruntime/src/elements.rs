//! Element types: ONNX Runtime's numbers, librukh's, and how long elements are.

use rukh_sys::*;

use crate::failure::{Failure, Result};

/// ONNX Runtime's number, librukh's number, ONNX's name, bytes of an element in ONNX Runtime's memory. 0 bytes: strings,
/// and elements that ONNX Runtime packs several to a byte where librukh gives each a byte.
const TYPES: [(i32, rukh_element_type, &str, usize); 26] = [
    (1, RUKH_ELEMENT_FLOAT, "float", 4),
    (2, RUKH_ELEMENT_UINT8, "uint8", 1),
    (3, RUKH_ELEMENT_INT8, "int8", 1),
    (4, RUKH_ELEMENT_UINT16, "uint16", 2),
    (5, RUKH_ELEMENT_INT16, "int16", 2),
    (6, RUKH_ELEMENT_INT32, "int32", 4),
    (7, RUKH_ELEMENT_INT64, "int64", 8),
    (STRING, RUKH_ELEMENT_STRING, "string", 0),
    (9, RUKH_ELEMENT_BOOL, "bool", 1),
    (10, RUKH_ELEMENT_FLOAT16, "float16", 2),
    (11, RUKH_ELEMENT_DOUBLE, "double", 8),
    (12, RUKH_ELEMENT_UINT32, "uint32", 4),
    (13, RUKH_ELEMENT_UINT64, "uint64", 8),
    (14, RUKH_ELEMENT_COMPLEX64, "complex64", 8),
    (15, RUKH_ELEMENT_COMPLEX128, "complex128", 16),
    (16, RUKH_ELEMENT_BFLOAT16, "bfloat16", 2),
    (17, RUKH_ELEMENT_FLOAT8E4M3FN, "float8e4m3fn", 1),
    (18, RUKH_ELEMENT_FLOAT8E4M3FNUZ, "float8e4m3fnuz", 1),
    (19, RUKH_ELEMENT_FLOAT8E5M2, "float8e5m2", 1),
    (20, RUKH_ELEMENT_FLOAT8E5M2FNUZ, "float8e5m2fnuz", 1),
    (21, RUKH_ELEMENT_UINT4, "uint4", 0),
    (22, RUKH_ELEMENT_INT4, "int4", 0),
    (23, RUKH_ELEMENT_FLOAT4E2M1, "float4e2m1", 0),
    (24, RUKH_ELEMENT_UINT2, "uint2", 0),
    (25, RUKH_ELEMENT_INT2, "int2", 0),
    (26, RUKH_ELEMENT_FLOAT8E8M0, "float8e8m0", 1),
];

/// ONNX Runtime's number for strings.
pub const STRING: i32 = 8;

/// librukh's number.
pub fn to_rukh(element: i32) -> Result<rukh_element_type> {
    let found = TYPES.iter().find(|(number, ..)| *number == element);
    found
        .map(|(_, rukh, ..)| *rukh)
        .ok_or_else(|| Failure::argument(format!("{element} is the number of no element type")))
}

/// ONNX Runtime's number; 0, undefined, for what it has none for.
pub fn from_rukh(element: rukh_element_type) -> i32 {
    TYPES.iter().find(|(_, rukh, ..)| *rukh == element).map_or(0, |(number, ..)| *number)
}

/// ONNX Runtime's number for a name such as "float"; 0 for a name that it does not know.
pub fn by_name(name: &str) -> i32 {
    TYPES.iter().find(|(_, _, known, _)| *known == name).map_or(0, |(number, ..)| *number)
}

/// ONNX's name, for messages and for librukh.
pub fn name(element: i32) -> Result<&'static str> {
    let found = TYPES.iter().find(|(number, ..)| *number == element);
    found
        .map(|(_, _, name, _)| *name)
        .ok_or_else(|| Failure::argument(format!("{element} is no element type")))
}

/// The bytes of an element, for types whose elements lie in memory in the same way on both sides.
pub fn size(element: i32) -> Result<usize> {
    match TYPES.iter().find(|(number, ..)| *number == element) {
        Some((.., bytes)) if *bytes > 0 => Ok(*bytes),
        Some((STRING, ..)) => Err(Failure::argument("a tensor of strings has no plain memory")),
        Some((_, _, name, _)) => Err(Failure::absent(format!(
            "tensors of {name} cannot be given or read from outside: ONNX Runtime packs their elements, rukh does not"
        ))),
        None => Err(Failure::argument(format!("{element} is the number of no element type"))),
    }
}

/// The bytes of all elements of a shape.
pub fn bytes(element: i32, shape: &[i64]) -> Result<usize> {
    let count = count(shape)?;
    count
        .checked_mul(size(element)?)
        .ok_or_else(|| Failure::argument(format!("a tensor of the shape {shape:?} does not fit into memory")))
}

/// The number of elements of a shape.
pub fn count(shape: &[i64]) -> Result<usize> {
    let wrong = || Failure::argument(format!("the shape {shape:?} is not allowed: dimensions are 0 or more"));
    shape.iter().try_fold(1_usize, |count, dim| {
        count.checked_mul(usize::try_from(*dim).map_err(|_| wrong())?).ok_or_else(wrong)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for (number, rukh, name, _) in TYPES {
            assert_eq!(to_rukh(number).ok(), Some(rukh), "{name}");
            assert_eq!(from_rukh(rukh), number, "{name}");
            assert_eq!(by_name(name), number, "{name}");
        }
        assert!(to_rukh(0).is_err() && to_rukh(27).is_err() && to_rukh(-1).is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes(1, &[2, 3]).ok(), Some(24));
        assert_eq!(bytes(7, &[]).ok(), Some(8));
        assert_eq!(bytes(1, &[0, 5]).ok(), Some(0));
        for (element, shape) in
            [(1, &[-1_i64][..]), (8, &[1]), (22, &[1]), (1, &[i64::MAX, i64::MAX]), (1, &[i64::MAX])]
        {
            assert!(bytes(element, shape).is_err(), "{element} {shape:?}");
        }
    }
}
