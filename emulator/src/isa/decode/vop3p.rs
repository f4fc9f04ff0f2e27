//! VOP3P: packed operations, dot products, matrices.

use super::operand::{accumulation, vector, vector_of};
use super::reader::{Fields, Reader};
use super::{DecodeError, lanes, vop3};
use crate::isa::tables::Entry;
use crate::isa::{Encoding, Generation, Instruction, Modifiers, Operand};

/// VDST in bits 0 to 7, SRC0 to SRC2 in 32 to 58, the opcode in 16 to 22.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Instruction, DecodeError> {
    let fields = reader.fields(1)?;
    let entry = reader.entry(Encoding::Vop3p, fields.get(16, 7))?;
    let name = entry.row.name;
    if name.starts_with("v_mfma_") || name.starts_with("v_smfmac_") || name.starts_with("v_accvgpr_") {
        return accumulate(reader, entry, fields);
    }
    let mut modifiers = modifiers(fields);
    let codes = [fields.get(32, 9), fields.get(41, 9), fields.get(50, 9)];
    let codes = [lanes::first_source(reader, codes[0], &mut modifiers)?, codes[1], codes[2]];
    let registers = entry.operands.destinations[0].registers(reader.wave32);
    let destination = vector(fields.get(0, 8), registers);
    let sources = vop3::sources(reader, entry, codes, destination)?;
    let destinations = [destination, Operand::default()];
    Ok(reader.instruction(name, Encoding::Vop3p, destinations, sources, modifiers))
}

/// NEG_HI in bits 8 to 10, OP_SEL in 11 to 13, OP_SEL_HI in 59, 60 and 14, CLAMP 15, NEG in 61 to 63.
fn modifiers(fields: Fields) -> Modifiers {
    Modifiers {
        negate: fields.get(61, 3) as u8,
        negate_high: fields.get(8, 3) as u8,
        op_sel: fields.get(11, 3) as u8,
        op_sel_high: (fields.get(59, 2) | fields.get(14, 1) << 2) as u8,
        clamp: fields.bit(15),
        ..Modifiers::default()
    }
}

/// MFMA ("MI300" ISA, "VOP3P-MAI"): CBSZ in bits 8 to 10, ABID in 11 to 14, BLGP in 61 to 63. ACC (59, 60) says that A and
/// B are accumulation registers, ACC_CD (15) says it of C and D, which on GFX908 always are.
fn accumulate(reader: &mut Reader<'_>, entry: &Entry, fields: Fields) -> Result<Instruction, DecodeError> {
    let name = entry.row.name;
    let is_read = name == "v_accvgpr_read_b32";
    let is_write = name == "v_accvgpr_write_b32";
    let results = is_write || !is_read && (fields.bit(15) || reader.generation() == Generation::Gfx9);
    let registers = entry.operands.destinations[0].registers(reader.wave32);
    let destination = vector_of(fields.get(0, 8), results, registers);
    let codes = [fields.get(32, 9), fields.get(41, 9), fields.get(50, 9)];
    let mut sources = vop3::sources(reader, entry, codes, destination)?;
    if is_read || fields.bit(59) && !is_write {
        sources[0] = accumulation(sources[0]);
    }
    if fields.bit(60) && !is_write {
        sources[1] = accumulation(sources[1]);
    }
    if results && !name.starts_with("v_smfmac_") {
        sources[2] = accumulation(sources[2]);
    }
    let modifiers = Modifiers {
        cbsz: fields.get(8, 3) as u8,
        abid: fields.get(11, 4) as u8,
        blgp: fields.get(61, 3) as u8,
        ..Modifiers::default()
    };
    Ok(reader.instruction(name, Encoding::Vop3p, [destination, Operand::default()], sources, modifiers))
}
