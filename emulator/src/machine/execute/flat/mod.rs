//! Memory by way of vector addresses: FLAT, GLOBAL, SCRATCH and buffers.

mod address;
mod buffer;

use crate::isa::{Encoding, Instruction, Operand};

use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

use super::lanes::atomic::{self, Operands};
use super::lanes::copy::Copying;
use super::lanes::element::{with_load, with_store};
use super::lanes::transfer::{Loading, Storing};
use super::lanes::{Place, operation};
use super::nothing::is_for_caches;
use super::operands::vector;
use super::unsupported;
use address::Address;
use buffer::Buffer;

/// What an instruction of these encodings does.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    if is_for_caches(instruction.name) {
        return Ok(Box::new(|_, _| Ok(())));
    }
    if setting.lanes == 64 { build::<64>(instruction, setting) } else { build::<32>(instruction, setting) }
}

fn build<const LANES: usize>(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let Some((_, kind)) = instruction.name.split_once('_') else {
        return Err(unsupported(instruction));
    };
    let by_thread = kind.contains("_addtid");
    let kind = kind.replacen("_addtid", "", 1);
    if instruction.encoding == Encoding::Buffer {
        let place = Buffer::new(instruction, setting)?;
        transfer::<_, LANES>(instruction, &kind, place, instruction.sources[3])
    } else {
        let place = Address::new(instruction, by_thread)?;
        transfer::<_, LANES>(instruction, &kind, place, instruction.sources[1])
    }
}

/// `kind` is the name without the encoding; `data` is what is stored.
fn transfer<P: Place, const LANES: usize>(
    instruction: &Instruction,
    kind: &str,
    place: P,
    data: Operand,
) -> Result<Action, Box<Fault>> {
    let action = if let Some(element) = kind.strip_prefix("load_") {
        load::<P, LANES>(instruction, element, place)?
    } else if let Some(element) = kind.strip_prefix("store_") {
        with_store(element, Storing::<P, LANES> { instruction, place, from: data }).transpose()?
    } else if let Some(name) = kind.strip_prefix("atomic_") {
        atomic_action::<P, LANES>(instruction, name, place, data)?
    } else {
        None
    };
    action.ok_or_else(|| unsupported(instruction))
}

fn load<P: Place, const LANES: usize>(
    instruction: &Instruction,
    element: &str,
    place: P,
) -> Result<Option<Action>, Box<Fault>> {
    let memory = &instruction.modifiers.memory;
    let (to_lds, element) = match element.strip_prefix("lds_") {
        Some(element) => (true, element),
        None => (memory.lds, element),
    };
    if to_lds {
        let offset = memory.offset.max(0) as u64;
        return Ok(with_load(newer(element), Copying::<P, LANES> { place, offset }));
    }
    let to = instruction.destinations[0];
    with_load(element, Loading::<P, LANES> { instruction, place, to }).transpose()
}

/// The name of an element in GFX11's and GFX12's assembler.
fn newer(element: &str) -> &str {
    match element {
        "ubyte" => "u8",
        "sbyte" => "i8",
        "ushort" => "u16",
        "sshort" => "i16",
        "dword" => "b32",
        "dwordx3" => "b96",
        "dwordx4" => "b128",
        other => other,
    }
}

fn atomic_action<P: Place, const LANES: usize>(
    instruction: &Instruction,
    name: &str,
    place: P,
    data: Operand,
) -> Result<Option<Action>, Box<Fault>> {
    // The second operand follows the data.
    let operands = |words: usize, second: bool| -> Result<Operands, Box<Fault>> {
        let first = vector(instruction, data, if second { 2 * words } else { words })?;
        let returned = match instruction.modifiers.memory.returns {
            true => Some(vector(instruction, instruction.destinations[0], words)?),
            false => None,
        };
        Ok(Operands { data: first, second: second.then_some(first + words), returned })
    };
    if let Some(operation) = operation::find_32(name) {
        let operands = operands(1, operation.second)?;
        return Ok(Some(atomic::action::<u32, P, LANES>(place, operands, operation.apply)));
    }
    if let Some(operation) = operation::find_64(name) {
        let operands = operands(2, operation.second)?;
        return Ok(Some(atomic::action::<u64, P, LANES>(place, operands, operation.apply)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
