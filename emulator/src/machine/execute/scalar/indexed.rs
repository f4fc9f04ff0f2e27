//! Registers by an index in M0.

use crate::isa::{Instruction, Source, sgpr};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::Wave;

/// `None` for other instructions.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Option<Action>, Box<Fault>> {
    let (source, destination) = (instruction.sources[0].source, instruction.destinations[0].source);
    let mode = instruction.modifiers.immediate as u32;
    Ok(Some(match instruction.name {
        "s_movrels_b32" => Box::new(move |wave, _| {
            let value = wave.read32(shifted(wave, source)?)?;
            set(wave, destination, u64::from(value), false)
        }),
        "s_movrels_b64" => Box::new(move |wave, _| {
            let value = wave.read64(shifted(wave, source)?)?;
            set(wave, destination, value, true)
        }),
        "s_movreld_b32" => Box::new(move |wave, _| {
            let value = wave.read32(source)?;
            let destination = shifted(wave, destination)?;
            set(wave, destination, u64::from(value), false)
        }),
        "s_movreld_b64" => Box::new(move |wave, _| {
            let value = wave.read64(source)?;
            let destination = shifted(wave, destination)?;
            set(wave, destination, value, true)
        }),
        "s_set_gpr_idx_on" => {
            let mode = match instruction.sources[1].source {
                Source::Integer(mode) => mode as u32,
                _ => mode,
            } & 15;
            Box::new(move |wave, _| {
                let index = wave.read32(source)? & 0xff;
                wave.gpr_index_mode = mode;
                wave.set_scalar(sgpr::M0, index | mode << 12);
                Ok(())
            })
        }
        "s_set_gpr_idx_off" => Box::new(|wave, _| {
            wave.gpr_index_mode = 0;
            Ok(())
        }),
        "s_set_gpr_idx_mode" => Box::new(move |wave, _| {
            wave.gpr_index_mode = mode & 15;
            Ok(())
        }),
        "s_set_gpr_idx_idx" => Box::new(move |wave, _| {
            let index = wave.read32(source)? & 0xff;
            let rest = wave.scalar[usize::from(sgpr::M0)] & !0xff;
            wave.set_scalar(sgpr::M0, rest | index);
            Ok(())
        }),
        _ => return Ok(None),
    }))
}

/// The register that is as far behind another as M0 says.
fn shifted(wave: &Wave, source: Source) -> Result<Source, Box<Fault>> {
    let index = wave.scalar[usize::from(sgpr::M0)];
    let Source::Scalar(register) = source else {
        return Err(Fault::instruction("an index into what is no scalar register"));
    };
    match u32::from(register).checked_add(index).and_then(|sum| u8::try_from(sum).ok()) {
        Some(register) if register < 106 => Ok(Source::Scalar(register)),
        _ => Err(Fault::instruction(format!("M0 = {index} behind s{register} is no scalar register"))),
    }
}

fn set(wave: &mut Wave, destination: Source, value: u64, wide: bool) -> Result<(), Box<Fault>> {
    match destination {
        Source::Scalar(register) if wide => wave.set_scalar64(register, value),
        Source::Scalar(register) => wave.set_scalar(register, value as u32),
        _ => return Err(Fault::instruction("a destination that is no scalar register")),
    }
    Ok(())
}
