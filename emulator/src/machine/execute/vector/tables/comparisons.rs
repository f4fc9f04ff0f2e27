//! Comparisons: a bit for each lane.

use super::super::kernel::{Kernel, compare};
use super::super::types::{F16, F16Bits, Lane};

/// The kernel of V_CMP_ or V_CMPX_, by the name behind it: an operation and a type.
pub fn find(name: &str) -> Option<Kernel> {
    let (operation, ty) = name.rsplit_once('_')?;
    let rows = match ty {
        "f16" => floats(|a: F16| a.0),
        "f32" => floats(|a: f32| a),
        "f64" => floats(|a: f64| a),
        "i16" => integers(|a: i16| i64::from(a)),
        "u16" => integers(|a: u16| u64::from(a)),
        "i32" => integers(|a: i32| a),
        "u32" => integers(|a: u32| a),
        "i64" => integers(|a: i64| a),
        "u64" => integers(|a: u64| a),
        _ => return None,
    };
    if operation == "class" {
        return class(ty);
    }
    rows.into_iter().find(|(name, _)| *name == operation).map(|(_, kernel)| kernel)
}

/// Those of floats, half of which are true where one is no number.
fn floats<T: Lane, V: PartialOrd + Copy>(
    f: impl Fn(T) -> V + Copy + Send + Sync + 'static,
) -> Vec<(&'static str, Kernel)> {
    let is_nan = |a: V| a.partial_cmp(&a).is_none();
    let unordered = move |a: V, b: V| is_nan(a) || is_nan(b);
    vec![
        ("f", compare(|_: T, _: T| false)),
        ("lt", compare(move |a: T, b: T| f(a) < f(b))),
        ("eq", compare(move |a: T, b: T| f(a) == f(b))),
        ("le", compare(move |a: T, b: T| f(a) <= f(b))),
        ("gt", compare(move |a: T, b: T| f(a) > f(b))),
        ("lg", compare(move |a: T, b: T| f(a) < f(b) || f(a) > f(b))),
        ("ge", compare(move |a: T, b: T| f(a) >= f(b))),
        ("o", compare(move |a: T, b: T| !unordered(f(a), f(b)))),
        ("u", compare(move |a: T, b: T| unordered(f(a), f(b)))),
        ("nge", compare(move |a: T, b: T| f(a) < f(b) || unordered(f(a), f(b)))),
        ("nlg", compare(move |a: T, b: T| f(a) == f(b) || unordered(f(a), f(b)))),
        ("ngt", compare(move |a: T, b: T| f(a) <= f(b) || unordered(f(a), f(b)))),
        ("nle", compare(move |a: T, b: T| f(a) > f(b) || unordered(f(a), f(b)))),
        ("neq", compare(move |a: T, b: T| f(a) != f(b))),
        ("nlt", compare(move |a: T, b: T| f(a) >= f(b) || unordered(f(a), f(b)))),
        ("t", compare(|_: T, _: T| true)),
        ("tru", compare(|_: T, _: T| true)),
    ]
}

fn integers<T: Lane, I: Ord>(
    f: impl Fn(T) -> I + Copy + Send + Sync + 'static,
) -> Vec<(&'static str, Kernel)> {
    vec![
        ("f", compare(|_: T, _: T| false)),
        ("lt", compare(move |a: T, b: T| f(a) < f(b))),
        ("eq", compare(move |a: T, b: T| f(a) == f(b))),
        ("le", compare(move |a: T, b: T| f(a) <= f(b))),
        ("gt", compare(move |a: T, b: T| f(a) > f(b))),
        ("ne", compare(move |a: T, b: T| f(a) != f(b))),
        ("lg", compare(move |a: T, b: T| f(a) != f(b))),
        ("ge", compare(move |a: T, b: T| f(a) >= f(b))),
        ("t", compare(|_: T, _: T| true)),
    ]
}

/// Whether a float is of one of the classes whose bits are set.
fn class(ty: &str) -> Option<Kernel> {
    match ty {
        "f16" => Some(compare(|a: F16Bits, classes: u16| {
            let (exponent, fraction) = (a.0 >> 10 & 31, a.0 & 0x3ff);
            u32::from(classes)
                >> class_of(a.0 >> 15 != 0, exponent == 0, exponent == 31, fraction != 0, fraction & 512 != 0)
                & 1
                != 0
        })),
        "f32" => Some(compare(|a: f32, classes: u32| {
            let (exponent, fraction) = (a.to_bits() >> 23 & 255, a.to_bits() & 0x7f_ffff);
            classes
                >> class_of(
                    a.is_sign_negative(),
                    exponent == 0,
                    exponent == 255,
                    fraction != 0,
                    fraction >> 22 != 0,
                )
                & 1
                != 0
        })),
        "f64" => Some(compare(|a: f64, classes: u32| {
            let (exponent, fraction) = (a.to_bits() >> 52 & 2047, a.to_bits() & 0xf_ffff_ffff_ffff);
            classes
                >> class_of(
                    a.is_sign_negative(),
                    exponent == 0,
                    exponent == 2047,
                    fraction != 0,
                    fraction >> 51 != 0,
                )
                & 1
                != 0
        })),
        _ => None,
    }
}

/// The number of a class: 0 signalling, 1 quiet, then from −∞ to +∞.
fn class_of(negative: bool, smallest: bool, largest: bool, fraction: bool, quiet: bool) -> u32 {
    match (largest, smallest, fraction) {
        (true, _, true) => u32::from(quiet),
        (true, _, false) => {
            if negative {
                2
            } else {
                9
            }
        }
        (_, true, true) => {
            if negative {
                4
            } else {
                7
            }
        }
        (_, true, false) => {
            if negative {
                5
            } else {
                6
            }
        }
        _ => {
            if negative {
                3
            } else {
                8
            }
        }
    }
}
