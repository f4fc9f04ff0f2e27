//! Integers and bits.

use super::{In, Reference, clamped, low, rows};

pub fn references() -> Vec<Reference> {
    [logic(), shifts(), fields(), sums(), carries(), products(), bounds(), shorts(), packed()].concat()
}

const TOP32: i128 = u32::MAX as i128;

fn logic() -> Vec<Reference> {
    [
        rows("v_mov_b32", "b32 > b32", |x| low(x.n(0))),
        rows("v_mov_b16", "b16 > b16", |x| low(x.n16(0))),
        rows("v_not_b32", "b32 > b32", |x| low(TOP32 - x.n(0))),
        rows("v_not_b16", "b16 > b16", |x| low(0xffff - x.n16(0))),
        rows("v_and_b32", "b32 b32 > b32", |x| low(each_bit(x, |a, b, _| a & b))),
        rows("v_or_b32", "b32 b32 > b32", |x| low(each_bit(x, |a, b, _| a | b))),
        rows("v_xor_b32", "b32 b32 > b32", |x| low(each_bit(x, |a, b, _| a ^ b))),
        rows("v_xnor_b32", "b32 b32 > b32", |x| low(each_bit(x, |a, b, _| 1 - (a ^ b)))),
        rows("v_and_b16", "b16 b16 > b16", |x| low(each_bit(x, |a, b, _| a & b))),
        rows("v_or_b16", "b16 b16 > b16", |x| low(each_bit(x, |a, b, _| a | b))),
        rows("v_xor_b16", "b16 b16 > b16", |x| low(each_bit(x, |a, b, _| a ^ b))),
        rows("v_and_or_b32", "b32 b32 b32 > b32", |x| low(each_bit(x, |a, b, c| a & b | c))),
        rows("v_or3_b32", "b32 b32 b32 > b32", |x| low(each_bit(x, |a, b, c| a | b | c))),
        rows("v_xor3_b32", "b32 b32 b32 > b32", |x| low(each_bit(x, |a, b, c| a ^ b ^ c))),
        rows("v_bfi_b32", "b32 b32 b32 > b32", |x| low(each_bit(x, |a, b, c| if a == 1 { b } else { c }))),
        rows("v_cndmask_b32", "b32 b32 bit > b32", |x| low(if x.bit { x.n(1) } else { x.n(0) })),
        rows("v_cndmask_b16", "b16 b16 bit > b16", |x| low(if x.bit { x.n16(1) } else { x.n16(0) })),
        rows("v_pack_b32_f16", "f16 f16 > b32", |x| low(x.n16(0) + x.n16(1) * 65536)),
    ]
    .concat()
}

/// A function of the sources' bits, one after the other.
fn each_bit(x: In, f: fn(u64, u64, u64) -> u64) -> i128 {
    (0..32).fold(0, |sum, i| {
        let [a, b, c] = x.bits.map(|bits| bits >> i & 1);
        sum + (i128::from(f(a, b, c)) << i)
    })
}

fn two_to_the(exponent: u32) -> i128 {
    1 << exponent
}

