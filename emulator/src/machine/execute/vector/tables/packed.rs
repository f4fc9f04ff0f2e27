//! Operations on two numbers of 16 bits in a register, and dot products.

use crate::machine::numbers::{bf16_to_f32, f32_to_bf16};

use super::super::kernel::{map2, map3};
use super::super::types::{F16, F16Bits, Packed};
use super::Row;
use super::halves;
use super::rounding::{max_num, maximum, min_num, minimum};

type U = Packed<u16>;
type I = Packed<i16>;
type H = Packed<F16>;
type Bits = Packed<F16Bits>;

pub fn rows() -> Vec<Row> {
    [floats(), sums(), bits(), dot_products()].concat()
}

fn floats() -> Vec<Row> {
    let min = map2(|a: H, b: H| Packed(F16(min_num(a.0.0, b.0.0)), F16(min_num(a.1.0, b.1.0))));
    let max = map2(|a: H, b: H| Packed(F16(max_num(a.0.0, b.0.0)), F16(max_num(a.1.0, b.1.0))));
    let fma = map3(|a: H, b: H, c: H| Packed(halves::fma(a.0, b.0, c.0), halves::fma(a.1, b.1, c.1)));
    vec![
        ("v_pk_add_f16", map2(|a: H, b: H| Packed(F16(a.0.0 + b.0.0), F16(a.1.0 + b.1.0)))),
        ("v_pk_mul_f16", map2(|a: H, b: H| Packed(F16(a.0.0 * b.0.0), F16(a.1.0 * b.1.0)))),
        ("v_pk_min_f16", min),
        ("v_pk_max_f16", max),
        ("v_pk_min_num_f16", min),
        ("v_pk_max_num_f16", max),
        (
            "v_pk_minimum_f16",
            map2(|a: H, b: H| Packed(F16(minimum(a.0.0, b.0.0)), F16(minimum(a.1.0, b.1.0)))),
        ),
        (
            "v_pk_maximum_f16",
            map2(|a: H, b: H| Packed(F16(maximum(a.0.0, b.0.0)), F16(maximum(a.1.0, b.1.0)))),
        ),
        ("v_pk_fma_f16", fma),
        ("v_pk_fmac_f16", fma),
    ]
}

fn sums() -> Vec<Row> {
    vec![
        (
            "v_pk_add_u16",
            map2(|a: U, b: U| Packed(a.0.wrapping_add(b.0), a.1.wrapping_add(b.1)))
                .or_clamped(map2(|a: U, b: U| Packed(a.0.saturating_add(b.0), a.1.saturating_add(b.1)))),
        ),
        (
            "v_pk_sub_u16",
            map2(|a: U, b: U| Packed(a.0.wrapping_sub(b.0), a.1.wrapping_sub(b.1)))
                .or_clamped(map2(|a: U, b: U| Packed(a.0.saturating_sub(b.0), a.1.saturating_sub(b.1)))),
        ),
        (
            "v_pk_add_i16",
            map2(|a: I, b: I| Packed(a.0.wrapping_add(b.0), a.1.wrapping_add(b.1)))
                .or_clamped(map2(|a: I, b: I| Packed(a.0.saturating_add(b.0), a.1.saturating_add(b.1)))),
        ),
        (
            "v_pk_sub_i16",
            map2(|a: I, b: I| Packed(a.0.wrapping_sub(b.0), a.1.wrapping_sub(b.1)))
                .or_clamped(map2(|a: I, b: I| Packed(a.0.saturating_sub(b.0), a.1.saturating_sub(b.1)))),
        ),
        ("v_pk_mul_lo_u16", map2(|a: U, b: U| Packed(a.0.wrapping_mul(b.0), a.1.wrapping_mul(b.1)))),
        (
            "v_pk_mad_u16",
            map3(|a: U, b: U, c: U| {
                Packed(a.0.wrapping_mul(b.0).wrapping_add(c.0), a.1.wrapping_mul(b.1).wrapping_add(c.1))
            }),
        ),
        (
            "v_pk_mad_i16",
            map3(|a: I, b: I, c: I| {
                Packed(a.0.wrapping_mul(b.0).wrapping_add(c.0), a.1.wrapping_mul(b.1).wrapping_add(c.1))
            }),
        ),
    ]
}

fn bits() -> Vec<Row> {
    vec![
        ("v_pk_lshlrev_b16", map2(|a: U, b: U| Packed(b.0 << (a.0 & 15), b.1 << (a.1 & 15)))),
        ("v_pk_lshrrev_b16", map2(|a: U, b: U| Packed(b.0 >> (a.0 & 15), b.1 >> (a.1 & 15)))),
        ("v_pk_ashrrev_i16", map2(|a: U, b: I| Packed(b.0 >> (a.0 & 15), b.1 >> (a.1 & 15)))),
        ("v_pk_min_u16", map2(|a: U, b: U| Packed(a.0.min(b.0), a.1.min(b.1)))),
        ("v_pk_max_u16", map2(|a: U, b: U| Packed(a.0.max(b.0), a.1.max(b.1)))),
        ("v_pk_min_i16", map2(|a: I, b: I| Packed(a.0.min(b.0), a.1.min(b.1)))),
        ("v_pk_max_i16", map2(|a: I, b: I| Packed(a.0.max(b.0), a.1.max(b.1)))),
    ]
}

/// Sums are exact in double precision and rounded once.
fn dot_products() -> Vec<Row> {
    let of_halves = map3(|a: H, b: H, c: f32| dot([a.0.0, a.1.0], [b.0.0, b.1.0], c));
    let of_bf16 = map3(|a: Bits, b: Bits, c: f32| dot(brain(a), brain(b), c));
    vec![
        ("v_dot2_f32_f16", of_halves),
        ("v_dot2c_f32_f16", of_halves),
        ("v_dot2acc_f32_f16", of_halves),
        ("v_dot2_f32_bf16", of_bf16),
        ("v_dot2c_f32_bf16", of_bf16),
        ("v_dot2acc_f32_bf16", of_bf16),
        ("v_dot2_f16_f16", map3(|a: H, b: H, c: F16| F16(dot([a.0.0, a.1.0], [b.0.0, b.1.0], c.0)))),
        (
            "v_dot2_bf16_bf16",
            map3(|a: Bits, b: Bits, c: F16Bits| {
                F16Bits(f32_to_bf16(dot(brain(a), brain(b), bf16_to_f32(c.0))))
            }),
        ),
        (
            "v_dot2_i32_i16",
            map3(|a: I, b: I, c: i32| {
                let products = i64::from(a.0) * i64::from(b.0) + i64::from(a.1) * i64::from(b.1);
                (products + i64::from(c)) as i32
            }),
        ),
        (
            "v_dot2_u32_u16",
            map3(|a: U, b: U, c: u32| {
                let products = u64::from(a.0) * u64::from(b.0) + u64::from(a.1) * u64::from(b.1);
                (products + u64::from(c)) as u32
            }),
        ),
    ]
}

fn brain(a: Bits) -> [f32; 2] {
    [bf16_to_f32(a.0.0), bf16_to_f32(a.1.0)]
}

fn dot(a: [f32; 2], b: [f32; 2], c: f32) -> f32 {
    let product = |i: usize| f64::from(a[i]) * f64::from(b[i]);
    (product(0) + product(1) + f64::from(c)) as f32
}
