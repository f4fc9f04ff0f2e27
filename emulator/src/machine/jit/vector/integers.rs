//! Arithmetic of integers of 24 and 32 bits, and carries.

use iced_x86::{Code, Register};

use super::super::cache::Zmm;
use super::super::codes::{ADD, AND, COMPARE_UNSIGNED, LEFT, SIGNED_RIGHT, SUB, XOR, integer};
use super::super::emitter::{BITS, Emitter, OTHER_BITS};
use super::{Emit, Operand, Row};

const MUL: Code = Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;

pub fn rows() -> Vec<Row> {
    [sums(), products(), bounds(), carries()].concat()
}

fn sums() -> Vec<Row> {
    vec![
        ("v_add_nc_u32", Emit::Two(ADD)),
        ("v_sub_nc_u32", Emit::Two(SUB)),
        ("v_subrev_nc_u32", Emit::Swapped(SUB)),
        ("v_add_nc_i32", Emit::Two(ADD)),
        ("v_sub_nc_i32", Emit::Two(SUB)),
        ("v_add_i32", Emit::Two(ADD)),
        ("v_sub_i32", Emit::Two(SUB)),
        ("v_add3_u32", Emit::Value(|e, o, part| both(e, o, part, ADD, ADD))),
        ("v_xad_u32", Emit::Value(|e, o, part| both(e, o, part, XOR, ADD))),
    ]
}

fn products() -> Vec<Row> {
    vec![
        ("v_mul_lo_u32", Emit::Two(MUL)),
        ("v_mul_lo_i32", Emit::Two(MUL)),
        ("v_mul_u32_u24", Emit::Value(|e, o, part| product(e, o, part, unsigned))),
        ("v_mul_i32_i24", Emit::Value(|e, o, part| product(e, o, part, signed))),
        (
            "v_mad_u32_u24",
            Emit::Value(|e, o, part| {
                let to = product(e, o, part, unsigned);
                added(e, to, &o[2], part)
            }),
        ),
        (
            "v_mad_i32_i24",
            Emit::Value(|e, o, part| {
                let to = product(e, o, part, signed);
                added(e, to, &o[2], part)
            }),
        ),
    ]
}

fn bounds() -> Vec<Row> {
    const MIN_U: Code = Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32;
    const MAX_U: Code = Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32;
    const MIN_I: Code = Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32;
    const MAX_I: Code = Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32;
    vec![
        ("v_min_u32", Emit::Two(MIN_U)),
        ("v_max_u32", Emit::Two(MAX_U)),
        ("v_min_i32", Emit::Two(MIN_I)),
        ("v_max_i32", Emit::Two(MAX_I)),
        ("v_min3_u32", Emit::Value(|e, o, part| both(e, o, part, MIN_U, MIN_U))),
        ("v_max3_u32", Emit::Value(|e, o, part| both(e, o, part, MAX_U, MAX_U))),
        ("v_min3_i32", Emit::Value(|e, o, part| both(e, o, part, MIN_I, MIN_I))),
        ("v_max3_i32", Emit::Value(|e, o, part| both(e, o, part, MAX_I, MAX_I))),
        ("v_maxmin_u32", Emit::Value(|e, o, part| both(e, o, part, MAX_U, MIN_U))),
        ("v_minmax_u32", Emit::Value(|e, o, part| both(e, o, part, MIN_U, MAX_U))),
        ("v_maxmin_i32", Emit::Value(|e, o, part| both(e, o, part, MAX_I, MIN_I))),
        ("v_minmax_i32", Emit::Value(|e, o, part| both(e, o, part, MIN_I, MAX_I))),
        ("v_med3_u32", Emit::Value(|e, o, part| median(e, o, part, MIN_U, MAX_U))),
        ("v_med3_i32", Emit::Value(|e, o, part| median(e, o, part, MIN_I, MAX_I))),
    ]
}

fn carries() -> Vec<Row> {
    vec![
        ("v_add_co_u32", Emit::Bits(|e, o, part, _| sum(e, &o[0], &o[1], part))),
        ("v_sub_co_u32", Emit::Bits(|e, o, part, _| difference(e, &o[0], &o[1], part))),
        ("v_subrev_co_u32", Emit::Bits(|e, o, part, _| difference(e, &o[1], &o[0], part))),
        ("v_add_co_ci_u32", Emit::Bits(sum_with_carry)),
        ("v_sub_co_ci_u32", Emit::Bits(|e, o, part, bits| borrowing(e, &o[0], &o[1], part, bits))),
        ("v_subrev_co_ci_u32", Emit::Bits(|e, o, part, bits| borrowing(e, &o[1], &o[0], part, bits))),
    ]
}