fn shifts() -> Vec<Reference> {
    [
        rows("v_lshlrev_b32", "b32 b32 > b32", |x| low(x.n(1) * two_to_the(x.u(0) % 32))),
        rows("v_lshrrev_b32", "b32 b32 > b32", |x| low(x.n(1) / two_to_the(x.u(0) % 32))),
        rows("v_ashrrev_i32", "b32 b32 > b32", |x| low(x.i(1).div_euclid(two_to_the(x.u(0) % 32)))),
        rows("v_lshlrev_b64", "b32 b64 > b64", |x| {
            low(i128::from(x.bits[1] as i64) * two_to_the(x.u(0) % 64))
        }),
        rows("v_lshrrev_b64", "b32 b64 > b64", |x| low(i128::from(x.bits[1]) / two_to_the(x.u(0) % 64))),
        rows("v_ashrrev_i64", "b32 b64 > b64", |x| {
            low(i128::from(x.bits[1] as i64).div_euclid(two_to_the(x.u(0) % 64)))
        }),
        rows("v_lshlrev_b16", "b16 b16 > b16", |x| low(x.n16(1) * two_to_the(x.u(0) % 16))),
        rows("v_lshrrev_b16", "b16 b16 > b16", |x| low(x.n16(1) / two_to_the(x.u(0) % 16))),
        rows("v_ashrrev_i16", "b16 b16 > b16", |x| low(x.i16(1).div_euclid(two_to_the(x.u(0) % 16)))),
        rows("v_lshl_add_u32", "b32 b32 b32 > b32", |x| low(x.n(0) * two_to_the(x.u(1) % 32) + x.n(2))),
        rows("v_add_lshl_u32", "b32 b32 b32 > b32", |x| low((x.n(0) + x.n(1)) * two_to_the(x.u(2) % 32))),
        rows("v_lshl_or_b32", "b32 b32 b32 > b32", |x| low((x.n(0) * two_to_the(x.u(1) % 32)) | x.n(2))),
        rows("v_alignbit_b32", "b32 b32 b32 > b32", |x| {
            low((x.n(0) * two_to_the(32) + x.n(1)) / two_to_the(x.u(2) % 32))
        }),
        rows("v_alignbyte_b32", "b32 b32 b32 > b32", |x| {
            low((x.n(0) * two_to_the(32) + x.n(1)) / two_to_the(8 * (x.u(2) % 4)))
        }),
        rows("v_lshl_add_u64", "b64 b32 b64 > b64", |x| {
            low(i128::from(x.bits[0]) * two_to_the(x.u(1) % 8) + i128::from(x.bits[2]))
        }),
    ]
    .concat()
}

fn fields() -> Vec<Reference> {
    [
        rows("v_bfe_u32", "b32 b32 b32 > b32", |x| {
            low(x.n(0) / two_to_the(x.u(1) % 32) % two_to_the(x.u(2) % 32))
        }),
        rows("v_bfe_i32", "b32 b32 b32 > b32", |x| {
            let width = x.u(2) % 32;
            let field = x.i(0).div_euclid(two_to_the(x.u(1) % 32)).rem_euclid(two_to_the(width));
            let negative = width > 0 && field >= two_to_the(width - 1);
            low(field - if negative { two_to_the(width) } else { 0 })
        }),
        rows("v_bfm_b32", "b32 b32 > b32", |x| low((two_to_the(x.u(0) % 32) - 1) * two_to_the(x.u(1) % 32))),
        rows("v_bfrev_b32", "b32 > b32", |x| low((0..32).map(|i| (x.n(0) >> i & 1) << (31 - i)).sum())),
        rows("v_bcnt_u32_b32", "b32 b32 > b32", |x| {
            low((0..32).map(|i| x.n(0) >> i & 1).sum::<i128>() + x.n(1))
        }),
        rows("v_clz_i32_u32", "b32 > b32", |x| {
            low((0..32).position(|i| x.u(0) >> (31 - i) & 1 == 1).map_or(-1, |i| i as i128))
        }),
        rows("v_ctz_i32_b32", "b32 > b32", |x| {
            low((0..32).position(|i| x.u(0) >> i & 1 == 1).map_or(-1, |i| i as i128))
        }),
        rows("v_cls_i32", "b32 > b32", |x| {
            let sign = x.u(0) >> 31;
            low((1..32).find(|i| x.u(0) >> (31 - i) & 1 != sign).map_or(-1, i128::from))
        }),
        rows("v_perm_b32", "b32 b32 b32 > b32", |x| {
            let bytes: Vec<u8> = [x.u(1).to_le_bytes(), x.u(0).to_le_bytes()].concat();
            let chosen = x.u(2).to_le_bytes().map(|select| match select {
                0..=7 => bytes[usize::from(select)],
                8..=11 => {
                    if bytes[usize::from(2 * (select - 8) + 1)] >= 128 {
                        255
                    } else {
                        0
                    }
                }
                12 => 0,
                _ => 255,
            });
            low(u32::from_le_bytes(chosen).into())
        }),
        rows("v_mbcnt_lo_u32_b32", "b32 b32 > b32", |x| {
            low(x.n(1) + (0..x.lane.min(32)).map(|i| x.n(0) >> i & 1).sum::<i128>())
        }),
        rows("v_mbcnt_hi_u32_b32", "b32 b32 > b32", |x| {
            low(x.n(1) + (32..x.lane.max(32)).map(|i| x.n(0) >> (i - 32) & 1).sum::<i128>())
        }),
        rows("v_sat_pk_u8_i16", "b32 > b32", |x| {
            let byte = |half: u32| i128::from(half as i16).clamp(0, 255);
            low(byte(x.u(0)) + 256 * byte(x.u(0) >> 16))
        }),
    ]
    .concat()
}

