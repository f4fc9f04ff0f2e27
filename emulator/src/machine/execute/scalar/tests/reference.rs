//! The second description.

/// What an instruction reads.
#[derive(Clone, Copy, Debug)]
pub struct In {
    pub a: u64,
    pub b: u64,
    pub old: u64,
    pub scc: bool,
}

impl In {
    /// Numbers in a type that no operation overflows: without a sign, and with one, of 32 bits.
    fn n(self) -> [i128; 2] {
        [self.a.into(), self.b.into()]
    }

    fn i(self) -> [i128; 2] {
        [(self.a as i32).into(), (self.b as i32).into()]
    }
}

/// What becomes of SCC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scc {
    Kept,
    NotZero,
    /// The bit beside the result.
    Bit,
}

/// The result of an instruction, and a bit.
pub type Compute = fn(In) -> (i128, bool);

/// An instruction.
pub struct Reference {
    pub name: &'static str,
    /// Of the result and of the sources; 0 where there is none.
    pub bits: [u8; 3],
    pub scc: Scc,
    pub compute: Compute,
}

pub fn all() -> Vec<Reference> {
    let mut all = Vec::new();
    for group in [sums(), logic(), shifts(), fields(), counts(), moves(), comparisons()] {
        all.extend(group);
    }
    all
}

/// Names that compute the same.
fn rows(names: &'static str, bits: [u8; 3], scc: Scc, compute: Compute) -> impl Iterator<Item = Reference> {
    names.split_whitespace().map(move |name| Reference { name, bits, scc, compute })
}

const W32: [u8; 3] = [32, 32, 32];
const W64: [u8; 3] = [64, 64, 64];
const SHIFT64: [u8; 3] = [64, 64, 32];

fn two_to_the(exponent: u64) -> i128 {
    1 << exponent
}

/// With a bit that says whether it is no signed number of 32 bits.
fn signed(value: i128) -> (i128, bool) {
    (value, i32::try_from(value).is_err())
}

/// With a bit that says whether it is no unsigned number of 32 bits.
fn unsigned(value: i128) -> (i128, bool) {
    (value, u32::try_from(value).is_err())
}

fn whole(value: i128) -> (i128, bool) {
    (value, false)
}

