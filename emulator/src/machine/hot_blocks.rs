//! Blocks that were interpreted often: the machine code of the host that they become runs in place of the interpreter.

use super::fault::Fault;
use super::group::Group;
use super::launch::Dispatch;
use super::wave::Wave;

/// Whether this processor and this system can run translated code.
#[cfg(not(all(target_arch = "x86_64", unix)))]
pub fn is_possible() -> bool {
    false
}

#[cfg(not(all(target_arch = "x86_64", unix)))]
pub fn run(_: &mut Wave, _: &mut Group<'_>, _: &Dispatch<'_>) -> Result<bool, Box<Fault>> {
    Ok(false)
}

#[cfg(all(target_arch = "x86_64", unix))]
pub use super::jit::is_possible;

/// How many blocks of a program were translated.
#[cfg(test)]
pub fn translated_blocks(program: &super::Program) -> usize {
    #[cfg(all(target_arch = "x86_64", unix))]
    return program.translations.count();
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    0
}

/// Runs a wave's translated code; whether there was any. Blocks that are interpreted often are translated.
#[cfg(all(target_arch = "x86_64", unix))]
#[inline]
pub fn run(wave: &mut Wave, group: &mut Group<'_>, dispatch: &Dispatch<'_>) -> Result<bool, Box<Fault>> {
    use super::jit::Why;
    let program = dispatch.program;
    // GFX9 may say that instructions mean other registers.
    if wave.gpr_index_mode != 0 {
        return Ok(false);
    }
    let code = match std::mem::take(&mut wave.resume) {
        0 => program.translations.find(wave.pc, wave.lanes),
        found => Some(found),
    };
    let Some(code) = code else {
        count(wave, dispatch)?;
        return Ok(false);
    };
    let limit = dispatch.settings.most_instructions;
    // SAFETY: the code was found in the program that the dispatch runs, for waves of as many lanes: here, or by translated
    // code when this wave came to a barrier; a new workgroup forgets it.
    if let Err(stopped) = unsafe { super::jit::run(wave, group, limit, code) } {
        let fault = match stopped.why {
            Why::Fault(fault) => fault,
            Why::Panic(panic) => std::panic::resume_unwind(panic),
        };
        let instruction = &program.block(stopped.block, wave.lanes)?.instructions[stopped.step];
        return Err(super::schedule::place(fault, instruction, wave, group));
    }
    if wave.executed > limit {
        return Err(super::schedule::too_many(wave, group, limit));
    }
    Ok(true)
}

/// Counts that a block is interpreted, and translates it when it was often enough.
#[cfg(all(target_arch = "x86_64", unix))]
fn count(wave: &Wave, dispatch: &Dispatch<'_>) -> Result<(), Box<Fault>> {
    use std::sync::atomic::Ordering;
    let block = dispatch.program.block(wave.pc, wave.lanes)?;
    let runs = block.runs.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    let often = dispatch.settings.translate;
    // What could not be translated is tried again, less and less often.
    if runs.is_multiple_of(often) && (runs / often).is_power_of_two() {
        dispatch.program.translations.translate(dispatch.program, wave.pc, wave.lanes);
    }
    Ok(())
}
