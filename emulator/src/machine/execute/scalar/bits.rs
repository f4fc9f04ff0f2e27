//! Moves, shifts and operations on bits.

use super::Scc::{NotZero, Stays};
use super::{Operation, Row, Run, one, two};

const W32: [u8; 3] = [32, 32, 32];
const W64: [u8; 3] = [64, 64, 64];
/// A value of 64 bits and a number of bits.
const SHIFT64: [u8; 3] = [64, 64, 32];

pub fn rows() -> Vec<Row> {
    [moves(), logic(), shifts(), fields(), counts(), packs()].concat()
}

fn moves() -> Vec<Row> {
    vec![
        ("s_mov_b32", one([32, 32], Stays, |v| (v.a, false))),
        ("s_mov_b64", one([64, 64], Stays, |v| (v.a, false))),
        ("s_cmov_b32", one([32, 32], Stays, |v| (if v.scc { v.a } else { v.old }, false))),
        ("s_cmov_b64", one([64, 64], Stays, |v| (if v.scc { v.a } else { v.old }, false))),
        ("s_cselect_b32", two(W32, Stays, |v| (if v.scc { v.a } else { v.b }, false))),
        ("s_cselect_b64", two(W64, Stays, |v| (if v.scc { v.a } else { v.b }, false))),
        ("s_not_b32", one([32, 32], NotZero, |v| (!v.a, false))),
        ("s_not_b64", one([64, 64], NotZero, |v| (!v.a, false))),
        ("s_brev_b32", one([32, 32], Stays, |v| (u64::from((v.a as u32).reverse_bits()), false))),
        ("s_brev_b64", one([64, 64], Stays, |v| (v.a.reverse_bits(), false))),
        ("s_sext_i32_i8", one([32, 32], Stays, |v| (v.a as i8 as u64, false))),
        ("s_sext_i32_i16", one([32, 32], Stays, |v| (v.a as i16 as u64, false))),
        ("s_wqm_b32", one([32, 32], NotZero, |v| (whole_quads(v.a), false))),
        ("s_wqm_b64", one([64, 64], NotZero, |v| (whole_quads(v.a), false))),
        ("s_quadmask_b32", one([32, 32], NotZero, |v| (quads(v.a), false))),
        ("s_quadmask_b64", one([64, 64], NotZero, |v| (quads(v.a), false))),
        (
            "s_bitreplicate_b64_b32",
            one([64, 32], Stays, |v| ((0..32).fold(0, |r, i| r | ((v.a >> i & 1) * 3) << (2 * i)), false)),
        ),
    ]
}

fn logic() -> Vec<Row> {
    let rows: [(&str, &str, Run); 8] = [
        ("s_and_b32", "s_and_b64", |v| (v.a & v.b, false)),
        ("s_or_b32", "s_or_b64", |v| (v.a | v.b, false)),
        ("s_xor_b32", "s_xor_b64", |v| (v.a ^ v.b, false)),
        ("s_nand_b32", "s_nand_b64", |v| (!(v.a & v.b), false)),
        ("s_nor_b32", "s_nor_b64", |v| (!(v.a | v.b), false)),
        ("s_xnor_b32", "s_xnor_b64", |v| (!(v.a ^ v.b), false)),
        ("s_and_not1_b32", "s_and_not1_b64", |v| (v.a & !v.b, false)),
        ("s_or_not1_b32", "s_or_not1_b64", |v| (v.a | !v.b, false)),
    ];
    let both = |(narrow, wide, run): (&'static str, &'static str, _)| {
        [(narrow, two(W32, NotZero, run)), (wide, two(W64, NotZero, run))]
    };
    rows.into_iter().flat_map(both).collect()
}

