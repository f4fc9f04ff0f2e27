//! Code for operations of the vector unit: a row for each instruction.

mod bits;
mod comparisons;
mod conversions;
mod divisions;
mod floats;
mod integers;
mod wide;

use std::collections::HashMap;
use std::sync::LazyLock;

use iced_x86::{Code, Register};

use crate::isa::{Encoding, Instruction, sgpr};
use crate::machine::execute::simple::{self, From, MaskOutput, Operand, Placing, Simple, Words};
use crate::machine::step::Setting;

use super::cache::{Key, Zmm};
use super::codes::{AND, LEFT, OR};
use super::emitter::{BITS, Emitter};

impl Operand {
    /// What holds its words, before modifiers change them.
    pub fn key(&self, part: usize) -> Key {
        match self.from {
            From::Row(register) => Key::Row(register as u16, part),
            From::Scalar(register) => Key::Scalar(register),
            From::Constant(value) => Key::Constant(value as u32),
        }
    }

    /// Of the second register of a value of 64 bits.
    pub fn high_key(&self, part: usize) -> Key {
        match self.from {
            From::Row(register) => Key::Row(register as u16 + 1, part),
            From::Scalar(register) => Key::Scalar(register + 1),
            From::Constant(value) => Key::Constant((value >> 32) as u32),
        }
    }

    /// The value, where it is known.
    pub fn known(&self) -> Option<u32> {
        match self.from {
            From::Constant(value) => Some(value as u32),
            _ => None,
        }
    }

    fn is_row(&self, row: usize) -> bool {
        matches!(self.from, From::Row(register) if register == row) && self.words == Words::SAME
    }
}

/// What a row computes: words, upper words where there are any; a bit for each lane may be in K5.
pub type Made = (Zmm, Option<Zmm>);

/// How a row makes its code, for sixteen lanes.
#[derive(Clone, Copy)]
pub enum Emit {
    One(Code),
    OneImmediate(Code, u32),
    Two(Code),
    /// The second source first.
    Swapped(Code),
    /// Multiply-add, rounded once.
    Fused,
    Value(fn(&mut Emitter, &[Operand], usize) -> Zmm),
    Wide(fn(&mut Emitter, &[Operand], usize) -> (Zmm, Zmm)),
    /// A value and bits, or bits alone; the register is where bits are read from.
    Bits(fn(&mut Emitter, &[Operand], usize, Option<u8>) -> Zmm),
    Compare(Code, u32),
}

pub type Row = (&'static str, Emit);

static ROWS: LazyLock<HashMap<&'static str, Emit>> = LazyLock::new(|| {
    [bits::rows(), conversions::rows(), divisions::rows(), floats::rows(), integers::rows(), wide::rows()]
        .into_iter()
        .flatten()
        .collect()
});

/// The names of all rows but comparisons, for tests.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.keys().copied()
}

/// One operation made ready: its row, and what it reads and writes.
pub struct Planned {
    emit: Emit,
    simple: Simple,
}

/// The operations of an instruction that have rows: one, or two that read before either writes. `None` where one has none.
pub fn plan(instruction: &Instruction, setting: Setting) -> Option<Vec<Planned>> {
    let halves = simple::halves(instruction);
    if instruction.encoding == Encoding::Vopd && halves.len() != 2 {
        return None;
    }
    let one = |instruction: &Instruction| {
        let emit = find(instruction.name)?;
        Some(Planned { emit, simple: simple::describe(instruction, setting)? })
    };
    let planned = halves.iter().map(one).collect::<Option<Vec<_>>>()?;
    // Bits are collected for one operation at a time, and not for words of 64 bits.
    let writes_bits = |it: &Planned| it.simple.mask.is_some();
    let fits = match &planned[..] {
        [one] => !(writes_bits(one) && matches!(one.emit, Emit::Wide(_))),
        _ => !planned.iter().any(writes_bits),
    };
    fits.then_some(planned)
}

/// Whether an instruction may be one of the vector unit's.
pub fn is_vector(instruction: &Instruction) -> bool {
    use Encoding::*;
    matches!(instruction.encoding, Vop1 | Vop2 | Vopc | Vop3 | Vop3p | Vopd)
}

fn find(name: &str) -> Option<Emit> {
    if let Some(comparison) = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_")) {
        return comparisons::find(comparison);
    }
    match name.strip_prefix("v_dual_") {
        Some(rest) => ROWS.get(format!("v_{rest}").as_str()).copied(),
        None => ROWS.get(name).copied(),
    }
}

