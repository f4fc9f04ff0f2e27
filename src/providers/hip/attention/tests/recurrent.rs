//! Linear-time sequence models on a device against the CPU.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::super::testing::both_in;
use super::super::super::testing::data::{between, tolerance};

const ALL: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::BF16];

#[derive(Clone, Copy)]
struct Linear {
    domain: &'static str,
    rule: &'static str,
    /// Batches and positions.
    size: [usize; 2],
    /// Heads of queries, of keys, of values.
    heads: [usize; 3],
    d_k: usize,
    d_v: usize,
    past: bool,
    state: ElementType,
    /// Whether each row of a state decays by itself, and whether heads share a rate.
    own_decay: bool,
    one_rate: bool,
    outputs: usize,
}

const PLAIN: Linear = Linear {
    domain: "com.microsoft",
    rule: "gated_delta",
    size: [2, 5],
    heads: [2, 2, 2],
    d_k: 8,
    d_v: 12,
    past: true,
    state: ElementType::F32,
    own_decay: false,
    one_rate: false,
    outputs: 2,
};

impl Linear {
    fn check(&self, what: &str, ty: ElementType) {
        let &Linear { size: [batch, steps], heads: [q_heads, k_heads, heads], d_k, d_v, .. } = self;
        let opset = if self.domain.is_empty() { 27 } else { 1 };
        let (gated, delta) = (self.rule.starts_with("gated"), self.rule.ends_with("delta"));
        let x = |columns: usize, range: [f32; 2], seed| between(ty, &[batch, steps, columns], range, seed);
        let around = |size: usize| [-0.7, 0.7].map(|x: f32| x / (size as f32).sqrt().max(1.0));
        let inputs = [
            x(q_heads * d_k, [-1.0, 1.0], 1),
            x(k_heads * d_k, around(d_k / 4), 2),
            x(heads * d_v, [-1.0, 1.0], 3),
            if self.past { between(self.state, &[batch, heads, d_k, d_v], [-1.0, 1.0], 4) } else { None },
            if gated { x(if self.own_decay { heads * d_k } else { heads }, [-1.0, 0.0], 5) } else { None },
            if delta { x(if self.one_rate { 1 } else { heads }, [0.1, 0.9], 6) } else { None },
        ];
        let attributes = [
            ("q_num_heads", Attribute::Int(q_heads as i64)),
            ("kv_num_heads", Attribute::Int(heads as i64)),
            ("update_rule", Attribute::String(self.rule.as_bytes().to_vec())),
        ];
        let out = both_in(self.domain, "LinearAttention", opset, &attributes, &inputs, self.outputs);
        if let Some(out) = out {
            out.assert_close(
                &format!("LinearAttention {what} {ty}"),
                tolerance(ty).max(tolerance(self.state)) * 2.0,
            );
        }
    }
}

#[test]
fn linear_attention() {
    let rules = ["linear", "gated", "delta", "gated_delta"];
    for (rule, ty) in rules.into_iter().flat_map(|rule| ALL.map(|ty| (rule, ty))) {
        Linear { rule, ..PLAIN }.check(rule, ty);
        Linear { rule, domain: "", past: false, outputs: 1, ..PLAIN }.check("of the standard", ty);
    }
    let large = Linear { size: [1, 3], d_k: 300, d_v: 20, own_decay: true, ..PLAIN };
    let cases = [
        ("one position", Linear { size: [3, 1], d_k: 64, d_v: 64, ..PLAIN }),
        ("no position", Linear { size: [2, 0], ..PLAIN }),
        ("heads share queries", Linear { heads: [2, 2, 6], ..PLAIN }),
        ("heads share keys", Linear { heads: [2, 1, 4], d_v: 33, ..PLAIN }),
        ("heads share states", Linear { heads: [6, 2, 2], own_decay: true, ..PLAIN }),
        ("one rate", Linear { one_rate: true, ..PLAIN }),
        ("full registers", Linear { d_k: 256, d_v: 17, ..PLAIN }),
        ("states in memory", large),
        ("shared states in memory", Linear { heads: [4, 2, 2], rule: "gated", past: false, ..large }),
        ("long", Linear { size: [1, 90], d_k: 32, d_v: 16, past: false, ..PLAIN }),
        ("a state alone", Linear { state: ElementType::F16, d_k: 1, d_v: 1, ..PLAIN }),
        ("columns alone", Linear { state: ElementType::BF16, d_k: 16, d_v: 48, ..PLAIN }),
    ];
    for (what, case) in cases {
        case.check(what, ElementType::F32);
    }
    Linear { state: ElementType::BF16, size: [2, 20], d_k: 40, ..PLAIN }
        .check("short floats", ElementType::BF16);
}

#[test]
fn causal_convolution() {
    let check =
        |what: &str, domain, shape: &[usize], kernel: usize, dilation: usize, last: bool, more: [bool; 3]| {
            let [bias, past, silu] = more;
            for ty in ALL {
                let channels = if last { shape[2..].iter().product() } else { shape[1] };
                let state = (kernel - 1) * dilation;
                let mut past_shape = shape.to_vec();
                past_shape[if last { 1 } else { 2 }] = state;
                let inputs = [
                    between(ty, shape, [-1.0, 1.0], 1),
                    between(ty, &[channels, 1, kernel], [-1.0, 1.0], 2),
                    if bias { between(ty, &[channels], [-1.0, 1.0], 3) } else { None },
                    if past { between(ty, &past_shape, [-1.0, 1.0], 4) } else { None },
                ];
                let activation = if silu { "silu" } else { "none" };
                let mut attributes = vec![("activation", Attribute::String(activation.as_bytes().to_vec()))];
                if domain == "com.microsoft" {
                    attributes.push(("dilation", Attribute::Int(dilation as i64)));
                    attributes.push(("channels_last", Attribute::Int(last.into())));
                }
                let opset = if domain == "com.microsoft" { 1 } else { 27 };
                for outputs in [1, 2] {
                    if let Some(out) =
                        both_in(domain, "CausalConvWithState", opset, &attributes, &inputs, outputs)
                    {
                        out.assert_close(&format!("CausalConvWithState {what} {ty}"), tolerance(ty));
                    }
                }
            }
        };
    let ms = "com.microsoft";
    check("plain", "", &[2, 3, 9], 4, 1, false, [true, true, true]);
    check("without past", "", &[2, 3, 9], 4, 1, false, [false, false, false]);
    check("one position", ms, &[2, 40, 1], 4, 1, false, [true, true, true]);
    check("a kernel of one", ms, &[2, 3, 5], 1, 1, false, [true, true, false]);
    check("shorter than its state", ms, &[1, 3, 2], 4, 3, false, [true, true, false]);
    check("dilated", ms, &[1, 70, 20], 3, 2, false, [false, true, true]);
    check("channels last", ms, &[2, 7, 3, 5], 4, 1, true, [true, true, true]);
    check("channels last, short", ms, &[2, 1, 300], 4, 2, true, [true, true, false]);
    check("channels last without past", ms, &[2, 7, 6], 3, 1, true, [false, false, true]);
    check("nothing", ms, &[0, 3, 5], 3, 1, false, [true, true, true]);
}
