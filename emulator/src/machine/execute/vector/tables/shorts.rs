//! Arithmetic of integers of 16 bits.

use super::super::kernel::{map2, map3};
use super::Row;
use super::integers::median;

pub fn rows() -> Vec<Row> {
    vec![
        (
            "v_add_nc_u16",
            map2(|a: u16, b: u16| a.wrapping_add(b)).or_clamped(map2(|a: u16, b: u16| a.saturating_add(b))),
        ),
        (
            "v_sub_nc_u16",
            map2(|a: u16, b: u16| a.wrapping_sub(b)).or_clamped(map2(|a: u16, b: u16| a.saturating_sub(b))),
        ),
        (
            "v_subrev_nc_u16",
            map2(|a: u16, b: u16| b.wrapping_sub(a)).or_clamped(map2(|a: u16, b: u16| b.saturating_sub(a))),
        ),
        (
            "v_add_nc_i16",
            map2(|a: i16, b: i16| a.wrapping_add(b)).or_clamped(map2(|a: i16, b: i16| a.saturating_add(b))),
        ),
        (
            "v_sub_nc_i16",
            map2(|a: i16, b: i16| a.wrapping_sub(b)).or_clamped(map2(|a: i16, b: i16| a.saturating_sub(b))),
        ),
        (
            "v_mad_u16",
            map3(|a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c)).or_clamped(map3(
                |a: u16, b: u16, c: u16| {
                    (u32::from(a) * u32::from(b)).saturating_add(u32::from(c)).min(0xffff) as u16
                },
            )),
        ),
        (
            "v_mad_i16",
            map3(|a: i16, b: i16, c: i16| a.wrapping_mul(b).wrapping_add(c)).or_clamped(map3(
                |a: i16, b: i16, c: i16| {
                    (i32::from(a) * i32::from(b) + i32::from(c)).clamp(-32768, 32767) as i16
                },
            )),
        ),
        ("v_mul_lo_u16", map2(|a: u16, b: u16| a.wrapping_mul(b))),
        ("v_min_u16", map2(|a: u16, b: u16| a.min(b))),
        ("v_max_u16", map2(|a: u16, b: u16| a.max(b))),
        ("v_min_i16", map2(|a: i16, b: i16| a.min(b))),
        ("v_max_i16", map2(|a: i16, b: i16| a.max(b))),
        ("v_min3_u16", map3(|a: u16, b: u16, c: u16| a.min(b).min(c))),
        ("v_max3_u16", map3(|a: u16, b: u16, c: u16| a.max(b).max(c))),
        ("v_med3_u16", map3(median::<u16>)),
        ("v_min3_i16", map3(|a: i16, b: i16, c: i16| a.min(b).min(c))),
        ("v_max3_i16", map3(|a: i16, b: i16, c: i16| a.max(b).max(c))),
        ("v_med3_i16", map3(median::<i16>)),
    ]
}