/// Makes the code; whether EXEC is written.
pub fn emit(emitter: &mut Emitter, planned: &[Planned]) -> bool {
    if let [first, second] = planned
        && !second.reads(first)
    {
        // One may follow the other.
        emit(emitter, std::slice::from_ref(first));
        return emit(emitter, std::slice::from_ref(second));
    }
    for part in emitter.parts() {
        emitter.next_part();
        if let [one] = planned
            && one.fused_in_place(emitter, part)
        {
            continue;
        }
        // All are computed before one is written.
        let made: Vec<Made> = planned.iter().map(|it| it.make(emitter, part)).collect();
        let several = planned.len() > 1 || made.iter().any(|(_, high)| high.is_some());
        let keep = |(low, high): Made| match several {
            true => (own(emitter, low), high.map(|high| own(emitter, high))),
            false => (low, high),
        };
        let made: Vec<Made> = made.into_iter().map(keep).collect();
        for (it, (low, high)) in planned.iter().zip(made) {
            it.write(emitter, part, low, high);
        }
    }
    emitter.next_part();
    planned.iter().filter_map(|it| it.simple.mask).fold(false, |any, mask| {
        match mask {
            MaskOutput::Register(register) => emitter.store_bits(register),
            MaskOutput::Exec(register) => {
                register.into_iter().for_each(|register| emitter.store_bits(register));
                emitter.store_bits(sgpr::EXEC);
            }
        }
        any | mask.writes_exec()
    })
}

/// A register that does not change when a row is written.
fn own(emitter: &mut Emitter, value: Zmm) -> Zmm {
    if !emitter.holds(value) {
        return value;
    }
    let copy = emitter.fresh();
    emitter.copy(copy, value);
    copy
}

impl Planned {
    /// Whether it reads what another writes.
    fn reads(&self, other: &Planned) -> bool {
        let writes =
            |register| other.simple.destination.is_some_and(|it| it == register || it + 1 == register);
        self.simple
            .inputs
            .iter()
            .any(|it| matches!(it.from, From::Row(register) if writes(register) || writes(register + 1)))
    }

    /// The result goes to its registers, bits to those that are collected.
    fn write(&self, emitter: &mut Emitter, part: usize, low: Zmm, high: Option<Zmm>) {
        if let Some(row) = self.simple.destination {
            let low = self.placed(emitter, row, part, low);
            emitter.write(row, part, low);
            if let Some(high) = high {
                emitter.write(row + 1, part, high);
            }
        }
        if self.simple.mask.is_some() {
            let exec = emitter.exec(part);
            if exec != Register::None && !matches!(self.emit, Emit::Compare(..)) {
                emitter.masks(Code::VEX_Kandw_kr_kr_kr, BITS, BITS, exec);
            }
            emitter.collect_bits(part);
        }
    }

    /// A result of 16 bits where it belongs in its register.
    fn placed(&self, emitter: &mut Emitter, row: usize, part: usize, value: Zmm) -> Zmm {
        let Placing { shift, keep } = self.simple.placing;
        if self.simple.placing == Placing::WHOLE {
            return value;
        }
        let (old, keep, to) = (emitter.in_place(row, part), emitter.constant(keep), emitter.fresh());
        emitter.two_immediate(LEFT.by_constant, to, value, shift);
        let kept = emitter.fresh();
        emitter.three(AND, kept, old, keep);
        emitter.three(OR, to, to, kept);
        to
    }

    /// A sum that a product is added to stays where it is.
    fn fused_in_place(&self, emitter: &mut Emitter, part: usize) -> bool {
        let (Emit::Fused, Some(row)) = (self.emit, self.simple.destination) else { return false };
        if !self.simple.inputs[2].is_row(row) {
            return false;
        }
        let mask = emitter.exec(part);
        let a = emitter.load(&self.simple.inputs[0], part);
        let b = emitter.load(&self.simple.inputs[1], part);
        let sum = emitter.in_place(row, part);
        emitter.three_masked(Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er, mask, sum, a, b);
        emitter.write(row, part, sum);
        true
    }

    fn make(&self, emitter: &mut Emitter, part: usize) -> Made {
        let operands = &self.simple.inputs;
        match self.emit {
            Emit::Value(value) => (value(emitter, operands, part), None),
            Emit::Wide(value) => {
                let (low, high) = value(emitter, operands, part);
                (low, Some(high))
            }
            Emit::Bits(value) => (value(emitter, operands, part, self.simple.bits), None),
            Emit::One(code) => {
                let (a, to) = (emitter.load(&operands[0], part), emitter.fresh());
                emitter.two(code, to, a);
                (to, None)
            }
            Emit::OneImmediate(code, value) => {
                let (a, to) = (emitter.load(&operands[0], part), emitter.fresh());
                emitter.two_immediate(code, to, a, value);
                (to, None)
            }
            Emit::Two(code) | Emit::Swapped(code) => {
                let (a, b) = (emitter.load(&operands[0], part), emitter.load(&operands[1], part));
                let to = emitter.fresh();
                let (a, b) = if matches!(self.emit, Emit::Swapped(_)) { (b, a) } else { (a, b) };
                emitter.three(code, to, a, b);
                (to, None)
            }
            Emit::Fused => {
                let (a, b) = (emitter.load(&operands[0], part), emitter.load(&operands[1], part));
                let (c, to) = (emitter.load(&operands[2], part), emitter.fresh());
                emitter.copy(to, a);
                emitter.three(Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er, to, b, c);
                (to, None)
            }
            Emit::Compare(code, predicate) => {
                let (a, b) = (emitter.load(&operands[0], part), emitter.load(&operands[1], part));
                let mask = emitter.exec(part);
                emitter.compare(code, BITS, mask, a, b, predicate);
                (a, None)
            }
        }
    }
}
