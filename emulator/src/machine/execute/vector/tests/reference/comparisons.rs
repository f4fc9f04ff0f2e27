//! Comparisons: a bit for each lane.

use super::rounding::power;
use super::{In, Reference, rows};

type Answer = fn(In) -> (u64, bool);

pub fn references() -> Vec<Reference> {
    [of_integers(), of_floats(), classes()].concat()
}

fn of_integers() -> Vec<Reference> {
    /// A pair of integers by their type.
    fn of(x: In, ty: u8) -> (i128, i128) {
        match ty {
            0 => (x.i16(0), x.i16(1)),
            1 => (x.n16(0), x.n16(1)),
            2 => (x.i(0), x.i(1)),
            3 => (x.n(0), x.n(1)),
            4 => (i128::from(x.bits[0] as i64), i128::from(x.bits[1] as i64)),
            _ => (i128::from(x.bits[0]), i128::from(x.bits[1])),
        }
    }
    fn is<const TYPE: u8, const LESS: bool, const EQUAL: bool, const MORE: bool>(x: In) -> (u64, bool) {
        let (a, b) = of(x, TYPE);
        (0, a < b && LESS || a == b && EQUAL || a > b && MORE)
    }
    fn six<const TYPE: u8>(ty: &str, kind: &str) -> Vec<Reference> {
        let signature = format!("{kind} {kind} > bit");
        let computes: [(&str, Answer); 6] = [
            ("lt", is::<TYPE, true, false, false>),
            ("eq", is::<TYPE, false, true, false>),
            ("le", is::<TYPE, true, true, false>),
            ("gt", is::<TYPE, false, false, true>),
            ("ne", is::<TYPE, true, false, true>),
            ("ge", is::<TYPE, false, true, true>),
        ];
        let row =
            |(name, compute)| rows(&format!("v_cmp_{name}_{ty} v_cmpx_{name}_{ty}"), &signature, compute);
        computes.into_iter().flat_map(row).collect()
    }
    [
        six::<0>("i16", "b16"),
        six::<1>("u16", "b16"),
        six::<2>("i32", "b32"),
        six::<3>("u32", "b32"),
        six::<4>("i64", "b64"),
        six::<5>("u64", "b64"),
    ]
    .concat()
}

/// The number of a class, from −∞ to +∞ behind the two kinds of NaN.
fn class(category: std::num::FpCategory, negative: bool) -> u32 {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    match (category, negative) {
        (Nan, _) => 1,
        (Infinite, true) => 2,
        (Normal, true) => 3,
        (Subnormal, true) => 4,
        (Zero, true) => 5,
        (Zero, false) => 6,
        (Subnormal, false) => 7,
        (Normal, false) => 8,
        (Infinite, false) => 9,
    }
}

fn classes() -> Vec<Reference> {
    [
        rows("v_cmp_class_f32 v_cmpx_class_f32", "f32 b32 > bit", |x| {
            (0, x.n(1) >> class(x.f(0).classify(), x.f(0).is_sign_negative()) & 1 == 1)
        }),
        rows("v_cmp_class_f64 v_cmpx_class_f64", "f64 b32 > bit", |x| {
            (0, x.n(1) >> class(x.d(0).classify(), x.d(0).is_sign_negative()) & 1 == 1)
        }),
        rows("v_cmp_class_f16 v_cmpx_class_f16", "f16 b16 > bit", |x| {
            let value = x.h(0);
            let subnormal = value != 0.0 && value.abs() < power(-14);
            let category = if subnormal { std::num::FpCategory::Subnormal } else { value.classify() };
            (0, x.n16(1) >> class(category, x.bits[0] >> 15 & 1 == 1) & 1 == 1)
        }),
    ]
    .concat()
}

/// Each comparison is true of some of: less, equal, more, one is no number.
fn of_floats() -> Vec<Reference> {
    let all = [
        ("lt", 0b0001),
        ("eq", 0b0010),
        ("le", 0b0011),
        ("gt", 0b0100),
        ("lg", 0b0101),
        ("ge", 0b0110),
        ("o", 0b0111),
        ("u", 0b1000),
        ("nge", 0b1001),
        ("nlg", 0b1010),
        ("ngt", 0b1011),
        ("nle", 0b1100),
        ("neq", 0b1101),
        ("nlt", 0b1110),
    ];
    fn answer(a: f64, b: f64, truths: u8) -> (u64, bool) {
        let relation = if a.is_nan() || b.is_nan() {
            3
        } else if a < b {
            0
        } else if a == b {
            1
        } else {
            2
        };
        (0, truths >> relation & 1 == 1)
    }
    let names = |name: &str, size: &str| format!("v_cmp_{name}_{size} v_cmpx_{name}_{size}");
    all.into_iter()
        .flat_map(|(name, truths)| {
            [
                rows(&names(name, "f16"), "f16 f16 > bit", move |x| answer(x.h(0), x.h(1), truths)),
                rows(&names(name, "f32"), "f32 f32 > bit", move |x| {
                    answer(x.f(0).into(), x.f(1).into(), truths)
                }),
                rows(&names(name, "f64"), "f64 f64 > bit", move |x| answer(x.d(0), x.d(1), truths)),
            ]
            .concat()
        })
        .collect()
}
