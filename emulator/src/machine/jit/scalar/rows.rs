//! The table of scalar operations.

use std::collections::HashMap;
use std::sync::LazyLock;

use iced_x86::Code;

/// What an instruction computes.
#[derive(Clone, Copy)]
pub struct Row {
    /// Whether the result and the sources have 64 bits.
    pub wide: [bool; 3],
    pub operation: Operation,
    pub scc: Scc,
}

impl Row {
    pub fn has_one_source(&self) -> bool {
        matches!(self.operation, Operation::Move | Operation::Not | Operation::Extend(_))
    }
}

#[derive(Clone, Copy)]
pub enum Operation {
    Move,
    /// From two registers.
    Two(Code),
    /// The same, and the result is inverted.
    Inverted(Code),
    /// The second source is inverted.
    Without(Code),
    Not,
    /// By as many bits as CL says.
    Shift(Code),
    /// The first source is shifted left before.
    ShiftedSum(i32),
    /// With SCC as the carry.
    Carry(Code),
    Compare,
    /// The first source where SCC is set.
    Select,
    /// The second source where the condition holds.
    Bound(Code),
    MultiplyHigh,
    Extend(Code),
}

#[derive(Clone, Copy)]
pub enum Scc {
    Stays,
    NotZero,
    /// A condition of the host's flags.
    Flag(Code),
}

const NARROW: [bool; 3] = [false; 3];
const WIDE: [bool; 3] = [true; 3];
const WIDE_SHIFT: [bool; 3] = [true, true, false];

static ROWS: LazyLock<HashMap<&'static str, Row>> =
    LazyLock::new(|| [moves(), sums(), logic(), comparisons()].into_iter().flatten().collect());

/// The row of an instruction.
pub fn find(name: &str) -> Option<Row> {
    ROWS.get(name).copied()
}

fn row(wide: [bool; 3], operation: Operation, scc: Scc) -> Row {
    Row { wide, operation, scc }
}

fn moves() -> Vec<(&'static str, Row)> {
    vec![
        ("s_mov_b32", row(NARROW, Operation::Move, Scc::Stays)),
        ("s_mov_b64", row(WIDE, Operation::Move, Scc::Stays)),
        ("s_not_b32", row(NARROW, Operation::Not, Scc::NotZero)),
        ("s_not_b64", row(WIDE, Operation::Not, Scc::NotZero)),
        ("s_cselect_b32", row(NARROW, Operation::Select, Scc::Stays)),
        ("s_cselect_b64", row(WIDE, Operation::Select, Scc::Stays)),
        ("s_sext_i32_i8", row(NARROW, Operation::Extend(Code::Movsx_r32_rm8), Scc::Stays)),
        ("s_sext_i32_i16", row(NARROW, Operation::Extend(Code::Movsx_r32_rm16), Scc::Stays)),
    ]
}

fn sums() -> Vec<(&'static str, Row)> {
    let (carry, overflow) = (Scc::Flag(Code::Setb_rm8), Scc::Flag(Code::Seto_rm8));
    let add = row(NARROW, Operation::Two(Code::Add_r32_rm32), carry);
    let sub = row(NARROW, Operation::Two(Code::Sub_r32_rm32), carry);
    let signed_add = row(NARROW, Operation::Two(Code::Add_r32_rm32), overflow);
    let signed_sub = row(NARROW, Operation::Two(Code::Sub_r32_rm32), overflow);
    let add_carry = row(NARROW, Operation::Carry(Code::Adc_r32_rm32), carry);
    let sub_carry = row(NARROW, Operation::Carry(Code::Sbb_r32_rm32), carry);
    let bound = |cmov, scc| row(NARROW, Operation::Bound(cmov), Scc::Flag(scc));
    vec![
        ("s_add_u32", add),
        ("s_add_co_u32", add),
        ("s_sub_u32", sub),
        ("s_sub_co_u32", sub),
        ("s_add_i32", signed_add),
        ("s_add_co_i32", signed_add),
        ("s_sub_i32", signed_sub),
        ("s_sub_co_i32", signed_sub),
        ("s_addc_u32", add_carry),
        ("s_add_co_ci_u32", add_carry),
        ("s_subb_u32", sub_carry),
        ("s_sub_co_ci_u32", sub_carry),
        ("s_add_nc_u64", row(WIDE, Operation::Two(Code::Add_r64_rm64), Scc::Stays)),
        ("s_add_u64", row(WIDE, Operation::Two(Code::Add_r64_rm64), Scc::Stays)),
        ("s_sub_nc_u64", row(WIDE, Operation::Two(Code::Sub_r64_rm64), Scc::Stays)),
        ("s_sub_u64", row(WIDE, Operation::Two(Code::Sub_r64_rm64), Scc::Stays)),
        ("s_mul_i32", row(NARROW, Operation::Two(Code::Imul_r32_rm32), Scc::Stays)),
        ("s_mul_u64", row(WIDE, Operation::Two(Code::Imul_r64_rm64), Scc::Stays)),
        ("s_mul_hi_u32", row(NARROW, Operation::MultiplyHigh, Scc::Stays)),
        ("s_lshl1_add_u32", row(NARROW, Operation::ShiftedSum(1), carry)),
        ("s_lshl2_add_u32", row(NARROW, Operation::ShiftedSum(2), carry)),
        ("s_lshl3_add_u32", row(NARROW, Operation::ShiftedSum(3), carry)),
        ("s_lshl4_add_u32", row(NARROW, Operation::ShiftedSum(4), carry)),
        ("s_min_u32", bound(Code::Cmova_r32_rm32, Code::Setb_rm8)),
        ("s_max_u32", bound(Code::Cmovb_r32_rm32, Code::Seta_rm8)),
        ("s_min_i32", bound(Code::Cmovg_r32_rm32, Code::Setl_rm8)),
        ("s_max_i32", bound(Code::Cmovl_r32_rm32, Code::Setg_rm8)),
    ]
}

