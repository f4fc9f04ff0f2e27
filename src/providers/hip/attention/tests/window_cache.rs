//! Caches that keep the last keys alone on a device against the CPU's; python/tests/test_window_caches.py has ONNX
//! Runtime's.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::super::testing::both_in;
use super::super::super::testing::data::{mixed, tensor, tolerance};

/// Keys that a query sees, room in the caches, new rows, and each sample's keys with them.
type Case = (i64, usize, usize, &'static [i32]);

#[test]
fn caches_of_the_last_keys() {
    let cases: &[Case] = &[
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
    for &(window, capacity, rows, lengths) in cases {
        for ty in [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64] {
            let (batch, size) = (lengths.len(), 16);
            let past = || mixed(ty, &[batch, 2, capacity, size]);
            let inputs = [
                mixed(ty, &[batch, rows, 4 * size]),
                mixed(ty, &[batch, rows, 2 * size]),
                mixed(ty, &[batch, rows, 2 * size]),
                past(),
                past(),
                tensor(&[batch], lengths.iter().map(|n| n - 1)),
                tensor(&[], lengths.iter().copied().max().into_iter()),
                mixed(ty, &[900, size / 2]),
                mixed(ty, &[900, size / 2]),
            ];
            let attributes = [
                ("num_heads", Attribute::Int(4)),
                ("kv_num_heads", Attribute::Int(2)),
                ("do_rotary", Attribute::Int(1)),
                ("local_window_size", Attribute::Int(window)),
                ("sliding_window_cache", Attribute::Int(1)),
            ];
            for outputs in [1, 3] {
                let name = "GroupQueryAttention";
                let Some(out) = both_in("com.microsoft", name, 1, &attributes, &inputs, outputs) else { return };
                let told = format!("{ty}: {window} of {capacity}, {rows} rows, {lengths:?} keys");
                out.assert_close(&told, tolerance(ty));
            }
        }
    }
}