fn sums() -> Vec<Reference> {
    [
        clamped(rows("v_add_nc_u32", "b32 b32 > b32", |x| low(x.n(0) + x.n(1))), |x| {
            low((x.n(0) + x.n(1)).min(TOP32))
        }),
        clamped(rows("v_sub_nc_u32", "b32 b32 > b32", |x| low(x.n(0) - x.n(1))), |x| {
            low((x.n(0) - x.n(1)).max(0))
        }),
        clamped(rows("v_subrev_nc_u32", "b32 b32 > b32", |x| low(x.n(1) - x.n(0))), |x| {
            low((x.n(1) - x.n(0)).max(0))
        }),
        clamped(rows("v_add_nc_i32 v_add_i32", "b32 b32 > b32", |x| low(x.i(0) + x.i(1))), |x| {
            signed32(x.i(0) + x.i(1))
        }),
        clamped(rows("v_sub_nc_i32 v_sub_i32", "b32 b32 > b32", |x| low(x.i(0) - x.i(1))), |x| {
            signed32(x.i(0) - x.i(1))
        }),
        rows("v_add3_u32", "b32 b32 b32 > b32", |x| low(x.n(0) + x.n(1) + x.n(2))),
        rows("v_xad_u32", "b32 b32 b32 > b32", |x| low((x.n(0) ^ x.n(1)) + x.n(2))),
        rows("v_sad_u8", "b32 b32 b32 > b32", |x| low(x.n(2) + differences(x, 8, false))),
        rows("v_sad_hi_u8", "b32 b32 b32 > b32", |x| low(x.n(2) + 65536 * differences(x, 8, false))),
        rows("v_msad_u8", "b32 b32 b32 > b32", |x| low(x.n(2) + differences(x, 8, true))),
        rows("v_sad_u16", "b32 b32 b32 > b32", |x| low(x.n(2) + differences(x, 16, false))),
        rows("v_sad_u32", "b32 b32 b32 > b32", |x| low(x.n(2) + differences(x, 32, false))),
    ]
    .concat()
}

fn signed32(value: i128) -> (u64, bool) {
    low(value.clamp(i32::MIN.into(), i32::MAX.into()))
}

/// The sum of the distances of the sources' parts; `masked`: without those where the second is 0.
fn differences(x: In, bits: u32, masked: bool) -> i128 {
    let part = |value: i128, at: u32| value / two_to_the(at) % two_to_the(bits);
    (0..32 / bits)
        .map(|i| (part(x.n(0), bits * i), part(x.n(1), bits * i)))
        .filter(|&(_, b)| !masked || b != 0)
        .map(|(a, b)| (a - b).abs())
        .sum()
}

