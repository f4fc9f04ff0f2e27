//! com.microsoft's attention operators on a device against the CPU's.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Value};

use super::super::super::testing::both_in;
use super::super::super::testing::data::{mixed, tensor, tolerance};

const ALL: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];
const TWO: [ElementType; 2] = [ElementType::F32, ElementType::F16];

fn attributes(given: &[(&'static str, f32)]) -> Vec<(&'static str, Attribute)> {
    let floats = ["scale", "softcap", "mask_filter_value", "qk_norm_epsilon"];
    let attribute =
        |x: f32, name| if floats.contains(name) { Attribute::Float(x) } else { Attribute::Int(x as i64) };
    given.iter().map(|(name, x)| (*name, attribute(*x, name))).collect()
}

fn i32s(shape: &[usize], elements: &[i32]) -> Option<Value> {
    tensor(shape, elements.iter().copied())
}

/// Zeros and ones.
fn ones(shape: &[usize]) -> Option<Value> {
    tensor(shape, (0..shape.iter().product()).map(|i| i32::from(i % 5 != 3 && i % 7 != 4)))
}

fn check(
    what: &str,
    ty: ElementType,
    name: &str,
    given: &[(&'static str, f32)],
    inputs: &[Option<Value>],
    outputs: usize,
) {
    if let Some(out) = both_in("com.microsoft", name, 1, &attributes(given), inputs, outputs) {
        out.assert_close(&format!("{name} {ty} {what}"), tolerance(ty));
    }
}

/// A GroupQueryAttention of two samples.
#[derive(Clone, Copy)]
struct Grouped {
    heads: [usize; 2],
    size: usize,
    rows: usize,
    /// Room in the caches of the past; `None` where they are not given.
    past: Option<usize>,
    /// Keys of each sample, and of the longest.
    lengths: [i32; 2],
    total: i32,
    packed: bool,
    /// Whether neighbours are pairs, where the operator rotates.
    rotary: Option<bool>,
    more: &'static [(&'static str, f32)],
}

impl Grouped {
    fn inputs(&self, ty: ElementType) -> Vec<Option<Value>> {
        let Grouped { heads: [heads, kv_heads], size, rows, .. } = *self;
        let kv = || if self.packed { None } else { mixed(ty, &[2, rows, kv_heads * size]) };
        let columns = if self.packed { heads + 2 * kv_heads } else { heads } * size;
        let past = || mixed(ty, &[2, kv_heads, self.past?, size]);
        // Part of a head stays as it is.
        let cache = || self.rotary.and_then(|_| mixed(ty, &[300, size / 2 - usize::from(size > 8)]));
        let last = i32s(&[2], &self.lengths.map(|n| n - 1));
        let q = mixed(ty, &[2, rows, columns]);
        vec![q, kv(), kv(), past(), past(), last, i32s(&[], &[self.total]), cache(), cache()]
    }

    fn attributes(&self) -> Vec<(&'static str, f32)> {
        let mut given = vec![("num_heads", self.heads[0] as f32), ("kv_num_heads", self.heads[1] as f32)];
        if let Some(interleaved) = self.rotary {
            given.extend([("do_rotary", 1.0), ("rotary_interleaved", f32::from(u8::from(interleaved)))]);
        }
        given.extend(self.more);
        given
    }
}

const PROMPT: Grouped = Grouped {
    heads: [4, 4],
    size: 16,
    rows: 5,
    past: None,
    lengths: [5, 5],
    total: 5,
    packed: false,
    rotary: None,
    more: &[],
};

#[test]
fn grouped_queries_with_caches() {
    let step = Grouped { rows: 1, past: Some(5), lengths: [6, 4], total: 6, ..PROMPT };
    let far = Grouped { heads: [8, 2], size: 32, past: Some(130), lengths: [131, 77], total: 131, ..step };
    let cases: &[(&str, &[ElementType], Grouped)] = &[
        ("prompt", &ALL, PROMPT),
        ("empty cache", &TWO, Grouped { past: Some(0), ..PROMPT }),
        ("room", &TWO, Grouped { past: Some(9), lengths: [5, 3], rotary: Some(false), ..PROMPT }),
        ("packed", &ALL, Grouped { heads: [8, 2], packed: true, rotary: Some(false), ..PROMPT }),
        ("step", &ALL, Grouped { rotary: Some(false), ..step }),
        ("shared", &TWO, Grouped { past: Some(12), rotary: Some(true), packed: true, ..step }),
        ("far", &ALL, Grouped { rotary: Some(false), ..far }),
        ("group of 8", &TWO, Grouped { heads: [8, 1], packed: true, ..far }),
        ("group of 12", &TWO, Grouped { heads: [12, 1], ..far }),
        ("window", &TWO, Grouped { more: &[("local_window_size", 9.0), ("softcap", 3.0)], ..far }),
        // More rows than one after a past; the tail of a long prompt; odd sizes.
        ("rows", &TWO, Grouped { rows: 20, lengths: [131, 77], rotary: Some(true), ..far }),
        ("odd", &ALL, Grouped { heads: [6, 3], size: 10, rotary: Some(true), ..step }),
        ("long", &TWO, Grouped { heads: [4, 1], rows: 70, lengths: [70, 33], total: 70, size: 64, ..PROMPT }),
        (
            "very far",
            &TWO,
            Grouped { past: Some(1100), lengths: [1101, 900], total: 1101, rotary: None, ..far },
        ),
        (
            "large heads",
            &[ElementType::F16, ElementType::BF16],
            Grouped { heads: [8, 2], size: 128, past: Some(300), lengths: [301, 130], total: 301, ..far },
        ),
        ("sink of zero", &TWO, Grouped { more: &[("smooth_softmax", 1.0)], ..far }),
        ("both ways", &TWO, Grouped { more: &[("causal", 0.0), ("scale", 0.4)], ..PROMPT }),
    ];
    for (what, types, case) in cases {
        for &ty in *types {
            check(what, ty, "GroupQueryAttention", &case.attributes(), &case.inputs(ty), 3);
        }
    }
    for ty in TWO {
        // Without outputs for the caches.
        check("y alone", ty, "GroupQueryAttention", &far.attributes(), &far.inputs(ty), 1);
        // Positions, a bias, sinks, scores, normalised queries and keys.
        for more in [&[("qk_output", 1.0)], &[("qk_output", 2.0)]] {
            let case = Grouped { rotary: Some(false), more, ..step };
            let mut inputs = case.inputs(ty);
            inputs.extend([
                tensor(&[2, 1], [7i64, 2].into_iter()),
                mixed(ty, &[2, 1, 1, 6]),
                mixed(ty, &[4]),
            ]);
            inputs.extend([None, None, mixed(ty, &[16]), mixed(ty, &[16])]);
            check("everything", ty, "GroupQueryAttention", &case.attributes(), &inputs, 4);
        }
    }
}

#[test]
fn many_heads() {
    let heads = [("num_heads", 4.0), ("scale", 0.2)];
    let causal = [("num_heads", 4.0), ("unidirectional", 1.0)];
    for ty in ALL {
        let x = |shape: &[usize]| mixed(ty, shape);
        let row = || x(&[2, 5, 48]);
        let name = "MultiHeadAttention";
        check("plain", ty, name, &heads, &[x(&[2, 3, 48]), row(), x(&[2, 5, 40])], 4);
        let past = || x(&[2, 4, 6, 12]);
        let inputs = [row(), row(), row(), x(&[144]), ones(&[2, 11]), None, past(), past()];
        check("bias, mask, past", ty, name, &causal, &inputs, 4);
        let inputs = [row(), row(), row(), None, None, x(&[1, 4, 5, 5])];
        check("attention bias", ty, name, &heads, &inputs, 1);
        if ty != ElementType::F64 {
            let inputs = [row(), row(), row(), None, ones(&[2, 5, 5]), x(&[1, 4, 5, 5])];
            check("mask and attention bias", ty, name, &heads, &inputs, 1);
        }
    }
    for ty in TWO {
        let x = |shape: &[usize]| mixed(ty, shape);
        let name = "MultiHeadAttention";
        check("one tensor of three", ty, name, &heads, &[x(&[2, 5, 4, 3, 12])], 3);
        check("three in a row", ty, name, &heads, &[x(&[2, 5, 144]), None, None, x(&[144])], 1);
        check("one tensor of two", ty, name, &heads, &[x(&[2, 3, 48]), x(&[2, 5, 4, 2, 12])], 1);
        let cached = || x(&[2, 4, 7, 12]);
        let inputs = [x(&[2, 3, 48]), cached(), cached(), x(&[144])];
        check("cross attention", ty, name, &heads, &inputs, 1);
        // A shared buffer, of which a part is filled.
        let past = || x(&[2, 4, 9, 12]);
        let row = || x(&[2, 2, 48]);
        let inputs = [row(), row(), row(), None, ones(&[2, 7]), None, past(), past(), i32s(&[1], &[5])];
        check("shared", ty, name, &causal, &inputs, 3);
        // Enough rows for one launch.
        let row = || x(&[2, 70, 256]);
        let inputs = [row(), row(), row(), x(&[768]), ones(&[2, 70])];
        check("long", ty, name, &heads, &inputs, 1);
        let (name, one) = ("DecoderMaskedMultiHeadAttention", || x(&[2, 1, 48]));
        let shared = [("num_heads", 4.0), ("past_present_share_buffer", 1.0)];
        let mut inputs = vec![one(), one(), one(), None, None, past(), past(), i32s(&[1], &[3]), None, None];
        inputs.push(x(&[144]));
        check("one row", ty, name, &shared, &inputs, 3);
    }
}

#[test]
fn projections() {
    let heads = [("num_heads", 4.0), ("scale", 0.1)];
    let causal = [("num_heads", 4.0), ("scale", 0.1), ("unidirectional", 1.0)];
    for ty in ALL {
        let x = |shape: &[usize]| mixed(ty, shape);
        let inputs = || vec![x(&[2, 5, 24]), x(&[24, 96]), x(&[96])];
        let name = "Attention";
        check("present", ty, name, &heads, &inputs(), 2);
        let masks = [
            ("ends", i32s(&[2], &[3, 5])),
            ("ranges", i32s(&[4], &[4, 5, 1, 2])),
            ("lengths", i32s(&[8], &[2, 3, 0, 2, 5, 0, 2, 5])),
            ("keys", ones(&[2, 5])),
            ("queries and keys", ones(&[2, 5, 5])),
            ("largest", ones(&[2, 1, 9, 9])),
        ];
        for (what, mask) in masks {
            let mut inputs = inputs();
            inputs.push(mask);
            check(what, ty, name, &heads, &inputs, 1);
        }
        let past = || x(&[2, 2, 4, 3, 8]);
        let mut with_past = inputs();
        with_past.extend([ones(&[2, 8]), past()]);
        check("past and mask", ty, name, &causal, &with_past, 2);
    }
    for ty in TWO {
        let x = |shape: &[usize]| mixed(ty, shape);
        let name = "Attention";
        // A shared buffer, of which a part is filled; nothing but the result is wanted.
        let shared = [("num_heads", 4.0), ("unidirectional", 1.0), ("past_present_share_buffer", 1.0)];
        let mut inputs = vec![x(&[2, 2, 24]), x(&[24, 96]), x(&[96]), None, x(&[2, 2, 4, 9, 8]), None];
        inputs.push(i32s(&[1], &[6]));
        for outputs in [1, 2] {
            check("shared", ty, name, &shared, &inputs, outputs);
        }
        let bias =
            [x(&[2, 40, 24]), x(&[24, 192]), x(&[192]), i32s(&[2], &[31, 40]), None, x(&[1, 4, 40, 40])];
        check("long", ty, name, &heads, &bias, 1);
    }
}
