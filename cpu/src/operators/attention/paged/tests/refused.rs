//! What PagedAttention refuses, and what it says.

use crate::graph::Attribute;
use crate::tensor::Value;
use crate::testing::{run_in, t};

use super::{Case, PLAIN, noise};

#[test]
fn wrong_values_are_refused() {
    let ints = |shape: &[usize], x: &[i32]| t(shape, x);
    let with = |case: &Case, i: usize, value: Option<Value>, more: &[(&'static str, Attribute)]| {
        let mut inputs = case.inputs(&|x| x);
        inputs[i] = value;
        let attributes = [case.attributes(), more.to_vec()].concat();
        run_in("com.microsoft", "PagedAttention", 1, &attributes, &inputs, 1).unwrap_err().to_string()
    };
    let case = Case { sequences: &[(0, 3), (20, 1)], rotary: Some(false), ..PLAIN };
    let slots = Case { slots: true, ..case };
    let x = |shape: &[usize]| t(shape, &noise(9, shape.iter().product()));
    let plain: &[(&'static str, Attribute)] = &[];
    let string = |text: &str| Attribute::String(text.as_bytes().to_vec());
    let cases = [
        (with(&case, 5, ints(&[3], &[0, 5, 4]), plain), ["cumulative_sequence_length has 5", "0 to 4"]),
        (with(&case, 5, ints(&[3], &[1, 3, 4]), plain), ["cumulative_sequence_length has 1", "0 to 0"]),
        (with(&case, 5, ints(&[3], &[0, 3, 3]), plain), ["cumulative_sequence_length has 3", "4 to 4"]),
        (with(&case, 5, ints(&[3], &[0, -1, 4]), plain), ["cumulative_sequence_length has -1", "0 to 4"]),
        (with(&case, 6, ints(&[2], &[0, -1]), plain), ["past_seqlens has -1", "0 to 47"]),
        (with(&case, 6, ints(&[2], &[0, 48]), plain), ["past_seqlens has 48", "0 to 47"]),
        (with(&case, 6, ints(&[2], &[0, i32::MAX]), plain), ["past_seqlens has 2147483647", "room for 48"]),
        (with(&case, 7, ints(&[2, 3], &[2, 3, 4, 5, 9, 0]), plain), ["block_table has 9", "0 to 8"]),
        (with(&case, 7, ints(&[2, 3], &[-1, 3, 4, 5, 6, 0]), plain), ["block_table has -1", "0 to 8"]),
        (with(&case, 7, ints(&[2, 0], &[]), plain), ["past_seqlens has 0", "no number"]),
        (with(&case, 3, x(&[0, 16, 2, 16]), plain), ["value_cache", "0"]),
        (with(&slots, 10, ints(&[4], &[0, 1, 2, 144]), plain), ["slot_mapping has 144", "-1 to 143"]),
        (with(&slots, 10, ints(&[4], &[0, 1, 2, -2]), plain), ["slot_mapping has -2", "-1 to 143"]),
        (with(&slots, 10, ints(&[3], &[0, 1, 2]), plain), ["slot_mapping", "allowed is 4"]),
        (with(&case, 8, x(&[9, 8]), plain), ["sin_cache", "9"]),
        (with(&case, 8, None, plain), ["cos_cache", "do_rotary"]),
        (with(&case, 1, None, plain), ["key", "go together"]),
        (with(&case, 4, None, plain), ["value_cache", "SEPARATE"]),
        (with(&case, 12, x(&[16]), plain), ["q_norm_weight", "k_norm_weight"]),
        (with(&case, 14, x(&[1]), plain), ["k_scale", "quantized"]),
        (with(&case, 11, x(&[3]), plain), ["head_sink", "allowed is 4"]),
        (with(&case, 0, x(&[4, 63]), plain), ["query", "63 columns"]),
        (with(&case, 16, None, &[("k_quant_type", string("PER_TENSOR"))]), ["k_quant_type", "PER_TENSOR"]),
        (with(&case, 16, None, &[("kv_cache_layout", string("JOINT"))]), ["kv_cache_layout", "LATENT"]),
        (with(&case, 16, None, &[("v_head_size", Attribute::Int(8))]), ["v_head_size", "SEPARATE"]),
        (with(&case, 16, None, &[("rotary_offset", Attribute::Int(-8))]), ["rotary_offset", "-8"]),
        (with(&case, 16, None, &[("rotary_offset", Attribute::Int(8))]), ["cos_cache", "0 to 4"]),
    ];
    for (error, parts) in &cases {
        for part in parts {
            assert!(error.contains(part), "{error}: without {part}");
        }
    }
    let far = Case { sequences: &[(0, 3), (20, 1)], ..case };
    let mut nobodys = case.inputs(&|x| x);
    (nobodys[5], nobodys[6], nobodys[7]) = (ints(&[1], &[0]), ints(&[0], &[]), ints(&[0, 3], &[]));
    let error = run_in("com.microsoft", "PagedAttention", 1, &case.attributes(), &nobodys, 1).unwrap_err();
    assert!(error.to_string().contains("no sequence, and query has 4 tokens; allowed is none"), "{error}");
    let short = |i| t(&[20, 8], &noise(i, 160));
    let mut inputs = far.inputs(&|x| x);
    (inputs[8], inputs[9]) = (short(4), short(5));
    let error = run_in("com.microsoft", "PagedAttention", 1, &far.attributes(), &inputs, 1).unwrap_err();
    assert!(error.to_string().contains("a position is 20; allowed is 0 to 19"), "{error}");
}