fn sums() -> Vec<Reference> {
    let mut all = Vec::new();
    all.extend(rows("s_add_u32 s_add_co_u32", W32, Scc::Bit, |x| unsigned(x.n()[0] + x.n()[1])));
    all.extend(rows("s_sub_u32 s_sub_co_u32", W32, Scc::Bit, |x| unsigned(x.n()[0] - x.n()[1])));
    all.extend(rows("s_add_i32 s_add_co_i32", W32, Scc::Bit, |x| signed(x.i()[0] + x.i()[1])));
    all.extend(rows("s_sub_i32 s_sub_co_i32", W32, Scc::Bit, |x| signed(x.i()[0] - x.i()[1])));
    all.extend(rows("s_addc_u32 s_add_co_ci_u32", W32, Scc::Bit, |x| {
        unsigned(x.n()[0] + x.n()[1] + i128::from(x.scc))
    }));
    all.extend(rows("s_subb_u32 s_sub_co_ci_u32", W32, Scc::Bit, |x| {
        unsigned(x.n()[0] - x.n()[1] - i128::from(x.scc))
    }));
    all.extend(rows("s_add_nc_u64 s_add_u64", W64, Scc::Kept, |x| whole(x.n()[0] + x.n()[1])));
    all.extend(rows("s_sub_nc_u64 s_sub_u64", W64, Scc::Kept, |x| whole(x.n()[0] - x.n()[1])));
    all.extend(rows("s_lshl1_add_u32", W32, Scc::Bit, |x| unsigned(2 * x.n()[0] + x.n()[1])));
    all.extend(rows("s_lshl2_add_u32", W32, Scc::Bit, |x| unsigned(4 * x.n()[0] + x.n()[1])));
    all.extend(rows("s_lshl3_add_u32", W32, Scc::Bit, |x| unsigned(8 * x.n()[0] + x.n()[1])));
    all.extend(rows("s_lshl4_add_u32", W32, Scc::Bit, |x| unsigned(16 * x.n()[0] + x.n()[1])));
    // The difference is cut to 32 bits before its sign is looked at.
    all.extend(rows("s_absdiff_i32", W32, Scc::NotZero, |x| {
        whole(i128::from((x.i()[0] - x.i()[1]) as i32).abs())
    }));
    all.extend(rows("s_abs_i32", [32, 32, 0], Scc::NotZero, |x| whole(x.i()[0].abs())));
    all.extend(rows("s_mul_i32", W32, Scc::Kept, |x| whole(x.n()[0] * x.n()[1])));
    all.extend(rows("s_mul_hi_u32", W32, Scc::Kept, |x| whole(x.n()[0] * x.n()[1] / two_to_the(32))));
    all.extend(rows("s_mul_hi_i32", W32, Scc::Kept, |x| {
        whole((x.i()[0] * x.i()[1]).div_euclid(two_to_the(32)))
    }));
    all.extend(rows("s_mul_u64", W64, Scc::Kept, |x| {
        // The lower halves' product, and what the upper halves add to the upper half.
        let [a, b] = x.n();
        let (half, rest) = (two_to_the(32), |value: i128| value % two_to_the(32));
        whole(rest(a) * rest(b) + rest(a / half * rest(b) + rest(a) * (b / half)) * half)
    }));
    all.extend(rows("s_min_u32", W32, Scc::Bit, |x| {
        if x.a < x.b { (x.n()[0], true) } else { (x.n()[1], false) }
    }));
    all.extend(rows("s_max_u32", W32, Scc::Bit, |x| {
        if x.a > x.b { (x.n()[0], true) } else { (x.n()[1], false) }
    }));
    all.extend(rows("s_min_i32", W32, Scc::Bit, |x| {
        if x.i()[0] < x.i()[1] { (x.i()[0], true) } else { (x.i()[1], false) }
    }));
    all.extend(rows("s_max_i32", W32, Scc::Bit, |x| {
        if x.i()[0] > x.i()[1] { (x.i()[0], true) } else { (x.i()[1], false) }
    }));
    all
}

/// A function of the sources' bits, one after the other.
fn each_bit(x: In, f: fn(bool, bool) -> bool) -> (i128, bool) {
    let bit = |i: u64| f(x.a >> i & 1 == 1, x.b >> i & 1 == 1);
    whole((0..64).filter(|&i| bit(i)).map(two_to_the).sum())
}

fn logic() -> Vec<Reference> {
    let functions: [(&str, &str, Compute); 8] = [
        ("s_and_b32", "s_and_b64", |x| each_bit(x, |a, b| a && b)),
        ("s_or_b32", "s_or_b64", |x| each_bit(x, |a, b| a || b)),
        ("s_xor_b32", "s_xor_b64", |x| each_bit(x, |a, b| a != b)),
        ("s_nand_b32", "s_nand_b64", |x| each_bit(x, |a, b| !(a && b))),
        ("s_nor_b32", "s_nor_b64", |x| each_bit(x, |a, b| !(a || b))),
        ("s_xnor_b32", "s_xnor_b64", |x| each_bit(x, |a, b| a == b)),
        ("s_and_not1_b32", "s_and_not1_b64", |x| each_bit(x, |a, b| a && !b)),
        ("s_or_not1_b32", "s_or_not1_b64", |x| each_bit(x, |a, b| a || !b)),
    ];
    let mut all = Vec::new();
    for (narrow, wide, compute) in functions {
        all.extend(rows(narrow, W32, Scc::NotZero, compute));
        all.extend(rows(wide, W64, Scc::NotZero, compute));
    }
    all.extend(rows("s_not_b32", [32, 32, 0], Scc::NotZero, |x| each_bit(x, |a, _| !a)));
    all.extend(rows("s_not_b64", [64, 64, 0], Scc::NotZero, |x| each_bit(x, |a, _| !a)));
    all
}

