//! Attention of many queries and keys, which goes tile by tile along the keys, on a device against the CPU's.

use half::{bf16, f16};

use crate::graph::Attribute;
use crate::tensor::{Bool, ElementType, Value};

use super::super::super::testing::data::{between, tensor, tolerance};
use super::super::super::testing::{both, both_in, both_with, node, numbers, planned_with, provider};

const TYPES: [ElementType; 2] = [ElementType::F16, ElementType::BF16];

/// What a mask of `[queries, keys]` is made of.
#[derive(Clone, Copy, Debug)]
enum Mask {
    None,
    Bits,
    Numbers,
    /// In `f32`, whatever the type is.
    Single,
}

/// Batch, heads and heads of keys; queries and keys; the sizes of a head of keys and of values.
struct Case {
    heads: [usize; 3],
    rows: [usize; 2],
    sizes: [usize; 2],
    causal: bool,
    softcap: f32,
    mask: Mask,
}

const PLAIN: Case = Case {
    heads: [1, 2, 2],
    rows: [200, 800],
    sizes: [64, 64],
    causal: false,
    softcap: 0.0,
    mask: Mask::None,
};

const CASES: [Case; 11] = [
    PLAIN,
    Case { heads: [2, 2, 1], rows: [193, 769], sizes: [56, 64], ..PLAIN },
    Case { rows: [800, 800], causal: true, ..PLAIN },
    Case { heads: [1, 4, 2], rows: [400, 1000], sizes: [32, 24], causal: true, ..PLAIN },
    Case { heads: [1, 2, 1], rows: [300, 300], sizes: [128, 128], ..PLAIN },
    Case { heads: [1, 2, 2], rows: [390, 390], sizes: [128, 72], causal: true, ..PLAIN },
    Case { rows: [130, 600], mask: Mask::Bits, ..PLAIN },
    Case { rows: [129, 520], mask: Mask::Numbers, causal: true, ..PLAIN },
    Case { rows: [140, 513], sizes: [128, 128], mask: Mask::Single, ..PLAIN },
    Case { rows: [128, 640], sizes: [96, 128], softcap: 2.0, ..PLAIN },
    // Not at multiples of 16 bytes.
    Case { rows: [200, 600], sizes: [60, 36], causal: true, ..PLAIN },
];

#[test]
fn many_queries_and_keys() {
    for ty in TYPES {
        for (i, case) in CASES.iter().enumerate() {
            let ([batch, heads, kv_heads], [rows, keys]) = (case.heads, case.rows);
            let numbers =
                |heads, rows, size, seed| between(ty, &[batch, heads, rows, size], [-1.0, 1.0], seed);
            let shape = [rows, keys];
            let mask: Option<Value> = match case.mask {
                Mask::None => None,
                // Row 3 sees nothing of the first 256 keys.
                Mask::Bits => tensor(
                    &shape,
                    (0..rows * keys).map(|i| Bool::from(i % 7 != 3 && (i / keys != 3 || i % keys >= 256))),
                ),
                Mask::Numbers => between(ty, &shape, [-2.0, 2.0], 4),
                Mask::Single => between(ElementType::F32, &shape, [-2.0, 2.0], 4),
            };
            let mut inputs = vec![
                numbers(heads, rows, case.sizes[0], 1),
                numbers(kv_heads, keys, case.sizes[0], 2),
                numbers(kv_heads, keys, case.sizes[1], 3),
            ];
            inputs.extend(mask.map(Some));
            let attributes = [
                ("scale", Attribute::Float(0.3)),
                ("is_causal", Attribute::Int(i64::from(case.causal))),
                ("softcap", Attribute::Float(case.softcap)),
            ];
            let Some(out) = both("Attention", 23, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} case {i}"), tolerance(ty));
        }
    }
}

#[test]
fn windows_and_lengths() {
    // Queries behind a past in caches that have more room, two samples of different lengths, four heads that share two.
    const ROWS: usize = 200;
    const ROOM: usize = 1000;
    const LENGTHS: [i32; 2] = [900, 577];
    for ty in TYPES {
        for size in [64, 128] {
            for window in [-1, 150] {
                let numbers = |heads: usize, seed| between(ty, &[2, ROWS, heads * size], [-1.0, 1.0], seed);
                let cache = |seed| between(ty, &[2, 2, ROOM, size], [-1.0, 1.0], seed);
                let inputs = [
                    numbers(4, 1),
                    numbers(2, 2),
                    numbers(2, 3),
                    cache(4),
                    cache(5),
                    tensor(&[2], LENGTHS.map(|n| n - 1).into_iter()),
                    tensor(&[1], [LENGTHS[0]].into_iter()),
                ];
                let attributes = [
                    ("num_heads", Attribute::Int(4)),
                    ("kv_num_heads", Attribute::Int(2)),
                    ("local_window_size", Attribute::Int(window)),
                ];
                let Some(out) = both_in("com.microsoft", "GroupQueryAttention", 1, &attributes, &inputs, 3)
                else {
                    return;
                };
                out.assert_close(&format!("{ty} heads of {size}, window {window}"), tolerance(ty));
            }
        }
    }
}

