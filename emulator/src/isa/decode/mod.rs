//! From machine code to [`Instruction`].
//!
//! The first word tells the encoding ("Microcode formats" of the ISA manuals; the names of the encodings are theirs).
//! Fields are cited by their bits there, the second word's beginning at 32.

mod buffer;
mod ds;
mod error;
mod flat;
mod lanes;
mod operand;
mod reader;
mod scalar;
mod smem;
mod vector;
mod vop3;
mod vop3p;
mod vopd;

pub use error::DecodeError;

use super::{Encoding, Generation, Instruction, Target};
use reader::Reader;

/// Decodes the instruction at `offset` bytes from the beginning of `code`, for waves of 32 or 64 lanes.
pub fn decode(target: Target, wave32: bool, code: &[u8], offset: u64) -> Result<Instruction, DecodeError> {
    let mut reader = Reader::new(target, wave32, code, offset)?;
    let first = reader.first;
    match encoding(target.generation, first)
        .map_err(|name| reader.error(format!("{name} is not known here")))?
    {
        encoding @ (Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc) => {
            scalar::operation(&mut reader, encoding)
        }
        Encoding::Sopk => scalar::with_immediate(&mut reader),
        Encoding::Sopp => scalar::program(&mut reader),
        Encoding::Smem => smem::decode(&mut reader),
        encoding @ (Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc) => {
            vector::decode(&mut reader, encoding)
        }
        Encoding::Vop3 => vop3::decode(&mut reader),
        Encoding::Vop3p => vop3p::decode(&mut reader),
        Encoding::Vopd => vopd::decode(&mut reader),
        Encoding::Ds => ds::decode(&mut reader),
        Encoding::Flat | Encoding::Global | Encoding::Scratch => flat::decode(&mut reader),
        Encoding::Buffer => buffer::decode(&mut reader),
    }
}

/// The encoding of a first word, or the name of one that has no tables.
fn encoding(generation: Generation, word: u32) -> Result<Encoding, &'static str> {
    if word >> 31 == 0 {
        return Ok(match word >> 25 {
            0x3f => Encoding::Vop1,
            0x3e => Encoding::Vopc,
            _ => Encoding::Vop2,
        });
    }
    if word >> 30 == 0b10 {
        return Ok(match word >> 23 {
            0x17d => Encoding::Sop1,
            0x17e => Encoding::Sopc,
            0x17f => Encoding::Sopp,
            _ if word >> 28 == 0b1011 => Encoding::Sopk,
            _ => Encoding::Sop2,
        });
    }
    match generation {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => gfx9(word),
        Generation::Gfx10 => gfx10(word),
        Generation::Gfx11 => gfx11(word),
        Generation::Gfx12 => gfx12(word),
    }
}

fn gfx9(word: u32) -> Result<Encoding, &'static str> {
    match word >> 26 {
        0b110000 => Ok(Encoding::Smem),
        0b110100 if word >> 23 == 0b1_1010_0111 => Ok(Encoding::Vop3p),
        0b110100 => Ok(Encoding::Vop3),
        0b110101 => Err("VINTRP"),
        0b110110 => Ok(Encoding::Ds),
        0b110111 => Ok(Encoding::Flat),
        0b111000 => Ok(Encoding::Buffer),
        0b111010 => Err("MTBUF"),
        0b111100 => Err("MIMG"),
        0b110001 => Err("EXP"),
        _ => Err("an encoding without a name"),
    }
}

fn gfx10(word: u32) -> Result<Encoding, &'static str> {
    match word >> 26 {
        0b110010 => Err("VINTRP"),
        _ => gfx11(word),
    }
}

fn gfx11(word: u32) -> Result<Encoding, &'static str> {
    match word >> 26 {
        0b110010 => Ok(Encoding::Vopd),
        0b110011 if word >> 24 == 0xcc => Ok(Encoding::Vop3p),
        0b110011 => Err("VINTERP or LDSDIR"),
        0b110101 => Ok(Encoding::Vop3),
        0b110110 => Ok(Encoding::Ds),
        0b110111 => Ok(Encoding::Flat),
        0b111000 => Ok(Encoding::Buffer),
        0b111010 => Err("MTBUF"),
        0b111100 => Err("MIMG"),
        0b111101 => Ok(Encoding::Smem),
        0b111110 => Err("EXP"),
        _ => Err("an encoding without a name"),
    }
}

fn gfx12(word: u32) -> Result<Encoding, &'static str> {
    match word >> 26 {
        0b110010 | 0b110011 | 0b110101 | 0b110110 | 0b111101 | 0b111110 => gfx11(word),
        0b110001 => Ok(Encoding::Buffer),
        0b111011 => Ok(Encoding::Flat),
        0b110100 | 0b111001 => Err("VIMAGE or VSAMPLE"),
        _ => Err("an encoding without a name"),
    }
}
