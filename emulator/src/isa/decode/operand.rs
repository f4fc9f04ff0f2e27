//! Operands by their codes (ISA manuals, "Scalar operands" and "Vector operands": the tables of SSRC and SRC).

use super::DecodeError;
use super::reader::Reader;
use crate::isa::tables::Kind;
use crate::isa::{Generation, Operand, Source, Special, sgpr};

/// Added to a vector register's number in a field that holds vector registers only.
pub(super) const VECTOR: u32 = 256;
/// The first accumulation register.
const ACCUMULATION: u16 = 256;

const FLOATS: [f64; 9] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.159_154_943_091_895_32];

pub(super) fn vector(number: u32, registers: u8) -> Operand {
    Operand { source: Source::Vector(number as u16), registers }
}

/// A vector register, or an accumulation register where `accumulation` says so.
pub(super) fn vector_of(number: u32, accumulation: bool, registers: u8) -> Operand {
    let base = if accumulation { ACCUMULATION } else { 0 };
    Operand { source: Source::Vector(number as u16 + base), registers }
}

pub(super) fn vcc(reader: &Reader<'_>) -> Operand {
    Operand { source: Source::Scalar(sgpr::VCC), registers: Kind::Mask.registers(reader.wave32) }
}

pub(super) fn exec(reader: &Reader<'_>) -> Operand {
    Operand { source: Source::Scalar(sgpr::EXEC), registers: Kind::Mask.registers(reader.wave32) }
}

/// The same operand as an accumulation register, if it is a vector register.
pub(super) fn accumulation(operand: Operand) -> Operand {
    match operand.source {
        Source::Vector(number) if number < ACCUMULATION => {
            Operand { source: Source::Vector(number + ACCUMULATION), ..operand }
        }
        _ => operand,
    }
}

impl Reader<'_> {
    /// A scalar register of a field with 7 bits.
    pub fn scalar(&self, code: u32, registers: u8) -> Operand {
        let code = code as u8 & 0x7f;
        let number = match code {
            124 if self.generation() >= Generation::Gfx11 => sgpr::NULL,
            125 if self.generation() >= Generation::Gfx11 => sgpr::M0,
            code => code,
        };
        Operand { source: Source::Scalar(number), registers }
    }

    /// A scalar register that may be missing, which NULL says.
    pub fn scalar_or_none(&self, code: u32, registers: u8) -> Operand {
        match self.scalar(code, registers) {
            Operand { source: Source::Scalar(sgpr::NULL), .. } => Operand::default(),
            operand => operand,
        }
    }

    /// An operand of a field with 8 or 9 bits.
    pub fn source(&mut self, code: u32, kind: Kind) -> Result<Operand, DecodeError> {
        let registers = kind.registers(self.wave32);
        let source = match code {
            0..=127 => return Ok(self.scalar(code, registers)),
            128..=192 => Source::Integer(code as i32 - 128),
            193..=208 => Source::Integer(192 - code as i32),
            235 => Source::Special(Special::SharedBase),
            236 => Source::Special(Special::SharedLimit),
            237 => Source::Special(Special::PrivateBase),
            238 => Source::Special(Special::PrivateLimit),
            240..=248 => Source::Float(FLOATS[code as usize - 240]),
            251 => Source::Special(Special::VccIsZero),
            252 => Source::Special(Special::ExecIsZero),
            253 => Source::Special(Special::Scc),
            255 => Source::Literal(self.literal()?),
            256..=511 => return Ok(vector(code - VECTOR, registers)),
            _ => return Err(self.error(format!("operand code {code} is not known"))),
        };
        Ok(Operand { source, registers })
    }
}
