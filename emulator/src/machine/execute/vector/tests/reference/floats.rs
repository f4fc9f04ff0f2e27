//! Floats, and conversions from and to them.

use super::rounding::{
    down, even, fused_half, fused_single, half_bits, power, single as to_single, toward_zero, up,
};
use super::{In, Reference, double, low, rows, short, single, within};

pub fn references() -> Vec<Reference> {
    [singles(), halves(), doubles(), bounds(), roundings(), conversions(), packed(), mathematics()].concat()
}

/// Sums and products of two singles are exact in double precision, or far from where rounding twice matters.
fn singles() -> Vec<Reference> {
    let (two, three) = ("f32 f32 > f32", "f32 f32 f32 > f32");
    fn wide(value: f64) -> (u64, bool) {
        single(if value.is_nan() { f32::NAN } else { to_single(value) })
    }
    [
        rows("v_add_f32", two, |x| wide(f64::from(x.f(0)) + f64::from(x.f(1)))),
        rows("v_sub_f32", two, |x| wide(f64::from(x.f(0)) - f64::from(x.f(1)))),
        rows("v_subrev_f32", two, |x| wide(f64::from(x.f(1)) - f64::from(x.f(0)))),
        rows("v_mul_f32", two, |x| wide(f64::from(x.f(0)) * f64::from(x.f(1)))),
        rows("v_mul_legacy_f32 v_mul_dx9_zero_f32", two, |x| {
            let zero = x.f(0) == 0.0 || x.f(1) == 0.0;
            if zero { low(0) } else { wide(f64::from(x.f(0)) * f64::from(x.f(1))) }
        }),
        rows("v_fma_f32 v_fmac_f32 v_fmaak_f32 v_fmamk_f32", three, |x| {
            single(fused_single(x.f(0), x.f(1), x.f(2)))
        }),
        rows("v_fma_legacy_f32 v_fma_dx9_zero_f32 v_fmac_legacy_f32 v_fmac_dx9_zero_f32", three, |x| {
            let zero = x.f(0) == 0.0 || x.f(1) == 0.0;
            single(if zero { x.f(2) } else { fused_single(x.f(0), x.f(1), x.f(2)) })
        }),
        rows("v_mad_f32 v_mac_f32 v_madak_f32 v_madmk_f32", three, |x| {
            let product = to_single(f64::from(x.f(0)) * f64::from(x.f(1)));
            wide(f64::from(product) + f64::from(x.f(2)))
        }),
        rows("v_mullit_f32", three, |x| {
            let (b, guard) = (x.f(1), x.f(2));
            let out =
                b == -f32::MAX || b == f32::NEG_INFINITY || b.is_nan() || guard <= 0.0 || guard.is_nan();
            if out { single(-f32::MAX) } else { wide(f64::from(x.f(0)) * f64::from(b)) }
        }),
    ]
    .concat()
}

fn halves() -> Vec<Reference> {
    let (two, three) = ("f16 f16 > f16", "f16 f16 f16 > f16");
    [
        rows("v_add_f16", two, |x| short(x.h(0) + x.h(1))),
        rows("v_sub_f16", two, |x| short(x.h(0) - x.h(1))),
        rows("v_subrev_f16", two, |x| short(x.h(1) - x.h(0))),
        rows("v_mul_f16", two, |x| short(x.h(0) * x.h(1))),
        rows("v_fma_f16 v_fmac_f16 v_fmaak_f16 v_fmamk_f16", three, |x| {
            low(fused_half(x.h(0), x.h(1), x.h(2)).into())
        }),
        rows("v_mad_f16 v_mac_f16 v_madak_f16 v_madmk_f16", three, |x| {
            short(super::half(half_bits(x.h(0) * x.h(1))) + x.h(2))
        }),
        rows("v_ldexp_f16", "f16 b16 > f16", |x| short(x.h(0) * power((x.i16(1) as i32).clamp(-500, 500)))),
    ]
    .concat()
}

