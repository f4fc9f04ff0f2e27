//! MUBUF: memory by buffer resources; GFX12: VBUFFER.

use super::DecodeError;
use super::operand::{vector, vector_of};
use super::reader::{Fields, Reader};
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Generation, Instruction, Memory, Modifiers, Operand};

/// The fields in one form for all generations.
struct Layout {
    opcode: u32,
    address: u32,
    data: u32,
    resource: u32,
    scalar_offset: u32,
    accumulation: bool,
    memory: Memory,
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let gfx12 = reader.generation() == Generation::Gfx12;
    let fields = reader.fields(if gfx12 { 2 } else { 1 })?;
    let layout = match reader.generation() {
        Generation::Gfx12 => gfx12_layout(fields),
        generation => layout(generation, fields),
    };
    let entry = reader.entry(Encoding::Buffer, layout.opcode)?;
    let [destination, _] = entry.operands.destinations;
    let [stored, ..] = entry.operands.sources;
    let mut memory = layout.memory;
    memory.lds |= entry.row.name.contains("_load_lds_");
    let is_atomic = destination != Kind::None && stored != Kind::None;
    memory.returns = is_atomic && memory.policy & 1 != 0;
    let wave32 = reader.wave32;
    let data = |kind: Kind| {
        let extra = u8::from(memory.tfe && stored == Kind::None);
        vector_of(layout.data, layout.accumulation, kind.registers(wave32) + extra)
    };
    let mut destinations = [Operand::default(); 2];
    if destination != Kind::None && !memory.lds && (!is_atomic || memory.returns) {
        destinations[0] = data(destination);
    }
    let mut sources = [Operand::default(); 4];
    let addressed = destination != Kind::None || stored != Kind::None || memory.lds;
    if addressed {
        let addresses = u8::from(memory.offen) + u8::from(memory.idxen);
        if addresses != 0 {
            sources[0] = vector(layout.address, addresses);
        }
        sources[1] = reader.scalar(layout.resource, 4);
        sources[2] = reader.source(layout.scalar_offset, Kind::Registers(1))?;
    }
    if stored != Kind::None {
        sources[3] = data(stored);
    }
    let modifiers = Modifiers { memory, ..Modifiers::default() };
    Ok(reader.instruction(entry.row.name, Encoding::Buffer, destinations, sources, modifiers))
}

/// OFFSET in bits 0 to 11, VADDR in 32 to 39, VDATA in 40 to 47, SRSRC in 48 to 52, SOFFSET in 56 to 63. The flags move:
/// see the manuals' tables of MUBUF. SRSRC counts groups of four registers.
fn layout(generation: Generation, fields: Fields) -> Layout {
    let flags = |bits: [u32; 3]| (0..3).fold(0, |flags, i| flags | (fields.get(bits[i], 1) << i) as u8);
    let unified = matches!(generation, Generation::Gfx90a | Generation::Gfx940);
    let gfx11 = generation == Generation::Gfx11;
    let policy = match generation {
        Generation::Gfx9 => flags([14, 17, 14]) & 3,
        Generation::Gfx90a | Generation::Gfx940 => flags([14, 17, 15]),
        Generation::Gfx10 => flags([14, 54, 15]),
        _ => flags([14, 12, 13]),
    };
    let [offen, idxen, tfe] = if gfx11 { [54, 55, 53] } else { [12, 13, 55] };
    Layout {
        opcode: if gfx11 || generation == Generation::Gfx10 { fields.get(18, 8) } else { fields.get(18, 7) },
        address: fields.get(32, 8),
        data: fields.get(40, 8),
        resource: 4 * fields.get(48, 5),
        scalar_offset: fields.get(56, 8),
        accumulation: unified && fields.bit(55),
        memory: Memory {
            offset: fields.get(0, 12) as i32,
            offen: fields.bit(offen),
            idxen: fields.bit(idxen),
            lds: !gfx11 && fields.bit(16),
            tfe: !unified && fields.bit(tfe),
            policy,
            ..Memory::default()
        },
    }
}

/// SOFFSET in bits 0 to 6, the opcode in 14 to 21, TFE 22, VDATA in 32 to 39, RSRC in 41 to 49, SCOPE in 50 and 51, TH in
/// 52 to 54, OFFEN 62, IDXEN 63, VADDR in 64 to 71, IOFFSET in 72 to 95.
fn gfx12_layout(fields: Fields) -> Layout {
    Layout {
        opcode: fields.get(14, 8),
        address: fields.get(64, 8),
        data: fields.get(32, 8),
        resource: fields.get(41, 9),
        scalar_offset: fields.get(0, 7),
        accumulation: false,
        memory: Memory {
            offset: fields.signed(72, 24),
            offen: fields.bit(62),
            idxen: fields.bit(63),
            tfe: fields.bit(22),
            policy: (fields.get(52, 3) | fields.get(50, 2) << 3) as u8,
            ..Memory::default()
        },
    }
}
