//! Moves, shifts and operations on bits.

use iced_x86::{Code, Register};

use super::super::cache::Zmm;
use super::super::codes::{
    ADD, AND, AND_NOT, BLEND, COMPARE_UNSIGNED, LEFT, OR, RIGHT, SIGNED_RIGHT, SUB, Shift, XOR, integer,
};
use super::super::emitter::{BITS, Emitter};
use super::integers::both;
use super::{Emit, Operand, Row};

const TERNARY: Code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;

pub fn rows() -> Vec<Row> {
    [moves(), shifts(), combinations()].concat()
}

fn moves() -> Vec<Row> {
    let copy = Emit::Value(|e, o, part| e.load(&o[0], part));
    vec![
        ("v_mov_b32", copy),
        ("v_accvgpr_read_b32", copy),
        ("v_accvgpr_write_b32", copy),
        ("v_accvgpr_mov_b32", copy),
        ("v_not_b32", Emit::Value(|e, o, part| ternary(e, [&o[0], &o[0], &o[0]], part, 0x0f))),
        ("v_cndmask_b32", Emit::Bits(select)),
    ]
}

fn shifts() -> Vec<Row> {
    vec![
        ("v_lshlrev_b32", Emit::Value(|e, o, part| shift(e, &o[1], &o[0], part, LEFT))),
        ("v_lshrrev_b32", Emit::Value(|e, o, part| shift(e, &o[1], &o[0], part, RIGHT))),
        ("v_ashrrev_i32", Emit::Value(|e, o, part| shift(e, &o[1], &o[0], part, SIGNED_RIGHT))),
        ("v_lshl_add_u32", Emit::Value(|e, o, part| shift_then(e, o, part, ADD))),
        ("v_lshl_or_b32", Emit::Value(|e, o, part| shift_then(e, o, part, OR))),
        (
            "v_add_lshl_u32",
            Emit::Value(|e, o, part| {
                let (a, b, to) = (e.load(&o[0], part), e.load(&o[1], part), e.fresh());
                e.three(ADD, to, a, b);
                shift_value(e, to, &o[2], part, LEFT)
            }),
        ),
        ("v_bfe_u32", Emit::Value(extract)),
        ("v_bfe_i32", Emit::Value(extract_signed)),
    ]
}

fn combinations() -> Vec<Row> {
    vec![
        ("v_and_b32", Emit::Two(AND)),
        ("v_or_b32", Emit::Two(OR)),
        ("v_xor_b32", Emit::Two(XOR)),
        ("v_xnor_b32", Emit::Value(|e, o, part| ternary(e, [&o[0], &o[1], &o[1]], part, 0xc3))),
        ("v_and_or_b32", Emit::Value(|e, o, part| both(e, o, part, AND, OR))),
        ("v_or3_b32", Emit::Value(|e, o, part| both(e, o, part, OR, OR))),
        ("v_xor3_b32", Emit::Value(|e, o, part| both(e, o, part, XOR, XOR))),
        // Where the first has ones the second, else the third.
        ("v_bfi_b32", Emit::Value(|e, o, part| ternary(e, [&o[0], &o[1], &o[2]], part, 0xca))),
    ]
}

/// A table of three bits: bit 4a + 2b + c of the immediate is the result.
fn ternary(e: &mut Emitter, o: [&Operand; 3], part: usize, table: u32) -> Zmm {
    let (a, b, c) = (e.load(o[0], part), e.load(o[1], part), e.load(o[2], part));
    let to = e.fresh();
    e.copy(to, a);
    e.three_immediate(TERNARY, to, b, c, table);
    to
}

/// The second source where bits are set.
fn select(e: &mut Emitter, o: &[Operand], part: usize, bits: Option<u8>) -> Zmm {
    let (a, b, to) = (e.load(&o[0], part), e.load(&o[1], part), e.fresh());
    e.load_bits(BITS, bits.unwrap_or(crate::isa::sgpr::VCC), part);
    e.three_masked(BLEND, BITS, to, a, b);
    to
}

fn shift(e: &mut Emitter, value: &Operand, by: &Operand, part: usize, shift: Shift) -> Zmm {
    let value = e.load(value, part);
    shift_value(e, value, by, part, shift)
}

/// Five bits count.
fn shift_value(e: &mut Emitter, value: Zmm, by: &Operand, part: usize, shift: Shift) -> Zmm {
    if let Some(by) = by.known() {
        let to = e.fresh();
        e.two_immediate(shift.by_constant, to, value, by & 31);
        return to;
    }
    let (by, mask, to) = (e.load(by, part), e.constant(31), e.fresh());
    e.three(AND, to, by, mask);
    e.three(shift.by_lane, to, value, to);
    to
}

fn shift_then(e: &mut Emitter, o: &[Operand], part: usize, then: Code) -> Zmm {
    let shifted = shift(e, &o[0], &o[1], part, LEFT);
    let (c, to) = (e.load(&o[2], part), e.fresh());
    e.three(then, to, shifted, c);
    to
}

/// Bits from an offset on, as many as the width says: ones below the width, of a number of lanes each.
fn extract(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let shifted = shift(e, &o[0], &o[1], part, RIGHT);
    if let Some(width) = o[2].known() {
        let (mask, to) = (e.constant((1 << (width & 31)) - 1), e.fresh());
        e.three(AND, to, shifted, mask);
        return to;
    }
    let ones = e.constant(u32::MAX);
    let mask = shift_value(e, ones, &o[2], part, LEFT);
    let to = e.fresh();
    e.three(AND_NOT, to, mask, shifted);
    to
}

/// To the top, then down with the sign; where the field ends behind the word, down at once; nothing of no width.
fn extract_signed(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (Some(offset), Some(width)) = (o[1].known(), o[2].known()) else {
        return extract_signed_by_lane(e, o, part);
    };
    let (offset, width) = (offset & 31, width & 31);
    if width == 0 {
        return e.constant(0);
    }
    let (a, to) = (e.load(&o[0], part), e.fresh());
    if offset + width >= 32 {
        e.two_immediate(SIGNED_RIGHT.by_constant, to, a, offset);
    } else {
        e.two_immediate(LEFT.by_constant, to, a, 32 - offset - width);
        e.two_immediate(SIGNED_RIGHT.by_constant, to, to, 32 - width);
    }
    to
}

/// The bits without a sign, of which a number with only the highest bit of the field is taken twice.
fn extract_signed_by_lane(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let shifted = shift(e, &o[0], &o[1], part, SIGNED_RIGHT);
    let (width, mask, zero) = (e.load(&o[2], part), e.constant(31), e.constant(0));
    let (width32, to) = (e.fresh(), e.fresh());
    e.three(AND, width32, width, mask);
    e.compare(COMPARE_UNSIGNED, BITS, Register::None, width32, zero, integer::NOT_EQUAL);
    // To the top and back; a width of 0 is masked away.
    let thirty_two = e.constant(32);
    e.three(SUB, width32, thirty_two, width32);
    e.three(LEFT.by_lane, to, shifted, width32);
    e.three(SIGNED_RIGHT.by_lane, to, to, width32);
    let result = e.fresh();
    e.three_masked(BLEND, BITS, result, zero, to);
    result
}
