//! Caches of 8 and 4 bits on a device against the CPU's; python/tests/test_quantized_caches.py has other references.

use crate::graph::Attribute;
use crate::tensor::{ElementType, F8E4M3FN, Value};

use super::super::super::testing::both_in;
use super::super::super::testing::data::{mixed, tensor, tolerance};

/// Two samples of GroupQueryAttention: 4 heads share 2 of keys.
#[derive(Clone, Copy)]
struct Case {
    kept: ElementType,
    size: usize,
    rows: usize,
    /// Room in the caches of the past; `None` where they are not given.
    past: Option<usize>,
    lengths: [i32; 2],
    per_channel: bool,
    outputs: usize,
    normalised: bool,
}

impl Case {
    fn check(&self, what: &str, ty: ElementType) {
        let &Case { kept, size, rows, lengths, .. } = self;
        let total = lengths.into_iter().max();
        let bits: usize = if kept == ElementType::U8 { 4 } else { 8 };
        let past = |seed: usize| {
            let shape = [2, 2, self.past?, size * bits / 8];
            let numbers = (0..shape.iter().product()).map(move |i: usize| (i * 37 + seed) as u8);
            match kept {
                ElementType::U8 => tensor(&shape, numbers),
                ElementType::I8 => tensor(&shape, numbers.map(|x| x as i8)),
                // No infinities and no NaN.
                _ => tensor(&shape, numbers.map(|x| F8E4M3FN(x & 0x9f | 0x20))),
            }
        };
        let scales = |seed: usize| {
            let count = if self.per_channel { 2 * size } else { 1 };
            tensor(&[count], (0..count).map(move |i| 0.01 + ((i + seed) % 7) as f32 * 0.003))
        };
        let weight = || if self.normalised { mixed(ty, &[size]) } else { None };
        let kind = if self.per_channel { "PER_CHANNEL" } else { "PER_TENSOR" };
        let mut inputs: Vec<Option<Value>> = vec![
            mixed(ty, &[2, rows, 4 * size]),
            mixed(ty, &[2, rows, 2 * size]),
            mixed(ty, &[2, rows, 2 * size]),
            past(3),
            past(50),
            tensor(&[2], lengths.into_iter().map(|n| n - 1)),
            tensor(&[], total.into_iter()),
        ];
        inputs.resize(12, None);
        inputs.extend([scales(0), scales(4), weight(), weight()]);
        let attributes = [
            ("num_heads", Attribute::Int(4)),
            ("kv_num_heads", Attribute::Int(2)),
            ("kv_cache_bit_width", Attribute::Int(bits as i64)),
            ("k_quant_type", Attribute::String(kind.as_bytes().to_vec())),
            ("v_quant_type", Attribute::String(kind.as_bytes().to_vec())),
        ];
        let found = both_in("com.microsoft", "GroupQueryAttention", 1, &attributes, &inputs, self.outputs);
        if let Some(out) = found {
            out.assert_close(&format!("{what}, {kept} beside {ty}"), tolerance(ty));
        }
    }
}

#[test]
fn quantized_caches() {
    let step = Case {
        kept: ElementType::I8,
        size: 32,
        rows: 1,
        past: Some(140),
        lengths: [140, 77],
        per_channel: true,
        outputs: 3,
        normalised: false,
    };
    let cases = [
        ("step", step),
        ("one scale", Case { per_channel: false, ..step }),
        ("y alone", Case { outputs: 1, ..step }),
        ("several rows", Case { rows: 20, ..step }),
        ("odd size", Case { size: 10, rows: 2, ..step }),
        ("prompt", Case { past: Some(9), rows: 5, lengths: [5, 3], ..step }),
        ("no past", Case { past: None, rows: 6, lengths: [6, 6], ..step }),
        ("normalised", Case { normalised: true, rows: 2, ..step }),
    ];
    for (what, case) in cases {
        for kept in [ElementType::I8, ElementType::U8, ElementType::F8E4M3FN] {
            if case.past.is_none() && kept == ElementType::F8E4M3FN {
                // The type of the past says that it is float8.
                continue;
            }
            // Sums of squares in another order may make a half-precision number its neighbour, and so what is kept.
            let types = if case.normalised { 1 } else { 3 };
            for ty in [ElementType::F32, ElementType::F16, ElementType::BF16].into_iter().take(types) {
                Case { kept, ..case }.check(what, ty);
            }
        }
    }
}
