//! Operations with a carry.

use super::super::kernel::{carry_out2, carry2, carry3};
use super::Row;

pub fn rows() -> Vec<Row> {
    vec![
        (
            "v_add_co_u32",
            carry_out2(|a: u32, b: u32| a.overflowing_add(b))
                .or_clamped(carry_out2(|a: u32, b: u32| highest(a.overflowing_add(b)))),
        ),
        (
            "v_sub_co_u32",
            carry_out2(|a: u32, b: u32| a.overflowing_sub(b))
                .or_clamped(carry_out2(|a: u32, b: u32| lowest(a.overflowing_sub(b)))),
        ),
        (
            "v_subrev_co_u32",
            carry_out2(|a: u32, b: u32| b.overflowing_sub(a))
                .or_clamped(carry_out2(|a: u32, b: u32| lowest(b.overflowing_sub(a)))),
        ),
        (
            "v_add_co_ci_u32",
            carry2(|a: u32, b: u32, carry| a.carrying(b, carry))
                .or_clamped(carry2(|a: u32, b: u32, carry| highest(a.carrying(b, carry)))),
        ),
        (
            "v_sub_co_ci_u32",
            carry2(|a: u32, b: u32, borrow| a.borrowing(b, borrow))
                .or_clamped(carry2(|a: u32, b: u32, borrow| lowest(a.borrowing(b, borrow)))),
        ),
        (
            "v_subrev_co_ci_u32",
            carry2(|a: u32, b: u32, borrow| b.borrowing(a, borrow))
                .or_clamped(carry2(|a: u32, b: u32, borrow| lowest(b.borrowing(a, borrow)))),
        ),
        ("v_mad_u64_u32", carry3(multiply_add_unsigned)),
        ("v_mad_co_u64_u32", carry3(multiply_add_unsigned)),
        ("v_mad_i64_i32", carry3(multiply_add_signed)),
        ("v_mad_co_i64_i32", carry3(multiply_add_signed)),
    ]
}

trait Carrying {
    fn carrying(self, other: u32, carry: bool) -> (u32, bool);
    fn borrowing(self, other: u32, borrow: bool) -> (u32, bool);
}

impl Carrying for u32 {
    fn carrying(self, other: u32, carry: bool) -> (u32, bool) {
        let sum = u64::from(self) + u64::from(other) + u64::from(carry);
        (sum as u32, sum >> 32 != 0)
    }

    fn borrowing(self, other: u32, borrow: bool) -> (u32, bool) {
        let subtrahend = u64::from(other) + u64::from(borrow);
        (self.wrapping_sub(subtrahend as u32), subtrahend > u64::from(self))
    }
}

/// With CLAMP a sum that is too large becomes the largest number; it still has a carry.
fn highest((sum, carry): (u32, bool)) -> (u32, bool) {
    (if carry { u32::MAX } else { sum }, carry)
}

/// With CLAMP a difference below zero becomes zero; it still has a borrow.
fn lowest((difference, borrow): (u32, bool)) -> (u32, bool) {
    (if borrow { 0 } else { difference }, borrow)
}

fn multiply_add_unsigned(a: u32, b: u32, c: u64) -> (u64, bool) {
    (u64::from(a) * u64::from(b)).overflowing_add(c)
}

fn multiply_add_signed(a: i32, b: i32, c: i64) -> (i64, bool) {
    (i64::from(a) * i64::from(b)).overflowing_add(c)
}
