//! What atomic operations make of the value in memory.

use crate::machine::numbers::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// The new value from the old one, the data and, of some operations, a second operand.
pub type Apply<T> = fn(old: T, data: T, second: T) -> T;

/// A row of a table of operations.
pub struct Operation<T: 'static> {
    /// Behind `atomic_`, or behind `ds_` without `rtn`.
    names: &'static [&'static str],
    pub apply: Apply<T>,
    /// Whether there is a second operand.
    pub second: bool,
}

const fn one<T>(names: &'static [&'static str], apply: Apply<T>) -> Operation<T> {
    Operation { names, apply, second: false }
}

const fn two<T>(names: &'static [&'static str], apply: Apply<T>) -> Operation<T> {
    Operation { names, apply, second: true }
}

/// Operations on 32 bits.
static OPERATIONS_32: &[Operation<u32>] = &[
    one(&["swap_b32", "storexchg_b32"], |_, data, _| data),
    two(
        &["cmpswap_b32", "cmpstore_b32", "cmpst_b32"],
        |old, data, second| if old == second { data } else { old },
    ),
    two(&["cmpswap_f32", "cmpstore_f32", "cmpst_f32"], |old, data, second| {
        if f32::from_bits(old) == f32::from_bits(second) { data } else { old }
    }),
    one(&["add_u32"], |old, data, _| old.wrapping_add(data)),
    one(&["sub_u32"], |old, data, _| old.wrapping_sub(data)),
    one(&["rsub_u32"], |old, data, _| data.wrapping_sub(old)),
    one(&["csub_u32", "sub_clamp_u32"], |old, data, _| old.saturating_sub(data)),
    one(&["cond_sub_u32"], |old, data, _| old.checked_sub(data).unwrap_or(old)),
    one(&["min_i32"], |old, data, _| (old as i32).min(data as i32) as u32),
    one(&["min_u32"], |old, data, _| old.min(data)),
    one(&["max_i32"], |old, data, _| (old as i32).max(data as i32) as u32),
    one(&["max_u32"], |old, data, _| old.max(data)),
    one(&["and_b32"], |old, data, _| old & data),
    one(&["or_b32"], |old, data, _| old | data),
    one(&["xor_b32"], |old, data, _| old ^ data),
    one(&["inc_u32"], |old, data, _| if old >= data { 0 } else { old + 1 }),
    one(&["dec_u32"], |old, data, _| if old == 0 || old > data { data } else { old - 1 }),
    two(&["mskor_b32"], |old, data, second| old & !data | second),
    two(&["wrap_b32"], |old, data, second| old.checked_sub(data).unwrap_or(old.wrapping_add(second))),
    one(&["add_f32"], |old, data, _| (f32::from_bits(old) + f32::from_bits(data)).to_bits()),
    one(&["min_f32", "min_num_f32", "fmin_f32"], |old, data, _| min_f32(old, data)),
    one(&["max_f32", "max_num_f32", "fmax_f32"], |old, data, _| max_f32(old, data)),
    one(&["pk_add_f16"], |old, data, _| halves(old, data, |a, b| f32_to_f16(f16_to_f32(a) + f16_to_f32(b)))),
    one(&["pk_add_bf16"], |old, data, _| {
        halves(old, data, |a, b| f32_to_bf16(bf16_to_f32(a) + bf16_to_f32(b)))
    }),
];

/// Operations on 64 bits.
static OPERATIONS_64: &[Operation<u64>] = &[
    one(&["swap_b64", "storexchg_b64"], |_, data, _| data),
    two(
        &["cmpswap_b64", "cmpstore_b64", "cmpst_b64"],
        |old, data, second| if old == second { data } else { old },
    ),
    two(&["cmpswap_f64", "cmpstore_f64", "cmpst_f64"], |old, data, second| {
        if f64::from_bits(old) == f64::from_bits(second) { data } else { old }
    }),
    one(&["add_u64"], |old, data, _| old.wrapping_add(data)),
    one(&["sub_u64"], |old, data, _| old.wrapping_sub(data)),
    one(&["rsub_u64"], |old, data, _| data.wrapping_sub(old)),
    one(&["min_i64"], |old, data, _| (old as i64).min(data as i64) as u64),
    one(&["min_u64"], |old, data, _| old.min(data)),
    one(&["max_i64"], |old, data, _| (old as i64).max(data as i64) as u64),
    one(&["max_u64"], |old, data, _| old.max(data)),
    one(&["and_b64"], |old, data, _| old & data),
    one(&["or_b64"], |old, data, _| old | data),
    one(&["xor_b64"], |old, data, _| old ^ data),
    one(&["inc_u64"], |old, data, _| if old >= data { 0 } else { old + 1 }),
    one(&["dec_u64"], |old, data, _| if old == 0 || old > data { data } else { old - 1 }),
    two(&["mskor_b64"], |old, data, second| old & !data | second),
    one(&["condxchg32_b64"], |old, data, _| condxchg32(old, data)),
    one(&["add_f64"], |old, data, _| (f64::from_bits(old) + f64::from_bits(data)).to_bits()),
    one(&["min_f64", "min_num_f64", "fmin_f64"], |old, data, _| min_f64(old, data)),
    one(&["max_f64", "max_num_f64", "fmax_f64"], |old, data, _| max_f64(old, data)),
];

/// The operation of 32 bits with this name.
pub fn find_32(name: &str) -> Option<&'static Operation<u32>> {
    OPERATIONS_32.iter().find(|operation| operation.names.contains(&name))
}

/// The operation of 64 bits with this name.
pub fn find_64(name: &str) -> Option<&'static Operation<u64>> {
    OPERATIONS_64.iter().find(|operation| operation.names.contains(&name))
}

/// Each half of two words by itself.
fn halves(a: u32, b: u32, apply: fn(u16, u16) -> u16) -> u32 {
    u32::from(apply(a as u16, b as u16)) | u32::from(apply((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Each half is exchanged where the data's upper bit is set; the bit does not go to memory.
fn condxchg32(old: u64, data: u64) -> u64 {
    let half = |old: u32, data: u32| if data >> 31 != 0 { data & 0x7fff_ffff } else { old };
    u64::from(half(old as u32, data as u32)) | u64::from(half((old >> 32) as u32, (data >> 32) as u32)) << 32
}

/// The smaller number; of a number and what is none the number. -0 is smaller than 0.
fn min_f32(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let first = y.is_nan() || !x.is_nan() && (x < y || x == y && x.is_sign_negative());
    if first { a } else { b }
}

fn max_f32(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let first = y.is_nan() || !x.is_nan() && (x > y || x == y && x.is_sign_positive());
    if first { a } else { b }
}

fn min_f64(a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let first = y.is_nan() || !x.is_nan() && (x < y || x == y && x.is_sign_negative());
    if first { a } else { b }
}

fn max_f64(a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let first = y.is_nan() || !x.is_nan() && (x > y || x == y && x.is_sign_positive());
    if first { a } else { b }
}
