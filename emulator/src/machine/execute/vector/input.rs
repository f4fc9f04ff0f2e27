//! Sources of vector instructions: from an operand with its modifiers to a row of words.

use crate::isa::{Encoding, Instruction, Sdwa, Source};
use crate::machine::execute::dpp::DppPattern;
use crate::machine::fault::Fault;
use crate::machine::numbers::f32_to_f16;
use crate::machine::registers::{ROWS, Registers};
use crate::machine::step::Setting;
use crate::machine::wave::{Temporary, Wave};

use super::direct::{Plain, Words};
use super::types::Type;

/// A source made ready.
pub struct Input {
    from: From,
    registers: usize,
    /// Lanes exchange the value before anything else.
    dpp: Option<Box<DppPattern>>,
    changes: Vec<Change>,
}

enum From {
    /// A vector register.
    Row(usize),
    /// The same in all lanes, known beforehand.
    Constant(Box<Temporary>),
    /// The same in all lanes: a scalar register, or what only the wave knows.
    Scalar(Source),
}

/// What modifiers make of a word, or of two.
#[derive(Clone, Copy)]
enum Change {
    /// Bits that stay, and bits that are inverted, of the last of its words.
    Sign { keep: u32, invert: u32 },
    /// The high half instead of the low one.
    High,
    /// For each half of a packed value, whether it is taken from the high half.
    Halves { low: bool, high: bool },
    /// A byte or a word (SDWA).
    Part { selector: u8, signed: bool },
}

impl Input {
    /// Source `index` of an instruction, read as a type.
    pub fn new(
        instruction: &Instruction,
        index: usize,
        ty: Type,
        setting: Setting,
    ) -> Result<Input, Box<Fault>> {
        let operand = instruction.sources[index];
        let modifiers = &instruction.modifiers;
        let from = match operand.source {
            Source::Vector(register) => From::Row(rows(register, ty, instruction)?),
            Source::Scalar(_) | Source::Special(_) => From::Scalar(operand.source),
            Source::Integer(_) | Source::Float(_) | Source::Literal(_) => {
                From::Constant(splat(constant(operand.source, ty), setting.lanes, ty.registers()))
            }
            Source::None => {
                return Err(Fault::instruction(format!("{} has no source {index}", instruction.name)));
            }
        };
        let dpp = modifiers
            .dpp
            .filter(|_| index == 0)
            .map(|dpp| Box::new(DppPattern::new(dpp, setting.lanes, setting.target.generation)));
        let mut changes = Vec::new();
        if let Some(sdwa) = modifiers.sdwa {
            changes.extend(part(sdwa, index));
        }
        let bit = |bits: u8| bits >> index & 1 != 0;
        match ty {
            Type::PackedB16 | Type::PackedF16 => packed(&mut changes, instruction, index, ty),
            _ => {
                if ty.is_half() && bit(modifiers.op_sel) {
                    changes.push(Change::High);
                }
                if bit(modifiers.absolute) || bit(modifiers.negate) {
                    let sign = if ty.is_half() { 1 << 15 } else { 1 << 31 };
                    let keep = if bit(modifiers.absolute) { !sign } else { u32::MAX };
                    let invert = if bit(modifiers.negate) { sign } else { 0 };
                    changes.push(Change::Sign { keep, invert });
                }
            }
        }
        Ok(Input { from, registers: ty.registers(), dpp, changes })
    }

