//! Products with packed weights beside the CPU's.

use std::sync::Arc;

use crate::graph::Attribute;
use crate::tensor::{ElementType, Tensor, Value, bf16, f16};

use super::super::provider::Provider;
use super::super::testing::data::{mixed, tensor, tolerance};
use super::super::testing::{
    Both, both_in, node, numbers, on_cpu, on_device, pattern, provider, small_integers,
};

#[test]
fn weights_of_few_bits() {
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for (bits, block, m, n, k) in [
            (4, 16, 1, 9, 40),
            (4, 32, 3, 33, 128),
            (8, 32, 70, 20, 96),
            (2, 64, 5, 7, 130),
            // Whole steps and parts of them, and more rows than a workgroup has.
            (4, 32, 1, 13, 4128),
            (4, 128, 2, 70, 512),
            (4, 64, 9, 6, 200),
            (8, 16, 1, 5, 2064),
            (8, 128, 4, 11, 300),
            (2, 128, 1, 3, 4100),
            (4, 256, 6, 8, 1000),
        ] {
            for with in [false, true] {
                let blocks = (k as usize).div_ceil(block);
                let attributes: Vec<(&str, Attribute)> =
                    [("N", n as i64), ("K", k as i64), ("bits", bits as i64), ("block_size", block as i64)]
                        .map(|(name, value)| (name, Attribute::Int(value)))
                        .to_vec();
                let order: Vec<i32> =
                    (0..k).map(|i| (i * 7 % blocks as i32).min(blocks as i32 - 1)).collect();
                let order =
                    Value::Tensor(Tensor::from_slice(&[order.len()], &order).expect("memory for a test"));
                let inputs = [
                    small_integers(ty, &[m, k as usize]),
                    pattern(ElementType::U8, &[n, blocks, block * bits / 8]),
                    small_integers(ty, &[n * blocks]),
                    with.then(|| pattern(ElementType::U8, &[n * (blocks * bits).div_ceil(8)])).flatten(),
                    (with && m < 5 && k < 150).then_some(order),
                    with.then(|| small_integers(ty, &[n])).flatten(),
                ];
                let Some(out) = both_in("com.microsoft", "MatMulNBits", 1, &attributes, &inputs, 1) else {
                    return;
                };
                let relative = if ty == ElementType::BF16 { 2e-2 } else { 2e-3 };
                out.assert_close(&format!("{ty} {bits} bits {m}x{n}x{k} {with}"), relative);
            }
        }
    }
}

/// The smallest and the largest halves, whose products are not those of their neighbours in size.
#[test]
fn elements_at_the_ends_of_their_range() {
    for (element, scale) in [(5.9604645e-8, 512.0), (6.1e-5, 1.0), (60000.0, 0.0009765625)] {
        for (bits, block) in PACKED {
            let a = |i| if i % 3 == 0 { -element } else { element };
            let Some(out) = halves_by(bits, block, scale, a) else { return };
            out.assert_close(&format!("{element} with {bits} bits"), tolerance(ElementType::F16));
        }
    }
}

/// Kernels may give neighbours one scale: what that costs the smaller ones is little beside what the larger ones give.
#[test]
fn small_elements_beside_large_ones() {
    for (large, small) in [(1000.0, 0.02), (60000.0, 0.5), (1.0, 5.9604645e-8), (0.001, 0.0007)] {
        for (bits, block) in PACKED {
            let scale = 1.0 / 1024.0 / large;
            let a = |i| if i % 41 == 7 { large } else { -small };
            let Some(out) = halves_by(bits, block, scale, a) else { return };
            let [device, cpu] = [&out.device[0], &out.cpu[0]].map(numbers);
            let most = cpu.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
            for (at, (y, expected)) in device.iter().zip(&cpu).enumerate() {
                let what =
                    format!("{large} and {small} with {bits} bits: {y} at {at}, on the CPU {expected}");
                assert!((y - expected).abs() <= tolerance(ElementType::F16) * most, "{what} of {most}");
            }
        }
    }
}

#[test]
fn an_element_that_is_not_finite_leaves_no_result_finite() {
    for wrong in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        for (bits, block) in PACKED {
            let Some(out) = halves_by(bits, block, 1.0, |i| if i == 77 { wrong } else { 0.5 }) else {
                return;
            };
            for result in [&out.device[0], &out.cpu[0]] {
                let values = numbers(result);
                assert!(values.iter().all(|y| !y.is_finite()), "{wrong} with {bits} bits: {values:?}");
            }
        }
    }
}

