//! Instructions that translated code calls functions of its own for: loads and stores of whole words with the usual ways of
//! addressing, all elements in one allocation or in LDS. What is not usual goes the way of the interpreter.

mod global;
mod lds;
mod transfer;

use crate::isa::{Encoding, Instruction, Source, sgpr};
use crate::machine::execute::operands;

use super::call::Function;
use global::{load_scalars, transfer_global};
use lds::{load_lds, store_lds};

/// Which memory, and in which direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    LoadScalars,
    LoadLds,
    StoreLds,
    LoadGlobal,
    StoreGlobal,
}

/// Where the elements of an instruction lie, and its registers.
#[derive(Clone, Copy, Default)]
pub struct Access {
    pub kind: Kind,
    /// A register of offsets; where there is no scalar register the first of two, of addresses.
    pub vector: usize,
    pub scalar: Option<u8>,
    pub offset: i64,
    /// The second, of instructions with two addresses in LDS.
    pub second_offset: i64,
    /// The first register that is loaded or stored, and that of the second address.
    pub register: usize,
    pub second_register: Option<usize>,
    /// Of an element.
    pub words: usize,
}

impl Access {
    /// The larger offset of both addresses in LDS.
    pub fn furthest(&self) -> i64 {
        self.second_register.map_or(self.offset, |_| self.offset.max(self.second_offset))
    }
}

/// The function for an instruction; `None` where the interpreter's is as good.
pub fn find(instruction: &Instruction, lanes: usize) -> Option<(Function, Access)> {
    match instruction.encoding {
        Encoding::Global | Encoding::Flat => global(instruction, lanes),
        Encoding::Ds => lds(instruction, lanes),
        Encoding::Smem => scalar(instruction),
        _ => None,
    }
}

/// Functions for 32 and for 64 lanes.
macro_rules! sizes {
    ($function:ident, $lanes:expr, $words:expr $(, $stores:literal)?) => {
        match ($lanes, $words) {
            (32, 1) => $function::<32, 1 $(, $stores)?> as Function,
            (32, 2) => $function::<32, 2 $(, $stores)?> as Function,
            (32, 3) => $function::<32, 3 $(, $stores)?> as Function,
            (32, _) => $function::<32, 4 $(, $stores)?> as Function,
            (_, 1) => $function::<64, 1 $(, $stores)?> as Function,
            (_, 2) => $function::<64, 2 $(, $stores)?> as Function,
            (_, 3) => $function::<64, 3 $(, $stores)?> as Function,
            (_, _) => $function::<64, 4 $(, $stores)?> as Function,
        }
    };
}

/// Whether the rest of a name is of a load, else of a store, and its element.
fn direction(kind: &str) -> Option<(bool, &str)> {
    match kind.strip_prefix("load_") {
        Some(element) => Some((true, element)),
        None => Some((false, kind.strip_prefix("store_")?)),
    }
}

fn words(element: &str) -> Option<usize> {
    Some(match element {
        "b32" => 1,
        "b64" => 2,
        "b96" => 3,
        "b128" => 4,
        _ => return None,
    })
}

fn global(instruction: &Instruction, lanes: usize) -> Option<(Function, Access)> {
    let (_, kind) = instruction.name.split_once('_')?;
    let (loads, element) = direction(kind)?;
    let words = words(element)?;
    if instruction.modifiers.memory.lds {
        return None;
    }
    let data = if loads { instruction.destinations[0] } else { instruction.sources[1] };
    let [vector, _, base, _] = instruction.sources;
    let scalar = match base.source {
        Source::None | Source::Scalar(sgpr::NULL) => None,
        Source::Scalar(register) => Some(register),
        _ => return None,
    };
    let access = Access {
        kind: if loads { Kind::LoadGlobal } else { Kind::StoreGlobal },
        vector: operands::vector(instruction, vector, if scalar.is_none() { 2 } else { 1 }).ok()?,
        scalar,
        offset: i64::from(instruction.modifiers.memory.offset),
        register: operands::vector(instruction, data, words).ok()?,
        words,
        ..Access::default()
    };
    let function = match loads {
        true => sizes!(transfer_global, lanes, words, false),
        false => sizes!(transfer_global, lanes, words, true),
    };
    Some((function, access))
}

fn lds(instruction: &Instruction, lanes: usize) -> Option<(Function, Access)> {
    let memory = &instruction.modifiers.memory;
    let kind = instruction.name.strip_prefix("ds_")?;
    if memory.gds {
        return None;
    }
    let far = kind.contains("_stride64");
    let kind = kind.replacen("_stride64", "", 1);
    let (loads, element) = direction(&kind)?;
    let two = element.strip_prefix("2addr_");
    let words = words(two.unwrap_or(element))?;
    let [address, data, other, _] = instruction.sources;
    let mut access = Access {
        kind: if loads { Kind::LoadLds } else { Kind::StoreLds },
        vector: operands::vector(instruction, address, 1).ok()?,
        offset: i64::from(memory.offset.max(0)),
        words,
        ..Access::default()
    };
    let count = if two.is_some() { 2 * words } else { words };
    if loads {
        access.register = operands::vector(instruction, instruction.destinations[0], count).ok()?;
        access.second_register = two.map(|_| access.register + words);
    } else {
        access.register = operands::vector(instruction, data, words).ok()?;
    }
    if two.is_some() {
        let unit = 4 * words as i64 * if far { 64 } else { 1 };
        access.offset = i64::from(memory.offset & 0xff) * unit;
        access.second_offset = i64::from(memory.offset1) * unit;
        if !loads {
            access.second_register = Some(operands::vector(instruction, other, words).ok()?);
        }
    }
    let function = match (loads, lanes) {
        (true, 64) => load_lds::<64> as Function,
        (true, _) => load_lds::<32> as Function,
        (false, _) => sizes!(store_lds, lanes, words),
    };
    Some((function, access))
}

fn scalar(instruction: &Instruction) -> Option<(Function, Access)> {
    let element = instruction.name.strip_prefix("s_load_")?;
    let (bytes, function) = match element {
        "b32" => (4, load_scalars::<4> as Function),
        "b64" => (8, load_scalars::<8> as Function),
        "b128" => (16, load_scalars::<16> as Function),
        "b256" => (32, load_scalars::<32> as Function),
        "b512" => (64, load_scalars::<64> as Function),
        _ => return None,
    };
    let [base, offset, ..] = instruction.sources;
    let more = match offset.source {
        Source::None | Source::Scalar(sgpr::NULL) => 0,
        Source::Integer(value) => i64::from(value as u32),
        Source::Literal(value) => i64::from(value),
        _ => return None,
    };
    let access = Access {
        scalar: Some(operands::scalar(instruction, base, 2).ok()?),
        offset: i64::from(instruction.modifiers.memory.offset) + more,
        register: usize::from(operands::scalar(instruction, instruction.destinations[0], bytes / 4).ok()?),
        words: bytes / 4,
        ..Access::default()
    };
    (access.register != usize::from(sgpr::NULL)).then_some((function, access))
}
