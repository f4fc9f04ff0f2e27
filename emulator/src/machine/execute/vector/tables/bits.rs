//! Moves, shifts and operations on bits.

use super::super::kernel::{map1, map2, map2_with_lane, map3, select2};
use super::Row;

pub fn rows() -> Vec<Row> {
    [moves(), shifts(), fields(), combinations()].concat()
}

fn moves() -> Vec<Row> {
    vec![
        ("v_mov_b32", map1(|a: u32| a)),
        ("v_mov_b64", map1(|a: i64| a)),
        ("v_accvgpr_read_b32", map1(|a: u32| a)),
        ("v_accvgpr_write_b32", map1(|a: u32| a)),
        ("v_accvgpr_mov_b32", map1(|a: u32| a)),
        ("v_not_b32", map1(|a: u32| !a)),
        ("v_bfrev_b32", map1(|a: u32| a.reverse_bits())),
        ("v_clz_i32_u32", map1(|a: u32| if a == 0 { u32::MAX } else { a.leading_zeros() })),
        ("v_ctz_i32_b32", map1(|a: u32| if a == 0 { u32::MAX } else { a.trailing_zeros() })),
        ("v_cls_i32", map1(leading_signs)),
        ("v_cndmask_b32", select2(|a: u32, b: u32, bit| if bit { b } else { a })),
        ("v_cndmask_b16", select2(|a: u16, b: u16, bit| if bit { b } else { a })),
        ("v_mov_b16", map1(|a: u16| a)),
        ("v_not_b16", map1(|a: u16| !a)),
        ("v_sat_pk_u8_i16", map1(|a: u32| u32::from(saturate(a)) | u32::from(saturate(a >> 16)) << 8)),
    ]
}

fn shifts() -> Vec<Row> {
    vec![
        ("v_lshlrev_b32", map2(|a: u32, b: u32| b << (a & 31))),
        ("v_lshrrev_b32", map2(|a: u32, b: u32| b >> (a & 31))),
        ("v_ashrrev_i32", map2(|a: u32, b: i32| b >> (a & 31))),
        ("v_lshlrev_b64", map2(|a: u32, b: u64| b << (a & 63))),
        ("v_lshrrev_b64", map2(|a: u32, b: u64| b >> (a & 63))),
        ("v_ashrrev_i64", map2(|a: u32, b: i64| b >> (a & 63))),
        ("v_lshlrev_b16", map2(|a: u16, b: u16| b << (a & 15))),
        ("v_lshrrev_b16", map2(|a: u16, b: u16| b >> (a & 15))),
        ("v_ashrrev_i16", map2(|a: u16, b: i16| b >> (a & 15))),
        ("v_alignbit_b32", map3(|a: u32, b: u32, c: u32| (pair(a, b) >> (c & 31)) as u32)),
        ("v_alignbyte_b32", map3(|a: u32, b: u32, c: u32| (pair(a, b) >> (8 * (c & 3))) as u32)),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        ("v_bfe_u32", map3(|a: u32, offset: u32, width: u32| extract(a, offset & 31, width & 31))),
        ("v_bfe_i32", map3(|a: i32, offset: u32, width: u32| extract_signed(a, offset & 31, width & 31))),
        ("v_bfi_b32", map3(|mask: u32, a: u32, b: u32| mask & a | !mask & b)),
        ("v_bfm_b32", map2(|width: u32, offset: u32| ((1u32 << (width & 31)) - 1) << (offset & 31))),
        ("v_perm_b32", map3(permute_bytes)),
        ("v_bcnt_u32_b32", map2(|a: u32, b: u32| a.count_ones().wrapping_add(b))),
        (
            "v_mbcnt_lo_u32_b32",
            map2_with_lane(|a: u32, b: u32, lane| b.wrapping_add(below(a, lane).count_ones())),
        ),
        (
            "v_mbcnt_hi_u32_b32",
            map2_with_lane(|a: u32, b: u32, lane| {
                b.wrapping_add(if lane < 32 { 0 } else { below(a, lane - 32).count_ones() })
            }),
        ),
    ]
}

fn combinations() -> Vec<Row> {
    vec![
        ("v_and_b32", map2(|a: u32, b: u32| a & b)),
        ("v_or_b32", map2(|a: u32, b: u32| a | b)),
        ("v_xor_b32", map2(|a: u32, b: u32| a ^ b)),
        ("v_xnor_b32", map2(|a: u32, b: u32| !(a ^ b))),
        ("v_and_b16", map2(|a: u16, b: u16| a & b)),
        ("v_or_b16", map2(|a: u16, b: u16| a | b)),
        ("v_xor_b16", map2(|a: u16, b: u16| a ^ b)),
        ("v_lshl_add_u32", map3(|a: u32, b: u32, c: u32| (a << (b & 31)).wrapping_add(c))),
        ("v_add_lshl_u32", map3(|a: u32, b: u32, c: u32| a.wrapping_add(b) << (c & 31))),
        ("v_lshl_or_b32", map3(|a: u32, b: u32, c: u32| a << (b & 31) | c)),
        ("v_lshl_add_u64", map3(|a: u64, b: u32, c: u64| (a << (b & 7)).wrapping_add(c))),
        ("v_and_or_b32", map3(|a: u32, b: u32, c: u32| a & b | c)),
        ("v_or3_b32", map3(|a: u32, b: u32, c: u32| a | b | c)),
        ("v_xor3_b32", map3(|a: u32, b: u32, c: u32| a ^ b ^ c)),
        ("v_xad_u32", map3(|a: u32, b: u32, c: u32| (a ^ b).wrapping_add(c))),
        (
            "v_pack_b32_f16",
            map2(|a: super::super::types::F16Bits, b: super::super::types::F16Bits| {
                u32::from(a.0) | u32::from(b.0) << 16
            }),
        ),
    ]
}

/// How many bits from the top on equal the sign, minus those there are none of; all ones where all do.
fn leading_signs(a: i32) -> u32 {
    let bits = if a < 0 { !a } else { a } as u32;
    if bits == 0 { u32::MAX } else { bits.leading_zeros() }
}

fn saturate(half: u32) -> u8 {
    (half as i16).clamp(0, 255) as u8
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn extract(a: u32, offset: u32, width: u32) -> u32 {
    a >> offset & ((1u32 << width) - 1)
}

fn extract_signed(a: i32, offset: u32, width: u32) -> i32 {
    if width == 0 {
        0
    } else if offset + width >= 32 {
        a >> offset
    } else {
        a << (32 - offset - width) >> (32 - width)
    }
}

/// The bits of a mask below a lane.
fn below(mask: u32, lane: u32) -> u32 {
    if lane >= 32 { mask } else { mask & ((1u32 << lane) - 1) }
}

/// V_PERM_B32: each byte of the selector names a byte of the eight, a sign, zeros or ones.
fn permute_bytes(high: u32, low: u32, selector: u32) -> u32 {
    let data = pair(high, low);
    let sign = |bit: u32| if data >> bit & 1 != 0 { 0xff } else { 0 };
    selector.to_le_bytes().iter().rev().fold(0, |result, &select| {
        let byte = match select {
            0..=7 => (data >> (8 * select)) as u32 & 0xff,
            8 => sign(15),
            9 => sign(31),
            10 => sign(47),
            11 => sign(63),
            12 => 0,
            _ => 0xff,
        };
        result << 8 | byte
    })
}