/// The host computes as the hardware does; what is checked is the way of the operands.
fn doubles() -> Vec<Reference> {
    [
        rows("v_add_f64", "f64 f64 > f64", |x| double(x.d(0) + x.d(1))),
        rows("v_mul_f64", "f64 f64 > f64", |x| double(x.d(0) * x.d(1))),
        rows("v_fma_f64 v_fmac_f64", "f64 f64 f64 > f64", |x| double(x.d(0).mul_add(x.d(1), x.d(2)))),
        rows("v_ldexp_f32", "f32 b32 > f32", |x| {
            single(to_single(f64::from(x.f(0)) * power((x.i(1)).clamp(-500, 500) as i32)))
        }),
    ]
    .concat()
}

/// The smaller of two, −0 before +0; of a number and what is none, the number.
fn least(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn most(a: f64, b: f64) -> f64 {
    -least(-a, -b)
}

/// With what is no number as the result where one is.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { least(a, b) }
}

fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

fn middle(a: f64, b: f64, c: f64) -> f64 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return least(least(a, b), c);
    }
    let mut sorted = [a, b, c];
    sorted.sort_by(f64::total_cmp);
    sorted[1]
}

/// A function of numbers in three sizes; `*` in the names stands for `f16`, `f32` and `f64`. There are no doubles with
/// three sources.
fn sizes(names: &str, count: usize, f: fn([f64; 3]) -> f64) -> Vec<Reference> {
    let signature = |size: &str| format!("{} > {size}", vec![size; count].join(" "));
    let mut all = [
        rows(&names.replace('*', "f16"), &signature("f16"), move |x| short(f([x.h(0), x.h(1), x.h(2)]))),
        rows(&names.replace('*', "f32"), &signature("f32"), move |x| {
            single(f([x.f(0), x.f(1), x.f(2)].map(f64::from)) as f32)
        }),
    ]
    .concat();
    if count < 3 {
        let of_doubles = move |x: In| double(f([x.d(0), x.d(1), x.d(2)]));
        all.extend(rows(&names.replace('*', "f64"), &signature("f64"), of_doubles));
    }
    all
}

fn bounds() -> Vec<Reference> {
    [
        sizes("v_min_* v_min_num_*", 2, |[a, b, _]| least(a, b)),
        sizes("v_max_* v_max_num_*", 2, |[a, b, _]| most(a, b)),
        sizes("v_minimum_*", 2, |[a, b, _]| minimum(a, b)),
        sizes("v_maximum_*", 2, |[a, b, _]| maximum(a, b)),
        sizes("v_min3_* v_min3_num_*", 3, |[a, b, c]| least(least(a, b), c)),
        sizes("v_max3_* v_max3_num_*", 3, |[a, b, c]| most(most(a, b), c)),
        sizes("v_med3_* v_med3_num_*", 3, |[a, b, c]| middle(a, b, c)),
        sizes("v_maxmin_* v_maxmin_num_*", 3, |[a, b, c]| least(most(a, b), c)),
        sizes("v_minmax_* v_minmax_num_*", 3, |[a, b, c]| most(least(a, b), c)),
        sizes("v_minimum3_*", 3, |[a, b, c]| minimum(minimum(a, b), c)),
        sizes("v_maximum3_*", 3, |[a, b, c]| maximum(maximum(a, b), c)),
        sizes("v_minimummaximum_*", 3, |[a, b, c]| maximum(minimum(a, b), c)),
        sizes("v_maximumminimum_*", 3, |[a, b, c]| minimum(maximum(a, b), c)),
    ]
    .concat()
}

/// The significand between a half and one, and the exponent.
fn parts(value: f64) -> (f64, i128) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let (mut significand, mut exponent) = (value, 0);
    while significand.abs() >= 1.0 {
        (significand, exponent) = (significand / 2.0, exponent + 1);
    }
    while significand.abs() < 0.5 {
        (significand, exponent) = (significand * 2.0, exponent - 1);
    }
    (significand, exponent)
}