/// Caches of two samples for so many keys, of `[heads, rows, size]`. Nobody has written the last key and what is behind it: no numbers.
fn cache(ty: ElementType, shape: [usize; 3], lengths: [i32; 2], seed: u32) -> Option<Value> {
    let [heads, rows, size] = shape;
    let shape = [2, heads, rows, size];
    let written = between(ty, &shape, [-1.0, 1.0], seed)?;
    let elements = numbers(written.as_tensor()?).into_iter().enumerate().map(|(i, x)| {
        let (sample, row) = (i / (heads * rows * size), i / size % rows);
        if row + 1 < lengths[sample] as usize { x } else { f64::NAN }
    });
    match ty {
        ElementType::F16 => tensor(&shape, elements.map(f16::from_f64)),
        _ => tensor(&shape, elements.map(bf16::from_f64)),
    }
}

#[test]
fn one_query_along_parts_of_caches() {
    // Room of the caches, and keys of two samples: in one part, in several, in more than workgroups beside each other join.
    const CASES: [(usize, [i32; 2]); 6] = [
        (64, [1, 64]),
        (600, [513, 70]),
        (2300, [2300, 1025]),
        (3200, [3072, 3073]),
        (3200, [100, 1537]),
        (5000, [4999, 4097]),
    ];
    for (i, (room, lengths)) in CASES.into_iter().enumerate() {
        for ty in TYPES {
            for size in [64, 128] {
                let numbers = |heads: usize, seed| between(ty, &[2, 1, heads * size], [-1.0, 1.0], seed);
                let cache = |seed| cache(ty, [2, room, size], lengths, seed);
                let inputs = [
                    numbers(8, 1),
                    numbers(2, 2),
                    numbers(2, 3),
                    cache(4),
                    cache(5),
                    tensor(&[2], lengths.map(|n| n - 1).into_iter()),
                    tensor(&[1], lengths.into_iter().max().into_iter()),
                ];
                let attributes = [("num_heads", Attribute::Int(8)), ("kv_num_heads", Attribute::Int(2))];
                let (domain, name) = ("com.microsoft", "GroupQueryAttention");
                let Some(out) = both_in(domain, name, 1, &attributes, &inputs, 3) else { return };
                out.assert_close(&format!("case {i}: {ty} heads of {size}"), tolerance(ty));
                // As between chains of products, where keys come through rings.
                let Some(out) = both_with(domain, name, 1, &attributes, &inputs, &[6]) else { return };
                out.assert_close(&format!("case {i}: {ty} heads of {size}, behind a chain"), tolerance(ty));
            }
        }
    }
}

#[test]
fn one_query_through_rings() {
    struct Step {
        /// Of queries and of keys, and their size.
        heads: [usize; 3],
        window: i64,
        softcap: f32,
        /// Of the caches, and keys of two samples.
        room: usize,
        lengths: [i32; 2],
    }
    const PLAIN: Step =
        Step { heads: [8, 2, 80], window: -1, softcap: 0.0, room: 1000, lengths: [1000, 130] };
    const CASES: [Step; 9] = [
        PLAIN,
        // Clusters of 4, 2 and 1 workgroups on a device of 132 processors, and keys behind what a ring has room for.
        Step { heads: [40, 10, 64], room: 700, lengths: [650, 257], ..PLAIN },
        Step { heads: [80, 20, 128], room: 900, lengths: [899, 400], ..PLAIN },
        Step { heads: [150, 50, 64], room: 900, lengths: [900, 513], ..PLAIN },
        Step { heads: [8, 2, 96], window: 300, lengths: [993, 301], ..PLAIN },
        Step { heads: [12, 3, 72], softcap: 2.0, room: 2100, lengths: [2051, 129], ..PLAIN },
        Step { heads: [8, 2, 40], window: 1500, room: 4100, lengths: [4100, 1501], ..PLAIN },
        // More rows than a workgroup has.
        Step { heads: [24, 2, 64], room: 3000, lengths: [2999, 1], ..PLAIN },
        Step { heads: [12, 1, 128], window: 1000, softcap: 3.0, room: 3000, lengths: [2500, 1017] },
    ];
    for (i, Step { heads: [heads, kv_heads, size], window, softcap, room, lengths }) in
        CASES.into_iter().enumerate()
    {
        for ty in TYPES {
            let numbers = |heads: usize, seed| between(ty, &[2, 1, heads * size], [-1.0, 1.0], seed);
            let cache = |seed| cache(ty, [kv_heads, room, size], lengths, seed);
            let inputs = [
                numbers(heads, 1),
                numbers(kv_heads, 2),
                numbers(kv_heads, 3),
                cache(4),
                cache(5),
                tensor(&[2], lengths.map(|n| n - 1).into_iter()),
                tensor(&[1], lengths.into_iter().max().into_iter()),
            ];
            let attributes = [
                ("num_heads", Attribute::Int(heads as i64)),
                ("kv_num_heads", Attribute::Int(kv_heads as i64)),
                ("local_window_size", Attribute::Int(window)),
                ("softcap", Attribute::Float(softcap)),
            ];
            let (domain, name) = ("com.microsoft", "GroupQueryAttention");
            let Some(out) = both_with(domain, name, 1, &attributes, &inputs, &[6]) else { return };
            out.assert_close(&format!("case {i}: {ty}"), tolerance(ty));
            let Some(provider) = provider(&[]).filter(|provider| provider.unit().tensor_maps) else {
                continue;
            };
            let node = node(domain, name, 1, &attributes, &inputs, 1);
            let plan = planned_with(&provider, &node, &inputs, &out.cpu, &[6]).unwrap();
            let kernel = format!("flash_decode_{}_ring", if size > 64 { 128 } else { 64 });
            assert_eq!(plan.params_of(&kernel).len(), 1, "case {i}: {ty} by {kernel}");
        }
    }
}
