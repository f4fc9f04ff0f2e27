//! Caches of 8 and 4 bits on a device against the CPU's; python/tests/test_quantized_caches.py has other references.

use crate::graph::Attribute;
use crate::tensor::{ElementType, F8E4M3FN, Value};

use super::super::super::testing::data::{mixed, tensor, tolerance};
use super::super::super::testing::{both_in, node, on_cpu, planned, provider};

const KINDS: [ElementType; 3] = [ElementType::I8, ElementType::U8, ElementType::F8E4M3FN];
const FLOATS: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::BF16];

/// Two samples of GroupQueryAttention.
#[derive(Clone, Copy)]
struct Case {
    kept: ElementType,
    /// Heads, and those of keys.
    heads: [usize; 2],
    size: usize,
    rows: usize,
    /// Room in the caches of the past; `None` where they are not given.
    past: Option<usize>,
    lengths: [i32; 2],
    per_channel: bool,
    outputs: usize,
    normalised: bool,
    /// Whether neighbours are pairs, where the operator rotates.
    rotary: Option<bool>,
    sinks: bool,
    more: &'static [(&'static str, f32)],
}

impl Case {
    fn inputs(&self, ty: ElementType) -> Vec<Option<Value>> {
        let &Case { kept, heads: [heads, kv_heads], size, rows, lengths, .. } = self;
        let total = lengths.into_iter().max();
        let past = |seed: usize| {
            let columns = if kept == ElementType::U8 { size / 2 } else { size };
            let shape = [2, kv_heads, self.past?, columns];
            let numbers = (0..shape.iter().product()).map(move |i: usize| (i * 37 + i / 251 + seed) as u8);
            match kept {
                ElementType::U8 => tensor(&shape, numbers),
                ElementType::I8 => tensor(&shape, numbers.map(|x| x as i8)),
                // No infinities and no NaN.
                _ => tensor(&shape, numbers.map(|x| F8E4M3FN(x & 0x9f | 0x20))),
            }
        };
        let scales = |seed: usize| {
            let count = if self.per_channel { kv_heads * size } else { 1 };
            tensor(&[count], (0..count).map(move |i| 0.01 + ((i + seed) % 7) as f32 * 0.003))
        };
        let weight = || if self.normalised { mixed(ty, &[size]) } else { None };
        // Part of a head stays as it is.
        let angles = || self.rotary.and_then(|_| mixed(ty, &[800, size / 2 - 1]));
        let mut inputs: Vec<Option<Value>> = vec![
            mixed(ty, &[2, rows, heads * size]),
            mixed(ty, &[2, rows, kv_heads * size]),
            mixed(ty, &[2, rows, kv_heads * size]),
            past(3),
            past(50),
            tensor(&[2], lengths.into_iter().map(|n| n - 1)),
            tensor(&[], total.into_iter()),
            angles(),
            angles(),
            None,
            None,
            if self.sinks { mixed(ty, &[heads]) } else { None },
        ];
        inputs.extend([scales(0), scales(4), weight(), weight()]);
        inputs
    }

    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let kind = if self.per_channel { "PER_CHANNEL" } else { "PER_TENSOR" };
        let kind = || Attribute::String(kind.as_bytes().to_vec());
        let mut given = vec![
            ("num_heads", Attribute::Int(self.heads[0] as i64)),
            ("kv_num_heads", Attribute::Int(self.heads[1] as i64)),
            ("kv_cache_bit_width", Attribute::Int(if self.kept == ElementType::U8 { 4 } else { 8 })),
            ("k_quant_type", kind()),
            ("v_quant_type", kind()),
        ];
        if let Some(interleaved) = self.rotary {
            let flag = |x| Attribute::Int(i64::from(x));
            given.extend([("do_rotary", flag(true)), ("rotary_interleaved", flag(interleaved))]);
        }
        given.extend(self.more.iter().map(|&(name, x)| match name {
            "local_window_size" => (name, Attribute::Int(x as i64)),
            _ => (name, Attribute::Float(x)),
        }));
        given
    }

    fn check(&self, what: &str, ty: ElementType) {
        let (attributes, inputs) = (self.attributes(), self.inputs(ty));
        let found = both_in("com.microsoft", "GroupQueryAttention", 1, &attributes, &inputs, self.outputs);
        if let Some(out) = found {
            out.assert_close(&format!("{what}, {} beside {ty}", self.kept), tolerance(ty));
        }
    }

    /// The kernels that the node may launch, and the bytes of its temporary memory, where there is a device.
    fn planned(&self, ty: ElementType) -> Option<(Vec<&'static str>, usize)> {
        let provider = provider(&[])?;
        let inputs = self.inputs(ty);
        let node = node("com.microsoft", "GroupQueryAttention", 1, &self.attributes(), &inputs, self.outputs);
        let plan = planned(&provider, &node, &inputs, &on_cpu(&node, &inputs)).expect("a plan");
        Some((plan.kernel_names(), plan.scratch))
    }
}

const STEP: Case = Case {
    kept: ElementType::I8,
    heads: [4, 2],
    size: 32,
    rows: 1,
    past: Some(140),
    lengths: [140, 77],
    per_channel: true,
    outputs: 3,
    normalised: false,
    rotary: None,
    sinks: false,
    more: &[],
};

