//! Arithmetic in single precision.

use super::super::kernel::{map1, map2, map3};
use super::Row;
use super::rounding::{max_num, maximum, median, min_num, minimum, split};

pub fn rows() -> Vec<Row> {
    [sums(), bounds(), roundings()].concat()
}

fn sums() -> Vec<Row> {
    vec![
        ("v_add_f32", map2(|a: f32, b: f32| a + b)),
        ("v_sub_f32", map2(|a: f32, b: f32| a - b)),
        ("v_subrev_f32", map2(|a: f32, b: f32| b - a)),
        ("v_mul_f32", map2(|a: f32, b: f32| a * b)),
        ("v_mul_legacy_f32", map2(multiply_zero_wins)),
        ("v_mul_dx9_zero_f32", map2(multiply_zero_wins)),
        ("v_mullit_f32", map3(multiply_lit)),
        ("v_fma_f32", map3(f32::mul_add)),
        ("v_fmac_f32", map3(f32::mul_add)),
        ("v_fmaak_f32", map3(f32::mul_add)),
        ("v_fmamk_f32", map3(f32::mul_add)),
        ("v_fma_legacy_f32", map3(multiply_add_zero_wins)),
        ("v_fma_dx9_zero_f32", map3(multiply_add_zero_wins)),
        ("v_fmac_legacy_f32", map3(multiply_add_zero_wins)),
        ("v_fmac_dx9_zero_f32", map3(multiply_add_zero_wins)),
        // Rounded twice.
        ("v_mad_f32", map3(|a: f32, b: f32, c: f32| a * b + c)),
        ("v_mac_f32", map3(|a: f32, b: f32, c: f32| a * b + c)),
        ("v_madak_f32", map3(|a: f32, b: f32, c: f32| a * b + c)),
        ("v_madmk_f32", map3(|a: f32, b: f32, c: f32| a * b + c)),
    ]
}

fn bounds() -> Vec<Row> {
    vec![
        ("v_min_f32", map2(min_num::<f32>)),
        ("v_max_f32", map2(max_num::<f32>)),
        ("v_min_num_f32", map2(min_num::<f32>)),
        ("v_max_num_f32", map2(max_num::<f32>)),
        ("v_minimum_f32", map2(minimum::<f32>)),
        ("v_maximum_f32", map2(maximum::<f32>)),
        ("v_min3_f32", map3(|a: f32, b: f32, c: f32| min_num(min_num(a, b), c))),
        ("v_max3_f32", map3(|a: f32, b: f32, c: f32| max_num(max_num(a, b), c))),
        ("v_min3_num_f32", map3(|a: f32, b: f32, c: f32| min_num(min_num(a, b), c))),
        ("v_max3_num_f32", map3(|a: f32, b: f32, c: f32| max_num(max_num(a, b), c))),
        ("v_med3_f32", map3(median::<f32>)),
        ("v_med3_num_f32", map3(median::<f32>)),
        ("v_maxmin_f32", map3(|a: f32, b: f32, c: f32| min_num(max_num(a, b), c))),
        ("v_minmax_f32", map3(|a: f32, b: f32, c: f32| max_num(min_num(a, b), c))),
        ("v_maxmin_num_f32", map3(|a: f32, b: f32, c: f32| min_num(max_num(a, b), c))),
        ("v_minmax_num_f32", map3(|a: f32, b: f32, c: f32| max_num(min_num(a, b), c))),
        ("v_minimum3_f32", map3(|a: f32, b: f32, c: f32| minimum(minimum(a, b), c))),
        ("v_maximum3_f32", map3(|a: f32, b: f32, c: f32| maximum(maximum(a, b), c))),
        ("v_minimummaximum_f32", map3(|a: f32, b: f32, c: f32| maximum(minimum(a, b), c))),
        ("v_maximumminimum_f32", map3(|a: f32, b: f32, c: f32| minimum(maximum(a, b), c))),
    ]
}

fn roundings() -> Vec<Row> {
    vec![
        ("v_trunc_f32", map1(f32::trunc)),
        ("v_ceil_f32", map1(f32::ceil)),
        ("v_floor_f32", map1(f32::floor)),
        ("v_rndne_f32", map1(f32::round_ties_even)),
        ("v_fract_f32", map1(fraction)),
        ("v_frexp_mant_f32", map1(|a: f32| split(f64::from(a)).0 as f32)),
        ("v_frexp_exp_i32_f32", map1(|a: f32| split(f64::from(a)).1)),
        ("v_ldexp_f32", map2(ldexp)),
    ]
}

/// A factor of 0 gives +0, whatever the other is.
fn multiply_zero_wins(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

fn multiply_add_zero_wins(a: f32, b: f32, c: f32) -> f32 {
    if a == 0.0 || b == 0.0 { c } else { a.mul_add(b, c) }
}

/// A product for light exponents: the lowest number where the second factor or the guard does not take part.
fn multiply_lit(a: f32, b: f32, guard: f32) -> f32 {
    let takes_part = b > f32::MIN && guard > 0.0;
    if takes_part { a * b } else { f32::MIN }
}

/// In double precision no power that matters overflows, so that the result is rounded once.
fn ldexp(a: f32, exponent: i32) -> f32 {
    let power = f64::from_bits(((1023 + exponent.clamp(-500, 500)) as u64) << 52);
    (f64::from(a) * power) as f32
}

/// Never 1, which a negative number next to 0 would round to.
fn fraction(a: f32) -> f32 {
    const BELOW_ONE: f32 = f32::from_bits(0x3f7f_ffff);
    let fraction = a - a.floor();
    if fraction.is_nan() { fraction } else { min_num(fraction, BELOW_ONE) }
}
