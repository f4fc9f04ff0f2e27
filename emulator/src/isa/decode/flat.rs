//! FLAT, GLOBAL, SCRATCH: memory by addresses in vector registers; GFX12: VFLAT, VGLOBAL, VSCRATCH.

use super::DecodeError;
use super::operand::{vector, vector_of};
use super::reader::{Fields, Reader};
use crate::isa::tables::{Entry, Kind};
use crate::isa::{Encoding, Generation, Instruction, Memory, Modifiers, Operand, Source};

/// The fields in one form for all generations.
struct Layout {
    encoding: Encoding,
    opcode: u32,
    address: u32,
    data: u32,
    destination: u32,
    scalar: u32,
    /// Data and destination are accumulation registers.
    accumulation: bool,
    /// Scratch: there is an address in a vector register.
    has_vector: bool,
    memory: Memory,
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let gfx12 = reader.generation() == Generation::Gfx12;
    let fields = reader.fields(if gfx12 { 2 } else { 1 })?;
    let layout = if gfx12 { new_layout(reader, fields)? } else { old_layout(reader, fields)? };
    let entry = reader.entry(layout.encoding, layout.opcode)?;
    let [destination, _] = entry.operands.destinations;
    let [data, ..] = entry.operands.sources;
    let mut memory = layout.memory;
    let is_atomic = destination != Kind::None && data != Kind::None;
    memory.returns = is_atomic && memory.policy & 1 != 0;
    memory.lds = entry.row.name.contains("_load_lds_");
    let mut destinations = [Operand::default(); 2];
    if destination != Kind::None && (!is_atomic || memory.returns) {
        let registers = destination.registers(reader.wave32);
        destinations[0] = vector_of(layout.destination, layout.accumulation, registers);
    }
    let mut sources = [Operand::default(); 4];
    [sources[0], sources[2]] = addresses(reader, entry, &layout);
    if data != Kind::None {
        sources[1] = vector_of(layout.data, layout.accumulation, data.registers(reader.wave32));
    }
    let modifiers = Modifiers { memory, ..Modifiers::default() };
    Ok(reader.instruction(entry.row.name, layout.encoding, destinations, sources, modifiers))
}

/// The address in vector registers and the one in scalar registers.
fn addresses(reader: &Reader<'_>, entry: &Entry, layout: &Layout) -> [Operand; 2] {
    let name = entry.row.name;
    if matches!(name, "global_inv" | "global_wb" | "global_wbinv") {
        return Default::default();
    }
    let scalar = match layout.encoding {
        Encoding::Flat => Operand::default(),
        encoding => {
            let registers = if encoding == Encoding::Global { 2 } else { 1 };
            let is_off = layout.scalar == 0x7f && reader.generation() <= Generation::Gfx10;
            if is_off { Operand::default() } else { reader.scalar_or_none(layout.scalar, registers) }
        }
    };
    let has_scalar = scalar.source != Source::None;
    let vector = match layout.encoding {
        Encoding::Scratch if layout.has_vector => vector(layout.address, 1),
        Encoding::Scratch => Operand::default(),
        _ if name.contains("_addtid_") => Operand::default(),
        Encoding::Global if has_scalar => vector(layout.address, 1),
        _ => vector(layout.address, 2),
    };
    [vector, scalar]
}

fn segment(reader: &Reader<'_>, code: u32) -> Result<Encoding, DecodeError> {
    match code {
        0 => Ok(Encoding::Flat),
        1 => Ok(Encoding::Scratch),
        2 => Ok(Encoding::Global),
        _ => Err(reader.error(format!("FLAT has no segment {code}, only 0 to 2"))),
    }
}

/// ADDR in bits 32 to 39, DATA in 40 to 47, SADDR in 48 to 54, VDST in 56 to 63, the opcode in 18 to 24. SEG is in 14 and
/// 15, of GFX11 in 16 and 17. GFX9 and GFX10: GLC is 16, SLC 17, DLC of GFX10 12; GFX940: SC0 16, NT 17, SC1 25. GFX11: DLC
/// 13, GLC 14, SLC 15. Bit 55 is ACC of GFX90A, SVE of GFX11's scratch; GFX940 has SVE in bit 13.
fn old_layout(reader: &Reader<'_>, fields: Fields) -> Result<Layout, DecodeError> {
    let generation = reader.generation();
    let flags = |bits: [u32; 3]| (0..3).fold(0, |flags, i| flags | (fields.get(bits[i], 1) << i) as u8);
    let encoding = segment(reader, fields.get(if generation == Generation::Gfx11 { 16 } else { 14 }, 2))?;
    let policy = match generation {
        Generation::Gfx9 | Generation::Gfx90a => flags([16, 17, 17]) & 3 | (fields.get(25, 1) << 2) as u8,
        Generation::Gfx940 => flags([16, 17, 25]),
        Generation::Gfx10 => flags([16, 17, 12]),
        _ => flags([14, 15, 13]),
    };
    let bits = if generation == Generation::Gfx10 { 12 } else { 13 };
    let offset = match encoding {
        Encoding::Flat => fields.get(0, bits - 1) as i32,
        _ => fields.signed(0, bits),
    };
    let scalar = fields.get(48, 7);
    let no_scalar = scalar == 0x7f || generation == Generation::Gfx10 && scalar == 0x7d;
    let has_vector = match generation {
        Generation::Gfx940 => fields.bit(13),
        Generation::Gfx11 => fields.bit(55),
        Generation::Gfx10 => no_scalar && scalar == 0x7d,
        _ => no_scalar,
    };
    Ok(Layout {
        encoding,
        opcode: fields.get(18, 7),
        address: fields.get(32, 8),
        data: fields.get(40, 8),
        destination: fields.get(56, 8),
        scalar,
        accumulation: reader.has_unified_registers() && fields.bit(55),
        has_vector,
        memory: Memory { offset, policy, ..Memory::default() },
    })
}

/// SADDR in bits 0 to 6, the opcode in 14 to 21, SEG in 24 and 25, VDST in 32 to 39, SVE 49, SCOPE in 50 and 51, TH in 52
/// to 54, VSRC in 55 to 62, VADDR in 64 to 71, IOFFSET in 72 to 95.
fn new_layout(reader: &Reader<'_>, fields: Fields) -> Result<Layout, DecodeError> {
    let policy = (fields.get(52, 3) | fields.get(50, 2) << 3) as u8;
    Ok(Layout {
        encoding: segment(reader, fields.get(24, 2))?,
        opcode: fields.get(14, 8),
        address: fields.get(64, 8),
        data: fields.get(55, 8),
        destination: fields.get(32, 8),
        scalar: fields.get(0, 7),
        accumulation: false,
        has_vector: fields.bit(49),
        memory: Memory { offset: fields.signed(72, 24), policy, ..Memory::default() },
    })
}
