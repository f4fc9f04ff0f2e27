//! Integers of 64 bits: words in one row, upper words in the next.

use iced_x86::{Code, Register};

use super::super::cache::Zmm;
use super::super::codes::{ADD, AND, BLEND, COMPARE_UNSIGNED, LEFT, MOVE, OR, RIGHT, SUB, integer};
use super::super::emitter::{BITS, Emitter, OTHER_BITS};
use super::{Emit, Operand, Row};

const MULTIPLY: Code = Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64;

pub fn rows() -> Vec<Row> {
    vec![
        ("v_lshlrev_b64", Emit::Wide(shift_left)),
        ("v_lshrrev_b64", Emit::Wide(shift_right)),
        ("v_mad_u64_u32", Emit::Wide(multiply_add)),
        ("v_mad_co_u64_u32", Emit::Wide(multiply_add)),
        ("v_mul_hi_u32", Emit::Value(|e, o, part| product(e, o, part).1)),
        ("v_mov_b64", Emit::Wide(|e, o, part| (e.load_low(&o[0], part), e.load_high(&o[0], part)))),
    ]
}

/// A shift by a number of lanes that is 32 or more, as a number without a sign, gives 0.
fn shift_left(e: &mut Emitter, o: &[Operand], part: usize) -> (Zmm, Zmm) {
    let (low, high) = (e.load_low(&o[1], part), e.load_high(&o[1], part));
    shifted(e, low, high, &o[0], part, LEFT.by_lane, RIGHT.by_lane)
}

fn shift_right(e: &mut Emitter, o: &[Operand], part: usize) -> (Zmm, Zmm) {
    let (low, high) = (e.load_low(&o[1], part), e.load_high(&o[1], part));
    let (high, low) = shifted(e, high, low, &o[0], part, RIGHT.by_lane, LEFT.by_lane);
    (low, high)
}

/// The words that others are shifted into, and those that they are shifted from: `near` loses bits to `far`.
fn shifted(
    e: &mut Emitter,
    near: Zmm,
    far: Zmm,
    by: &Operand,
    part: usize,
    forth: Code,
    back: Code,
) -> (Zmm, Zmm) {
    let (by, six_bits, thirty_two) = (e.load(by, part), e.constant(63), e.constant(32));
    let (count, rest) = (e.fresh(), e.fresh());
    let (new_near, new_far) = (e.fresh(), e.fresh());
    e.three(AND, count, by, six_bits);
    e.three(forth, new_near, near, count);
    e.three(forth, new_far, far, count);
    e.three(SUB, rest, thirty_two, count);
    e.three(back, rest, near, rest);
    e.three(OR, new_far, new_far, rest);
    e.three(SUB, count, count, thirty_two);
    e.three(forth, count, near, count);
    e.three(OR, new_far, new_far, count);
    (new_near, new_far)
}

/// The words of products: those of the even lanes and those of the odd ones, put together.
fn product(e: &mut Emitter, o: &[Operand], part: usize) -> (Zmm, Zmm) {
    const ODD_LANES: i32 = 0xaaaa;
    let (a, b) = (e.load(&o[0], part), e.load(&o[1], part));
    let (even, odd, other) = (e.fresh(), e.fresh(), e.fresh());
    e.three(MULTIPLY, even, a, b);
    e.two_immediate(Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8, odd, a, 32);
    e.two_immediate(Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8, other, b, 32);
    e.three(MULTIPLY, odd, odd, other);
    e.assembler.immediate(Code::Mov_r32_imm32, Register::EAX, ODD_LANES);
    e.assembler.two(Code::VEX_Kmovw_kr_r32, OTHER_BITS, Register::EAX);
    let (low, high) = (e.fresh(), e.fresh());
    e.two_immediate(Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8, low, odd, 32);
    e.three_masked(BLEND, OTHER_BITS, low, even, low);
    e.two_immediate(Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8, high, even, 32);
    e.two_masked(MOVE, OTHER_BITS, high, odd);
    (low, high)
}

/// Bits are not made: instructions whose carry somebody wants have no plan.
fn multiply_add(e: &mut Emitter, o: &[Operand], part: usize) -> (Zmm, Zmm) {
    let (low, high) = product(e, o, part);
    let (more, more_high, one) = (e.load_low(&o[2], part), e.load_high(&o[2], part), e.constant(1));
    e.three(ADD, low, low, more);
    e.compare(COMPARE_UNSIGNED, BITS, Register::None, low, more, integer::LESS);
    e.three(ADD, high, high, more_high);
    e.three_masked(ADD, BITS, high, high, one);
    (low, high)
}
