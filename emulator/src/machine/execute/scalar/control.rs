//! Branches, calls, barriers, the end.

use crate::isa::{Instruction, Source, sgpr};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::{State, Wave};

/// `None` for other instructions.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Option<Action>, Box<Fault>> {
    let name = instruction.name;
    if let Some(condition) = condition(name) {
        return Ok(Some(branch(instruction, condition)));
    }
    let behind = instruction.offset + u64::from(instruction.size);
    let base = setting.base;
    let (source, destination) = (instruction.sources[0].source, register(instruction));
    Ok(Some(match name {
        "s_endpgm" | "s_endpgm_saved" => Box::new(|wave, _| {
            wave.state = State::Ended;
            Ok(())
        }),
        "s_barrier" | "s_barrier_wait" => Box::new(|wave, _| {
            wave.state = State::AtBarrier;
            Ok(())
        }),
        "s_trap" => Box::new(|_, _| {
            Err(Fault::instruction("the kernel trapped: __builtin_trap, abort or a failed assertion"))
        }),
        "s_getpc_b64" => Box::new(move |wave, _| {
            wave.set_scalar64(destination, base + behind);
            Ok(())
        }),
        "s_setpc_b64" => Box::new(move |wave, _| jump(wave, source, base)),
        "s_swappc_b64" => Box::new(move |wave, _| {
            let target = wave.read64(source)?;
            wave.set_scalar64(destination, base + behind);
            wave.pc = target.wrapping_sub(base);
            Ok(())
        }),
        "s_call_b64" => {
            let target = behind.wrapping_add_signed(4 * i64::from(instruction.modifiers.immediate));
            Box::new(move |wave, _| {
                wave.set_scalar64(destination, base + behind);
                wave.pc = target;
                Ok(())
            })
        }
        _ => return Ok(None),
    }))
}

fn jump(wave: &mut Wave, source: Source, base: u64) -> Result<(), Box<Fault>> {
    wave.pc = wave.read64(source)?.wrapping_sub(base);
    Ok(())
}

type Condition = fn(&Wave) -> bool;

fn condition(name: &str) -> Option<Condition> {
    Some(match name {
        "s_branch" => |_| true,
        "s_cbranch_scc0" => |wave| !wave.scc,
        "s_cbranch_scc1" => |wave| wave.scc,
        "s_cbranch_vccz" => |wave| wave.mask(sgpr::VCC) == 0,
        "s_cbranch_vccnz" => |wave| wave.mask(sgpr::VCC) != 0,
        "s_cbranch_execz" => |wave| wave.exec() == 0,
        "s_cbranch_execnz" => |wave| wave.exec() != 0,
        // Nobody watches the kernel.
        name if name.starts_with("s_cbranch_cdbg") => |_| false,
        _ => return None,
    })
}

fn branch(instruction: &Instruction, condition: Condition) -> Action {
    let behind = instruction.offset + u64::from(instruction.size);
    let target = behind.wrapping_add_signed(4 * i64::from(instruction.modifiers.immediate));
    Box::new(move |wave, _| {
        if condition(wave) {
            wave.pc = target;
        }
        Ok(())
    })
}

/// The scalar register that is written.
fn register(instruction: &Instruction) -> u8 {
    match instruction.destinations[0].source {
        Source::Scalar(register) => register,
        _ => sgpr::NULL,
    }
}