fn carries() -> Vec<Reference> {
    fn above(sum: i128) -> (u64, bool) {
        (sum as u64, sum > TOP32)
    }
    fn below(difference: i128) -> (u64, bool) {
        (difference as u64, difference < 0)
    }
    fn most(sum: i128) -> (u64, bool) {
        (sum.min(TOP32) as u64, sum > TOP32)
    }
    fn least(difference: i128) -> (u64, bool) {
        (difference.max(0) as u64, difference < 0)
    }
    let c = "b32 b32 bit > b32 bit";
    [
        clamped(rows("v_add_co_u32", "b32 b32 > b32 bit", |x| above(x.n(0) + x.n(1))), |x| {
            most(x.n(0) + x.n(1))
        }),
        clamped(rows("v_sub_co_u32", "b32 b32 > b32 bit", |x| below(x.n(0) - x.n(1))), |x| {
            least(x.n(0) - x.n(1))
        }),
        clamped(rows("v_subrev_co_u32", "b32 b32 > b32 bit", |x| below(x.n(1) - x.n(0))), |x| {
            least(x.n(1) - x.n(0))
        }),
        clamped(rows("v_add_co_ci_u32", c, |x| above(x.n(0) + x.n(1) + i128::from(x.bit))), |x| {
            most(x.n(0) + x.n(1) + i128::from(x.bit))
        }),
        clamped(rows("v_sub_co_ci_u32", c, |x| below(x.n(0) - x.n(1) - i128::from(x.bit))), |x| {
            least(x.n(0) - x.n(1) - i128::from(x.bit))
        }),
        clamped(rows("v_subrev_co_ci_u32", c, |x| below(x.n(1) - x.n(0) - i128::from(x.bit))), |x| {
            least(x.n(1) - x.n(0) - i128::from(x.bit))
        }),
        rows("v_mad_u64_u32 v_mad_co_u64_u32", "b32 b32 b64 > b64 bit", |x| {
            let sum = x.n(0) * x.n(1) + i128::from(x.bits[2]);
            (sum as u64, sum > i128::from(u64::MAX))
        }),
        rows("v_mad_i64_i32 v_mad_co_i64_i32", "b32 b32 b64 > b64 bit", |x| {
            let sum = x.i(0) * x.i(1) + i128::from(x.bits[2] as i64);
            (sum as u64, i64::try_from(sum).is_err())
        }),
    ]
    .concat()
}

fn products() -> Vec<Reference> {
    fn signed24(value: i128) -> i128 {
        let part = value.rem_euclid(two_to_the(24));
        if part >= two_to_the(23) { part - two_to_the(24) } else { part }
    }
    fn unsigned24(value: i128) -> i128 {
        value.rem_euclid(two_to_the(24))
    }
    [
        rows("v_mul_lo_u32 v_mul_lo_i32", "b32 b32 > b32", |x| low(x.n(0) * x.n(1))),
        rows("v_mul_hi_u32", "b32 b32 > b32", |x| low(x.n(0) * x.n(1) / two_to_the(32))),
        rows("v_mul_hi_i32", "b32 b32 > b32", |x| low((x.i(0) * x.i(1)).div_euclid(two_to_the(32)))),
        rows("v_mul_u32_u24", "b32 b32 > b32", |x| low(unsigned24(x.n(0)) * unsigned24(x.n(1)))),
        rows("v_mul_i32_i24", "b32 b32 > b32", |x| low(signed24(x.n(0)) * signed24(x.n(1)))),
        rows("v_mul_hi_u32_u24", "b32 b32 > b32", |x| {
            low(unsigned24(x.n(0)) * unsigned24(x.n(1)) / two_to_the(32))
        }),
        rows("v_mul_hi_i32_i24", "b32 b32 > b32", |x| {
            low((signed24(x.n(0)) * signed24(x.n(1))).div_euclid(two_to_the(32)))
        }),
        rows("v_mad_u32_u24", "b32 b32 b32 > b32", |x| low(unsigned24(x.n(0)) * unsigned24(x.n(1)) + x.n(2))),
        rows("v_mad_i32_i24", "b32 b32 b32 > b32", |x| low(signed24(x.n(0)) * signed24(x.n(1)) + x.i(2))),
        rows("v_mad_u32_u16", "b16 b16 b32 > b32", |x| low(x.n16(0) * x.n16(1) + x.n(2))),
        rows("v_mad_i32_i16", "b16 b16 b32 > b32", |x| low(x.i16(0) * x.i16(1) + x.i(2))),
        rows("v_dot4c_i32_i8", "b32 b32 b32 > b32", |x| {
            let byte = |word: u32, i: usize| i128::from(word.to_le_bytes()[i] as i8);
            low((0..4).map(|i| byte(x.u(0), i) * byte(x.u(1), i)).sum::<i128>() + x.i(2))
        }),
    ]
    .concat()
}

