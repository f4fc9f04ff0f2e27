//! Numbers for the tests of kernels.

use crate::tensor::{Buffer, Element, ElementType, Tensor, Value, bf16, f16};

/// A tensor of any type that programs compute with: numbers between −2 and 2 for floats, −8 to 7 for
/// signed integers, 0 to 15 for unsigned ones, in no order.
pub(in super::super) fn mixed(ty: ElementType, shape: &[usize]) -> Option<Value> {
    let count = shape.iter().product::<usize>() as u32;
    // Knuth's multiplicative hash, as a fraction.
    let all = (0..count).map(|i| i.wrapping_mul(2_654_435_761) as f64 / 4294967296.0);
    let float = all.clone().map(|x| 4.0 * x - 2.0);
    let integer = all.map(move |x| (16.0 * x) as i64 - if ty.is_signed_integer() { 8 } else { 0 });
    match ty {
        ElementType::F32 => tensor(shape, float.map(|x| x as f32)),
        ElementType::F64 => tensor(shape, float),
        ElementType::F16 => tensor(shape, float.map(f16::from_f64)),
        ElementType::BF16 => tensor(shape, float.map(bf16::from_f64)),
        ElementType::I8 => tensor(shape, integer.map(|x| x as i8)),
        ElementType::U8 => tensor(shape, integer.map(|x| x as u8)),
        ElementType::I32 => tensor(shape, integer.map(|x| x as i32)),
        ElementType::U64 => tensor(shape, integer.map(|x| x as u64)),
        _ => tensor(shape, integer),
    }
}

/// A tensor of these elements.
pub(in super::super) fn tensor<T: Element>(
    shape: &[usize],
    elements: impl Iterator<Item = T>,
) -> Option<Value> {
    let elements: Vec<T> = elements.collect();
    Some(Value::Tensor(Tensor::from_slice(shape, &elements).expect("memory for a test")))
}

/// Inputs of which no two of more floats than there are inputs are alike, so that a kernel that takes one for another is
/// noticed: floats of input `i` that an input before has too are moved on by `i` places.
pub(in super::super) fn unlike(inputs: &[Option<Value>]) -> Vec<Option<Value>> {
    let tensor = |i: usize| inputs[i].as_ref().and_then(Value::as_tensor).filter(|t| t.ty().is_float());
    let moved = |i: usize| {
        let input = tensor(i)?;
        let buffer = input.buffer()?;
        let alike = |t: &Tensor| {
            let bytes = t.buffer().map(|b| b.bytes());
            t.ty() == input.ty() && t.shape() == input.shape() && bytes == Some(buffer.bytes())
        };
        if buffer.bytes().is_empty() || !(0..i).filter_map(tensor).any(alike) {
            return None;
        }
        let mut bytes = buffer.bytes().to_vec();
        let places = i * input.ty().size() % bytes.len();
        bytes.rotate_left(places);
        let buffer = Buffer::copy_of(&bytes).expect("memory for a test");
        Tensor::from_buffer(input.ty(), input.shape(), buffer).map(Value::Tensor)
    };
    inputs.iter().enumerate().map(|(i, input)| moved(i).or_else(|| input.clone())).collect()
}

/// How far a result may be off: a few roundings of the type.
pub(in super::super) fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F16 => 4e-3,
        ElementType::BF16 => 3e-2,
        ElementType::F32 => 2e-5,
        _ => 1e-12,
    }
}

/// Floats from `low` to `high` in no order, others for each seed.
pub(in super::super) fn between(
    ty: ElementType,
    shape: &[usize],
    [low, high]: [f32; 2],
    seed: u32,
) -> Option<Value> {
    let count = shape.iter().product::<usize>() as u32;
    let at = |i: u32| (i + 1 + 7919 * seed).wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(40_503);
    let float = (0..count).map(|i| low + (high - low) * (at(i) >> 8) as f32 / (1 << 24) as f32);
    match ty {
        ElementType::F16 => tensor(shape, float.map(f16::from_f32)),
        ElementType::BF16 => tensor(shape, float.map(bf16::from_f32)),
        _ => tensor(shape, float),
    }
}
