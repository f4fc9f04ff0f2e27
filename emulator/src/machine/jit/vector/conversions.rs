//! Conversions between types.

use iced_x86::{Code, Register};

use super::super::cache::{Zmm, zmm};
use super::super::codes::{AND, BLEND, COMPARE_FLOATS, MOVE, RIGHT, float};
use super::super::emitter::{BITS, Emitter};
use super::{Emit, Operand, Row};

/// 2 to the power of 31, as a float.
const TOO_LARGE: u32 = 0x4f00_0000;

pub fn rows() -> Vec<Row> {
    vec![
        ("v_cvt_f32_i32", Emit::One(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er)),
        ("v_cvt_f32_u32", Emit::One(Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er)),
        ("v_cvt_i32_f32", Emit::Value(to_signed)),
        ("v_cvt_u32_f32", Emit::Value(to_unsigned)),
        ("v_cvt_f32_f16", Emit::Value(from_half)),
        ("v_cvt_f16_f32", Emit::Value(to_half)),
        ("v_cvt_f32_ubyte0", Emit::Value(|e, o, part| byte(e, o, part, 0))),
        ("v_cvt_f32_ubyte1", Emit::Value(|e, o, part| byte(e, o, part, 8))),
        ("v_cvt_f32_ubyte2", Emit::Value(|e, o, part| byte(e, o, part, 16))),
        ("v_cvt_f32_ubyte3", Emit::Value(|e, o, part| byte(e, o, part, 24))),
    ]
}

/// What is no number gives 0, what is too large the largest; the processor gives the smallest for all of them.
fn to_signed(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (a, large, largest) = (e.load(&o[0], part), e.constant(TOO_LARGE), e.constant(i32::MAX as u32));
    let (number, zero, to) = (e.fresh(), e.constant(0), e.fresh());
    e.two(Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae, number, a);
    e.compare(COMPARE_FLOATS, BITS, Register::None, a, large, float::GREATER_OR_EQUAL);
    e.two_masked(MOVE, BITS, number, largest);
    e.compare(COMPARE_FLOATS, BITS, Register::None, a, a, float::ORDERED);
    e.three_masked(BLEND, BITS, to, zero, number);
    to
}

/// The processor gives all ones for what is too large, and for what is below 0 or no number, which is 0 here.
fn to_unsigned(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (a, zero) = (e.load(&o[0], part), e.constant(0));
    let (number, to) = (e.fresh(), e.fresh());
    e.two(Code::EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae, number, a);
    e.compare(COMPARE_FLOATS, BITS, Register::None, a, zero, float::GREATER_OR_EQUAL);
    e.three_masked(BLEND, BITS, to, zero, number);
    to
}

/// Words become halves that lie side by side.
fn from_half(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    let (a, to) = (e.load(&o[0], part), e.fresh());
    e.assembler.vector(Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, Register::None, &[ymm(to), zmm(a)], None);
    e.assembler.vector(Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae, Register::None, &[zmm(to), ymm(to)], None);
    to
}

fn to_half(e: &mut Emitter, o: &[Operand], part: usize) -> Zmm {
    const NEAREST: u32 = 0;
    let (a, to) = (e.load(&o[0], part), e.fresh());
    e.assembler.vector(
        Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae,
        Register::None,
        &[ymm(to), zmm(a)],
        Some(NEAREST),
    );
    e.assembler.vector(Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256, Register::None, &[zmm(to), ymm(to)], None);
    to
}

fn byte(e: &mut Emitter, o: &[Operand], part: usize, shift: u32) -> Zmm {
    let (a, mask, to) = (e.load(&o[0], part), e.constant(255), e.fresh());
    e.two_immediate(RIGHT.by_constant, to, a, shift);
    e.three(AND, to, to, mask);
    e.two(Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er, to, to);
    to
}

/// The lower half of a register.
fn ymm(register: Zmm) -> Register {
    zmm(register) - (Register::ZMM0 as u32 - Register::YMM0 as u32)
}
