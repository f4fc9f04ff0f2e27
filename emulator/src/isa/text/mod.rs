//! The text of an instruction in the syntax of LLVM's assembler ("Syntax of AMDGPU Instructions", "Modifiers").

mod buffer;
mod constant;
mod ds;
mod flat;
mod immediate;
mod lanes;
mod modifiers;
mod operand;
mod policy;
mod scalar;
mod smem;
mod vector;

use super::tables::{Entry, by_name};
use super::{Encoding, Generation, Instruction, Target};

/// What is needed to write an instruction.
struct Writer<'a> {
    instruction: &'a Instruction,
    generation: Generation,
    entry: &'a Entry,
    /// VOP3: the instruction has a short encoding too.
    promoted: bool,
}

/// The text as LLVM's disassembler for the target prints it.
pub fn text(instruction: &Instruction, target: Target) -> String {
    let generation = target.generation;
    let Some((entry, promoted)) = find(instruction, generation) else {
        return format!("{} (not an instruction of {})", instruction.name, target.name);
    };
    let writer = Writer { instruction, generation, entry, promoted };
    match instruction.encoding {
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp => {
            scalar::text(&writer)
        }
        Encoding::Smem => smem::text(&writer),
        Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Vop3 | Encoding::Vop3p => {
            vector::text(&writer)
        }
        Encoding::Vopd => vector::dual(&writer, target),
        Encoding::Ds => ds::text(&writer),
        Encoding::Flat | Encoding::Global | Encoding::Scratch => flat::text(&writer),
        Encoding::Buffer => buffer::text(&writer),
    }
}

fn find(instruction: &Instruction, generation: Generation) -> Option<(&'static Entry, bool)> {
    if let Some(entry) = by_name(instruction.encoding, generation, instruction.name) {
        return Some((entry, false));
    }
    if instruction.encoding != Encoding::Vop3 {
        return None;
    }
    let short = [Encoding::Vop1, Encoding::Vop2, Encoding::Vopc];
    let entry = short.into_iter().find_map(|encoding| by_name(encoding, generation, instruction.name))?;
    Some((entry, true))
}

impl Writer<'_> {
    fn name(&self) -> &'static str {
        self.entry.row.name_in(self.generation)
    }

    fn is_gfx9(&self) -> bool {
        self.generation < Generation::Gfx10
    }

    /// Name, operands with commas between them, modifiers that begin with a space each.
    fn line(&self, suffix: &str, operands: &[String], modifiers: &str) -> String {
        let space = if operands.is_empty() { "" } else { " " };
        format!("{}{suffix}{space}{}{modifiers}", self.name(), operands.join(", "))
    }
}
