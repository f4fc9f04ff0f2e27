//! Recorded times of a wave's instructions (thread traces of real cards) beside those of the model.

use crate::isa::{Instruction, Target, decode};
use crate::machine::count::{Class, Clock, Prepared, Timing};

/// An instruction that a trace says was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// In bytes from the beginning of the code.
    pub offset: u64,
    /// In clocks.
    pub time: u64,
}

/// An instruction's time after the one before, recorded and by the model.
#[derive(Clone, Debug)]
pub struct Step {
    pub instruction: Instruction,
    pub recorded: u64,
    pub model: u64,
    /// The wave waited for memory or for instructions, which the model cannot know.
    pub outside: bool,
}

/// Bytes of instructions behind a branch that traces leave out (`s_delay_alu`).
const LEFT_OUT: u64 = 8;

/// A longer gap is a miss of the instruction cache.
const LONG: u64 = 100;

/// Runs the model over the instructions of a wave. After each wait for memory it goes on from the recorded time.
pub fn replay(target: Target, lanes: u32, code: &[u8], wave: &[Issued]) -> Result<Vec<Step>, String> {
    let timing = Timing::of(target);
    let mut clock = Clock::new();
    let mut steps: Vec<Step> = Vec::with_capacity(wave.len());
    let mut recorded = wave.first().map_or(0, |first| first.time);
    clock.now = recorded;
    let mut model = recorded;
    let (mut end, mut branched) = (0, false);
    for issued in wave {
        let instruction =
            decode(target, lanes == 32, code, issued.offset).map_err(|error| error.to_string())?;
        let prepared = Prepared::new(&instruction, lanes, target.generation, &timing);
        if branched && !(end..=end + LEFT_OUT).contains(&issued.offset) {
            clock.branch(&timing);
        }
        let for_loads = prepared.waits_for_loads() && clock.loads_under_way() > 0;
        let at = clock.issue(&prepared, latency(&instruction, prepared.class, &timing), &timing);
        let gap = issued.time.saturating_sub(recorded);
        let outside = for_loads || gap > LONG;
        steps.push(Step { instruction, recorded: gap, model: at - model, outside });
        if prepared.class == Class::Barrier {
            clock.now += u64::from(timing.barrier - timing.issue);
        }
        if outside {
            clock.now = clock.now - at + issued.time;
        }
        model = if outside { issued.time } else { at };
        recorded = issued.time;
        (end, branched) = (prepared.end, prepared.class == Class::Branch);
    }
    Ok(steps)
}

fn latency(instruction: &Instruction, class: Class, timing: &Timing) -> u32 {
    match class {
        _ if class.is_lds() => {
            let wide = [("b128", 4), ("b96", 4), ("b64", 2)];
            let passes = wide.iter().find(|(end, _)| instruction.name.ends_with(end)).map_or(1, |row| row.1);
            timing.lds + passes - 1
        }
        Class::ScalarMemory => timing.scalar_load_far,
        _ => timing.load,
    }
}