fn middle(values: [i128; 3]) -> (u64, bool) {
    let mut sorted = values;
    sorted.sort_unstable();
    low(sorted[1])
}

fn bounds() -> Vec<Reference> {
    [
        rows("v_min_u32", "b32 b32 > b32", |x| low(if x.n(0) < x.n(1) { x.n(0) } else { x.n(1) })),
        rows("v_max_u32", "b32 b32 > b32", |x| low(if x.n(0) < x.n(1) { x.n(1) } else { x.n(0) })),
        rows("v_min_i32", "b32 b32 > b32", |x| low(if x.i(0) < x.i(1) { x.i(0) } else { x.i(1) })),
        rows("v_max_i32", "b32 b32 > b32", |x| low(if x.i(0) < x.i(1) { x.i(1) } else { x.i(0) })),
        rows("v_min3_u32", "b32 b32 b32 > b32", |x| low(x.n(0).min(x.n(1)).min(x.n(2)))),
        rows("v_max3_u32", "b32 b32 b32 > b32", |x| low(x.n(0).max(x.n(1)).max(x.n(2)))),
        rows("v_med3_u32", "b32 b32 b32 > b32", |x| middle([x.n(0), x.n(1), x.n(2)])),
        rows("v_min3_i32", "b32 b32 b32 > b32", |x| low(x.i(0).min(x.i(1)).min(x.i(2)))),
        rows("v_max3_i32", "b32 b32 b32 > b32", |x| low(x.i(0).max(x.i(1)).max(x.i(2)))),
        rows("v_med3_i32", "b32 b32 b32 > b32", |x| middle([x.i(0), x.i(1), x.i(2)])),
        rows("v_maxmin_u32", "b32 b32 b32 > b32", |x| low(x.n(0).max(x.n(1)).min(x.n(2)))),
        rows("v_minmax_u32", "b32 b32 b32 > b32", |x| low(x.n(0).min(x.n(1)).max(x.n(2)))),
        rows("v_maxmin_i32", "b32 b32 b32 > b32", |x| low(x.i(0).max(x.i(1)).min(x.i(2)))),
        rows("v_minmax_i32", "b32 b32 b32 > b32", |x| low(x.i(0).min(x.i(1)).max(x.i(2)))),
    ]
    .concat()
}

