//! Instructions whose operands depend on their modifiers: mixed precision, pairs of floats in two registers, dot products
//! of signed and unsigned integers, floats of 8 bits.

use crate::isa::{Instruction, Sdwa, Source};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

use super::dual;
use super::kernel::{Kernel, map3};
use super::types::{F16, Lane};
use super::{Operation, execute};

/// `None` for other instructions.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Option<Action>, Box<Fault>> {
    let name = instruction.name;
    let operation = match name {
        "v_fma_mix_f32" | "v_mad_mix_f32" | "v_fma_mixlo_f16" | "v_mad_mixlo_f16" | "v_fma_mixhi_f16"
        | "v_mad_mixhi_f16" => mixed(instruction, setting)?,
        "v_pk_fma_f32" | "v_pk_mul_f32" | "v_pk_add_f32" | "v_pk_mov_b32" => {
            return pair(instruction, setting).map(Some);
        }
        _ if name.starts_with("v_dot4_") || name.starts_with("v_dot8_") => dot(instruction, setting)?,
        "v_cvt_f32_fp8" | "v_cvt_f32_bf8" => byte(instruction, setting)?,
        "v_cvt_pk_fp8_f32" | "v_cvt_pk_bf8_f32" => {
            let mut operation = Operation::new(instruction, setting)?;
            operation.keep_other_half();
            Some(operation)
        }
        _ => None,
    };
    Ok(operation.map(|operation| execute(operation, setting)))
}

/// Sources of single or half precision. OP_SEL_HI says which are halves, OP_SEL which half it is; the modifiers of high
/// halves are those of absolute values.
fn mixed(instruction: &Instruction, setting: Setting) -> Result<Option<Operation>, Box<Fault>> {
    let mut plain = instruction.clone();
    let modifiers = &mut plain.modifiers;
    modifiers.absolute = modifiers.negate_high;
    modifiers.op_sel &= modifiers.op_sel_high & 7;
    let halves = modifiers.op_sel_high & 7;
    let (low, high) = (instruction.name.contains("mixlo"), instruction.name.contains("mixhi"));
    let kernel = if low || high { mixes::<F16>(halves) } else { mixes::<f32>(halves) };
    if high {
        modifiers.op_sel |= 8;
    }
    let mut operation = Operation::with_kernel(&plain, kernel, setting)?;
    if low {
        operation.keep_other_half();
    }
    Ok(Some(operation))
}

/// A float of single or half precision.
trait Mixed: Lane {
    fn value(self) -> f32;
    fn from_value(value: f32) -> Self;
}

impl Mixed for f32 {
    fn value(self) -> f32 {
        self
    }

    fn from_value(value: f32) -> f32 {
        value
    }
}

impl Mixed for F16 {
    fn value(self) -> f32 {
        self.0
    }

    fn from_value(value: f32) -> F16 {
        F16(value)
    }
}

/// Multiply-add whose sources are halves where bits are set.
fn mixes<O: Mixed>(halves: u8) -> Kernel {
    fn mix<A: Mixed, B: Mixed, C: Mixed, O: Mixed>() -> Kernel {
        map3(|a: A, b: B, c: C| O::from_value(a.value().mul_add(b.value(), c.value())))
    }
    match halves {
        0 => mix::<f32, f32, f32, O>(),
        1 => mix::<F16, f32, f32, O>(),
        2 => mix::<f32, F16, f32, O>(),
        3 => mix::<F16, F16, f32, O>(),
        4 => mix::<f32, f32, F16, O>(),
        5 => mix::<F16, f32, F16, O>(),
        6 => mix::<f32, F16, F16, O>(),
        _ => mix::<F16, F16, F16, O>(),
    }
}

/// The operation of each half of an instruction on pairs of 32 bits.
pub fn single(name: &str) -> Option<&'static str> {
    match name {
        "v_pk_fma_f32" => Some("v_fma_f32"),
        "v_pk_mul_f32" => Some("v_mul_f32"),
        "v_pk_add_f32" => Some("v_add_f32"),
        "v_pk_mov_b32" => Some("v_mov_b32"),
        _ => None,
    }
}