/// Bits of a number, and numbers of a block.
const PACKED: [(usize, usize); 3] = [(2, 64), (4, 32), (8, 16)];

/// A row of 256 halves times six columns of numbers with one scale.
fn halves_by(bits: usize, block: usize, scale: f64, a: impl Fn(usize) -> f64) -> Option<Both> {
    let k = 256;
    let sizes = [("N", 6), ("K", k as i64), ("bits", bits as i64), ("block_size", block as i64)];
    let attributes = sizes.map(|(name, value)| (name, Attribute::Int(value)));
    let blocks = 6 * k / block;
    let inputs = [
        tensor(&[1, k], (0..k).map(|i| f16::from_f64(a(i)))),
        pattern(ElementType::U8, &[6, k / block, block * bits / 8]),
        tensor(&[blocks], (0..blocks).map(|_| f16::from_f64(scale))),
    ];
    both_in("com.microsoft", "MatMulNBits", 1, &attributes, &inputs, 1)
}

/// What stands around a product: a normalisation, with rows added before, and a gated unit.
#[derive(Clone, Copy, Debug)]
struct Around {
    norm: bool,
    skip: bool,
    gate: &'static str,
    gate_last: i64,
}

/// Projections beside the operators that they stand for: of few rows one launch, of more one after the other.
#[test]
fn projections() {
    let Some(provider) = provider(&[]) else { return };
    for ty in [ElementType::F16, ElementType::F32, ElementType::BF16] {
        for (at, (bits, block, rows, n, k)) in [
            (4, 32, &[1][..], 66, 2048),
            (4, 16, &[2], 10, 264),
            (4, 64, &[1, 3], 34, 1000),
            (4, 128, &[5], 12, 256),
            (4, 256, &[4, 4], 6, 512),
            (4, 32, &[17], 18, 96),
            (8, 16, &[1], 14, 1040),
            (8, 32, &[2, 4], 6, 96),
            (2, 64, &[1, 1], 22, 4160),
            (2, 16, &[3], 8, 64),
        ]
        .into_iter()
        .enumerate()
        {
            for (norm, skip, gate, gate_last) in [
                (true, true, "Silu", 0),
                (true, false, "", 0),
                (false, false, "GeluTanh", 1),
                (true, true, "", 0),
            ] {
                let around = Around { norm, skip, gate, gate_last };
                // Every second case has zero points and a bias.
                let with = (at + usize::from(skip)).is_multiple_of(2);
                compare_projection(&provider, ty, &around, (bits, block, rows, n, k), with);
            }
        }
    }
}

/// The kernels for 3 to 16 rows of sm_90, with clusters of 1, 2 and 4 workgroups, a part of a slot, and more tiles than workgroups.
/// Other devices have others for these.
#[test]
fn projections_of_few_rows() {
    let Some(provider) = provider(&[]) else { return };
    for (rows, n, k) in [
        (&[3][..], 96, 512),
        (&[16], 64, 1024),
        (&[2, 4], 128, 2048),
        (&[9], 96, 3584),
        (&[5], 8704, 512),
        (&[13], 8704, 1024),
        (&[16], 4160, 2048),
        // Workgroups of a cluster finish several tiles each.
        (&[9], 4160, 4096),
        (&[9], 6144, 2048),
    ] {
        for (norm, skip, gate, gate_last) in [
            (false, false, "", 0),
            (true, true, "Silu", 0),
            (true, false, "", 0),
            (true, true, "", 0),
            (false, false, "Silu", 1),
        ] {
            let around = Around { norm, skip, gate, gate_last };
            compare_projection(&provider, ElementType::F16, &around, (4, 32, rows, n, k), false);
        }
    }
}

