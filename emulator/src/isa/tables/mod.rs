//! The tables of instructions: for each one its opcode in every generation's encoding and its operands.
//!
//! Opcodes are those of AMD's ISA manuals ("Vega" 7 nm, "MI100", "MI200", "MI300", RDNA 2, 3, 3.5 and 4, chapter
//! "Microcode formats"). The operands are words: destinations, `=`, sources, as `Kind` explains.

mod buffer;
mod ds;
mod flat;
mod global;
mod kind;
mod lookup;
mod matrix;
mod smem;
mod sop;
mod sopk;
mod vop1;
mod vop2;
mod vop3;
mod vop3p;
mod vopc;
mod vopd;

pub(super) use kind::{Kind, Operands};
#[cfg(test)]
pub(super) use lookup::{ENCODINGS, GENERATIONS};
pub(super) use lookup::{Entry, by_name, by_opcode, promoted};

use super::{Encoding, Generation};

/// In a table: there is no such instruction in this generation.
const __: u16 = u16::MAX;

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// By GFX11's assembler; by GFX12's or an older one's where GFX11 does not have the instruction.
    pub name: &'static str,
    /// For GFX9, GFX90A, GFX940, GFX10, GFX11, GFX12.
    opcodes: [u16; 6],
    operands: &'static str,
    /// What other assemblers say, from one generation to another.
    others: [Option<(&'static str, Generation, Generation)>; 2],
}

const fn row(name: &'static str, opcodes: [u16; 6], operands: &'static str) -> Row {
    Row { name, opcodes, operands, others: [None, None] }
}

impl Row {
    const fn called(mut self, name: &'static str, first: Generation, last: Generation) -> Row {
        let free = if self.others[0].is_none() { 0 } else { 1 };
        self.others[free] = Some((name, first, last));
        self
    }

    pub fn opcode(&self, generation: Generation) -> Option<u16> {
        let opcode = self.opcodes[generation as usize];
        (opcode != __).then_some(opcode)
    }

    /// The name in a generation's assembler.
    pub fn name_in(&self, generation: Generation) -> &'static str {
        let other =
            self.others.iter().flatten().find(|(_, first, last)| (*first..=*last).contains(&generation));
        other.map_or(self.name, |(name, ..)| name)
    }

    #[cfg(test)]
    pub fn operand_text(&self) -> &'static str {
        self.operands
    }

    pub fn operands(&self) -> Operands {
        Operands::parse(self.operands)
    }
}

/// The tables that an encoding's instructions are in.
pub fn rows(encoding: Encoding) -> &'static [&'static [Row]] {
    match encoding {
        Encoding::Sop1 => &[sop::SOP1],
        Encoding::Sop2 => &[sop::SOP2],
        Encoding::Sopk => &[sopk::SOPK],
        Encoding::Sopc => &[sopk::SOPC],
        Encoding::Sopp => &[sopk::SOPP],
        Encoding::Smem => &[smem::SMEM],
        Encoding::Vop1 => &[vop1::VOP1],
        Encoding::Vop2 => &[vop2::VOP2],
        Encoding::Vopc => &[vopc::VOPC],
        Encoding::Vop3 => &[vop3::VOP3],
        Encoding::Vop3p => &[vop3p::VOP3P, matrix::MATRIX],
        Encoding::Vopd => &[vopd::VOPD],
        Encoding::Ds => &[ds::DS],
        Encoding::Flat => &[flat::FLAT],
        Encoding::Global => &[global::GLOBAL],
        Encoding::Scratch => &[flat::SCRATCH],
        Encoding::Buffer => &[buffer::BUFFER],
    }
}
