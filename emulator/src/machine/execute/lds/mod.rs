//! LDS: the memory that the waves of a workgroup share, and the exchanges between lanes that go through it.

mod address;
mod append;
mod pair;
mod permute;

use crate::isa::{Generation, Instruction};

use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

use super::lanes::atomic::{self, Operands};
use super::lanes::element::{with_load, with_store};
use super::lanes::operation;
use super::lanes::transfer::{Loading, Storing};
use super::operands::vector;
use super::unsupported;
use address::Address;

/// What a DS instruction does.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    if instruction.modifiers.memory.gds {
        return Err(Fault::instruction(format!(
            "{} on GDS, which the emulator does not have",
            instruction.name
        )));
    }
    if setting.lanes == 64 { build::<64>(instruction, setting) } else { build::<32>(instruction, setting) }
}

fn build<const LANES: usize>(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let Some(kind) = instruction.name.strip_prefix("ds_") else {
        return Err(unsupported(instruction));
    };
    match kind {
        "nop" => return Ok(Box::new(|_, _| Ok(()))),
        "permute_b32" => return permute::permute::<LANES>(instruction, setting),
        "bpermute_b32" => return permute::bpermute::<LANES>(instruction, setting, false),
        "bpermute_fi_b32" => return permute::bpermute::<LANES>(instruction, setting, true),
        "swizzle_b32" => return permute::swizzle::<LANES>(instruction),
        "append" => return append::action(instruction, true),
        "consume" => return append::action(instruction, false),
        _ => {}
    }
    if let Some(action) = pair::action::<LANES>(instruction, kind)? {
        return Ok(action);
    }
    let by_thread = kind.contains("_addtid");
    let kind = kind.replacen("_addtid", "", 1);
    let place = Address::new(instruction, by_thread)?;
    let action = if let Some(element) = kind.strip_prefix("load_") {
        let to = instruction.destinations[0];
        with_load(element, Loading::<_, LANES> { instruction, place, to }).transpose()?
    } else if let Some(element) = kind.strip_prefix("store_") {
        let from = instruction.sources[1];
        with_store(element, Storing::<_, LANES> { instruction, place, from }).transpose()?
    } else {
        atomic_action::<LANES>(instruction, setting, &kind, place)?
    };
    action.ok_or_else(|| unsupported(instruction))
}

fn atomic_action<const LANES: usize>(
    instruction: &Instruction,
    setting: Setting,
    kind: &str,
    place: Address,
) -> Result<Option<Action>, Box<Fault>> {
    let returns = kind.contains("_rtn");
    let name = kind.replacen("_rtn", "", 1);
    let [_, data, second, _] = instruction.sources;
    // GFX10 and before compare with the first data and store the second.
    let exchanged = name.starts_with("cmp") && setting.target.generation < Generation::Gfx11;
    let (data, second) = if exchanged { (second, data) } else { (data, second) };
    let operands = |words: usize, two: bool| -> Result<Operands, Box<Fault>> {
        Ok(Operands {
            data: vector(instruction, data, words)?,
            second: if two { Some(vector(instruction, second, words)?) } else { None },
            returned: if returns {
                Some(vector(instruction, instruction.destinations[0], words)?)
            } else {
                None
            },
        })
    };
    if let Some(operation) = operation::find_32(&name) {
        let operands = operands(1, operation.second)?;
        return Ok(Some(atomic::action::<u32, _, LANES>(place, operands, operation.apply)));
    }
    if let Some(operation) = operation::find_64(&name) {
        let operands = operands(2, operation.second)?;
        return Ok(Some(atomic::action::<u64, _, LANES>(place, operands, operation.apply)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