/// Rows whose elements, times the scale, are too large for halves before they are divided by the norm, beside rows of small ones, and
/// beside one with an infinite element: each row's result is its own. One scale alone is too large with what even elements are multiplied
/// by, and meets elements that are 0.
#[test]
fn large_rows_beside_small_ones() {
    let Some(provider) = provider(&[]) else { return };
    let (ty, n, k) = (ElementType::F16, 64, 2048);
    // More than eight: those after them share lanes with the first.
    let sizes = [1e-4, 1.0, 3000.0, 0.02, 6e4, 0.5, 5000.0, 1e-3, 1.0, 4e4, 0.1, 1e-4];
    let rows = sizes.len();
    let product =
        [pattern(ElementType::U8, &[n, k / 32, 16]), scales(ty, n * k / 32, 4, k), None, None, None];
    let element = |i: usize| match i % k {
        64..96 => 0.0,
        _ => sizes[i / k] * [0.3, -1.0, 0.002, 0.7][(i + i / 37) % 4],
    };
    for (norm, infinite) in [(true, false), (false, false), (true, true), (false, true)] {
        let around = Around { norm, skip: false, gate: "", gate_last: 0 };
        let x: Vec<f16> = (0..rows * k)
            .map(|i| f16::from_f64(if infinite && i == 2 * k + 77 { f64::INFINITY } else { element(i) }))
            .collect();
        let scale = tensor(
            &[k],
            (0..k).map(|i| {
                f16::from_f64(if i == 66 {
                    5000.0
                } else if i % 7 == 0 {
                    60.0
                } else {
                    0.5
                })
            }),
        );
        let x = [tensor(&[rows, k], x.into_iter()), None, norm.then_some(scale).flatten()];
        let Both { device, cpu } = compare(&provider, &around, (4, 32, n, k), x, &product);
        let [got, want] = [&device[0], &cpu[0]].map(numbers);
        for (row, (got, want)) in got.chunks(n).zip(want.chunks(n)).enumerate() {
            let most = want.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            if infinite && row == 2 || !most.is_finite() {
                continue;
            }
            // A result of f16 may be below its normal numbers.
            let is_far = |x: f64| x.is_nan() || x > 5e-3 * most + 1e-7;
            let far = got.iter().zip(want).find(|(x, y)| is_far((**x - **y).abs()));
            assert_eq!(far, None, "row {row}, norm {norm}, infinite {infinite}, of {most}");
        }
    }
}

/// A projection of `rows` of `k` elements with `n` lines of `bits`, in blocks of so many; `with` zero points and a bias.
fn compare_projection(
    provider: &Arc<Provider>,
    ty: ElementType,
    around: &Around,
    (bits, block, rows, n, k): (usize, usize, &[usize], usize, usize),
    with: bool,
) {
    let blocks = k.div_ceil(block);
    let product = [
        pattern(ElementType::U8, &[n, blocks, block * bits / 8]),
        scales(ty, n * blocks, bits, k),
        with.then(|| pattern(ElementType::U8, &[n * (blocks * bits).div_ceil(8)])).flatten(),
        None,
        with.then(|| mixed(ty, &[n])).flatten(),
    ];
    let shape = [rows, &[k]].concat();
    let x = [
        mixed(ty, &shape),
        around.skip.then(|| mixed(ty, &shape)).flatten(),
        around.norm.then(|| mixed(ty, &shape[rows.len()..])).flatten(),
    ];
    let out = compare(provider, around, (bits, block, n, k), x, &product);
    // What lies between is rounded on the CPU, which a product of two functions of it multiplies.
    let what = format!("{ty} {bits} bits in {block}, {rows:?}x{k}x{n} {around:?} {with}");
    out.assert_close(&what, 8.0 * tolerance(ty));
}

/// What the device and the CPU's operators make of `x`, what is added to it and the normalisation's scale.
fn compare(
    provider: &Arc<Provider>,
    around: &Around,
    (bits, block, n, k): (usize, usize, usize, usize),
    x: [Option<Value>; 3],
    product: &[Option<Value>],
) -> Both {
    let sizes = [("N", n as i64), ("K", k as i64), ("bits", bits as i64), ("block_size", block as i64)]
        .map(|(name, value)| (name, Attribute::Int(value)));
    let cpu = one_by_one(around, &sizes, &x, product);
    let [x, skip, scale] = x;
    let inputs: Vec<Option<Value>> = [vec![x], product.to_vec(), vec![skip, scale]].concat();
    let mut attributes = sizes.to_vec();
    attributes.push(EPSILON);
    if !around.gate.is_empty() {
        attributes.extend([text("gate", around.gate), ("gate_last", Attribute::Int(around.gate_last))]);
    }
    let node = node("rukh", "PackedProjection", 1, &attributes, &inputs, cpu.len());
    let device = on_device(provider, &node, &inputs, &cpu).expect("a projection");
    Both { device, cpu }
}

