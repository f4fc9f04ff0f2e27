//! DS: local memory.

use super::DecodeError;
use super::operand::{vector, vector_of};
use super::reader::{Fields, Reader};
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Generation, Instruction, Memory, Modifiers, Operand};

/// OFFSET0 in bits 0 to 7, OFFSET1 in 8 to 15, ADDR in 32 to 39, DATA0 in 40 to 47, DATA1 in 48 to 55, VDST in 56 to 63.
/// GFX9: GDS is bit 16, the opcode is in 17 to 24, ACC of GFX90A is bit 25. Later: GDS is bit 17, the opcode is in 18 to 25.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(1)?;
    let gfx9 = reader.generation() < Generation::Gfx10;
    let entry = reader.entry(Encoding::Ds, fields.get(if gfx9 { 17 } else { 18 }, 8))?;
    let accumulation = reader.has_unified_registers() && fields.bit(25);
    let destination = match entry.operands.destinations[0] {
        Kind::None => Operand::default(),
        kind => vector_of(fields.get(56, 8), accumulation, kind.registers(reader.wave32)),
    };
    let mut data = [fields.get(40, 8), fields.get(48, 8)].into_iter();
    let mut sources = [Operand::default(); 4];
    let has_address = entry.operands.sources[0] == Kind::Address;
    let kinds = entry.operands.sources.into_iter().filter(|kind| *kind != Kind::Address);
    if has_address {
        sources[0] = vector(fields.get(32, 8), 1);
    }
    for (source, kind) in sources[1..].iter_mut().zip(kinds).filter(|(_, kind)| *kind != Kind::None) {
        *source = vector_of(data.next().unwrap_or_default(), accumulation, kind.registers(reader.wave32));
    }
    let memory = memory(fields, entry.row.name, fields.bit(if gfx9 { 16 } else { 17 }));
    let memory = Memory { returns: entry.operands.destinations[0] != Kind::None, ..memory };
    let modifiers = Modifiers { memory, ..Modifiers::default() };
    Ok(reader.instruction(
        entry.row.name,
        Encoding::Ds,
        [destination, Operand::default()],
        sources,
        modifiers,
    ))
}

fn memory(fields: Fields, name: &str, gds: bool) -> Memory {
    if name.contains("_2addr_") {
        let offset = fields.get(0, 8) as i32;
        return Memory { offset, offset1: fields.byte(8), gds, ..Memory::default() };
    }
    Memory { offset: fields.get(0, 16) as i32, gds, ..Memory::default() }
}
