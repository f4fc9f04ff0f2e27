//! The steps of a division (`execute/vector/tables/divisions.rs`).

use iced_x86::{Code, Register};

use super::super::cache::Zmm;
use super::super::codes::{
    AND, COMPARE_FLOATS, COMPARE_SIGNED, COMPARE_UNSIGNED, LEFT, MOVE, OR, RIGHT, SUB, XOR, float, integer,
};
use super::super::emitter::{BITS, Emitter, MORE_BITS, OTHER_BITS};
use super::{Emit, Operand, Row};

const MULTIPLY: Code = Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er;
const BOTH: Code = Code::VEX_Kandw_kr_kr_kr;
const EITHER: Code = Code::VEX_Korw_kr_kr_kr;
/// The second without the first.
const WITHOUT: Code = Code::VEX_Kandnw_kr_kr_kr;

const ONE: u32 = 0x3f80_0000;
const TWO_TO_64: u32 = 0x5f80_0000;
const TWO_TO_MINUS_64: u32 = 0x1f80_0000;
const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
const INVALID: u32 = 0xffc0_0000;
const QUIET: u32 = 0x0040_0000;
const SIGN: u32 = 0x8000_0000;

pub fn rows() -> Vec<Row> {
    vec![
        ("v_div_scale_f32", Emit::Bits(scale)),
        ("v_div_fmas_f32", Emit::Bits(multiply_add)),
        ("v_div_fixup_f32", Emit::Value(fix)),
    ]
}

/// The bits of a number but its sign, one place further left.
fn without_sign(e: &mut Emitter, number: Zmm) -> Zmm {
    let to = e.fresh();
    e.two_immediate(LEFT.by_constant, to, number, 1);
    to
}

/// Of a number without its sign.
fn exponent(e: &mut Emitter, number: Zmm) -> Zmm {
    let to = e.fresh();
    e.two_immediate(RIGHT.by_constant, to, number, 24);
    to
}

/// The divisor or the dividend times a power of two. The last that is chosen counts: those are first that are asked for last
/// in the interpreter.
fn scale(e: &mut Emitter, o: &[Operand], part: usize, _: Option<u8>) -> Zmm {
    let (value, divisor, dividend) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let (below, above) = (without_sign(e, divisor), without_sign(e, dividend));
    let (exponent_below, distance) = (exponent(e, below), exponent(e, above));
    let (factor, other) = (e.fresh(), e.fresh());
    let equal = |e: &mut Emitter, bits, mask, to| {
        e.compare(COMPARE_UNSIGNED, bits, mask, value, to, integer::EQUAL);
        e.set_lanes(bits, factor, TWO_TO_64);
    };
    e.set_lanes(Register::None, factor, ONE);
    e.compare_constant(COMPARE_UNSIGNED, BITS, distance, 24, integer::LESS);
    e.set_lanes(BITS, factor, TWO_TO_64);
    e.three(SUB, distance, distance, exponent_below);
    // A tiny quotient.
    e.compare_constant(COMPARE_SIGNED, OTHER_BITS, distance, -125i32 as u32, integer::LESS);
    e.set_lanes(OTHER_BITS, factor, ONE);
    equal(e, BITS, OTHER_BITS, dividend);
    // A subnormal divisor.
    e.with_constant(SUB, other, below, 1);
    e.compare_constant(COMPARE_UNSIGNED, MORE_BITS, other, (1 << 24) - 1, integer::LESS);
    e.set_lanes(MORE_BITS, factor, TWO_TO_64);
    e.masks(WITHOUT, BITS, MORE_BITS, OTHER_BITS);
    // A subnormal reciprocal.
    e.with_constant(SUB, other, below, 0xfd00_0001);
    e.compare_constant(COMPARE_UNSIGNED, MORE_BITS, other, 0x1ff_ffff, integer::LESS);
    e.set_lanes(MORE_BITS, factor, TWO_TO_MINUS_64);
    e.masks(BOTH, OTHER_BITS, OTHER_BITS, MORE_BITS);
    // A huge quotient, or both of the above.
    e.compare_constant(COMPARE_SIGNED, MORE_BITS, distance, 95, integer::GREATER);
    e.masks(EITHER, BITS, BITS, MORE_BITS);
    e.masks(EITHER, OTHER_BITS, OTHER_BITS, MORE_BITS);
    e.set_lanes(OTHER_BITS, factor, ONE);
    equal(e, OTHER_BITS, OTHER_BITS, divisor);
    e.three(MULTIPLY, factor, value, factor);
    for number in [below, above] {
        e.compare_constant(COMPARE_UNSIGNED, OTHER_BITS, number, 0, integer::EQUAL);
        e.set_lanes(OTHER_BITS, factor, NAN);
        e.masks(EITHER, BITS, BITS, OTHER_BITS);
    }
    factor
}

/// A sum that is scaled back where a bit says so.
fn multiply_add(e: &mut Emitter, o: &[Operand], part: usize, bits: Option<u8>) -> Zmm {
    let (a, b, c) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let (sum, factor, number) = (e.fresh(), e.fresh(), without_sign(e, c));
    e.copy(sum, a);
    e.three(Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er, sum, b, c);
    e.load_bits(BITS, bits.unwrap_or(crate::isa::sgpr::VCC), part);
    e.set_lanes(BITS, factor, TWO_TO_MINUS_64);
    e.compare_constant(COMPARE_UNSIGNED, OTHER_BITS, number, 0x7fff_ffff, integer::GREATER);
    e.set_lanes(OTHER_BITS, factor, TWO_TO_64);
    e.three_masked(MULTIPLY, BITS, sum, sum, factor);
    sum
}

/// The quotient with its sign, or what operands give that are no usual numbers.
fn fix(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (quotient, divisor, dividend) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let (below, above) = (without_sign(e, divisor), without_sign(e, dividend));
    let (exponent_below, distance) = (exponent(e, below), exponent(e, above));
    let (sign, result) = (e.fresh(), e.fresh());
    e.three(XOR, sign, divisor, dividend);
    e.with_constant(AND, sign, sign, SIGN);
    e.with_constant(AND, result, quotient, !SIGN);
    e.compare(COMPARE_FLOATS, BITS, Register::None, quotient, quotient, float::UNORDERED);
    e.set_lanes(BITS, result, INFINITY);
    e.three(SUB, distance, distance, exponent_below);
    e.compare_constant(COMPARE_SIGNED, BITS, distance, -150i32 as u32, integer::LESS);
    e.set_lanes(BITS, result, 0);
    let special = |e: &mut Emitter, bits, infinite, zero, value| {
        e.compare_constant(COMPARE_UNSIGNED, bits, infinite, INFINITY << 1, integer::EQUAL);
        e.compare_constant(COMPARE_UNSIGNED, MORE_BITS, zero, 0, integer::EQUAL);
        e.masks(EITHER, bits, bits, MORE_BITS);
        e.set_lanes(bits, result, value);
    };
    special(e, BITS, below, above, 0);
    special(e, OTHER_BITS, above, below, INFINITY);
    e.three(OR, result, result, sign);
    e.masks(BOTH, BITS, BITS, OTHER_BITS);
    e.set_lanes(BITS, result, INVALID);
    for number in [divisor, dividend] {
        e.compare(COMPARE_FLOATS, BITS, Register::None, number, number, float::UNORDERED);
        e.with_constant(OR, sign, number, QUIET);
        e.two_masked(MOVE, BITS, result, sign);
    }
    result
}
