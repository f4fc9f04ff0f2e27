//! Operations with an immediate of 16 bits (SOPK).

use crate::isa::{Encoding, Instruction, Source, sgpr};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

type Compare = fn(i64, i64) -> bool;

/// Comparisons of a register and an immediate: what is behind `s_cmpk_`, and whether the immediate has a sign.
const COMPARISONS: [(&str, Compare); 6] = [
    ("eq", |a, b| a == b),
    ("lg", |a, b| a != b),
    ("gt", |a, b| a > b),
    ("ge", |a, b| a >= b),
    ("lt", |a, b| a < b),
    ("le", |a, b| a <= b),
];

/// `None` for other instructions.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Option<Action>, Box<Fault>> {
    if instruction.encoding != Encoding::Sopk {
        return Ok(None);
    }
    let immediate = instruction.modifiers.immediate as i16 as i32;
    let Some(register) = register(instruction) else { return Ok(None) };
    if let Some(comparison) = instruction.name.strip_prefix("s_cmpk_") {
        return Ok(compare(comparison, register, immediate));
    }
    Ok(Some(match instruction.name {
        "s_movk_i32" => Box::new(move |wave, _| {
            wave.set_scalar(register, immediate as u32);
            Ok(())
        }),
        "s_cmovk_i32" => Box::new(move |wave, _| {
            if wave.scc {
                wave.set_scalar(register, immediate as u32);
            }
            Ok(())
        }),
        "s_addk_i32" | "s_addk_co_i32" => Box::new(move |wave, _| {
            let old = wave.read32(Source::Scalar(register))? as i32;
            let (sum, overflows) = old.overflowing_add(immediate);
            wave.set_scalar(register, sum as u32);
            wave.scc = overflows;
            Ok(())
        }),
        "s_mulk_i32" => Box::new(move |wave, _| {
            let old = wave.read32(Source::Scalar(register))?;
            wave.set_scalar(register, old.wrapping_mul(immediate as u32));
            Ok(())
        }),
        _ => return Ok(None),
    }))
}

fn compare(comparison: &str, register: u8, immediate: i32) -> Option<Action> {
    let (operation, ty) = comparison.split_once('_')?;
    let &(_, compare) = COMPARISONS.iter().find(|(name, _)| *name == operation)?;
    let signed = ty == "i32";
    let other = if signed { i64::from(immediate) } else { i64::from(immediate as u16) };
    Some(Box::new(move |wave, _| {
        let value = wave.read32(Source::Scalar(register))?;
        wave.scc = compare(if signed { i64::from(value as i32) } else { i64::from(value) }, other);
        Ok(())
    }))
}

/// The register, which some of them only read.
fn register(instruction: &Instruction) -> Option<u8> {
    match (instruction.destinations[0].source, instruction.sources[0].source) {
        (Source::Scalar(register), _) | (Source::None, Source::Scalar(register)) => Some(register),
        (Source::None, Source::None) => Some(sgpr::NULL),
        _ => None,
    }
}
