//! DPP and SDWA: what stands in the first source's place is a word behind the instruction (ISA manuals, "DPP", "SDWA").

use super::DecodeError;
use super::operand::VECTOR;
use super::reader::{Fields, Reader};
use crate::isa::{Dpp, Generation, Modifiers, Sdwa};

const SDWA: u32 = 249;
const DPP16: u32 = 250;
const DPP8: u32 = 233;
const DPP8_FETCH_INACTIVE: u32 = 234;

/// The code of the first source. If it stands for DPP, the next word is read, and the lanes go to the modifiers.
pub(super) fn first_source(
    reader: &mut Reader<'_>,
    code: u32,
    modifiers: &mut Modifiers,
) -> Result<u32, DecodeError> {
    let dpp8 = reader.generation() >= Generation::Gfx10;
    match code {
        DPP16 => {
            let fields = reader.extra()?;
            modifiers.dpp = Some(Dpp::Dpp16 {
                control: fields.get(8, 9) as u16,
                row_mask: fields.get(28, 4) as u8,
                bank_mask: fields.get(24, 4) as u8,
                bound_control: fields.bit(19),
                fetch_inactive: fields.bit(18) && dpp8,
            });
            modifiers.negate |= (fields.get(20, 1) | fields.get(22, 1) << 1) as u8;
            modifiers.absolute |= (fields.get(21, 1) | fields.get(23, 1) << 1) as u8;
            Ok(VECTOR + fields.get(0, 8))
        }
        DPP8 | DPP8_FETCH_INACTIVE if dpp8 => {
            let fields = reader.extra()?;
            let lanes = std::array::from_fn(|lane| fields.get(8 + 3 * lane as u32, 3) as u8);
            modifiers.dpp = Some(Dpp::Dpp8 { lanes, fetch_inactive: code == DPP8_FETCH_INACTIVE });
            Ok(VECTOR + fields.get(0, 8))
        }
        code => Ok(code),
    }
}

/// The word of SDWA, if the first source's code stands for it.
pub(super) fn sdwa_word(reader: &mut Reader<'_>, code: u32) -> Result<Option<Fields>, DecodeError> {
    match code {
        SDWA if reader.generation() <= Generation::Gfx10 => Ok(Some(reader.extra()?)),
        _ => Ok(None),
    }
}

/// SRC0_SEL is in bits 16 to 18, SRC1_SEL in 24 to 26, their sign, negation and absolute value behind each; DST_SEL in 8
/// to 10, DST_U in 11 and 12, CLAMP 13, OMOD in 14 and 15, which comparisons have a register for.
pub(super) fn sdwa(fields: Fields, comparison: bool, modifiers: &mut Modifiers) {
    modifiers.negate |= (fields.get(20, 1) | fields.get(28, 1) << 1) as u8;
    modifiers.absolute |= (fields.get(21, 1) | fields.get(29, 1) << 1) as u8;
    let (mut destination, mut unused) = (6, 0);
    if !comparison {
        destination = fields.get(8, 3) as u8;
        unused = fields.get(11, 2) as u8;
        modifiers.clamp = fields.bit(13);
        modifiers.omod = fields.get(14, 2) as u8;
    }
    modifiers.sdwa = Some(Sdwa {
        destination,
        unused,
        sources: [fields.get(16, 3) as u8, fields.get(24, 3) as u8],
        signed: [fields.bit(19), fields.bit(27)],
    });
}

/// The codes of SDWA's sources: S0 (bit 23) and S1 (bit 31) say that it is a scalar.
pub(super) fn sdwa_sources(fields: Fields, second: u32) -> [u32; 2] {
    let first = fields.get(0, 8) + if fields.bit(23) { 0 } else { VECTOR };
    [first, second + if fields.bit(31) { 0 } else { VECTOR }]
}