fn roundings() -> Vec<Reference> {
    fn fraction(value: f64, below_one: f64) -> f64 {
        let rest = value - down(value);
        if rest > below_one { below_one } else { rest }
    }
    [
        sizes("v_trunc_*", 1, |[a, ..]| toward_zero(a)),
        sizes("v_ceil_*", 1, |[a, ..]| up(a)),
        sizes("v_floor_*", 1, |[a, ..]| down(a)),
        sizes("v_rndne_*", 1, |[a, ..]| even(a)),
        sizes("v_frexp_mant_*", 1, |[a, ..]| parts(a).0),
        rows("v_frexp_exp_i32_f32", "f32 > b32", |x| low(parts(x.f(0).into()).1)),
        rows("v_frexp_exp_i32_f64", "f64 > b32", |x| low(parts(x.d(0)).1)),
        rows("v_frexp_exp_i16_f16", "f16 > b16", |x| low(parts(x.h(0)).1)),
        rows("v_fract_f32", "f32 > f32", |x| single(fraction(x.f(0).into(), 1.0 - power(-24)) as f32)),
        rows("v_fract_f64", "f64 > f64", |x| double(fraction(x.d(0), 1.0 - power(-53)))),
        rows("v_fract_f16", "f16 > f16", |x| short(fraction(x.h(0), 1.0 - power(-11)))),
    ]
    .concat()
}

/// Toward zero, and to the nearest that there is; 0 of what is no number.
fn whole(value: f64, lowest: i128, highest: i128) -> i128 {
    let toward_zero = toward_zero(value);
    if value.is_nan() {
        0
    } else if toward_zero <= lowest as f64 {
        lowest
    } else if toward_zero >= highest as f64 {
        highest
    } else {
        toward_zero as i128
    }
}

const I32: (i128, i128) = (i32::MIN as i128, i32::MAX as i128);
const U32: (i128, i128) = (0, u32::MAX as i128);

fn conversions() -> Vec<Reference> {
    [
        rows("v_cvt_f32_i32", "b32 > f32", |x| single(to_single(x.i(0) as f64))),
        rows("v_cvt_f32_u32", "b32 > f32", |x| single(to_single(x.n(0) as f64))),
        rows("v_cvt_f64_i32", "b32 > f64", |x| double(x.i(0) as f64)),
        rows("v_cvt_f64_u32", "b32 > f64", |x| double(x.n(0) as f64)),
        rows("v_cvt_i32_f32", "f32 > b32", |x| low(whole(x.f(0).into(), I32.0, I32.1))),
        rows("v_cvt_u32_f32", "f32 > b32", |x| low(whole(x.f(0).into(), U32.0, U32.1))),
        rows("v_cvt_i32_f64", "f64 > b32", |x| low(whole(x.d(0), I32.0, I32.1))),
        rows("v_cvt_u32_f64", "f64 > b32", |x| low(whole(x.d(0), U32.0, U32.1))),
        rows("v_cvt_floor_i32_f32", "f32 > b32", |x| low(whole(down(x.f(0).into()), I32.0, I32.1))),
        rows("v_cvt_off_f32_i4", "b32 > f32", |x| {
            let nibble = x.n(0) % 16;
            single((if nibble < 8 { nibble } else { nibble - 16 }) as f32 * 0.0625)
        }),
        rows("v_cvt_f32_ubyte0", "b32 > f32", |x| single(x.u(0).to_le_bytes()[0].into())),
        rows("v_cvt_f32_ubyte1", "b32 > f32", |x| single(x.u(0).to_le_bytes()[1].into())),
        rows("v_cvt_f32_ubyte2", "b32 > f32", |x| single(x.u(0).to_le_bytes()[2].into())),
        rows("v_cvt_f32_ubyte3", "b32 > f32", |x| single(x.u(0).to_le_bytes()[3].into())),
        rows("v_cvt_f64_f32", "f32 > f64", |x| double(x.f(0).into())),
        rows("v_cvt_f32_f64", "f64 > f32", |x| single(to_single(x.d(0)))),
        rows("v_cvt_f16_f32", "f32 > f16", |x| short(x.f(0).into())),
        rows("v_cvt_f32_f16", "f16 > f32", |x| single(x.h(0) as f32)),
        rows("v_cvt_f16_u16", "b16 > f16", |x| short(x.n16(0) as f64)),
        rows("v_cvt_f16_i16", "b16 > f16", |x| short(x.i16(0) as f64)),
        rows("v_cvt_u16_f16", "f16 > b16", |x| low(whole(x.h(0), 0, 0xffff))),
        rows("v_cvt_i16_f16", "f16 > b16", |x| low(whole(x.h(0), -32768, 32767))),
        rows("v_cvt_pk_i16_f32", "f32 f32 > b32", |x| pair(x, |a| whole(a, -32768, 32767))),
        rows("v_cvt_pk_u16_f32", "f32 f32 > b32", |x| pair(x, |a| whole(a, 0, 0xffff))),
        rows("v_cvt_pk_rtz_f16_f32", "f32 f32 > b32", |x| pair(x, cut_half)),
        rows("v_cvt_pk_u8_f32", "f32 b32 b32 > b32", |x| {
            let mut bytes = x.u(2).to_le_bytes();
            bytes[(x.u(1) % 4) as usize] = whole(even(x.f(0).into()), 0, 255) as u8;
            low(u32::from_le_bytes(bytes).into())
        }),
    ]
    .concat()
}

