//! Conversions between types.

use crate::machine::numbers::{
    Fp8, bf16_to_f32, f32_to_bf16, f32_to_f16, f32_to_f16_toward_zero, f32_to_fp8, fp8_to_f32,
};

use super::super::kernel::{map1, map2, map3};
use super::super::types::{F16, F16Bits};
use super::Row;
use super::rounding::{max_num, min_num};

pub fn rows() -> Vec<Row> {
    [integers(), floats(), halves(), packed(), bytes()].concat()
}

fn integers() -> Vec<Row> {
    vec![
        ("v_cvt_f32_i32", map1(|a: i32| a as f32)),
        ("v_cvt_f32_u32", map1(|a: u32| a as f32)),
        ("v_cvt_f64_i32", map1(|a: i32| f64::from(a))),
        ("v_cvt_f64_u32", map1(|a: u32| f64::from(a))),
        // Rust's conversions saturate, and what is no number becomes 0, as on the hardware.
        ("v_cvt_i32_f32", map1(|a: f32| a as i32)),
        ("v_cvt_u32_f32", map1(|a: f32| a as u32)),
        ("v_cvt_i32_f64", map1(|a: f64| a as i32)),
        ("v_cvt_u32_f64", map1(|a: f64| a as u32)),
        ("v_cvt_nearest_i32_f32", map1(|a: f32| (a + 0.5).floor() as i32)),
        ("v_cvt_floor_i32_f32", map1(|a: f32| a.floor() as i32)),
        ("v_cvt_i32_i16", map1(|a: i16| i32::from(a))),
        ("v_cvt_u32_u16", map1(|a: u16| u32::from(a))),
        ("v_cvt_off_f32_i4", map1(|a: u32| ((a << 28) as i32 >> 28) as f32 / 16.0)),
        ("v_cvt_f32_ubyte0", map1(|a: u32| (a & 255) as f32)),
        ("v_cvt_f32_ubyte1", map1(|a: u32| (a >> 8 & 255) as f32)),
        ("v_cvt_f32_ubyte2", map1(|a: u32| (a >> 16 & 255) as f32)),
        ("v_cvt_f32_ubyte3", map1(|a: u32| (a >> 24) as f32)),
    ]
}

fn floats() -> Vec<Row> {
    vec![
        ("v_cvt_f64_f32", map1(|a: f32| f64::from(a))),
        ("v_cvt_f32_f64", map1(|a: f64| a as f32)),
        ("v_cvt_f16_f32", map1(F16)),
        ("v_cvt_f32_f16", map1(|a: F16| a.0)),
        ("v_cvt_f32_bf16", map1(|a: F16Bits| bf16_to_f32(a.0))),
    ]
}

fn halves() -> Vec<Row> {
    vec![
        ("v_cvt_f16_u16", map1(|a: u16| F16(f32::from(a)))),
        ("v_cvt_f16_i16", map1(|a: i16| F16(f32::from(a)))),
        ("v_cvt_u16_f16", map1(|a: F16| a.0 as u16)),
        ("v_cvt_i16_f16", map1(|a: F16| a.0 as i16)),
        ("v_cvt_norm_i16_f16", map1(|a: F16| signed_norm(a.0))),
        ("v_cvt_norm_u16_f16", map1(|a: F16| unsigned_norm(a.0))),
    ]
}

