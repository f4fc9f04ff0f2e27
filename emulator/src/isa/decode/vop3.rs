//! VOP3: the long encoding of vector operations.

use super::operand::vector;
use super::reader::{Fields, Reader};
use super::{DecodeError, lanes, vector as short};
use crate::isa::tables::{Entry, Kind, by_opcode, promoted};
use crate::isa::{Encoding, Instruction, Modifiers, Operand};

/// VDST in bits 0 to 7, SRC0 to SRC2 in 32 to 58, the opcode in 16 to 25.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(1)?;
    let entry = find(reader, fields.get(16, 10))?;
    let mut modifiers = modifiers(fields, has_scalar_destination(entry));
    let codes = [fields.get(32, 9), fields.get(41, 9), fields.get(50, 9)];
    let codes = [lanes::first_source(reader, codes[0], &mut modifiers)?, codes[1], codes[2]];
    let destinations = destinations(reader, entry, fields);
    let sources = sources(reader, entry, codes, destinations[0])?;
    Ok(reader.instruction(entry.row.name, Encoding::Vop3, destinations, sources, modifiers))
}

/// Sources of the long encodings, where a mask is a scalar operand.
pub(super) fn sources(
    reader: &mut Reader<'_>,
    entry: &Entry,
    codes: [u32; 3],
    destination: Operand,
) -> Result<[Operand; 4], DecodeError> {
    let mut codes = codes.into_iter();
    let mut sources = [Operand::default(); 4];
    for (source, kind) in sources.iter_mut().zip(entry.operands.sources) {
        *source = match kind {
            Kind::None => Operand::default(),
            Kind::Destination => destination,
            kind => reader.source(codes.next().unwrap_or_default(), kind)?,
        };
    }
    Ok(sources)
}

/// Instructions with a long encoding only come first, since GFX10 has some of them among the others' opcodes.
fn find(reader: &Reader<'_>, opcode: u32) -> Result<&'static Entry, DecodeError> {
    let generation = reader.generation();
    let opcode = opcode as u16;
    if let Some(entry) = by_opcode(Encoding::Vop3, generation, opcode) {
        return Ok(entry);
    }
    for encoding in [Encoding::Vop1, Encoding::Vop2, Encoding::Vopc] {
        let Some(short) = promoted(encoding, generation).and_then(|first| opcode.checked_sub(first)) else {
            continue;
        };
        match by_opcode(encoding, generation, short) {
            Some(entry) if !entry.operands.sources.contains(&Kind::Literal) => return Ok(entry),
            _ => {}
        }
    }
    reader.entry(Encoding::Vop3, u32::from(opcode))
}

/// VOP3B: a scalar destination stands in the place of the absolute values and of the halves.
fn has_scalar_destination(entry: &Entry) -> bool {
    entry.operands.destinations[1] == Kind::Mask
}

/// ABS in bits 8 to 10, OP_SEL in 11 to 14, CLAMP 15, OMOD in 59 and 60, NEG in 61 to 63.
fn modifiers(fields: Fields, scalar_destination: bool) -> Modifiers {
    let mut modifiers = Modifiers {
        clamp: fields.bit(15),
        omod: fields.get(59, 2) as u8,
        negate: fields.get(61, 3) as u8,
        ..Modifiers::default()
    };
    if !scalar_destination {
        modifiers.absolute = fields.get(8, 3) as u8;
        modifiers.op_sel = fields.get(11, 4) as u8;
    }
    modifiers
}

fn destinations(reader: &Reader<'_>, entry: &Entry, fields: Fields) -> [Operand; 2] {
    let registers = |kind: Kind| kind.registers(reader.wave32);
    match entry.operands.destinations {
        [Kind::Mask, _] => {
            let mask = reader.scalar(fields.get(0, 7), registers(Kind::Mask));
            short::comparison(reader, entry, mask)
        }
        [Kind::Scalar, _] => [reader.scalar(fields.get(0, 7), 1), Operand::default()],
        [Kind::None, _] => Default::default(),
        [kind, Kind::Mask] => [
            vector(fields.get(0, 8), registers(kind)),
            reader.scalar(fields.get(8, 7), registers(Kind::Mask)),
        ],
        [kind, _] => [vector(fields.get(0, 8), registers(kind)), Operand::default()],
    }
}
