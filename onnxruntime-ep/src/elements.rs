//! Types of elements: ONNX Runtime's numbers, ONNX's, and the bytes that elements take.

use crate::ort::ElementType;

/// ONNX's number of a type (`TensorProto.DataType`, which are librukh's too), or none for one that is not known here.
pub(crate) fn onnx_of(element: ElementType) -> Option<i32> {
    match element {
        1..=23 => Some(element),
        // FLOAT8E8M0 came to ONNX before the 2-bit integers, and to ONNX Runtime after them.
        24 => Some(25),
        25 => Some(26),
        26 => Some(24),
        _ => None,
    }
}

pub(crate) const STRING: ElementType = 8;

/// Whether a node `EPContext` may take and give such elements: integers of 8 to 64 bits, floats of 16 to 64, and booleans. ONNX
/// Runtime writes a model with others, and then refuses to open it.
pub(crate) fn is_for_contexts(element: ElementType) -> bool {
    matches!(element, 1..=7 | 9..=13 | 16)
}

/// Bits of an element in a packed tensor; 0 for texts.
fn bits(element: ElementType) -> usize {
    match element {
        STRING => 0,
        2 | 3 | 9 | 17..=20 | 26 => 8,
        4 | 5 | 10 | 16 => 16,
        1 | 6 | 12 => 32,
        7 | 11 | 13 | 14 => 64,
        15 => 128,
        21..=23 => 4,
        24 | 25 => 2,
        _ => 0,
    }
}

/// Whether ONNX Runtime puts several elements into a byte, where librukh has a byte for each.
pub(crate) fn is_packed(element: ElementType) -> bool {
    matches!(bits(element), 2 | 4)
}

/// Whether a model has several elements of a type in a byte, by ONNX's number.
pub(crate) fn is_packed_in_onnx(number: i32) -> bool {
    matches!(number, 21..=23 | 25 | 26)
}

/// Whether librukh extends the sign of such an element to the whole byte.
fn is_signed(element: ElementType) -> bool {
    matches!(element, 22 | 25)
}

/// The bytes of `count` elements as librukh has them, none for texts and unknown types.
pub(crate) fn size(element: ElementType, count: usize) -> Option<usize> {
    match bits(element) {
        0 => None,
        2 | 4 => Some(count),
        bits => count.checked_mul(bits / 8),
    }
}

/// What addresses of elements must be a multiple of, by ONNX's number of their type.
pub(crate) fn alignment(number: i32) -> usize {
    match number {
        4 | 5 | 10 | 16 => 2,
        1 | 6 | 12 => 4,
        7 | 11 | 13 | 14 | 15 => 8,
        _ => 1,
    }
}

/// A byte for each of `count` elements that lie packed, the first in the lowest bits.
pub(crate) fn unpack(element: ElementType, packed: &[u8], count: usize) -> Vec<u8> {
    let bits = bits(element);
    let (each, shift) = (8 / bits, 8 - bits);
    let element = |index: usize| {
        let byte = packed.get(index / each).copied().unwrap_or(0);
        let high = byte << (shift - (index % each) * bits);
        if is_signed(element) { ((high as i8) >> shift) as u8 } else { high >> shift }
    };
    (0..count).map(element).collect()
}

/// The reverse of `unpack`.
pub(crate) fn pack(element: ElementType, bytes: &[u8], packed: &mut [u8]) {
    let bits = bits(element);
    let each = 8 / bits;
    for (byte, group) in packed.iter_mut().zip(bytes.chunks(each)) {
        *byte = group
            .iter()
            .enumerate()
            .fold(0, |sum, (index, value)| sum | (value & (((1_u16 << bits) - 1) as u8)) << (index * bits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_here_is_packed_in_onnx() {
        for element in 1..=26 {
            let number = onnx_of(element).unwrap();
            assert_eq!(is_packed(element), is_packed_in_onnx(number), "{element}");
        }
    }

    #[test]
    fn packed_elements_come_back() {
        for (element, values) in [
            (21, vec![0, 15, 7, 8, 3]),
            (22, vec![0, 0xff, 7, 0xf8, 3]),
            (24, vec![0, 1, 2, 3, 2]),
            (25, vec![0, 0xff, 0xfe, 1, 0xff]),
            (23, vec![1, 15, 9]),
        ] {
            let mut packed = vec![0; (values.len() * bits(element)).div_ceil(8)];
            pack(element, &values, &mut packed);
            assert_eq!(unpack(element, &packed, values.len()), values, "type {element}");
        }
    }

    #[test]
    fn numbers_of_both_sides() {
        // ONNX Runtime's FLOAT8E8M0, UINT2 and INT2.
        assert_eq!([26, 24, 25].map(onnx_of), [24, 25, 26].map(Some));
        assert_eq!(onnx_of(99), None);
        assert_eq!(size(1, 3), Some(12));
        assert_eq!(size(22, 3), Some(3));
        assert_eq!(size(STRING, 3), None);
    }
}