const EPSILON: (&str, Attribute) = ("epsilon", Attribute::Float(1e-3));

fn text(name: &'static str, value: &str) -> (&'static str, Attribute) {
    (name, Attribute::String(value.as_bytes().to_vec()))
}

/// Scales with which sums of `k` products are some units large.
fn scales(ty: ElementType, count: usize, bits: usize, k: usize) -> Option<Value> {
    let unit = 1.0 / ((1 << bits) as f64 * (k as f64).sqrt());
    let all = (0..count).map(move |i| unit * (1 + i % 3) as f64);
    match ty {
        ElementType::F16 => tensor(&[count], all.map(f16::from_f64)),
        ElementType::BF16 => tensor(&[count], all.map(bf16::from_f64)),
        _ => tensor(&[count], all.map(|x| x as f32)),
    }
}

/// What the CPU's operators make of `x`, what is added to it and the normalisation's scale.
fn one_by_one(
    around: &Around,
    sizes: &[(&str, Attribute)],
    [x, skip, scale]: &[Option<Value>; 3],
    product: &[Option<Value>],
) -> Vec<Tensor> {
    let compute = |domain: &str, name: &str, attributes: &[(&str, Attribute)], inputs: &[_], outputs| {
        on_cpu(&node(domain, name, 1, attributes, inputs, outputs), inputs)
    };
    let value = |tensor: &Tensor| Some(Value::Tensor(tensor.clone()));
    let (mut normal, mut sum) = (x.clone(), None);
    if around.skip {
        let inputs = [x.clone(), skip.clone(), scale.clone()];
        let name = "SkipSimplifiedLayerNormalization";
        let made = compute("com.microsoft", name, &[EPSILON], &inputs, 4);
        (normal, sum) = (value(&made[0]), Some(made[3].clone()));
    } else if around.norm {
        let inputs = [x.clone(), scale.clone()];
        normal = value(&compute("", "SimplifiedLayerNormalization", &[EPSILON], &inputs, 1)[0]);
    }
    let inputs = [vec![normal], product.to_vec()].concat();
    let mut results = compute("com.microsoft", "MatMulNBits", sizes, &inputs, 1);
    if !around.gate.is_empty() {
        let of_gate = [text("activation", around.gate), ("gate_last", Attribute::Int(around.gate_last))];
        results = compute("rukh", "GatedUnit", &of_gate, &[value(&results[0])], 1);
    }
    results.extend(sum);
    results
}

#[test]
fn weights_of_four_bit_floats() {
    let name = "MatMulBlockQuantizedFp4Weight";
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for (block, m, n, k) in [
            (16, 1, 9, 32),
            (16, 3, 33, 130),
            (32, 4, 5, 4096),
            (64, 70, 20, 96),
            (16, 5, 7, 34),
            (128, 9, 70, 512),
            (16, 1, 3, 0),
            (16, 0, 3, 32),
            (16, 2, 0, 32),
        ] {
            for with in [false, true] {
                let (bytes, blocks) = (k / 2, usize::div_ceil(k, block));
                // From 1/8 to 1, some of them negative.
                let scale = |i: usize| 0x20 + (i * 11 % 25) as u8 + if i % 5 == 4 { 0x80 } else { 0 };
                let inputs = [
                    small_integers(ty, &[m, k]),
                    pattern(ElementType::U8, &[n, bytes]),
                    tensor(&[n, blocks], (0..n * blocks).map(scale)),
                    tensor(&[], [0.25f32].into_iter()),
                    None,
                    with.then(|| small_integers(ty, &[n])).flatten(),
                ];
                let attributes = [("block_size", Attribute::Int(block as i64))];
                let Some(out) = both_in("com.microsoft", name, 1, &attributes, &inputs, 1) else { return };
                let relative = if ty == ElementType::F32 { 2e-5 } else { 5.0 * tolerance(ty) };
                out.assert_close(&format!("{ty} {m}x{n}x{k} {with}"), relative);
            }
        }
    }
}
