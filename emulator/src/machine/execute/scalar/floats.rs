//! Floats of the scalar unit (GFX11.5 and GFX12).

use std::cmp::Ordering;

use crate::isa::Instruction;
use crate::machine::execute::vector::rounding::{max_num, maximum, min_num, minimum};
use crate::machine::fault::Fault;
use crate::machine::numbers::{f16_to_f32, f32_to_f16, f32_to_f16_toward_zero, f64_to_f16};
use crate::machine::step::{Action, Setting};

use super::Scc::Stays;
use super::{Row, Values, one, two};

const W32: [u8; 3] = [32, 32, 32];

pub fn rows() -> Vec<Row> {
    [singles(), halves(), conversions()].concat()
}

fn singles() -> Vec<Row> {
    let min = two(W32, Stays, |v| single(min_num(v.x(), v.y())));
    let max = two(W32, Stays, |v| single(max_num(v.x(), v.y())));
    let fma = two(W32, Stays, |v| single(v.x().mul_add(v.y(), f32::from_bits(v.old as u32))));
    vec![
        ("s_add_f32", two(W32, Stays, |v| single(v.x() + v.y()))),
        ("s_sub_f32", two(W32, Stays, |v| single(v.x() - v.y()))),
        ("s_mul_f32", two(W32, Stays, |v| single(v.x() * v.y()))),
        ("s_min_f32", min),
        ("s_min_num_f32", min),
        ("s_max_f32", max),
        ("s_max_num_f32", max),
        ("s_minimum_f32", two(W32, Stays, |v| single(minimum(v.x(), v.y())))),
        ("s_maximum_f32", two(W32, Stays, |v| single(maximum(v.x(), v.y())))),
        ("s_fmac_f32", fma),
        ("s_fmaak_f32", fma),
        ("s_fmamk_f32", fma),
        ("s_ceil_f32", one([32, 32], Stays, |v| single(v.x().ceil()))),
        ("s_floor_f32", one([32, 32], Stays, |v| single(v.x().floor()))),
        ("s_trunc_f32", one([32, 32], Stays, |v| single(v.x().trunc()))),
        ("s_rndne_f32", one([32, 32], Stays, |v| single(v.x().round_ties_even()))),
    ]
}

fn halves() -> Vec<Row> {
    let min = two(W32, Stays, |v| half(min_num(v.p(), v.q())));
    let max = two(W32, Stays, |v| half(max_num(v.p(), v.q())));
    let fma = two(W32, Stays, |v| {
        let (p, q, r) = (f64::from(v.p()), f64::from(v.q()), f64::from(f16_to_f32(v.old as u16)));
        (u64::from(f64_to_f16(p * q + r)), false)
    });
    vec![
        ("s_add_f16", two(W32, Stays, |v| half(v.p() + v.q()))),
        ("s_sub_f16", two(W32, Stays, |v| half(v.p() - v.q()))),
        ("s_mul_f16", two(W32, Stays, |v| half(v.p() * v.q()))),
        ("s_min_f16", min),
        ("s_min_num_f16", min),
        ("s_max_f16", max),
        ("s_max_num_f16", max),
        ("s_minimum_f16", two(W32, Stays, |v| half(minimum(v.p(), v.q())))),
        ("s_maximum_f16", two(W32, Stays, |v| half(maximum(v.p(), v.q())))),
        ("s_fmac_f16", fma),
        ("s_ceil_f16", one([32, 32], Stays, |v| half(v.p().ceil()))),
        ("s_floor_f16", one([32, 32], Stays, |v| half(v.p().floor()))),
        ("s_trunc_f16", one([32, 32], Stays, |v| half(v.p().trunc()))),
        ("s_rndne_f16", one([32, 32], Stays, |v| half(v.p().round_ties_even()))),
    ]
}

fn conversions() -> Vec<Row> {
    vec![
        ("s_cvt_f32_i32", one([32, 32], Stays, |v| single(v.a_signed() as f32))),
        ("s_cvt_f32_u32", one([32, 32], Stays, |v| single(v.a as f32))),
        ("s_cvt_i32_f32", one([32, 32], Stays, |v| (u64::from(v.x() as i32 as u32), false))),
        ("s_cvt_u32_f32", one([32, 32], Stays, |v| (u64::from(v.x() as u32), false))),
        ("s_cvt_f16_f32", one([32, 32], Stays, |v| (u64::from(f32_to_f16(v.x())), false))),
        ("s_cvt_f32_f16", one([32, 32], Stays, |v| single(v.p()))),
        ("s_cvt_hi_f32_f16", one([32, 32], Stays, |v| single(f16_to_f32((v.a >> 16) as u16)))),
        (
            "s_cvt_pk_rtz_f16_f32",
            two(W32, Stays, |v| {
                let (low, high) = (f32_to_f16_toward_zero(v.x()), f32_to_f16_toward_zero(v.y()));
                (u64::from(low) | u64::from(high) << 16, false)
            }),
        ),
    ]
}

type Compare = fn(f32, f32) -> bool;

/// Comparisons of floats, in both sizes: what is behind `s_cmp_`, and what is compared.
const COMPARISONS: [(&str, Compare); 14] = [
    ("lt", |x, y| x < y),
    ("eq", |x, y| x == y),
    ("le", |x, y| x <= y),
    ("gt", |x, y| x > y),
    ("lg", |x, y| x != y),
    ("ge", |x, y| x >= y),
    ("o", |x, y| !x.is_nan() && !y.is_nan()),
    ("u", |x, y| x.is_nan() || y.is_nan()),
    ("nge", |x, y| x.partial_cmp(&y).is_none_or(Ordering::is_lt)),
    ("nlg", |x, y| x.partial_cmp(&y).is_none_or(Ordering::is_eq)),
    ("ngt", |x, y| x.partial_cmp(&y).is_none_or(Ordering::is_le)),
    ("nle", |x, y| x.partial_cmp(&y).is_none_or(Ordering::is_gt)),
    ("neq", |x, y| x != y),
    ("nlt", |x, y| x.partial_cmp(&y).is_none_or(Ordering::is_ge)),
];

/// Comparisons; `None` for other instructions.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Option<Action>, Box<Fault>> {
    let Some((operation, ty)) = instruction.name.strip_prefix("s_cmp_").and_then(|name| name.split_once('_'))
    else {
        return Ok(None);
    };
    let Some(&(_, compare)) = COMPARISONS.iter().find(|(name, _)| *name == operation) else {
        return Ok(None);
    };
    let read: fn(u32) -> f32 = match ty {
        "f32" => f32::from_bits,
        "f16" => |bits| f16_to_f32(bits as u16),
        _ => return Ok(None),
    };
    let sources = [instruction.sources[0].source, instruction.sources[1].source];
    Ok(Some(Box::new(move |wave, _| {
        wave.scc = compare(read(wave.read32(sources[0])?), read(wave.read32(sources[1])?));
        Ok(())
    })))
}

fn single(x: f32) -> (u64, bool) {
    (u64::from(x.to_bits()), false)
}

fn half(x: f32) -> (u64, bool) {
    (u64::from(f32_to_f16(x)), false)
}

impl Values {
    fn x(self) -> f32 {
        f32::from_bits(self.a as u32)
    }

    fn y(self) -> f32 {
        f32::from_bits(self.b as u32)
    }

    fn p(self) -> f32 {
        f16_to_f32(self.a as u16)
    }

    fn q(self) -> f32 {
        f16_to_f32(self.b as u16)
    }
}
