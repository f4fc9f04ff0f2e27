//! Matrix instructions: MFMA of CDNA and WMMA of RDNA.

mod accumulation;
mod element;
mod mfma;
mod number;
mod result;
mod shapes;
mod wmma;

use crate::isa::{Generation, Instruction};

use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

/// What an instruction does; `None` for others and for those with sparse matrices.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Option<Action>, Box<Fault>> {
    let name = instruction.name;
    if let Some(shape) = shapes::find_mfma(name) {
        return mfma::action(instruction, setting, shape).map(Some);
    }
    if let Some(shape) = shapes::find_wmma(name) {
        let is_later = setting.target.generation >= Generation::Gfx12;
        return match setting.lanes {
            64 => wmma::action::<64>(instruction, is_later, shape).map(Some),
            _ => wmma::action::<32>(instruction, is_later, shape).map(Some),
        };
    }
    match name {
        "v_accvgpr_read_b32" | "v_accvgpr_write_b32" | "v_accvgpr_mov_b32" => {
            accumulation::action(instruction).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