/// One operation on the first two sources, another on what it gives and the third.
pub fn both(e: &mut Emitter, o: &[Operand], part: usize, first: Code, second: Code) -> Zmm {
    let (a, b, c) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let to = e.fresh();
    e.three(first, to, a, b);
    e.three(second, to, to, c);
    to
}

fn product(
    e: &mut Emitter,
    o: &[Operand],
    part: usize,
    cut: fn(&mut Emitter, &Operand, usize) -> Zmm,
) -> Zmm {
    let (a, b) = (cut(e, &o[0], part), cut(e, &o[1], part));
    let to = e.fresh();
    e.three(MUL, to, a, b);
    to
}

fn added(e: &mut Emitter, to: Zmm, more: &Operand, part: usize) -> Zmm {
    let more = e.load(more, part);
    e.three(ADD, to, to, more);
    to
}

/// The low 24 bits.
fn unsigned(e: &mut Emitter, o: &Operand, part: usize) -> Zmm {
    const BITS24: u32 = 0xff_ffff;
    if let Some(value) = o.known() {
        return e.constant(value & BITS24);
    }
    let (a, mask, to) = (e.load(o, part), e.constant(BITS24), e.fresh());
    e.three(AND, to, a, mask);
    to
}

fn signed(e: &mut Emitter, o: &Operand, part: usize) -> Zmm {
    let (a, to) = (e.load(o, part), e.fresh());
    e.two_immediate(LEFT.by_constant, to, a, 8);
    e.two_immediate(SIGNED_RIGHT.by_constant, to, to, 8);
    to
}

fn median(e: &mut Emitter, o: &[Operand], part: usize, min: Code, max: Code) -> Zmm {
    let (a, b, c) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let (low, high) = (e.fresh(), e.fresh());
    e.three(min, low, a, b);
    e.three(max, high, a, b);
    e.three(min, high, high, c);
    e.three(max, low, low, high);
    low
}

fn sum(e: &mut Emitter, a: &Operand, b: &Operand, part: usize) -> Zmm {
    let (a, b, to) = (e.load(a, part), e.load(b, part), e.fresh());
    e.three(ADD, to, a, b);
    e.compare(COMPARE_UNSIGNED, BITS, Register::None, to, a, integer::LESS);
    to
}

fn difference(e: &mut Emitter, a: &Operand, b: &Operand, part: usize) -> Zmm {
    let (a, b, to) = (e.load(a, part), e.load(b, part), e.fresh());
    e.three(SUB, to, a, b);
    e.compare(COMPARE_UNSIGNED, BITS, Register::None, a, b, integer::LESS);
    to
}

/// The carry goes in where it makes the sum 0, too.
fn sum_with_carry(e: &mut Emitter, o: &[Operand], part: usize, bits: Option<u8>) -> Zmm {
    let to = sum(e, &o[0], &o[1], part);
    let (one, zero) = (e.constant(1), e.constant(0));
    carry_in(e, bits, part);
    e.three_masked(ADD, OTHER_BITS, to, to, one);
    e.compare(COMPARE_UNSIGNED, OTHER_BITS, OTHER_BITS, to, zero, integer::EQUAL);
    e.masks(Code::VEX_Korw_kr_kr_kr, BITS, BITS, OTHER_BITS);
    to
}

fn borrowing(e: &mut Emitter, a: &Operand, b: &Operand, part: usize, bits: Option<u8>) -> Zmm {
    let to = difference(e, a, b, part);
    let (a, b, one) = (e.load(a, part), e.load(b, part), e.constant(1));
    carry_in(e, bits, part);
    e.three_masked(SUB, OTHER_BITS, to, to, one);
    e.compare(COMPARE_UNSIGNED, OTHER_BITS, OTHER_BITS, a, b, integer::EQUAL);
    e.masks(Code::VEX_Korw_kr_kr_kr, BITS, BITS, OTHER_BITS);
    to
}

fn carry_in(e: &mut Emitter, bits: Option<u8>, part: usize) {
    e.load_bits(OTHER_BITS, bits.unwrap_or(crate::isa::sgpr::VCC), part);
}