fn shifts() -> Vec<Reference> {
    let mut all = Vec::new();
    all.extend(rows("s_lshl_b32", W32, Scc::NotZero, |x| whole(x.n()[0] * two_to_the(x.b % 32))));
    all.extend(rows("s_lshr_b32", W32, Scc::NotZero, |x| whole(x.n()[0] / two_to_the(x.b % 32))));
    all.extend(rows("s_ashr_i32", W32, Scc::NotZero, |x| whole(x.i()[0].div_euclid(two_to_the(x.b % 32)))));
    all.extend(rows("s_lshl_b64", SHIFT64, Scc::NotZero, |x| {
        whole((x.a as i64 as i128) * two_to_the(x.b % 64))
    }));
    all.extend(rows("s_lshr_b64", SHIFT64, Scc::NotZero, |x| whole(x.n()[0] / two_to_the(x.b % 64))));
    all.extend(rows("s_ashr_i64", SHIFT64, Scc::NotZero, |x| {
        whole(i128::from(x.a as i64).div_euclid(two_to_the(x.b % 64)))
    }));
    all
}

/// The field of a number from `offset` on that is `width` bits wide; what is beyond the number is its sign, or 0.
fn field(value: i128, offset: u64, width: u64, signed: bool) -> (i128, bool) {
    let width = width.min(64);
    let part = value.div_euclid(two_to_the(offset)).rem_euclid(two_to_the(width));
    let negative = signed && width > 0 && part >= two_to_the(width - 1);
    whole(if negative { part - two_to_the(width) } else { part })
}

fn fields() -> Vec<Reference> {
    let mut all = Vec::new();
    all.extend(rows("s_bfe_u32", W32, Scc::NotZero, |x| field(x.n()[0], x.b % 32, x.b >> 16 & 127, false)));
    all.extend(rows("s_bfe_i32", W32, Scc::NotZero, |x| field(x.i()[0], x.b % 32, x.b >> 16 & 127, true)));
    all.extend(rows("s_bfe_u64", SHIFT64, Scc::NotZero, |x| {
        field(x.n()[0], x.b % 64, x.b >> 16 & 127, false)
    }));
    all.extend(rows("s_bfe_i64", SHIFT64, Scc::NotZero, |x| {
        field((x.a as i64).into(), x.b % 64, x.b >> 16 & 127, true)
    }));
    all.extend(rows("s_bfm_b32", W32, Scc::Kept, |x| {
        whole((two_to_the(x.a % 32) - 1) * two_to_the(x.b % 32))
    }));
    all.extend(rows("s_bfm_b64", [64, 32, 32], Scc::Kept, |x| {
        whole((two_to_the(x.a % 64) - 1) * two_to_the(x.b % 64))
    }));
    all.extend(rows("s_bitset0_b32", [32, 32, 0], Scc::Kept, |x| with_bit(x.old, x.a % 32, 0)));
    all.extend(rows("s_bitset1_b32", [32, 32, 0], Scc::Kept, |x| with_bit(x.old, x.a % 32, 1)));
    all.extend(rows("s_bitset0_b64", [64, 32, 0], Scc::Kept, |x| with_bit(x.old, x.a % 64, 0)));
    all.extend(rows("s_bitset1_b64", [64, 32, 0], Scc::Kept, |x| with_bit(x.old, x.a % 64, 1)));
    all.extend(rows("s_pack_ll_b32_b16", W32, Scc::Kept, |x| {
        whole(x.n()[0] % 65536 + x.n()[1] % 65536 * 65536)
    }));
    all.extend(rows("s_pack_lh_b32_b16", W32, Scc::Kept, |x| {
        whole(x.n()[0] % 65536 + x.n()[1] / 65536 * 65536)
    }));
    all.extend(rows("s_pack_hh_b32_b16", W32, Scc::Kept, |x| {
        whole(x.n()[0] / 65536 + x.n()[1] / 65536 * 65536)
    }));
    all.extend(rows("s_pack_hl_b32_b16", W32, Scc::Kept, |x| {
        whole(x.n()[0] / 65536 + x.n()[1] % 65536 * 65536)
    }));
    all
}

