//! VOPD: two operations at once (GFX11 and later).

use super::operand::{VECTOR, vector};
use super::reader::Reader;
use super::{DecodeError, vector as short};
use crate::isa::tables::Entry;
use crate::isa::{Encoding, Instruction, Modifiers, Operand};

/// SRCX0 in bits 0 to 8, VSRCX1 in 9 to 16, OPY in 17 to 21, OPX in 22 to 25, SRCY0 in 32 to 40, VSRCY1 in 41 to 48, VDSTY
/// in 49 to 55, VDSTX in 56 to 63. The lowest bit of VDSTY is the opposite of VDSTX's.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(1)?;
    let first = reader.entry(Encoding::Vopd, fields.get(22, 4))?;
    let second = reader.entry(Encoding::Vopd, fields.get(17, 5))?;
    let x = fields.get(56, 8);
    let y = fields.get(49, 7) << 1 | !x & 1;
    let x = half(reader, first, x, [fields.get(0, 9), VECTOR + fields.get(9, 8)])?;
    let y = half(reader, second, y, [fields.get(32, 9), VECTOR + fields.get(41, 8)])?;
    let build = |entry: &Entry, (destinations, sources)| {
        reader.instruction(entry.row.name, Encoding::Vopd, destinations, sources, Modifiers::default())
    };
    let second = Some(Box::new(build(second, y)));
    Ok(Instruction { second, ..build(first, x) })
}

fn half(
    reader: &mut Reader<'_>,
    entry: &Entry,
    destination: u32,
    codes: [u32; 2],
) -> Result<([Operand; 2], [Operand; 4]), DecodeError> {
    let registers = entry.operands.destinations[0].registers(reader.wave32);
    let destination = vector(destination, registers);
    let sources = short::sources(reader, entry, &codes, destination)?;
    Ok(([destination, Operand::default()], sources))
}
