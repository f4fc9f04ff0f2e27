//! SMEM: scalar memory.

use super::DecodeError;
use super::reader::{Fields, Reader};
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Generation, Instruction, Memory, Modifiers, Operand};

/// SBASE in bits 0 to 5 counts pairs of registers, SDATA is in 6 to 12.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(1)?;
    let opcode = match reader.generation() {
        Generation::Gfx12 => fields.get(13, 6),
        _ => fields.get(18, 8),
    };
    let entry = reader.entry(Encoding::Smem, opcode)?;
    let data = fields.get(6, 7);
    let [destination, _] = entry.operands.destinations;
    let [base, stored, ..] = entry.operands.sources;
    let mut memory = memory(reader, fields);
    memory.returns = destination != Kind::None && (stored == Kind::None || memory.policy & 1 != 0);
    let mut destinations = [Operand::default(); 2];
    if memory.returns {
        destinations[0] = reader.scalar(data, destination.registers(reader.wave32));
    }
    let mut sources = [Operand::default(); 4];
    if base != Kind::None {
        sources[0] = reader.scalar(2 * fields.get(0, 6), base.registers(reader.wave32));
    }
    sources[1] = scalar_offset(reader, fields);
    if stored != Kind::None {
        sources[2] = reader.scalar(data, stored.registers(reader.wave32));
    }
    let modifiers = Modifiers { memory, immediate: data as i32, ..Modifiers::default() };
    Ok(reader.instruction(entry.row.name, Encoding::Smem, destinations, sources, modifiers))
}

/// The offset and the cache policy. GFX9: GLC is bit 16, IMM bit 17. GFX10: GLC 16, DLC 14. GFX11: GLC 14, DLC 13.
/// GFX12: SCOPE is in bits 21 and 22, TH in 23 and 24.
fn memory(reader: &Reader<'_>, fields: Fields) -> Memory {
    let flags = |glc: u32, dlc: u32| fields.get(glc, 1) as u8 | (fields.get(dlc, 1) as u8) << 2;
    let (policy, offset) = match reader.generation() {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
            (fields.get(16, 1) as u8, if fields.bit(17) { fields.signed(32, 21) } else { 0 })
        }
        Generation::Gfx10 => (flags(16, 14), fields.signed(32, 21)),
        Generation::Gfx11 => (flags(14, 13), fields.signed(32, 21)),
        Generation::Gfx12 => {
            (fields.get(23, 2) as u8 | (fields.get(21, 2) as u8) << 3, fields.signed(32, 24))
        }
    };
    Memory { offset, policy, ..Memory::default() }
}

/// GFX9 has SOFFSET in bits 57 to 63 if SOE (bit 14) is set, or in the offset's place if IMM (bit 17) is not.
fn scalar_offset(reader: &Reader<'_>, fields: Fields) -> Operand {
    if reader.generation() >= Generation::Gfx10 {
        return reader.scalar_or_none(fields.get(57, 7), 1);
    }
    match (fields.bit(14), fields.bit(17)) {
        (true, _) => reader.scalar(fields.get(57, 7), 1),
        (false, false) => reader.scalar(fields.get(32, 7), 1),
        (false, true) => Operand::default(),
    }
}