fn with_bit(old: u64, bit: u64, value: i128) -> (i128, bool) {
    let here = i128::from(old) / two_to_the(bit) % 2;
    whole(i128::from(old) + (value - here) * two_to_the(bit))
}

/// The first place, in an order, where a bit is as wanted; −1 if there is none.
fn find(x: In, mut order: impl Iterator<Item = u64>, wanted: u64) -> (i128, bool) {
    whole(order.position(|i| x.a >> i & 1 == wanted).map_or(-1, |at| at as i128))
}

/// Where the bits below the sign first differ from it.
fn find_sign(x: In, bits: u64) -> (i128, bool) {
    let sign = x.a >> (bits - 1) & 1;
    whole((1..bits).find(|i| x.a >> (bits - 1 - i) & 1 != sign).map_or(-1, i128::from))
}

fn count(x: In, bits: u64, wanted: u64) -> (i128, bool) {
    whole((0..bits).filter(|i| x.a >> i & 1 == wanted).count() as i128)
}

fn counts() -> Vec<Reference> {
    let (narrow, wide) = ([32, 32, 0], [32, 64, 0]);
    let mut all = Vec::new();
    all.extend(rows("s_ctz_i32_b32", narrow, Scc::Kept, |x| find(x, 0..32, 1)));
    all.extend(rows("s_ctz_i32_b64", wide, Scc::Kept, |x| find(x, 0..64, 1)));
    all.extend(rows("s_clz_i32_u32", narrow, Scc::Kept, |x| find(x, (0..32).rev(), 1)));
    all.extend(rows("s_clz_i32_u64", wide, Scc::Kept, |x| find(x, (0..64).rev(), 1)));
    all.extend(rows("s_ff0_i32_b32", narrow, Scc::Kept, |x| find(x, 0..32, 0)));
    all.extend(rows("s_ff0_i32_b64", wide, Scc::Kept, |x| find(x, 0..64, 0)));
    all.extend(rows("s_cls_i32", narrow, Scc::Kept, |x| find_sign(x, 32)));
    all.extend(rows("s_cls_i32_i64", wide, Scc::Kept, |x| find_sign(x, 64)));
    all.extend(rows("s_bcnt0_i32_b32", narrow, Scc::NotZero, |x| count(x, 32, 0)));
    all.extend(rows("s_bcnt0_i32_b64", wide, Scc::NotZero, |x| count(x, 64, 0)));
    all.extend(rows("s_bcnt1_i32_b32", narrow, Scc::NotZero, |x| count(x, 32, 1)));
    all.extend(rows("s_bcnt1_i32_b64", wide, Scc::NotZero, |x| count(x, 64, 1)));
    all
}

fn moves() -> Vec<Reference> {
    let mut all = Vec::new();
    all.extend(rows("s_mov_b32", [32, 32, 0], Scc::Kept, |x| whole(x.n()[0])));
    all.extend(rows("s_mov_b64", [64, 64, 0], Scc::Kept, |x| whole(x.n()[0])));
    all.extend(rows("s_cmov_b32", [32, 32, 0], Scc::Kept, |x| {
        whole(if x.scc { x.n()[0] } else { x.old.into() })
    }));
    all.extend(rows("s_cmov_b64", [64, 64, 0], Scc::Kept, |x| {
        whole(if x.scc { x.n()[0] } else { x.old.into() })
    }));
    all.extend(rows("s_cselect_b32", W32, Scc::Kept, |x| whole(x.n()[usize::from(!x.scc)])));
    all.extend(rows("s_cselect_b64", W64, Scc::Kept, |x| whole(x.n()[usize::from(!x.scc)])));
    all.extend(rows("s_sext_i32_i8", [32, 32, 0], Scc::Kept, |x| field(x.n()[0], 0, 8, true)));
    all.extend(rows("s_sext_i32_i16", [32, 32, 0], Scc::Kept, |x| field(x.n()[0], 0, 16, true)));
    all.extend(rows("s_brev_b32", [32, 32, 0], Scc::Kept, |x| {
        whole((0..32).filter(|i| x.a >> i & 1 == 1).map(|i| two_to_the(31 - i)).sum())
    }));
    all.extend(rows("s_brev_b64", [64, 64, 0], Scc::Kept, |x| {
        whole((0..64).filter(|i| x.a >> i & 1 == 1).map(|i| two_to_the(63 - i)).sum())
    }));
    for (names, bits) in [("s_quadmask_b32", 32), ("s_quadmask_b64", 64)] {
        all.extend(rows(names, [bits, bits, 0], Scc::NotZero, |x| {
            whole((0..16).filter(|i| x.a >> (4 * i) & 15 != 0).map(two_to_the).sum())
        }));
    }
    for (names, bits) in [("s_wqm_b32", 32), ("s_wqm_b64", 64)] {
        all.extend(rows(names, [bits, bits, 0], Scc::NotZero, |x| {
            whole((0..64).filter(|i| x.a >> (i / 4 * 4) & 15 != 0).map(two_to_the).sum())
        }));
    }
    all.extend(rows("s_bitreplicate_b64_b32", [64, 32, 0], Scc::Kept, |x| {
        whole((0..32).filter(|i| x.a >> i & 1 == 1).map(|i| 3 * two_to_the(2 * i)).sum())
    }));
    all
}

