//! What operands hold and what becomes of results, lane by lane, after the chapters of the ISA manuals on operands, DPP
//! and SDWA.

use crate::isa::{Dpp, Generation, Instruction, Modifiers, Sdwa, Source};
use crate::machine::execute::testing::Bench;

use super::reference::rounding::{half, half_bits};
use super::reference::{In, Kind, Reference};

/// What a lane reads; `None` where DPP leaves the lane out.
pub fn read(bench: &Bench, reference: &Reference, instruction: &Instruction, lane: usize) -> Option<In> {
    let mut input = In { lane: lane as u32, ..In::default() };
    for (index, &kind) in reference.inputs.iter().enumerate() {
        let mut from = Some(lane);
        if let Some(dpp) = instruction.modifiers.dpp.filter(|_| index == 0) {
            from = exchanged(dpp, lane, bench)?;
        }
        // Without a lane to read from there is 0.
        let bits = from.map_or(0, |lane| raw(bench, instruction.sources[index].source, kind, lane));
        input.bits[index] = modified(bits, kind, &instruction.modifiers, index);
    }
    if reference.reads_bits {
        let mask = instruction.sources[reference.inputs.len()].source;
        let Source::Scalar(register) = mask else { panic!("a mask is in scalar registers") };
        input.bit = bench.wave.mask(register) >> lane & 1 == 1;
    }
    Some(input)
}

/// The bits of an operand before modifiers.
fn raw(bench: &Bench, source: Source, kind: Kind, lane: usize) -> u64 {
    let wide = kind.registers() == 2;
    match source {
        Source::Vector(register) => {
            let register = usize::from(register);
            let high = if wide { bench.row(register + 1)[lane] } else { 0 };
            u64::from(bench.row(register)[lane]) | u64::from(high) << 32
        }
        Source::Scalar(register) => {
            let register = usize::from(register);
            let high = if wide { bench.wave.scalar[register + 1] } else { 0 };
            u64::from(bench.wave.scalar[register]) | u64::from(high) << 32
        }
        Source::Integer(value) => value as i64 as u64,
        Source::Float(value) => match kind {
            Kind::F64 => value.to_bits(),
            Kind::F16 | Kind::PackedF16 => half_bits(value).into(),
            _ => (value as f32).to_bits().into(),
        },
        Source::Literal(value) if kind == Kind::F64 => u64::from(value) << 32,
        Source::Literal(value) => value.into(),
        other => panic!("no test uses {other:?}"),
    }
}

fn modified(bits: u64, kind: Kind, modifiers: &Modifiers, index: usize) -> u64 {
    if kind.is_packed() {
        return bits;
    }
    let is_set = |mask: u8| mask >> index & 1 == 1;
    let mut bits = bits;
    if let Some(sdwa) = modifiers.sdwa {
        bits = part(bits, sdwa.sources[index], sdwa.signed[index]);
    }
    if kind.is_half() && is_set(modifiers.op_sel) {
        bits >>= 16;
    }
    let sign = match kind {
        Kind::F64 | Kind::B64 => 1 << 63,
        Kind::F16 | Kind::B16 => 1 << 15,
        _ => 1 << 31,
    };
    if is_set(modifiers.absolute) {
        bits &= !sign;
    }
    if is_set(modifiers.negate) {
        bits ^= sign;
    }
    bits
}

/// The part of a register that SDWA names.
fn part(bits: u64, selector: u8, signed: bool) -> u64 {
    let bytes = (bits as u32).to_le_bytes();
    let words = [bits as u16, (bits >> 16) as u16];
    match selector {
        0..=3 if signed => bytes[usize::from(selector)] as i8 as u32 as u64,
        0..=3 => bytes[usize::from(selector)].into(),
        4 | 5 if signed => words[usize::from(selector) - 4] as i16 as u32 as u64,
        4 | 5 => words[usize::from(selector) - 4].into(),
        _ => bits,
    }
}

/// For one half of a packed result: the halves that serve it.
pub fn halves(input: In, reference: &Reference, modifiers: &Modifiers, high: bool) -> In {
    let (select, negate) = if high {
        (modifiers.op_sel_high, modifiers.negate_high)
    } else {
        (modifiers.op_sel, modifiers.negate)
    };
    let mut result = input;
    for (index, &kind) in reference.inputs.iter().enumerate() {
        let bits = if select >> index & 1 == 1 { input.bits[index] >> 16 } else { input.bits[index] };
        let inverted = if kind == Kind::PackedF16 && negate >> index & 1 == 1 { 0x8000 } else { 0 };
        result.bits[index] = (bits & 0xffff) ^ inverted;
    }
    result
}