    /// The source as the short way takes it.
    pub fn plain(&self) -> Option<Plain<'_>> {
        if self.dpp.is_some() {
            return None;
        }
        match (&self.from, self.words()) {
            (From::Row(register), Some(Words::SAME)) => Some(Plain::Row(*register)),
            (From::Row(register), Some(words)) if self.registers == 1 => {
                Some(Plain::Changed(*register, words))
            }
            (From::Constant(row), Some(Words::SAME)) => Some(Plain::Constant(row)),
            (From::Scalar(Source::Scalar(register)), Some(Words::SAME)) if self.registers == 1 => {
                Some(Plain::Scalar(*register))
            }
            _ => None,
        }
    }

    /// What the changes make of a word; `None` where that cannot be said so.
    fn words(&self) -> Option<Words> {
        let mut words = Words::SAME;
        for &change in &self.changes {
            match change {
                Change::Sign { keep, invert } => {
                    words.invert = words.invert & keep ^ invert;
                    words.keep &= keep;
                }
                Change::High if words == Words::SAME => words.shift = 16,
                _ => return None,
            }
        }
        Some(words)
    }

    /// What the source has to know of the wave before rows are borrowed: the value of a scalar.
    pub fn scalar(&self, wave: &Wave) -> Result<u64, Box<Fault>> {
        match self.from {
            From::Scalar(source) if self.registers == 2 => wave.read64(source),
            From::Scalar(source) => wave.read32(source).map(u64::from),
            _ => Ok(0),
        }
    }

    /// The row, in a register, in a constant or in `temporary`. `written`: lanes whose result is kept, of which
    /// exchanges between lanes may take some away.
    pub fn row<'a>(
        &'a self,
        registers: &'a Registers,
        scalar: u64,
        exec: u64,
        lanes: usize,
        temporary: &'a mut Temporary,
        written: &mut u64,
    ) -> &'a [u32] {
        let words = self.registers * lanes;
        let row: &[u32] = match &self.from {
            From::Row(register) => &registers.words()[register * lanes..][..words],
            From::Constant(row) => &row.0[..words],
            From::Scalar(_) => {
                temporary.0[..lanes].fill(scalar as u32);
                if self.registers == 2 {
                    temporary.0[lanes..words].fill((scalar >> 32) as u32);
                }
                if !self.changes.is_empty() {
                    self.change(&mut temporary.0, lanes);
                }
                return &temporary.0[..words];
            }
        };
        if self.dpp.is_none() && self.changes.is_empty() {
            return row;
        }
        match &self.dpp {
            Some(pattern) => {
                let plan = pattern.plan(exec);
                for lane in 0..lanes {
                    for word in 0..self.registers {
                        let value = row[word * lanes + usize::from(plan.sources[lane])];
                        let zero = plan.zero >> lane & 1 != 0;
                        temporary.0[word * lanes + lane] = if zero { 0 } else { value };
                    }
                }
                *written &= plan.write;
            }
            None => temporary.0[..words].copy_from_slice(row),
        }
        self.change(&mut temporary.0, lanes);
        &temporary.0[..words]
    }

    fn change(&self, row: &mut [u32; 128], lanes: usize) {
        for &change in &self.changes {
            match change {
                Change::Sign { keep, invert } => {
                    let last = &mut row[(self.registers - 1) * lanes..][..lanes];
                    last.iter_mut().for_each(|word| *word = *word & keep ^ invert);
                }
                Change::High => row[..lanes].iter_mut().for_each(|word| *word >>= 16),
                Change::Halves { low, high } => {
                    let (low, high) = (16 * u32::from(low), 16 * u32::from(high));
                    row[..lanes]
                        .iter_mut()
                        .for_each(|word| *word = *word >> low & 0xffff | (*word >> high) << 16);
                }
                Change::Part { selector, signed } => {
                    row[..lanes].iter_mut().for_each(|word| *word = select_part(*word, selector, signed));
                }
            }
        }
    }
}

/// The number of a vector register behind which there are as many as the type has.
pub fn rows(register: u16, ty: Type, instruction: &Instruction) -> Result<usize, Box<Fault>> {
    let register = usize::from(register);
    if register + ty.registers() > ROWS {
        return Err(Fault::instruction(format!("{} reads behind vector register {ROWS}", instruction.name)));
    }
    Ok(register)
}

fn part(sdwa: Sdwa, index: usize) -> Option<Change> {
    let (&selector, &signed) = (sdwa.sources.get(index)?, sdwa.signed.get(index)?);
    (selector != 6 || signed).then_some(Change::Part { selector, signed })
}

fn packed(changes: &mut Vec<Change>, instruction: &Instruction, index: usize, ty: Type) {
    let modifiers = &instruction.modifiers;
    let bit = |bits: u8| bits >> index & 1 != 0;
    // Only VOP3P can choose the halves.
    let chooses = instruction.encoding == Encoding::Vop3p;
    let (low, high) = (chooses && bit(modifiers.op_sel), !chooses || bit(modifiers.op_sel_high));
    if low || !high {
        changes.push(Change::Halves { low, high });
    }
    if ty == Type::PackedF16 && (bit(modifiers.negate) || bit(modifiers.negate_high)) {
        let half = |negate: bool, sign: u32| if negate { sign } else { 0 };
        let invert = half(bit(modifiers.negate), 1 << 15) | half(bit(modifiers.negate_high), 1 << 31);
        changes.push(Change::Sign { keep: u32::MAX, invert });
    }
}

fn select_part(word: u32, selector: u8, signed: bool) -> u32 {
    match (selector, signed) {
        (0..=3, false) => word >> (8 * selector) & 0xff,
        (0..=3, true) => (word >> (8 * selector)) as i8 as u32,
        (4 | 5, false) => word >> (16 * (selector - 4)) & 0xffff,
        (4 | 5, true) => (word >> (16 * (selector - 4))) as i16 as u32,
        _ => word,
    }
}

fn splat(value: u64, lanes: usize, registers: usize) -> Box<Temporary> {
    let mut row = Box::new(Temporary([0; 128]));
    row.0[..lanes].fill(value as u32);
    if registers == 2 {
        row.0[lanes..2 * lanes].fill((value >> 32) as u32);
    }
    row
}

/// The bits of a constant as an operand of a type reads it (ISA manual, "Inline Constants" and "Literal Constants").
pub fn constant(source: Source, ty: Type) -> u64 {
    match (source, ty) {
        (Source::Integer(value), _) => i64::from(value) as u64,
        (Source::Float(value), Type::F64 | Type::B64 | Type::I64) => value.to_bits(),
        (Source::Float(value), Type::F16 | Type::B16 | Type::PackedF16) => {
            u64::from(f32_to_f16(value as f32))
        }
        (Source::Float(value), _) => u64::from((value as f32).to_bits()),
        (Source::Literal(value), Type::F64) => u64::from(value) << 32,
        (Source::Literal(value), Type::I64) => i64::from(value as i32) as u64,
        (Source::Literal(value), _) => u64::from(value),
        _ => 0,
    }
}