/// Two floats in two registers: OP_SEL says which register of each source serves the first, OP_SEL_HI the second.
pub fn halves(instruction: &Instruction) -> [Instruction; 2] {
    let moves = instruction.name == "v_pk_mov_b32";
    let half = |high: bool| -> Instruction {
        let mut half = instruction.clone();
        let modifiers = instruction.modifiers;
        let (pick, negate) = if high && !moves {
            (modifiers.op_sel_high, modifiers.negate_high)
        } else {
            (modifiers.op_sel, modifiers.negate)
        };
        half.name = single(instruction.name).unwrap_or(instruction.name);
        half.modifiers.negate = if moves { 0 } else { negate };
        (half.modifiers.negate_high, half.modifiers.absolute) = (0, 0);
        (half.modifiers.op_sel, half.modifiers.op_sel_high) = (0, 0);
        for (index, operand) in half.sources.iter_mut().enumerate() {
            operand.registers = 1;
            operand.source = next(operand.source, pick >> index & 1);
        }
        if moves && high {
            half.sources[0] = half.sources[1];
        }
        half.destinations[0].registers = 1;
        half.destinations[0].source = next(half.destinations[0].source, u8::from(high));
        half
    };
    [half(false), half(true)]
}

fn pair(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let [low, high] = halves(instruction);
    Ok(dual::both(Operation::new(&low, setting)?, Operation::new(&high, setting)?))
}

/// A register, or the one behind it.
fn next(source: Source, by: u8) -> Source {
    match source {
        Source::Vector(register) => Source::Vector(register + u16::from(by)),
        Source::Scalar(register) => Source::Scalar(register + by),
        other => other,
    }
}

/// Dot products of four bytes or eight nibbles. The bits that negate say which sources have a sign.
fn dot(instruction: &Instruction, setting: Setting) -> Result<Option<Operation>, Box<Fault>> {
    let mut plain = instruction.clone();
    (plain.modifiers.negate, plain.modifiers.negate_high) = (0, 0);
    let mixed = instruction.modifiers.negate;
    let kernel = match instruction.name {
        "v_dot4_i32_i8" => dots::<8, true, true>(),
        "v_dot4_u32_u8" => dots::<8, false, false>(),
        "v_dot8_i32_i4" => dots::<4, true, true>(),
        "v_dot8_u32_u4" => dots::<4, false, false>(),
        "v_dot4_i32_iu8" => signs::<8>(mixed),
        "v_dot8_i32_iu4" => signs::<4>(mixed),
        _ => return Ok(None),
    };
    Operation::with_kernel(&plain, kernel, setting).map(Some)
}

fn signs<const BITS: u32>(signed: u8) -> Kernel {
    match signed & 3 {
        // The sum has a sign in any case.
        0 => map3(|a: u32, b: u32, c: u32| sum_of_products::<BITS, false, false>(a, b, c as i32) as u32)
            .or_clamped(map3(|a: u32, b: u32, c: u32| {
                saturated(sum_of_products::<BITS, false, false>(a, b, c as i32), true)
            })),
        1 => dots::<BITS, true, false>(),
        2 => dots::<BITS, false, true>(),
        _ => dots::<BITS, true, true>(),
    }
}

fn dots<const BITS: u32, const A: bool, const B: bool>() -> Kernel {
    let start = |c: u32| if A || B { i64::from(c as i32) } else { i64::from(c) };
    map3(move |a: u32, b: u32, c: u32| products::<BITS, A, B>(a, b).wrapping_add(start(c)) as u32).or_clamped(
        map3(move |a: u32, b: u32, c: u32| saturated(products::<BITS, A, B>(a, b) + start(c), A || B)),
    )
}

fn sum_of_products<const BITS: u32, const A: bool, const B: bool>(a: u32, b: u32, c: i32) -> i64 {
    products::<BITS, A, B>(a, b) + i64::from(c)
}

fn products<const BITS: u32, const A: bool, const B: bool>(a: u32, b: u32) -> i64 {
    let part = |word: u32, i: u32, signed: bool| {
        let top = word << (32 - BITS * (i + 1));
        if signed { i64::from(top as i32 >> (32 - BITS)) } else { i64::from(top >> (32 - BITS)) }
    };
    (0..32 / BITS).map(|i| part(a, i, A) * part(b, i, B)).sum()
}

fn saturated(sum: i64, signed: bool) -> u32 {
    if signed {
        sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
    } else {
        sum.clamp(0, i64::from(u32::MAX)) as u32
    }
}

/// Floats of 8 bits: OP_SEL says which byte, its first bit being the higher (GFX12).
fn byte(instruction: &Instruction, setting: Setting) -> Result<Option<Operation>, Box<Fault>> {
    let op_sel = instruction.modifiers.op_sel;
    let selector = (op_sel & 1) << 1 | op_sel >> 1 & 1;
    if selector == 0 {
        return Ok(None);
    }
    let mut plain = instruction.clone();
    plain.modifiers.op_sel = 0;
    plain.modifiers.sdwa =
        Some(Sdwa { destination: 6, unused: 0, sources: [selector, 6], signed: [false, false] });
    Operation::new(&plain, setting).map(Some)
}
