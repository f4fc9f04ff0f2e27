//! Arithmetic of integers of 24 and 32 bits.

use super::super::kernel::{map2, map3};
use super::Row;

pub fn rows() -> Vec<Row> {
    [sums(), products(), bounds(), sums_of_differences(), dot_products()].concat()
}

fn sums() -> Vec<Row> {
    vec![
        (
            "v_add_nc_u32",
            map2(|a: u32, b: u32| a.wrapping_add(b)).or_clamped(map2(|a: u32, b: u32| a.saturating_add(b))),
        ),
        (
            "v_sub_nc_u32",
            map2(|a: u32, b: u32| a.wrapping_sub(b)).or_clamped(map2(|a: u32, b: u32| a.saturating_sub(b))),
        ),
        (
            "v_subrev_nc_u32",
            map2(|a: u32, b: u32| b.wrapping_sub(a)).or_clamped(map2(|a: u32, b: u32| b.saturating_sub(a))),
        ),
        (
            "v_add_nc_i32",
            map2(|a: i32, b: i32| a.wrapping_add(b)).or_clamped(map2(|a: i32, b: i32| a.saturating_add(b))),
        ),
        (
            "v_sub_nc_i32",
            map2(|a: i32, b: i32| a.wrapping_sub(b)).or_clamped(map2(|a: i32, b: i32| a.saturating_sub(b))),
        ),
        (
            "v_add_i32",
            map2(|a: i32, b: i32| a.wrapping_add(b)).or_clamped(map2(|a: i32, b: i32| a.saturating_add(b))),
        ),
        (
            "v_sub_i32",
            map2(|a: i32, b: i32| a.wrapping_sub(b)).or_clamped(map2(|a: i32, b: i32| a.saturating_sub(b))),
        ),
        ("v_add3_u32", map3(|a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c))),
    ]
}

fn products() -> Vec<Row> {
    vec![
        ("v_mul_lo_u32", map2(|a: u32, b: u32| a.wrapping_mul(b))),
        ("v_mul_lo_i32", map2(|a: u32, b: u32| a.wrapping_mul(b))),
        ("v_mul_hi_u32", map2(|a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32)),
        ("v_mul_hi_i32", map2(|a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32)),
        ("v_mul_u32_u24", map2(|a: u32, b: u32| low24(a).wrapping_mul(low24(b)))),
        ("v_mul_i32_i24", map2(|a: i32, b: i32| signed24(a).wrapping_mul(signed24(b)))),
        (
            "v_mul_hi_u32_u24",
            map2(|a: u32, b: u32| ((u64::from(low24(a)) * u64::from(low24(b))) >> 32) as u32),
        ),
        (
            "v_mul_hi_i32_i24",
            map2(|a: i32, b: i32| ((i64::from(signed24(a)) * i64::from(signed24(b))) >> 32) as i32),
        ),
        ("v_mad_u32_u24", map3(|a: u32, b: u32, c: u32| low24(a).wrapping_mul(low24(b)).wrapping_add(c))),
        (
            "v_mad_i32_i24",
            map3(|a: i32, b: i32, c: i32| signed24(a).wrapping_mul(signed24(b)).wrapping_add(c)),
        ),
        ("v_mad_u32_u16", map3(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))),
        ("v_mad_i32_i16", map3(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c))),
    ]
}

fn bounds() -> Vec<Row> {
    vec![
        ("v_min_u32", map2(|a: u32, b: u32| a.min(b))),
        ("v_max_u32", map2(|a: u32, b: u32| a.max(b))),
        ("v_min_i32", map2(|a: i32, b: i32| a.min(b))),
        ("v_max_i32", map2(|a: i32, b: i32| a.max(b))),
        ("v_min3_u32", map3(|a: u32, b: u32, c: u32| a.min(b).min(c))),
        ("v_max3_u32", map3(|a: u32, b: u32, c: u32| a.max(b).max(c))),
        ("v_med3_u32", map3(median::<u32>)),
        ("v_min3_i32", map3(|a: i32, b: i32, c: i32| a.min(b).min(c))),
        ("v_max3_i32", map3(|a: i32, b: i32, c: i32| a.max(b).max(c))),
        ("v_med3_i32", map3(median::<i32>)),
        ("v_maxmin_u32", map3(|a: u32, b: u32, c: u32| a.max(b).min(c))),
        ("v_minmax_u32", map3(|a: u32, b: u32, c: u32| a.min(b).max(c))),
        ("v_maxmin_i32", map3(|a: i32, b: i32, c: i32| a.max(b).min(c))),
        ("v_minmax_i32", map3(|a: i32, b: i32, c: i32| a.min(b).max(c))),
    ]
}

fn sums_of_differences() -> Vec<Row> {
    vec![
        ("v_sad_u8", map3(|a: u32, b: u32, c: u32| c.wrapping_add(byte_differences(a, b)))),
        ("v_sad_hi_u8", map3(|a: u32, b: u32, c: u32| c.wrapping_add(byte_differences(a, b) << 16))),
        (
            "v_sad_u16",
            map3(|a: u32, b: u32, c: u32| {
                c.wrapping_add((a & 0xffff).abs_diff(b & 0xffff)).wrapping_add((a >> 16).abs_diff(b >> 16))
            }),
        ),
        ("v_sad_u32", map3(|a: u32, b: u32, c: u32| a.abs_diff(b).wrapping_add(c))),
        (
            "v_msad_u8",
            map3(|a: u32, b: u32, c: u32| {
                let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
                pairs
                    .filter(|&(_, b)| b != 0)
                    .fold(c, |sum, (a, b)| sum.wrapping_add(u32::from(a.abs_diff(b))))
            }),
        ),
    ]
}

fn dot_products() -> Vec<Row> {
    vec![
        ("v_dot4c_i32_i8", map3(|a: u32, b: u32, c: i32| dot_bytes(a, b).wrapping_add(c))),
        ("v_dot8c_i32_i4", map3(|a: u32, b: u32, c: i32| dot_nibbles(a, b).wrapping_add(c))),
    ]
}

fn low24(a: u32) -> u32 {
    a & 0xff_ffff
}

fn signed24(a: i32) -> i32 {
    a << 8 >> 8
}

/// The middle one of three.
pub fn median<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

fn byte_differences(a: u32, b: u32) -> u32 {
    a.to_le_bytes().iter().zip(b.to_le_bytes()).map(|(&a, b)| u32::from(a.abs_diff(b))).sum()
}

fn dot_bytes(a: u32, b: u32) -> i32 {
    a.to_le_bytes().iter().zip(b.to_le_bytes()).map(|(&a, b)| i32::from(a as i8) * i32::from(b as i8)).sum()
}

fn dot_nibbles(a: u32, b: u32) -> i32 {
    let nibble = |word: u32, i: u32| (word << (28 - 4 * i)) as i32 >> 28;
    (0..8).map(|i| nibble(a, i) * nibble(b, i)).sum()
}