/// Two numbers of 16 bits.
fn pair(x: In, f: fn(f64) -> i128) -> (u64, bool) {
    let half = |index: usize| f(x.f(index).into()).rem_euclid(65536);
    low(half(0) + 65536 * half(1))
}

/// The half next to a number on the side of zero.
fn cut_half(value: f64) -> i128 {
    if value.is_nan() {
        // The sign and the upper digits stay.
        let bits = value.to_bits();
        return i128::from(bits >> 48 & 0x8000 | 0x7e00 | bits >> 42 & 0x3ff);
    }
    let nearest = half_bits(value);
    let beyond = super::half(nearest).abs() > value.abs();
    i128::from(nearest) - i128::from(beyond)
}

/// Each half by itself.
fn packed() -> Vec<Reference> {
    let (two, three) = ("2f16 2f16 > 2f16", "2f16 2f16 2f16 > 2f16");
    [
        rows("v_pk_add_f16", two, |x| short(x.h(0) + x.h(1))),
        rows("v_pk_mul_f16", two, |x| short(x.h(0) * x.h(1))),
        rows("v_pk_fma_f16 v_pk_fmac_f16", three, |x| low(fused_half(x.h(0), x.h(1), x.h(2)).into())),
        rows("v_pk_min_f16 v_pk_min_num_f16", two, |x| short(least(x.h(0), x.h(1)))),
        rows("v_pk_max_f16 v_pk_max_num_f16", two, |x| short(most(x.h(0), x.h(1)))),
        rows("v_pk_minimum_f16", two, |x| short(minimum(x.h(0), x.h(1)))),
        rows("v_pk_maximum_f16", two, |x| short(maximum(x.h(0), x.h(1)))),
    ]
    .concat()
}

/// What the hardware gives to about one unit. Subnormal singles count as zeros on both sides.
fn mathematics() -> Vec<Reference> {
    fn normal(value: f32) -> f64 {
        if value.is_subnormal() { f64::from(0f32.copysign(value)) } else { value.into() }
    }
    fn flushed(value: f64) -> (u64, bool) {
        let value = value as f32;
        single(if value.is_subnormal() { 0f32.copysign(value) } else { value })
    }
    [
        rows("v_rcp_f32 v_rcp_iflag_f32", "f32 > f32", |x| flushed(1.0 / normal(x.f(0)))),
        rows("v_rsq_f32", "f32 > f32", |x| flushed(1.0 / normal(x.f(0)).sqrt())),
        rows("v_sqrt_f32", "f32 > f32", |x| flushed(normal(x.f(0)).sqrt())),
        rows("v_exp_f32", "f32 > f32", |x| flushed(normal(x.f(0)).exp2())),
        rows("v_log_f32", "f32 > f32", |x| flushed(normal(x.f(0)).log2())),
        rows("v_rcp_f16", "f16 > f16", |x| short(1.0 / x.h(0))),
        rows("v_rsq_f16", "f16 > f16", |x| short(1.0 / x.h(0).sqrt())),
        rows("v_sqrt_f16", "f16 > f16", |x| short(x.h(0).sqrt())),
        rows("v_exp_f16", "f16 > f16", |x| short(x.h(0).exp2())),
        rows("v_log_f16", "f16 > f16", |x| short(x.h(0).log2())),
        rows("v_rcp_f64", "f64 > f64", |x| double(1.0 / x.d(0))),
        rows("v_rsq_f64", "f64 > f64", |x| double(1.0 / x.d(0).sqrt())),
        rows("v_sqrt_f64", "f64 > f64", |x| double(x.d(0).sqrt())),
    ]
    .into_iter()
    .flat_map(|references| within(2, references))
    .collect()
}
