//! SOP1, SOP2, SOPC, SOPK, SOPP.

use super::DecodeError;
use super::reader::Reader;
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Instruction, Modifiers, Operand, Source};

/// SOP1, SOP2 and SOPC: SSRC0 in bits 0 to 7, SSRC1 in 8 to 15, SDST in 16 to 22.
pub(super) fn operation(reader: &mut Reader<'_>, encoding: Encoding) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(0)?;
    let opcode = match encoding {
        Encoding::Sop1 => fields.get(8, 8),
        Encoding::Sop2 => fields.get(23, 7),
        _ => fields.get(16, 7),
    };
    let entry = reader.entry(encoding, opcode)?;
    let mut modifiers = Modifiers::default();
    let destination = match entry.operands.destinations[0] {
        Kind::None => Operand::default(),
        kind => reader.scalar(fields.get(16, 7), kind.registers(reader.wave32)),
    };
    let mut codes = [fields.get(0, 8), fields.get(8, 8)].into_iter();
    let mut sources = [Operand::default(); 4];
    for (source, kind) in sources.iter_mut().zip(entry.operands.sources) {
        match kind {
            Kind::None => {}
            Kind::Destination => *source = destination,
            Kind::Literal => *source = literal(reader)?,
            Kind::Immediate => modifiers.immediate = codes.next().unwrap_or_default() as i32,
            kind => *source = reader.source(codes.next().unwrap_or_default(), kind)?,
        }
    }
    let destinations = [destination, Operand::default()];
    Ok(reader.instruction(entry.row.name, encoding, destinations, sources, modifiers))
}

/// SOPK: SIMM16 in bits 0 to 15, SDST in 16 to 22, which comparisons read.
pub(super) fn with_immediate(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(0)?;
    let entry = reader.entry(Encoding::Sopk, fields.get(23, 5))?;
    let modifiers = Modifiers { immediate: fields.signed(0, 16), ..Modifiers::default() };
    let register = fields.get(16, 7);
    let destination = match entry.operands.destinations[0] {
        Kind::None => Operand::default(),
        kind => reader.scalar(register, kind.registers(reader.wave32)),
    };
    let mut sources = [Operand::default(); 4];
    let read = entry.operands.sources.into_iter().find(|kind| !matches!(kind, Kind::None | Kind::Immediate));
    match read {
        Some(Kind::Literal) => sources[0] = literal(reader)?,
        Some(kind) => sources[0] = reader.scalar(register, kind.registers(reader.wave32)),
        None => {}
    }
    let destinations = [destination, Operand::default()];
    Ok(reader.instruction(entry.row.name, Encoding::Sopk, destinations, sources, modifiers))
}

/// SOPP: SIMM16 in bits 0 to 15.
pub(super) fn program(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(0)?;
    let entry = reader.entry(Encoding::Sopp, fields.get(16, 7))?;
    let modifiers = Modifiers { immediate: fields.signed(0, 16), ..Modifiers::default() };
    Ok(reader.instruction(entry.row.name, Encoding::Sopp, Default::default(), Default::default(), modifiers))
}

pub(super) fn literal(reader: &mut Reader<'_>) -> Result<Operand, DecodeError> {
    Ok(Operand { source: Source::Literal(reader.literal()?), registers: 1 })
}
