//! Finding rows by opcode and by name.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Operands, Row, rows};
use crate::isa::{Encoding, Generation};

/// A row with its operands parsed.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub row: &'static Row,
    pub operands: Operands,
}

pub const GENERATIONS: [Generation; 6] = [
    Generation::Gfx9,
    Generation::Gfx90a,
    Generation::Gfx940,
    Generation::Gfx10,
    Generation::Gfx11,
    Generation::Gfx12,
];

pub const ENCODINGS: [Encoding; 17] = [
    Encoding::Sop1,
    Encoding::Sop2,
    Encoding::Sopk,
    Encoding::Sopc,
    Encoding::Sopp,
    Encoding::Smem,
    Encoding::Vop1,
    Encoding::Vop2,
    Encoding::Vopc,
    Encoding::Vop3,
    Encoding::Vop3p,
    Encoding::Vopd,
    Encoding::Ds,
    Encoding::Flat,
    Encoding::Global,
    Encoding::Scratch,
    Encoding::Buffer,
];

#[derive(Default)]
struct Index {
    opcodes: HashMap<(Encoding, Generation, u16), Entry>,
    names: HashMap<(Encoding, Generation, &'static str), Entry>,
}

/// The instruction with an opcode. Of VOP3 only those that have no shorter encoding, see [`promoted`].
pub fn by_opcode(encoding: Encoding, generation: Generation, opcode: u16) -> Option<&'static Entry> {
    index().opcodes.get(&(encoding, generation, opcode))
}

/// The instruction of a name of the tables' first column.
pub fn by_name(encoding: Encoding, generation: Generation, name: &'static str) -> Option<&'static Entry> {
    index().names.get(&(encoding, generation, name))
}

/// Where the instructions of VOP1, VOP2 and VOPC begin among the opcodes of VOP3 (ISA manuals, "VOP3A").
pub fn promoted(encoding: Encoding, generation: Generation) -> Option<u16> {
    match encoding {
        Encoding::Vopc => Some(0),
        Encoding::Vop2 => Some(0x100),
        Encoding::Vop1 if generation < Generation::Gfx10 => Some(0x140),
        Encoding::Vop1 => Some(0x180),
        _ => None,
    }
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(build)
}

fn build() -> Index {
    let mut index = Index::default();
    for encoding in ENCODINGS {
        for row in rows(encoding).iter().copied().flatten() {
            let entry = Entry { row, operands: row.operands() };
            for generation in GENERATIONS {
                let Some(opcode) = row.opcode(generation) else { continue };
                index.opcodes.insert((encoding, generation, opcode), entry);
                index.names.insert((encoding, generation, row.name), entry);
            }
        }
    }
    index
}
