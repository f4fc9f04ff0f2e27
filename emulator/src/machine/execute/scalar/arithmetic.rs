//! Sums, products and bounds.

use super::Scc::{Result, Stays};
use super::{Row, Values, one, two};

const W32: [u8; 3] = [32, 32, 32];
const W64: [u8; 3] = [64, 64, 64];

pub fn rows() -> Vec<Row> {
    [sums(), products(), bounds()].concat()
}

fn sums() -> Vec<Row> {
    let add_u32 = two(W32, Result, |v| carry(v.a + v.b));
    let sub_u32 = two(W32, Result, |v| (v.a.wrapping_sub(v.b), v.b > v.a));
    let add_i32 = two(W32, Result, |v| overflow(i32::overflowing_add, v));
    let sub_i32 = two(W32, Result, |v| overflow(i32::overflowing_sub, v));
    let add_carry = two(W32, Result, |v| carry(v.a + v.b + u64::from(v.scc)));
    let sub_borrow = two(W32, Result, |v| {
        let subtrahend = v.b + u64::from(v.scc);
        (v.a.wrapping_sub(subtrahend), subtrahend > v.a)
    });
    vec![
        ("s_add_u32", add_u32),
        ("s_add_co_u32", add_u32),
        ("s_sub_u32", sub_u32),
        ("s_sub_co_u32", sub_u32),
        ("s_add_i32", add_i32),
        ("s_add_co_i32", add_i32),
        ("s_sub_i32", sub_i32),
        ("s_sub_co_i32", sub_i32),
        ("s_addc_u32", add_carry),
        ("s_add_co_ci_u32", add_carry),
        ("s_subb_u32", sub_borrow),
        ("s_sub_co_ci_u32", sub_borrow),
        ("s_add_nc_u64", two(W64, Stays, |v| (v.a.wrapping_add(v.b), false))),
        ("s_add_u64", two(W64, Stays, |v| (v.a.wrapping_add(v.b), false))),
        ("s_sub_nc_u64", two(W64, Stays, |v| (v.a.wrapping_sub(v.b), false))),
        ("s_sub_u64", two(W64, Stays, |v| (v.a.wrapping_sub(v.b), false))),
        ("s_lshl1_add_u32", two(W32, Result, |v| carry((v.a << 1) + v.b))),
        ("s_lshl2_add_u32", two(W32, Result, |v| carry((v.a << 2) + v.b))),
        ("s_lshl3_add_u32", two(W32, Result, |v| carry((v.a << 3) + v.b))),
        ("s_lshl4_add_u32", two(W32, Result, |v| carry((v.a << 4) + v.b))),
        (
            "s_absdiff_i32",
            two(W32, super::Scc::NotZero, |v| {
                let difference = (v.a as i32).wrapping_sub(v.b as i32);
                (u64::from(difference.unsigned_abs()), false)
            }),
        ),
        (
            "s_abs_i32",
            one([32, 32], super::Scc::NotZero, |v| (u64::from((v.a as i32).unsigned_abs()), false)),
        ),
    ]
}

fn products() -> Vec<Row> {
    vec![
        ("s_mul_i32", two(W32, Stays, |v| (v.a.wrapping_mul(v.b), false))),
        ("s_mul_hi_u32", two(W32, Stays, |v| ((v.a * v.b) >> 32, false))),
        (
            "s_mul_hi_i32",
            two(W32, Stays, |v| (((i64::from(v.a as i32) * i64::from(v.b as i32)) >> 32) as u64, false)),
        ),
        ("s_mul_u64", two(W64, Stays, |v| (v.a.wrapping_mul(v.b), false))),
    ]
}

fn bounds() -> Vec<Row> {
    vec![
        ("s_min_u32", two(W32, Result, |v| (v.a.min(v.b), v.a < v.b))),
        ("s_max_u32", two(W32, Result, |v| (v.a.max(v.b), v.a > v.b))),
        (
            "s_min_i32",
            two(W32, Result, |v| (v.a_signed().min(v.b_signed()) as u64, v.a_signed() < v.b_signed())),
        ),
        (
            "s_max_i32",
            two(W32, Result, |v| (v.a_signed().max(v.b_signed()) as u64, v.a_signed() > v.b_signed())),
        ),
    ]
}

impl Values {
    /// As signed numbers of 32 bits.
    pub fn a_signed(self) -> i32 {
        self.a as i32
    }

    pub fn b_signed(self) -> i32 {
        self.b as i32
    }
}

fn carry(sum: u64) -> (u64, bool) {
    (sum, sum >> 32 != 0)
}

fn overflow(operation: fn(i32, i32) -> (i32, bool), v: Values) -> (u64, bool) {
    let (result, overflows) = operation(v.a_signed(), v.b_signed());
    (u64::from(result as u32), overflows)
}