fn packed() -> Vec<Row> {
    let toward_zero = map2(|a: f32, b: f32| pair(f32_to_f16_toward_zero(a), f32_to_f16_toward_zero(b)));
    vec![
        ("v_cvt_pk_rtz_f16_f32", toward_zero),
        ("v_cvt_pk_f16_f32", map2(|a: f32, b: f32| pair(f32_to_f16(a), f32_to_f16(b)))),
        ("v_cvt_pk_bf16_f32", map2(|a: f32, b: f32| pair(f32_to_bf16(a), f32_to_bf16(b)))),
        ("v_cvt_pk_norm_i16_f32", map2(|a: f32, b: f32| pair(signed_norm(a) as u16, signed_norm(b) as u16))),
        ("v_cvt_pk_norm_u16_f32", map2(|a: f32, b: f32| pair(unsigned_norm(a), unsigned_norm(b)))),
        (
            "v_cvt_pk_norm_i16_f16",
            map2(|a: F16, b: F16| pair(signed_norm(a.0) as u16, signed_norm(b.0) as u16)),
        ),
        ("v_cvt_pk_norm_u16_f16", map2(|a: F16, b: F16| pair(unsigned_norm(a.0), unsigned_norm(b.0)))),
        ("v_cvt_pk_i16_f32", map2(|a: f32, b: f32| pair(a as i16 as u16, b as i16 as u16))),
        ("v_cvt_pk_u16_f32", map2(|a: f32, b: f32| pair(a as u16, b as u16))),
        ("v_cvt_pk_u16_u32", map2(|a: u32, b: u32| pair(a.min(0xffff) as u16, b.min(0xffff) as u16))),
        (
            "v_cvt_pk_i16_i32",
            map2(|a: i32, b: i32| pair(a.clamp(-32768, 32767) as u16, b.clamp(-32768, 32767) as u16)),
        ),
        (
            "v_cvt_pk_u8_f32",
            map3(|a: f32, byte: u32, c: u32| {
                let shift = 8 * (byte & 3);
                c & !(255 << shift) | u32::from(a.round_ties_even() as u8) << shift
            }),
        ),
    ]
}

/// Floats of 8 bits; those of gfx942 are marked.
fn bytes() -> Vec<Row> {
    use Fp8::{E4m3, E4m3Fnuz, E5m2, E5m2Fnuz};
    vec![
        ("v_cvt_f32_fp8", map1(|a: u32| fp8_to_f32(a as u8, E4m3))),
        ("v_cvt_f32_bf8", map1(|a: u32| fp8_to_f32(a as u8, E5m2))),
        ("v_cvt_f32_fp8 fnuz", map1(|a: u32| fp8_to_f32(a as u8, E4m3Fnuz))),
        ("v_cvt_f32_bf8 fnuz", map1(|a: u32| fp8_to_f32(a as u8, E5m2Fnuz))),
        ("v_cvt_pk_f32_fp8", map1(|a: u16| two(a, E4m3))),
        ("v_cvt_pk_f32_bf8", map1(|a: u16| two(a, E5m2))),
        ("v_cvt_pk_f32_fp8 fnuz", map1(|a: u16| two(a, E4m3Fnuz))),
        ("v_cvt_pk_f32_bf8 fnuz", map1(|a: u16| two(a, E5m2Fnuz))),
        ("v_cvt_pk_fp8_f32", map2(|a: f32, b: f32| from_two(a, b, E4m3))),
        ("v_cvt_pk_bf8_f32", map2(|a: f32, b: f32| from_two(a, b, E5m2))),
        ("v_cvt_pk_fp8_f32 fnuz", map2(|a: f32, b: f32| from_two(a, b, E4m3Fnuz))),
        ("v_cvt_pk_bf8_f32 fnuz", map2(|a: f32, b: f32| from_two(a, b, E5m2Fnuz))),
    ]
}

fn pair(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// Two floats, as a value of two registers.
fn two(a: u16, format: Fp8) -> u64 {
    let float = |byte: u16| u64::from(fp8_to_f32(byte as u8, format).to_bits());
    float(a) | float(a >> 8) << 32
}

fn from_two(a: f32, b: f32, format: Fp8) -> u16 {
    u16::from(f32_to_fp8(a, format)) | u16::from(f32_to_fp8(b, format)) << 8
}

fn signed_norm(a: f32) -> i16 {
    (32767.0 * min_num(max_num(a, -1.0), 1.0)).round_ties_even() as i16
}

fn unsigned_norm(a: f32) -> u16 {
    (65535.0 * min_num(max_num(a, 0.0), 1.0)).round_ties_even() as u16
}