fn comparisons() -> Vec<Reference> {
    let (narrow, wide) = ([0, 32, 32], [0, 64, 64]);
    let mut all = Vec::new();
    all.extend(rows("s_cmp_eq_i32 s_cmp_eq_u32", narrow, Scc::Bit, |x| (0, x.i()[0] - x.i()[1] == 0)));
    all.extend(rows("s_cmp_lg_i32 s_cmp_lg_u32", narrow, Scc::Bit, |x| (0, x.i()[0] - x.i()[1] != 0)));
    all.extend(rows("s_cmp_gt_i32", narrow, Scc::Bit, |x| (0, x.i()[0] - x.i()[1] > 0)));
    all.extend(rows("s_cmp_ge_i32", narrow, Scc::Bit, |x| (0, x.i()[0] - x.i()[1] >= 0)));
    all.extend(rows("s_cmp_lt_i32", narrow, Scc::Bit, |x| (0, x.i()[0] - x.i()[1] < 0)));
    all.extend(rows("s_cmp_le_i32", narrow, Scc::Bit, |x| (0, x.i()[0] - x.i()[1] <= 0)));
    all.extend(rows("s_cmp_gt_u32", narrow, Scc::Bit, |x| (0, x.n()[0] - x.n()[1] > 0)));
    all.extend(rows("s_cmp_ge_u32", narrow, Scc::Bit, |x| (0, x.n()[0] - x.n()[1] >= 0)));
    all.extend(rows("s_cmp_lt_u32", narrow, Scc::Bit, |x| (0, x.n()[0] - x.n()[1] < 0)));
    all.extend(rows("s_cmp_le_u32", narrow, Scc::Bit, |x| (0, x.n()[0] - x.n()[1] <= 0)));
    all.extend(rows("s_cmp_eq_u64", wide, Scc::Bit, |x| (0, x.n()[0] - x.n()[1] == 0)));
    all.extend(rows("s_cmp_lg_u64", wide, Scc::Bit, |x| (0, x.n()[0] - x.n()[1] != 0)));
    all.extend(rows("s_bitcmp0_b32", narrow, Scc::Bit, |x| (0, x.n()[0] / two_to_the(x.b % 32) % 2 == 0)));
    all.extend(rows("s_bitcmp1_b32", narrow, Scc::Bit, |x| (0, x.n()[0] / two_to_the(x.b % 32) % 2 == 1)));
    all.extend(rows("s_bitcmp0_b64", [0, 64, 32], Scc::Bit, |x| {
        (0, x.n()[0] / two_to_the(x.b % 64) % 2 == 0)
    }));
    all.extend(rows("s_bitcmp1_b64", [0, 64, 32], Scc::Bit, |x| {
        (0, x.n()[0] / two_to_the(x.b % 64) % 2 == 1)
    }));
    all
}
