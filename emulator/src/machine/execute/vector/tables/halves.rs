//! Arithmetic in half precision.

use crate::machine::numbers::f64_to_f16;

use super::super::kernel::{map1, map2, map3};
use super::super::types::{F16, F16Bits};
use super::Row;
use super::rounding::{max_num, maximum, median, min_num, minimum, scale, split};

pub fn rows() -> Vec<Row> {
    [sums(), bounds(), roundings()].concat()
}

fn sums() -> Vec<Row> {
    vec![
        ("v_add_f16", map2(|a: F16, b: F16| F16(a.0 + b.0))),
        ("v_sub_f16", map2(|a: F16, b: F16| F16(a.0 - b.0))),
        ("v_subrev_f16", map2(|a: F16, b: F16| F16(b.0 - a.0))),
        ("v_mul_f16", map2(|a: F16, b: F16| F16(a.0 * b.0))),
        ("v_fma_f16", map3(fma)),
        ("v_fmac_f16", map3(fma)),
        ("v_fmaak_f16", map3(fma)),
        ("v_fmamk_f16", map3(fma)),
        ("v_mad_f16", map3(mad)),
        ("v_mac_f16", map3(mad)),
        ("v_madak_f16", map3(mad)),
        ("v_madmk_f16", map3(mad)),
    ]
}

fn bounds() -> Vec<Row> {
    let mut rows = vec![
        ("v_minimum_f16", map2(|a: F16, b: F16| F16(minimum(a.0, b.0)))),
        ("v_maximum_f16", map2(|a: F16, b: F16| F16(maximum(a.0, b.0)))),
        ("v_minimum3_f16", map3(|a: F16, b: F16, c: F16| F16(minimum(minimum(a.0, b.0), c.0)))),
        ("v_maximum3_f16", map3(|a: F16, b: F16, c: F16| F16(maximum(maximum(a.0, b.0), c.0)))),
        ("v_minimummaximum_f16", map3(|a: F16, b: F16, c: F16| F16(maximum(minimum(a.0, b.0), c.0)))),
        ("v_maximumminimum_f16", map3(|a: F16, b: F16, c: F16| F16(minimum(maximum(a.0, b.0), c.0)))),
    ];
    // GFX12 calls them after IEEE's operations.
    let named = [
        (["v_min_f16", "v_min_num_f16"], map2(|a: F16, b: F16| F16(min_num(a.0, b.0)))),
        (["v_max_f16", "v_max_num_f16"], map2(|a: F16, b: F16| F16(max_num(a.0, b.0)))),
        (
            ["v_min3_f16", "v_min3_num_f16"],
            map3(|a: F16, b: F16, c: F16| F16(min_num(min_num(a.0, b.0), c.0))),
        ),
        (
            ["v_max3_f16", "v_max3_num_f16"],
            map3(|a: F16, b: F16, c: F16| F16(max_num(max_num(a.0, b.0), c.0))),
        ),
        (["v_med3_f16", "v_med3_num_f16"], map3(|a: F16, b: F16, c: F16| F16(median(a.0, b.0, c.0)))),
        (
            ["v_maxmin_f16", "v_maxmin_num_f16"],
            map3(|a: F16, b: F16, c: F16| F16(min_num(max_num(a.0, b.0), c.0))),
        ),
        (
            ["v_minmax_f16", "v_minmax_num_f16"],
            map3(|a: F16, b: F16, c: F16| F16(max_num(min_num(a.0, b.0), c.0))),
        ),
    ];
    for ([name, other], kernel) in named {
        rows.extend([(name, kernel), (other, kernel)]);
    }
    rows
}

fn roundings() -> Vec<Row> {
    vec![
        ("v_trunc_f16", map1(|a: F16| F16(a.0.trunc()))),
        ("v_ceil_f16", map1(|a: F16| F16(a.0.ceil()))),
        ("v_floor_f16", map1(|a: F16| F16(a.0.floor()))),
        ("v_rndne_f16", map1(|a: F16| F16(a.0.round_ties_even()))),
        ("v_fract_f16", map1(fraction)),
        ("v_frexp_mant_f16", map1(|a: F16| F16(split(f64::from(a.0)).0 as f32))),
        ("v_frexp_exp_i16_f16", map1(|a: F16| split(f64::from(a.0)).1 as i16)),
        ("v_ldexp_f16", map2(|a: F16, b: i16| F16Bits(f64_to_f16(scale(f64::from(a.0), i32::from(b)))))),
    ]
}

/// Rounded once: in double precision the sum is exact wherever the half's rounding depends on it.
pub fn fma(a: F16, b: F16, c: F16) -> F16Bits {
    F16Bits(f64_to_f16(f64::from(a.0) * f64::from(b.0) + f64::from(c.0)))
}

/// Rounded twice.
fn mad(a: F16, b: F16, c: F16) -> F16 {
    use crate::machine::numbers::{f16_to_f32, f32_to_f16};
    F16(f16_to_f32(f32_to_f16(a.0 * b.0)) + c.0)
}

/// Never 1, which a negative number next to 0 would round to.
fn fraction(a: F16) -> F16 {
    const BELOW_ONE: f32 = 1.0 - 1.0 / 2048.0;
    let fraction = a.0 - a.0.floor();
    F16(if fraction.is_nan() { fraction } else { min_num(fraction, BELOW_ONE) })
}
