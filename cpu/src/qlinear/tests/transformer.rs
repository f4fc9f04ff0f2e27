//! QAttention and QEmbedLayerNormalization. The numbers are checksums of ONNX Runtime's.

use super::{bytes, signed};
use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::Value;
use crate::testing::{checksum, elements, run_in, t};

fn scalar<T: crate::tensor::Element>(x: T) -> Option<Value> {
    t(&[], &[x])
}

fn attention(attributes: &[(&str, Attribute)], inputs: &[Option<Value>]) -> Result<Vec<Value>, OpError> {
    let attributes = [&[("num_heads", Attribute::Int(2))], attributes].concat();
    run_in("com.microsoft", "QAttention", 1, &attributes, inputs, 2)
}

/// Two samples of three steps, depth 8, two heads of four numbers.
fn inputs() -> Vec<Option<Value>> {
    let bias: Vec<f32> = (0..24).map(|i| ((i * 5 % 7) as f32 - 3.0) / 8.0).collect();
    vec![
        t(&[2, 3, 8], &bytes(48)),
        t(&[8, 24], &signed(192)),
        t(&[24], &bias),
        scalar(0.01f32),
        scalar(0.02f32),
        None,
        scalar(120u8),
        scalar(3i8),
        None,
    ]
}

fn past() -> Option<Value> {
    let past: Vec<f32> = (0..64).map(|i| ((i * 3 % 11) as f32 - 5.0) / 5.0).collect();
    t(&[2, 2, 2, 2, 4], &past)
}

#[test]
fn attention_with_every_mask() {
    let causal = [("unidirectional", Attribute::Int(1))];
    let threes: Vec<i32> = (0..18).map(|i| i32::from(i % 4 > 0)).collect();
    let ints = |shape: &[usize], x: &[i32]| t(shape, x);
    let column_scales: Vec<f32> = (0..24).map(|i| 0.01 + 0.04 * i as f32 / 23.0).collect();
    let column_zeros: Vec<i8> = (0..24).map(|i| i % 5).collect();
    let with = |changes: Vec<(usize, Option<Value>)>| {
        let mut inputs = inputs();
        changes.into_iter().for_each(|(i, value)| inputs[i] = value);
        inputs
    };
    let soft = [("mask_filter_value", Attribute::Float(-5.0)), ("scale", Attribute::Float(0.25))];
    let pairs = [1, 0, 1, 1, 0, 0, 1, 1, 1, 1];
    type Case<'a> = (&'a [(&'a str, Attribute)], Vec<Option<Value>>, f64);
    let cases: &[Case<'_>] = &[
        (&[], inputs(), 58.859_013),
        (&causal, inputs(), 45.740_230),
        (&[], with(vec![(5, ints(&[2], &[2, 3]))]), 46.631_977),
        (&[], with(vec![(5, ints(&[4], &[3, 2, 1, 0]))]), -10.994_947),
        (&[], with(vec![(5, ints(&[2, 3], &[1, 0, 1, 0, 1, 1]))]), 28.816_414),
        (&[], with(vec![(5, ints(&[2, 3, 3], &threes))]), -3.168_885),
        (&[], with(vec![(5, ints(&[2, 3, 3], &[0; 18]))]), 58.860_505),
        (&[], with(vec![(4, t(&[24], &column_scales)), (7, t(&[24], &column_zeros))]), 104.998_166),
        (&causal, with(vec![(8, past())]), 37.748_145),
        (&soft, with(vec![(8, past()), (5, ints(&[2, 5], &pairs))]), 56.347_595),
    ];
    for (i, (attributes, inputs, want)) in cases.iter().enumerate() {
        let out = attention(attributes, inputs).unwrap();
        let (shape, y) = elements::<f32>(&out[0]);
        assert_eq!(shape, [2, 3, 8]);
        let got = checksum(&y);
        assert!((got - want).abs() < 5e-3, "case {i}: {got} {want}");
        if inputs[8].is_some() {
            let (shape, present) = elements::<f32>(&out[1]);
            assert_eq!(shape, [2, 2, 2, 5, 4]);
            assert!((checksum(&present) + 22.1068).abs() < 1e-3);
        }
    }
}

#[test]
fn embeddings_are_summed_and_normalised() {
    let reversed = |count: usize| bytes(count).into_iter().rev().collect::<Vec<u8>>();
    let all = [
        t(&[2, 3], &[1i32, 3, 0, 2, 2, 4]),
        t(&[2, 3], &[0i32, 1, 1, 0, 0, 1]),
        t(&[5, 8], &bytes(40)),
        t(&[4, 8], &reversed(32)),
        t(&[2, 8], &bytes(16)),
        t(&[8], &reversed(8)),
        t(&[8], &bytes(8)),
        t(&[2, 3], &[1i32, 1, 0, 1, 1, 1]),
        scalar(0.1f32),
        scalar(0.05f32),
        scalar(0.02f32),
        scalar(0.01f32),
        scalar(0.03f32),
        scalar(100u8),
        scalar(120u8),
        scalar(3u8),
        scalar(4u8),
        scalar(90u8),
    ];
    let without = |omitted: &[usize]| {
        let mut inputs = all.clone();
        omitted.iter().for_each(|&i| inputs[i] = None);
        let epsilon = [("epsilon", Attribute::Float(1e-5))];
        run_in("com.microsoft", "QEmbedLayerNormalization", 1, &epsilon, &inputs, 2)
    };
    for (omitted, want, counts) in
        [(&[][..], -53.406_507, [2, 3]), (&[1, 4, 10, 15], -51.554_161, [2, 3]), (&[7], -53.406_507, [0, 0])]
    {
        let out = without(omitted).unwrap();
        let (shape, y) = elements::<f32>(&out[0]);
        assert_eq!(shape, [2, 3, 8]);
        assert!((checksum(&y) - want).abs() < 2e-3, "{} {want}", checksum(&y));
        assert_eq!(elements::<i32>(&out[1]).1, counts);
    }
    let error = without(&[4]).unwrap_err().to_string();
    assert!(error.contains("input 4 (segment_embedding)"), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    let with = |i: usize, value: Option<Value>| {
        let mut inputs = inputs();
        inputs[i] = value;
        attention(&[], &inputs).map(|_| ())
    };
    let attribute = |name: &'static str, value: i64| {
        run_in("com.microsoft", "QAttention", 1, &[(name, Attribute::Int(value))], &inputs(), 1).map(|_| ())
    };
    for (result, parts) in [
        (attribute("num_heads", 0), ["\"num_heads\"", "from 1"]),
        (attribute("num_heads", 3), ["input 1 (weight)", "3 heads"]),
        (attribute("unidirectional", 1), ["\"num_heads\"", "required"]),
        (with(2, t(&[8], &[0.0f32; 8])), ["input 2 (bias)", "24"]),
        (with(4, t(&[8], &[0.1f32; 8])), ["input 4 (weight_scale)", "24"]),
        (with(5, t(&[5], &[1i32; 5])), ["input 5 (mask_index)", "[2·batch]"]),
        (with(8, t(&[2, 2, 3, 2, 4], &[0.0f32; 96])), ["input 8 (past)", "3"]),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}: {parts:?}");
    }
}