fn shifts() -> Vec<Row> {
    vec![
        ("s_lshl_b32", two(W32, NotZero, |v| (v.a << (v.b & 31), false))),
        ("s_lshl_b64", two(SHIFT64, NotZero, |v| (v.a << (v.b & 63), false))),
        ("s_lshr_b32", two(W32, NotZero, |v| (v.a >> (v.b & 31), false))),
        ("s_lshr_b64", two(SHIFT64, NotZero, |v| (v.a >> (v.b & 63), false))),
        ("s_ashr_i32", two(W32, NotZero, |v| ((v.a as i32 >> (v.b & 31)) as u64, false))),
        ("s_ashr_i64", two(SHIFT64, NotZero, |v| ((v.a as i64 >> (v.b & 63)) as u64, false))),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        ("s_bfe_u32", two(W32, NotZero, |v| (extract(v.a, v.b & 31, v.b >> 16 & 127), false))),
        ("s_bfe_u64", two(SHIFT64, NotZero, |v| (extract(v.a, v.b & 63, v.b >> 16 & 127), false))),
        (
            "s_bfe_i32",
            two(W32, NotZero, |v| (extract_signed(i64::from(v.a as i32), v.b & 31, v.b >> 16 & 127), false)),
        ),
        (
            "s_bfe_i64",
            two(SHIFT64, NotZero, |v| (extract_signed(v.a as i64, v.b & 63, v.b >> 16 & 127), false)),
        ),
        ("s_bfm_b32", two(W32, Stays, |v| (((1 << (v.a & 31)) - 1) << (v.b & 31), false))),
        ("s_bfm_b64", two([64, 32, 32], Stays, |v| (((1 << (v.a & 63)) - 1) << (v.b & 63), false))),
        ("s_bitset0_b32", one([32, 32], Stays, |v| (v.old & !(1 << (v.a & 31)), false))),
        ("s_bitset1_b32", one([32, 32], Stays, |v| (v.old | 1 << (v.a & 31), false))),
        ("s_bitset0_b64", one([64, 32], Stays, |v| (v.old & !(1 << (v.a & 63)), false))),
        ("s_bitset1_b64", one([64, 32], Stays, |v| (v.old | 1 << (v.a & 63), false))),
    ]
}

fn counts() -> Vec<Row> {
    /// All ones where no bit was found.
    fn found(bits: u64, position: u32) -> (u64, bool) {
        (if bits == 0 { u64::from(u32::MAX) } else { u64::from(position) }, false)
    }
    fn signs(a: i64) -> u64 {
        (if a < 0 { !a } else { a }) as u64
    }
    let low = |run| -> Operation { one([32, 32], Stays, run) };
    vec![
        ("s_ctz_i32_b32", low(|v| found(v.a, v.a.trailing_zeros()))),
        ("s_ctz_i32_b64", one([32, 64], Stays, |v| found(v.a, v.a.trailing_zeros()))),
        ("s_clz_i32_u32", low(|v| found(v.a, (v.a as u32).leading_zeros()))),
        ("s_clz_i32_u64", one([32, 64], Stays, |v| found(v.a, v.a.leading_zeros()))),
        (
            "s_cls_i32",
            low(|v| {
                let bits = signs(i64::from(v.a as i32));
                found(bits, (bits as u32).leading_zeros())
            }),
        ),
        (
            "s_cls_i32_i64",
            one([32, 64], Stays, |v| {
                let bits = signs(v.a as i64);
                found(bits, bits.leading_zeros())
            }),
        ),
        ("s_bcnt0_i32_b32", one([32, 32], NotZero, |v| (u64::from((v.a as u32).count_zeros()), false))),
        ("s_bcnt0_i32_b64", one([32, 64], NotZero, |v| (u64::from(v.a.count_zeros()), false))),
        ("s_bcnt1_i32_b32", one([32, 32], NotZero, |v| (u64::from(v.a.count_ones()), false))),
        ("s_bcnt1_i32_b64", one([32, 64], NotZero, |v| (u64::from(v.a.count_ones()), false))),
        ("s_ff0_i32_b32", low(|v| found(!v.a & 0xffff_ffff, (!v.a).trailing_zeros()))),
        ("s_ff0_i32_b64", one([32, 64], Stays, |v| found(!v.a, (!v.a).trailing_zeros()))),
    ]
}

fn packs() -> Vec<Row> {
    vec![
        ("s_pack_ll_b32_b16", two(W32, Stays, |v| (v.a & 0xffff | v.b << 16, false))),
        ("s_pack_lh_b32_b16", two(W32, Stays, |v| (v.a & 0xffff | v.b & 0xffff_0000, false))),
        ("s_pack_hh_b32_b16", two(W32, Stays, |v| (v.a >> 16 | v.b & 0xffff_0000, false))),
        ("s_pack_hl_b32_b16", two(W32, Stays, |v| (v.a >> 16 | v.b << 16, false))),
    ]
}

/// A bit for each four that has any set.
fn quads(a: u64) -> u64 {
    (0..16).fold(0, |result, i| result | u64::from(a >> (4 * i) & 15 != 0) << i)
}

/// Four bits for each four that has any set.
fn whole_quads(a: u64) -> u64 {
    (0..16).fold(0, |result, i| result | if a >> (4 * i) & 15 != 0 { 15 << (4 * i) } else { 0 })
}

fn extract(a: u64, offset: u64, width: u64) -> u64 {
    if width >= 64 { a >> offset } else { a >> offset & ((1 << width) - 1) }
}

fn extract_signed(a: i64, offset: u64, width: u64) -> u64 {
    let shifted = a >> offset;
    match width {
        0 => 0,
        1..=63 => (shifted << (64 - width) >> (64 - width)) as u64,
        _ => shifted as u64,
    }
}
