//! Arithmetic in single precision. Results equal those of `execute/vector/tables`, but for which of two NaNs goes on.

use iced_x86::{Code, Register};

use super::super::cache::Zmm;
use super::super::codes::float::{EQUAL, GREATER, LESS, UNORDERED};
use super::super::codes::{AND, AND_NOT, BLEND, COMPARE_FLOATS, COMPARE_UNSIGNED, integer};
use super::super::emitter::{BITS, Emitter, MORE_BITS, OTHER_BITS};
use super::{Emit, Operand, Row};

/// Roundings of VRNDSCALEPS, without exceptions.
const NEAREST: u32 = 8;
const DOWN: u32 = 9;
const UP: u32 = 10;
const TO_ZERO: u32 = 11;

const SIGN: u32 = 1 << 31;
const ONE: u32 = 0x3f80_0000;
const SMALLEST_NORMAL: u32 = 0x0080_0000;
const BELOW_ONE: u32 = 0x3f7f_ffff;

pub fn rows() -> Vec<Row> {
    [sums(), bounds(), roundings()].concat()
}

fn sums() -> Vec<Row> {
    vec![
        ("v_add_f32", Emit::Two(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er)),
        ("v_sub_f32", Emit::Two(Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er)),
        ("v_subrev_f32", Emit::Swapped(Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er)),
        ("v_mul_f32", Emit::Two(Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er)),
        ("v_fma_f32", Emit::Fused),
        ("v_fmac_f32", Emit::Fused),
        ("v_fmaak_f32", Emit::Fused),
        ("v_fmamk_f32", Emit::Fused),
        ("v_mad_f32", Emit::Value(multiply_add)),
        ("v_mac_f32", Emit::Value(multiply_add)),
        ("v_madak_f32", Emit::Value(multiply_add)),
        ("v_madmk_f32", Emit::Value(multiply_add)),
    ]
}

fn bounds() -> Vec<Row> {
    let min2 = Emit::Value(|e, o, part| {
        let (a, b) = (e.load(&o[0], part), e.load(&o[1], part));
        bound(e, a, b, LESS)
    });
    let max2 = Emit::Value(|e, o, part| {
        let (a, b) = (e.load(&o[0], part), e.load(&o[1], part));
        bound(e, a, b, GREATER)
    });
    let min3 = Emit::Value(|e, o, part| two_bounds(e, o, part, [LESS, LESS]));
    let max3 = Emit::Value(|e, o, part| two_bounds(e, o, part, [GREATER, GREATER]));
    let maxmin = Emit::Value(|e, o, part| two_bounds(e, o, part, [GREATER, LESS]));
    let minmax = Emit::Value(|e, o, part| two_bounds(e, o, part, [LESS, GREATER]));
    vec![
        ("v_min_f32", min2),
        ("v_max_f32", max2),
        ("v_min_num_f32", min2),
        ("v_max_num_f32", max2),
        ("v_min3_f32", min3),
        ("v_max3_f32", max3),
        ("v_min3_num_f32", min3),
        ("v_max3_num_f32", max3),
        ("v_maxmin_f32", maxmin),
        ("v_minmax_f32", minmax),
        ("v_maxmin_num_f32", maxmin),
        ("v_minmax_num_f32", minmax),
    ]
}

fn roundings() -> Vec<Row> {
    const ROUND: Code = Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae;
    vec![
        ("v_trunc_f32", Emit::OneImmediate(ROUND, TO_ZERO)),
        ("v_ceil_f32", Emit::OneImmediate(ROUND, UP)),
        ("v_floor_f32", Emit::OneImmediate(ROUND, DOWN)),
        ("v_rndne_f32", Emit::OneImmediate(ROUND, NEAREST)),
        ("v_fract_f32", Emit::Value(fraction)),
        ("v_ldexp_f32", Emit::Value(ldexp)),
        ("v_rcp_f32", Emit::Value(reciprocal)),
        ("v_rcp_iflag_f32", Emit::Value(reciprocal)),
        ("v_sqrt_f32", Emit::Value(root)),
    ]
}

/// Rounded twice.
fn multiply_add(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (a, b, c) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let to = e.fresh();
    e.three(Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, to, a, b);
    e.three(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, to, to, c);
    to
}

/// minNum or maxNum, −0 before +0: `a` where it is beyond, or equal with the sign that is wanted, or where `b` is no
/// number.
fn bound(e: &mut Emitter, a: Zmm, b: Zmm, beyond: u32) -> Zmm {
    let to = e.fresh();
    e.compare(COMPARE_FLOATS, BITS, Register::None, a, b, EQUAL);
    e.signs(OTHER_BITS, a);
    let code = if beyond == LESS { Code::VEX_Kandw_kr_kr_kr } else { Code::VEX_Kandnw_kr_kr_kr };
    // KANDN inverts its first source: those whose sign is not set.
    e.masks(code, OTHER_BITS, OTHER_BITS, BITS);
    e.compare(COMPARE_FLOATS, BITS, Register::None, a, b, beyond);
    e.compare(COMPARE_FLOATS, MORE_BITS, Register::None, b, b, UNORDERED);
    e.masks(Code::VEX_Korw_kr_kr_kr, BITS, BITS, OTHER_BITS);
    e.masks(Code::VEX_Korw_kr_kr_kr, BITS, BITS, MORE_BITS);
    e.three_masked(BLEND, BITS, to, b, a);
    to
}

fn two_bounds(e: &mut Emitter, o: &[Operand], part: usize, beyond: [u32; 2]) -> Zmm {
    let (a, b, c) = (e.load(&o[0], part), e.load(&o[1], part), e.load(&o[2], part));
    let first = bound(e, a, b, beyond[0]);
    bound(e, first, c, beyond[1])
}

/// Never 1. What is no number goes on: the second source of VMINPS.
fn fraction(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (a, below_one, to) = (e.load(&o[0], part), e.constant(BELOW_ONE), e.fresh());
    e.two_immediate(Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae, to, a, DOWN);
    e.three(Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, to, a, to);
    e.three(Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, to, below_one, to);
    to
}

/// The exponent as a float is exact as far as it matters.
fn ldexp(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (a, exponent, to) = (e.load(&o[0], part), e.load(&o[1], part), e.fresh());
    e.two(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, to, exponent);
    e.three(Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er, to, a, to);
    to
}

fn reciprocal(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let a = e.load(&o[0], part);
    let (to, one) = (flushed(e, a), e.constant(ONE));
    e.three(Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, to, one, to);
    flushed(e, to)
}

fn root(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let a = e.load(&o[0], part);
    let to = flushed(e, a);
    e.two(Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, to, to);
    to
}

/// Subnormal numbers become 0 with their sign.
fn flushed(e: &mut Emitter, a: Zmm) -> Zmm {
    let (sign, smallest, to) = (e.constant(SIGN), e.constant(SMALLEST_NORMAL), e.fresh());
    // As integers without their signs, numbers are in the same order.
    e.three(AND_NOT, to, sign, a);
    e.compare(COMPARE_UNSIGNED, BITS, Register::None, to, smallest, integer::LESS);
    e.copy(to, a);
    e.three_masked(AND, BITS, to, a, sign);
    to
}