fn shorts() -> Vec<Reference> {
    fn signed(value: i128) -> (u64, bool) {
        low(value.clamp(i16::MIN.into(), i16::MAX.into()))
    }
    let (two, three) = ("b16 b16 > b16", "b16 b16 b16 > b16");
    [
        clamped(rows("v_add_nc_u16", two, |x| low(x.n16(0) + x.n16(1))), |x| {
            low((x.n16(0) + x.n16(1)).min(0xffff))
        }),
        clamped(rows("v_sub_nc_u16", two, |x| low(x.n16(0) - x.n16(1))), |x| {
            low((x.n16(0) - x.n16(1)).max(0))
        }),
        clamped(rows("v_subrev_nc_u16", two, |x| low(x.n16(1) - x.n16(0))), |x| {
            low((x.n16(1) - x.n16(0)).max(0))
        }),
        clamped(rows("v_add_nc_i16", two, |x| low(x.i16(0) + x.i16(1))), |x| signed(x.i16(0) + x.i16(1))),
        clamped(rows("v_sub_nc_i16", two, |x| low(x.i16(0) - x.i16(1))), |x| signed(x.i16(0) - x.i16(1))),
        clamped(rows("v_mad_u16", three, |x| low(x.n16(0) * x.n16(1) + x.n16(2))), |x| {
            low((x.n16(0) * x.n16(1) + x.n16(2)).min(0xffff))
        }),
        clamped(rows("v_mad_i16", three, |x| low(x.i16(0) * x.i16(1) + x.i16(2))), |x| {
            signed(x.i16(0) * x.i16(1) + x.i16(2))
        }),
        rows("v_mul_lo_u16", two, |x| low(x.n16(0) * x.n16(1))),
        rows("v_min_u16", two, |x| low(x.n16(0).min(x.n16(1)))),
        rows("v_max_u16", two, |x| low(x.n16(0).max(x.n16(1)))),
        rows("v_min_i16", two, |x| low(x.i16(0).min(x.i16(1)))),
        rows("v_max_i16", two, |x| low(x.i16(0).max(x.i16(1)))),
        rows("v_min3_u16", three, |x| low(x.n16(0).min(x.n16(1)).min(x.n16(2)))),
        rows("v_max3_u16", three, |x| low(x.n16(0).max(x.n16(1)).max(x.n16(2)))),
        rows("v_med3_u16", three, |x| middle([x.n16(0), x.n16(1), x.n16(2)])),
        rows("v_min3_i16", three, |x| low(x.i16(0).min(x.i16(1)).min(x.i16(2)))),
        rows("v_max3_i16", three, |x| low(x.i16(0).max(x.i16(1)).max(x.i16(2)))),
        rows("v_med3_i16", three, |x| middle([x.i16(0), x.i16(1), x.i16(2)])),
        rows("v_cvt_i32_i16", "b16 > b32", |x| low(x.i16(0))),
        rows("v_cvt_u32_u16", "b16 > b32", |x| low(x.n16(0))),
        rows("v_cvt_pk_u16_u32", "b32 b32 > b32", |x| low(x.n(0).min(0xffff) + 65536 * x.n(1).min(0xffff))),
        rows("v_cvt_pk_i16_i32", "b32 b32 > b32", |x| {
            let half = |value: i128| value.clamp(-32768, 32767).rem_euclid(65536);
            low(half(x.i(0)) + 65536 * half(x.i(1)))
        }),
    ]
    .concat()
}

/// Each half by itself.
fn packed() -> Vec<Reference> {
    fn signed(value: i128) -> (u64, bool) {
        low(value.clamp(i16::MIN.into(), i16::MAX.into()))
    }
    let (two, three) = ("2b16 2b16 > 2b16", "2b16 2b16 2b16 > 2b16");
    [
        clamped(rows("v_pk_add_u16", two, |x| low(x.n16(0) + x.n16(1))), |x| {
            low((x.n16(0) + x.n16(1)).min(0xffff))
        }),
        clamped(rows("v_pk_sub_u16", two, |x| low(x.n16(0) - x.n16(1))), |x| {
            low((x.n16(0) - x.n16(1)).max(0))
        }),
        clamped(rows("v_pk_add_i16", two, |x| low(x.i16(0) + x.i16(1))), |x| signed(x.i16(0) + x.i16(1))),
        clamped(rows("v_pk_sub_i16", two, |x| low(x.i16(0) - x.i16(1))), |x| signed(x.i16(0) - x.i16(1))),
        rows("v_pk_mul_lo_u16", two, |x| low(x.n16(0) * x.n16(1))),
        rows("v_pk_mad_u16", three, |x| low(x.n16(0) * x.n16(1) + x.n16(2))),
        rows("v_pk_mad_i16", three, |x| low(x.i16(0) * x.i16(1) + x.i16(2))),
        rows("v_pk_lshlrev_b16", two, |x| low(x.n16(1) * two_to_the(x.u(0) % 16))),
        rows("v_pk_lshrrev_b16", two, |x| low(x.n16(1) / two_to_the(x.u(0) % 16))),
        rows("v_pk_ashrrev_i16", two, |x| low(x.i16(1).div_euclid(two_to_the(x.u(0) % 16)))),
        rows("v_pk_min_u16", two, |x| low(x.n16(0).min(x.n16(1)))),
        rows("v_pk_max_u16", two, |x| low(x.n16(0).max(x.n16(1)))),
        rows("v_pk_min_i16", two, |x| low(x.i16(0).min(x.i16(1)))),
        rows("v_pk_max_i16", two, |x| low(x.i16(0).max(x.i16(1)))),
    ]
    .concat()
}
