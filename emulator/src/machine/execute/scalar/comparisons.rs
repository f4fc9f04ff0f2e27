//! Comparisons: their result is SCC.

use super::Scc::Result;
use super::{Row, Run, two};

const C32: [u8; 3] = [0, 32, 32];
const C64: [u8; 3] = [0, 64, 64];

pub fn rows() -> Vec<Row> {
    let narrow: [(&str, Run); 14] = [
        ("s_cmp_eq_i32", |v| (0, v.a == v.b)),
        ("s_cmp_lg_i32", |v| (0, v.a != v.b)),
        ("s_cmp_gt_i32", |v| (0, v.a_signed() > v.b_signed())),
        ("s_cmp_ge_i32", |v| (0, v.a_signed() >= v.b_signed())),
        ("s_cmp_lt_i32", |v| (0, v.a_signed() < v.b_signed())),
        ("s_cmp_le_i32", |v| (0, v.a_signed() <= v.b_signed())),
        ("s_cmp_eq_u32", |v| (0, v.a == v.b)),
        ("s_cmp_lg_u32", |v| (0, v.a != v.b)),
        ("s_cmp_gt_u32", |v| (0, v.a > v.b)),
        ("s_cmp_ge_u32", |v| (0, v.a >= v.b)),
        ("s_cmp_lt_u32", |v| (0, v.a < v.b)),
        ("s_cmp_le_u32", |v| (0, v.a <= v.b)),
        ("s_bitcmp0_b32", |v| (0, v.a >> (v.b & 31) & 1 == 0)),
        ("s_bitcmp1_b32", |v| (0, v.a >> (v.b & 31) & 1 != 0)),
    ];
    let mut rows: Vec<Row> = narrow.into_iter().map(|(name, run)| (name, two(C32, Result, run))).collect();
    rows.extend([
        ("s_cmp_eq_u64", two(C64, Result, |v| (0, v.a == v.b))),
        ("s_cmp_lg_u64", two(C64, Result, |v| (0, v.a != v.b))),
        ("s_bitcmp0_b64", two([0, 64, 32], Result, |v| (0, v.a >> (v.b & 63) & 1 == 0))),
        ("s_bitcmp1_b64", two([0, 64, 32], Result, |v| (0, v.a >> (v.b & 63) & 1 != 0))),
    ]);
    rows
}
