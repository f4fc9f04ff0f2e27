//! Arithmetic in double precision.

use super::super::kernel::{map1, map2, map3};
use super::Row;
use super::rounding::{max_num, maximum, min_num, minimum, scale, split};

pub fn rows() -> Vec<Row> {
    vec![
        ("v_add_f64", map2(|a: f64, b: f64| a + b)),
        ("v_mul_f64", map2(|a: f64, b: f64| a * b)),
        ("v_fma_f64", map3(f64::mul_add)),
        ("v_fmac_f64", map3(f64::mul_add)),
        ("v_min_f64", map2(min_num::<f64>)),
        ("v_max_f64", map2(max_num::<f64>)),
        ("v_min_num_f64", map2(min_num::<f64>)),
        ("v_max_num_f64", map2(max_num::<f64>)),
        ("v_minimum_f64", map2(minimum::<f64>)),
        ("v_maximum_f64", map2(maximum::<f64>)),
        ("v_trunc_f64", map1(f64::trunc)),
        ("v_ceil_f64", map1(f64::ceil)),
        ("v_floor_f64", map1(f64::floor)),
        ("v_rndne_f64", map1(f64::round_ties_even)),
        ("v_fract_f64", map1(fraction)),
        ("v_frexp_mant_f64", map1(|a: f64| split(a).0)),
        ("v_frexp_exp_i32_f64", map1(|a: f64| split(a).1)),
        ("v_ldexp_f64", map2(|a: f64, b: i32| scale(a, b))),
        ("v_trig_preop_f64", map2(two_over_pi_segment)),
    ]
}

/// Never 1, which a negative number next to 0 would round to.
fn fraction(a: f64) -> f64 {
    const BELOW_ONE: f64 = f64::from_bits(0x3fef_ffff_ffff_ffff);
    let fraction = a - a.floor();
    if fraction.is_nan() { fraction } else { min_num(fraction, BELOW_ONE) }
}

/// The binary digits of 2/π, 64 a word, most significant first.
const TWO_OVER_PI: [u64; 20] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_f8d5_d085,
    0x6033_046f_c7b6_baf0,
    0,
];

/// V_TRIG_PREOP_F64: 53 bits of 2/π for a step of reducing an angle by multiples of π/2.
fn two_over_pi_segment(a: f64, segment: u32) -> f64 {
    let exponent = (a.to_bits() >> 52 & 0x7ff) as i32;
    let shift = (segment & 31) as i32 * 53 + (exponent - 1077).max(0);
    let bit = |i: i32| match usize::try_from(i) {
        Ok(i) if i < 1201 => TWO_OVER_PI[i / 64] >> (63 - i % 64) & 1,
        _ => 0,
    };
    let digits = (0..53).fold(0u64, |digits, i| digits << 1 | bit(shift + i));
    scale(digits as f64, -53 - shift + if exponent >= 1968 { 128 } else { 0 })
}
