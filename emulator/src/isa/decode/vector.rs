//! VOP1, VOP2, VOPC: the short encodings of vector operations.

use super::operand::{VECTOR, exec, vcc, vector};
use super::reader::{Fields, Reader};
use super::{DecodeError, lanes, scalar};
use crate::isa::tables::{Entry, Kind};
use crate::isa::{Encoding, Generation, Instruction, Modifiers, Operand, Source};

/// SRC0 in bits 0 to 8, VSRC1 of VOP2 and VOPC in 9 to 16, VDST of VOP1 and VOP2 in 17 to 24.
pub(super) fn decode(reader: &mut Reader<'_>, encoding: Encoding) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(0)?;
    let opcode = match encoding {
        Encoding::Vop1 => fields.get(9, 8),
        Encoding::Vop2 => fields.get(25, 6),
        _ => fields.get(17, 8),
    };
    let entry = reader.entry(encoding, opcode)?;
    let mut modifiers = Modifiers::default();
    let mut codes = [fields.get(0, 9), VECTOR + fields.get(9, 8)];
    let sdwa = lanes::sdwa_word(reader, codes[0])?;
    if let Some(word) = sdwa {
        lanes::sdwa(word, encoding == Encoding::Vopc, &mut modifiers);
        codes = lanes::sdwa_sources(word, fields.get(9, 8));
    } else {
        codes[0] = lanes::first_source(reader, codes[0], &mut modifiers)?;
    }
    let mut destinations = if encoding == Encoding::Vopc {
        let mask = comparison_mask(reader, sdwa);
        comparison(reader, entry, mask)
    } else {
        destinations(reader, entry, fields.get(17, 8))
    };
    let mut sources = sources(reader, entry, &codes, destinations[0])?;
    if reader.generation() >= Generation::Gfx11 {
        modifiers.op_sel = halves(entry, &mut destinations[0], &mut sources);
    }
    Ok(reader.instruction(entry.row.name, encoding, destinations, sources, modifiers))
}

/// What a comparison writes: a mask, EXEC, or both (ISA manual of "Vega", "V_CMPX"; of RDNA, the same).
pub(super) fn comparison(reader: &Reader<'_>, entry: &Entry, mask: Operand) -> [Operand; 2] {
    match (entry.row.name.starts_with("v_cmpx_"), reader.generation()) {
        (false, _) => [mask, Operand::default()],
        (true, Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940) => [mask, exec(reader)],
        (true, _) => [exec(reader), Operand::default()],
    }
}

/// What other operations write in the short encodings.
pub(super) fn destinations(reader: &Reader<'_>, entry: &Entry, code: u32) -> [Operand; 2] {
    let registers = |kind: Kind| kind.registers(reader.wave32);
    entry.operands.destinations.map(|kind| match kind {
        Kind::None => Operand::default(),
        Kind::Mask => vcc(reader),
        Kind::Scalar => reader.scalar(code, 1),
        kind => vector(code, registers(kind)),
    })
}

/// Sources in the short encodings, where a mask is always VCC.
pub(super) fn sources(
    reader: &mut Reader<'_>,
    entry: &Entry,
    codes: &[u32],
    destination: Operand,
) -> Result<[Operand; 4], DecodeError> {
    let mut codes = codes.iter().copied();
    let mut sources = [Operand::default(); 4];
    for (source, kind) in sources.iter_mut().zip(entry.operands.sources) {
        *source = match kind {
            Kind::None => Operand::default(),
            Kind::Mask => vcc(reader),
            Kind::Destination => destination,
            Kind::Literal => scalar::literal(reader)?,
            kind => reader.source(codes.next().unwrap_or(VECTOR), kind)?,
        };
    }
    Ok(sources)
}

/// VOPC writes VCC; with SDWA a register in bits 8 to 14 if bit 15 says so.
fn comparison_mask(reader: &Reader<'_>, sdwa: Option<Fields>) -> Operand {
    match sdwa {
        Some(word) if word.bit(15) => reader.scalar(word.get(8, 7), Kind::Mask.registers(reader.wave32)),
        _ => vcc(reader),
    }
}

/// GFX11 and later: 128 and more in the place of a register with 16 bits mean the high halves of the first 128 registers
/// (RDNA 3 ISA, "16-bit operands"). The result is `op_sel` of the modifiers.
fn halves(entry: &Entry, destination: &mut Operand, sources: &mut [Operand; 4]) -> u8 {
    let mut op_sel = 0;
    for (index, (source, kind)) in sources.iter_mut().zip(entry.operands.sources).enumerate() {
        let is_half = kind.is_half() || kind == Kind::Destination && entry.operands.destinations[0].is_half();
        if is_half && lower(source) {
            op_sel |= 1 << index;
        }
    }
    if entry.operands.destinations[0].is_half() && lower(destination) {
        op_sel |= 1 << 3;
    }
    op_sel
}

fn lower(operand: &mut Operand) -> bool {
    match &mut operand.source {
        Source::Vector(number @ 128..=255) => {
            *number -= 128;
            true
        }
        _ => false,
    }
}