#[test]
fn quantized_caches() {
    let cases = [
        ("step", STEP),
        ("one scale", Case { per_channel: false, ..STEP }),
        ("y alone", Case { outputs: 1, ..STEP }),
        ("several rows", Case { rows: 20, ..STEP }),
        ("odd size", Case { size: 10, rows: 2, ..STEP }),
        ("prompt", Case { past: Some(9), rows: 5, lengths: [5, 3], ..STEP }),
        ("no past", Case { past: None, rows: 6, lengths: [6, 6], ..STEP }),
        ("normalised", Case { normalised: true, rows: 2, ..STEP }),
    ];
    for (what, case) in cases {
        for kept in KINDS {
            if case.past.is_none() && kept == ElementType::F8E4M3FN {
                // The type of the past says that it is float8.
                continue;
            }
            // Sums of squares in another order may make a half-precision number its neighbour, and so what is kept.
            for ty in FLOATS.into_iter().take(if case.normalised { 1 } else { 3 }) {
                Case { kept, ..case }.check(what, ty);
            }
        }
    }
}

/// Steps whose caches are read as they are.
#[test]
fn quantized_caches_of_steps() {
    let window = &[("local_window_size", 50.0), ("softcap", 3.0)];
    let far = Case { past: Some(701), lengths: [701, 430], ..STEP };
    let cases = [
        ("one row", Case { heads: [2, 2], ..STEP }),
        ("wide heads", Case { size: 128, ..STEP }),
        ("widest heads", Case { size: 256, heads: [3, 1], ..STEP }),
        // Of 4 bits the first of them becomes numbers before.
        ("lanes without columns", Case { size: 80, ..STEP }),
        ("two lanes without columns", Case { size: 96, ..STEP }),
        ("six rows of a head", Case { heads: [6, 1], size: 64, ..STEP }),
        ("rows of two queries", Case { heads: [6, 2], size: 64, rows: 2, ..STEP }),
        ("far", Case { heads: [8, 2], size: 64, ..far }),
        ("rotated", Case { rotary: Some(false), sinks: true, ..far }),
        ("pairs of neighbours", Case { rotary: Some(true), per_channel: false, rows: 3, ..far }),
        ("window", Case { more: window, sinks: true, ..far }),
        ("window of rows", Case { more: window, rows: 3, ..far }),
    ];
    for (what, case) in cases {
        for kept in KINDS {
            // Rotations of half-precision numbers may be rounded otherwise, and so what is kept.
            for ty in FLOATS.into_iter().take(if case.rotary.is_some() { 1 } else { 3 }) {
                Case { kept, ..case }.check(what, ty);
            }
        }
    }
}

/// No copy as numbers is made for few queries: no kernel that reads one is launched, and there is no memory for it.
#[test]
fn few_queries_read_quantized_caches() {
    let step = Case { past: Some(2000), lengths: [2000, 30], size: 64, ..STEP };
    let copy = 2 * 2 * 2 * 2000 * 64 * 4;
    for kept in KINDS {
        let Some((names, scratch)) = (Case { kept, ..step }).planned(ElementType::F32) else { return };
        // In place, and for a cache that is another one afterwards.
        let (one, three) = ("flash_decode_quantized", ["heads_f32", "quantized_cache_f32"]);
        assert_eq!(names, [one, three[0], three[1], one], "{kept}");
        assert!(scratch < copy / 2, "{kept}: {scratch}");
        let found = (Case { kept, rows: 2, ..step }).planned(ElementType::F32).expect("a plan");
        assert_eq!(found.0, [three[0], three[1], one, three[0], three[1], one], "{kept}");
        assert!(found.1 < copy / 2, "{kept}: {}", found.1);
        let many = (Case { kept, rows: 20, ..step }).planned(ElementType::F32).expect("a plan");
        assert!(!many.0.contains(&one) && many.1 >= copy, "{kept}: {many:?}");
    }
}

/// What is not a number in a cache of floats is none in the result either: in a value its column, in a key all columns.
#[test]
fn quantized_caches_keep_nan() {
    let case = Case { kept: ElementType::F8E4M3FN, size: 64, ..STEP };
    let shape = [2, 2, 140, 64];
    // Of the first sample's four heads two share each head of keys.
    let whole: Vec<usize> = (0..128).collect();
    for (cache, nan, expected) in [
        (4, &[5, 64 * 70 + 18, 64 * 140 + 63][..], &[5, 18, 64 + 5, 64 + 18, 128 + 63, 192 + 63][..]),
        (3, &[64 * 70 + 18], &whole),
    ] {
        let mut inputs = case.inputs(ElementType::F32);
        let codes = (0..shape.iter().product()).map(|i: usize| match nan.contains(&i) {
            true => F8E4M3FN(if i.is_multiple_of(2) { 0x7f } else { 0xff }),
            false => F8E4M3FN((i % 0x7f) as u8),
        });
        inputs[cache] = tensor(&shape, codes);
        let found = both_in("com.microsoft", "GroupQueryAttention", 1, &case.attributes(), &inputs, 1);
        let Some(out) = found else { return };
        let y = out.device[0].view();
        let none: Vec<usize> = (0..256).filter(|&i| y.slice::<f32>()[i].is_nan()).collect();
        assert_eq!(none, expected);
        out.assert_close("NaN in a cache", tolerance(ElementType::F32));
    }
}