fn logic() -> Vec<(&'static str, Row)> {
    let both = |narrow, wide, make: fn(Code) -> Operation, codes: [Code; 2]| {
        [(narrow, row(NARROW, make(codes[0]), Scc::NotZero)), (wide, row(WIDE, make(codes[1]), Scc::NotZero))]
    };
    let shift = |narrow, wide, codes: [Code; 2]| {
        [
            (narrow, row(NARROW, Operation::Shift(codes[0]), Scc::NotZero)),
            (wide, row(WIDE_SHIFT, Operation::Shift(codes[1]), Scc::NotZero)),
        ]
    };
    let and = [Code::And_r32_rm32, Code::And_r64_rm64];
    let or = [Code::Or_r32_rm32, Code::Or_r64_rm64];
    let xor = [Code::Xor_r32_rm32, Code::Xor_r64_rm64];
    [
        both("s_and_b32", "s_and_b64", Operation::Two, and),
        both("s_or_b32", "s_or_b64", Operation::Two, or),
        both("s_xor_b32", "s_xor_b64", Operation::Two, xor),
        both("s_nand_b32", "s_nand_b64", Operation::Inverted, and),
        both("s_nor_b32", "s_nor_b64", Operation::Inverted, or),
        both("s_xnor_b32", "s_xnor_b64", Operation::Inverted, xor),
        both("s_and_not1_b32", "s_and_not1_b64", Operation::Without, and),
        both("s_or_not1_b32", "s_or_not1_b64", Operation::Without, or),
        shift("s_lshl_b32", "s_lshl_b64", [Code::Shl_rm32_CL, Code::Shl_rm64_CL]),
        shift("s_lshr_b32", "s_lshr_b64", [Code::Shr_rm32_CL, Code::Shr_rm64_CL]),
        shift("s_ashr_i32", "s_ashr_i64", [Code::Sar_rm32_CL, Code::Sar_rm64_CL]),
    ]
    .concat()
}

fn comparisons() -> Vec<(&'static str, Row)> {
    let narrow = |name, code| (name, row(NARROW, Operation::Compare, Scc::Flag(code)));
    let wide = |name, code| (name, row(WIDE, Operation::Compare, Scc::Flag(code)));
    vec![
        narrow("s_cmp_eq_i32", Code::Sete_rm8),
        narrow("s_cmp_lg_i32", Code::Setne_rm8),
        narrow("s_cmp_gt_i32", Code::Setg_rm8),
        narrow("s_cmp_ge_i32", Code::Setge_rm8),
        narrow("s_cmp_lt_i32", Code::Setl_rm8),
        narrow("s_cmp_le_i32", Code::Setle_rm8),
        narrow("s_cmp_eq_u32", Code::Sete_rm8),
        narrow("s_cmp_lg_u32", Code::Setne_rm8),
        narrow("s_cmp_gt_u32", Code::Seta_rm8),
        narrow("s_cmp_ge_u32", Code::Setae_rm8),
        narrow("s_cmp_lt_u32", Code::Setb_rm8),
        narrow("s_cmp_le_u32", Code::Setbe_rm8),
        wide("s_cmp_eq_u64", Code::Sete_rm8),
        wide("s_cmp_lg_u64", Code::Setne_rm8),
    ]
}
