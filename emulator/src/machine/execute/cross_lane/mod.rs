//! Vector instructions that move values between lanes, or between registers that M0 chooses.

mod lane;
mod movrel;
mod permlane;
mod swap;

use crate::isa::Instruction;

use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

/// What an instruction does; `None` for others.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Option<Action>, Box<Fault>> {
    let action = match instruction.name {
        "v_readfirstlane_b32" => lane::read_first(instruction)?,
        "v_readlane_b32" => lane::read(instruction)?,
        "v_writelane_b32" => lane::write(instruction)?,
        "v_permlane16_b32" => permlane::by_scalars(instruction, 0)?,
        "v_permlanex16_b32" => permlane::by_scalars(instruction, 16)?,
        "v_permlane16_var_b32" => permlane::by_vector(instruction, 0)?,
        "v_permlanex16_var_b32" => permlane::by_vector(instruction, 16)?,
        "v_permlane64_b32" => permlane::halves(instruction, setting)?,
        "v_permlane16_swap_b32" => permlane::swap(instruction, 16)?,
        "v_permlane32_swap_b32" => permlane::swap(instruction, 32)?,
        "v_swap_b32" => swap::words(instruction)?,
        "v_swap_b16" => swap::halves(instruction)?,
        "v_swaprel_b32" => swap::relative(instruction)?,
        "v_movrels_b32" | "v_movreld_b32" | "v_movrelsd_b32" | "v_movrelsd_2_b32" => {
            movrel::action(instruction)?
        }
        _ => return Ok(None),
    };
    Ok(Some(action))
}

#[cfg(test)]
mod tests;