/// The lane that a lane reads with DPP: `None` where the lane is left out, `Some(None)` where it reads 0.
fn exchanged(dpp: Dpp, lane: usize, bench: &Bench) -> Option<Option<usize>> {
    let (source, bound_control, inactive) = match dpp {
        Dpp::Dpp8 { lanes, fetch_inactive } => {
            (Some(lane - lane % 8 + usize::from(lanes[lane % 8])), true, fetch_inactive)
        }
        Dpp::Dpp16 { control, row_mask, bank_mask, bound_control, fetch_inactive } => {
            if row_mask >> (lane / 16) & 1 == 0 || bank_mask >> (lane / 4 % 4) & 1 == 0 {
                return None;
            }
            (neighbour(control, lane, bench), bound_control, fetch_inactive)
        }
    };
    let source = source.filter(|&source| inactive || bench.wave.exec() >> source & 1 == 1);
    if source.is_none() && !bound_control { None } else { Some(source) }
}

fn neighbour(control: u16, lane: usize, bench: &Bench) -> Option<usize> {
    let (row, column, count) = (lane / 16, lane % 16, usize::from(control % 16));
    let in_row = |column: usize| Some(16 * row + column);
    match control {
        0x000..=0x0ff => in_row(column / 4 * 4 + usize::from(control >> (2 * (lane % 4))) % 4),
        0x101..=0x10f => {
            if column + count < 16 {
                in_row(column + count)
            } else {
                None
            }
        }
        0x111..=0x11f => {
            if column >= count {
                in_row(column - count)
            } else {
                None
            }
        }
        0x121..=0x12f => in_row((column + 16 - count) % 16),
        0x130 => Some(lane + 1).filter(|&lane| lane < bench.wave.lanes),
        0x138 => {
            if lane > 0 {
                Some(lane - 1)
            } else {
                None
            }
        }
        0x140 => in_row(15 - column),
        0x141 => in_row(column / 8 * 8 + 7 - column % 8),
        0x142 => {
            if row > 0 {
                Some(16 * row - 1)
            } else {
                None
            }
        }
        0x150..=0x15f => in_row(count),
        0x160..=0x16f => in_row(column ^ count),
        other => panic!("no test uses DPP's control {other:#x}"),
    }
}

/// A float with CLAMP. What is no number becomes 0.
pub fn clamped(bits: u64, kind: Kind) -> u64 {
    let bounded = |value: f64| if value > 0.0 { if value > 1.0 { 1.0 } else { value } } else { 0.0 };
    match kind {
        Kind::F32 => (bounded(f32::from_bits(bits as u32).into()) as f32).to_bits().into(),
        Kind::F64 => bounded(f64::from_bits(bits)).to_bits(),
        _ => half_bits(bounded(half(bits as u16))).into(),
    }
}

/// What a register holds after a result was written.
pub fn written(bits: u64, old: u64, kind: Kind, modifiers: &Modifiers, generation: Generation) -> u64 {
    if let Some(Sdwa { destination, unused, .. }) = modifiers.sdwa.filter(|sdwa| sdwa.destination != 6) {
        let (first, width) =
            if destination < 4 { (8 * destination, 8) } else { (16 * (destination - 4), 16) };
        let bit = |at: u8| -> u64 {
            let here = at >= first && at < first + width;
            match unused {
                _ if here => bits >> (at - first) & 1,
                1 if at >= first + width => bits >> (width - 1) & 1,
                2 => old >> at & 1,
                _ => 0,
            }
        };
        return (0..32).map(|at| bit(at) << at).sum();
    }
    if !kind.is_half() {
        return bits;
    }
    match (modifiers.op_sel >> 3 & 1 == 1, generation >= Generation::Gfx10) {
        _ if modifiers.sdwa.is_some() => bits & 0xffff,
        (true, _) => old & 0xffff | (bits & 0xffff) << 16,
        (false, true) => old & 0xffff_0000 | bits & 0xffff,
        (false, false) => bits & 0xffff,
    }
}
