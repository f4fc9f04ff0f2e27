//! Attention on a device against the CPU's.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Tensor, Value};

use super::super::super::testing::{both, small_integers as numbers};

fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F16 => 3e-3,
        ElementType::BF16 => 2e-2,
        ElementType::F64 => 1e-12,
        _ => 1e-5,
    }
}

const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

#[test]
fn heads_masks_and_caches() {
    for ty in TYPES {
        let scale = ("scale", Attribute::Float(0.1));
        let causal = ("is_causal", Attribute::Int(1));
        // Grouped heads, keys of odd number.
        let inputs =
            [numbers(ty, &[2, 6, 37, 24]), numbers(ty, &[2, 2, 41, 24]), numbers(ty, &[2, 2, 41, 40])];
        let Some(out) = both("Attention", 23, &[scale.clone(), causal.clone()], &inputs, 1) else { return };
        out.assert_close(&format!("{ty} grouped"), tolerance(ty));

        // Heads side by side, a mask, softcap, a past; every output.
        let inputs = [
            numbers(ty, &[2, 5, 32]),
            numbers(ty, &[2, 3, 16]),
            numbers(ty, &[2, 3, 16]),
            numbers(ty, &[1, 4, 5, 9]),
            numbers(ty, &[2, 2, 6, 8]),
            numbers(ty, &[2, 2, 6, 8]),
        ];
        for mode in 0..4 {
            let attributes = [
                scale.clone(),
                ("q_num_heads", Attribute::Int(4)),
                ("kv_num_heads", Attribute::Int(2)),
                ("softcap", Attribute::Float(2.0)),
                ("qk_matmul_output_mode", Attribute::Int(mode)),
            ];
            let Some(out) = both("Attention", 23, &attributes, &inputs, 4) else { return };
            out.assert_close(&format!("{ty} past, mode {mode}"), tolerance(ty));
        }

        // One query over many keys.
        let inputs =
            [numbers(ty, &[1, 4, 1, 16]), numbers(ty, &[1, 2, 1100, 16]), numbers(ty, &[1, 2, 1100, 16])];
        let Some(out) = both("Attention", 23, &[scale], &inputs, 1) else { return };
        out.assert_close(&format!("{ty} one query"), tolerance(ty));
    }
}

#[test]
fn rotations() {
    for ty in TYPES {
        let positions = Tensor::from_slice(&[2, 3], &[4i64, 0, 2, 1, 3, 4]).expect("memory for a test");
        for interleaved in [0, 1] {
            let inputs = [
                numbers(ty, &[2, 4, 3, 10]),
                numbers(ty, &[5, 4]),
                numbers(ty, &[5, 4]),
                Some(Value::Tensor(positions.clone())),
            ];
            let attributes =
                [("interleaved", Attribute::Int(interleaved)), ("rotary_embedding_dim", Attribute::Int(8))];
            let Some(out) = both("RotaryEmbedding", 23, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} {interleaved}"), tolerance(ty));
        }
    }
}
