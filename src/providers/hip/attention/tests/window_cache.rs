//! Caches that keep the last keys alone on a device against the CPU's; python/tests/test_window_caches.py has ONNX
//! Runtime's.

use crate::graph::Attribute;
use crate::tensor::{ElementType, F8E4M3FN, Value};

use super::super::super::testing::both_in;
use super::super::super::testing::data::{mixed, tensor, tolerance};

/// Keys that a query sees, room in the caches, new rows, and each sample's keys with them.
type Case = (i64, usize, usize, &'static [i32]);

const CASES: [Case; 10] = [
    // Steps: with room, with the last place taken, with a full cache, and long behind it.
    (3, 5, 1, &[1, 4, 5, 6, 7, 19]),
    (4, 4, 1, &[4, 5, 900]),
    (1, 3, 1, &[2, 3, 4, 5]),
    (40, 150, 1, &[150, 151, 300]),
    // Several rows after a past; prompts that fit, that do not, and whose samples end before them.
    (3, 5, 3, &[30]),
    (3, 5, 2, &[5, 6, 7]),
    (3, 5, 4, &[4]),
    (3, 5, 9, &[9]),
    (5, 12, 30, &[30, 30]),
    (3, 7, 6, &[6, 4, 3]),
];
const SIZE: usize = 32;

/// `past`: a cache of a shape with room for numbers; `more`: attributes and inputs from the scales on.
fn check(
    ty: ElementType,
    past: &dyn Fn(&[usize]) -> Option<Value>,
    more: (&[(&'static str, Attribute)], &[Option<Value>]),
) {
    for (window, capacity, rows, lengths) in CASES {
        let batch = lengths.len();
        let mut inputs = vec![
            mixed(ty, &[batch, rows, 4 * SIZE]),
            mixed(ty, &[batch, rows, 2 * SIZE]),
            mixed(ty, &[batch, rows, 2 * SIZE]),
            past(&[batch, 2, capacity, SIZE]),
            past(&[batch, 2, capacity, SIZE]),
            tensor(&[batch], lengths.iter().map(|n| n - 1)),
            tensor(&[], lengths.iter().copied().max().into_iter()),
            mixed(ty, &[900, SIZE / 2]),
            mixed(ty, &[900, SIZE / 2]),
        ];
        inputs.resize(12, None);
        inputs.extend_from_slice(more.1);
        let mut attributes = vec![
            ("num_heads", Attribute::Int(4)),
            ("kv_num_heads", Attribute::Int(2)),
            ("do_rotary", Attribute::Int(1)),
            ("local_window_size", Attribute::Int(window)),
            ("sliding_window_cache", Attribute::Int(1)),
        ];
        attributes.extend_from_slice(more.0);
        for outputs in [1, 3] {
            let name = "GroupQueryAttention";
            let Some(out) = both_in("com.microsoft", name, 1, &attributes, &inputs, outputs) else { return };
            out.assert_close(
                &format!("{ty}: {window} of {capacity}, {rows} rows, {lengths:?} keys"),
                tolerance(ty),
            );
        }
    }
}

#[test]
fn caches_of_the_last_keys() {
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64] {
        check(ty, &|shape| mixed(ty, shape), (&[], &[]));
    }
}

#[test]
fn quantized_caches_of_the_last_keys() {
    for kept in [ElementType::I8, ElementType::U8, ElementType::F8E4M3FN] {
        let past = |shape: &[usize]| {
            let count: usize = shape.iter().product();
            let numbers = (0..count).map(|i| (i * 37 + i / 251) as u8);
            match kept {
                ElementType::U8 => tensor(&[&shape[..3], &[SIZE / 2]].concat(), numbers.take(count / 2)),
                ElementType::I8 => tensor(shape, numbers.map(|x| x as i8)),
                // No NaN.
                _ => tensor(shape, numbers.map(|x| F8E4M3FN(x & 0x9f | 0x20))),
            }
        };
        let bits = if kept == ElementType::U8 { 4 } else { 8 };
        let kind = |name: &'static str, kind: &str| (name, Attribute::String(kind.as_bytes().to_vec()));
        let attributes = [
            ("kv_cache_bit_width", Attribute::Int(bits)),
            kind("k_quant_type", "PER_CHANNEL"),
            kind("v_quant_type", "PER_TENSOR"),
        ];
        let scales = |count: usize| tensor(&[count], (0..count).map(|i| 0.02 + (i % 7) as f32 * 0.003));
        check(ElementType::F32, &past, (&attributes, &[scales(2 * SIZE), scales(1)]));
    }
}
