//! V_PERMLANE: lanes take values of lanes of their row, of the other row, or of the other half of the wave.

use crate::isa::Instruction;

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::{Wave, lanes_of};

/// Lanes of a row.
const ROW: usize = 16;

/// What a lane gets whose source is not active.
#[derive(Clone, Copy)]
struct Options {
    /// FI: its value all the same.
    fetch_inactive: bool,
    /// BOUND_CTRL: 0. Else the register stays as it is.
    zero: bool,
}

impl Options {
    /// They are encoded as the halves of the first two sources.
    fn new(instruction: &Instruction) -> Options {
        let bits = instruction.modifiers.op_sel;
        Options { fetch_inactive: bits & 1 != 0, zero: bits & 2 != 0 }
    }
}

/// Which lane of a row each of its lanes takes: four bits for each in two scalars. `flip`: 16 for the other row.
pub fn by_scalars(instruction: &Instruction, flip: usize) -> Result<Action, Box<Fault>> {
    let from = vector(instruction, instruction.sources[0], 1)?;
    let to = vector(instruction, instruction.destinations[0], 1)?;
    let [_, low, high, _] = instruction.sources.map(|operand| operand.source);
    let options = Options::new(instruction);
    Ok(Box::new(move |wave, _| {
        let select = u64::from(wave.read32(low)?) | u64::from(wave.read32(high)?) << 32;
        let source = |lane: usize| (lane & !(ROW - 1) | (select >> (4 * (lane % ROW)) & 15) as usize) ^ flip;
        take(wave, from, to, options, source);
        Ok(())
    }))
}

/// The same with a lane's own choice in a vector register.
pub fn by_vector(instruction: &Instruction, flip: usize) -> Result<Action, Box<Fault>> {
    let from = vector(instruction, instruction.sources[0], 1)?;
    let select = vector(instruction, instruction.sources[1], 1)?;
    let to = vector(instruction, instruction.destinations[0], 1)?;
    let options = Options::new(instruction);
    Ok(Box::new(move |wave, _| {
        let chosen = wave.vector.row(select).to_vec();
        let source = |lane: usize| (lane & !(ROW - 1) | (chosen[lane] & 15) as usize) ^ flip;
        take(wave, from, to, options, source);
        Ok(())
    }))
}

fn take(wave: &mut Wave, from: usize, to: usize, options: Options, source: impl Fn(usize) -> usize) {
    let exec = wave.exec();
    let values = wave.vector.row(from).to_vec();
    for lane in lanes_of(exec) {
        let source = source(lane);
        if options.fetch_inactive || exec >> source & 1 != 0 {
            wave.vector.set(to, lane, values[source]);
        } else if options.zero {
            wave.vector.set(to, lane, 0);
        }
    }
}

/// V_PERMLANE64: the halves of a wave exchange values; lanes that are not active give theirs as well. A wave of 32 lanes
/// has one half, which stays as it is.
pub fn halves(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    let from = vector(instruction, instruction.sources[0], 1)?;
    let to = vector(instruction, instruction.destinations[0], 1)?;
    if setting.lanes == 32 {
        return Ok(Box::new(|_, _| Ok(())));
    }
    let options = Options { fetch_inactive: true, zero: false };
    Ok(Box::new(move |wave, _| {
        take(wave, from, to, options, |lane| lane ^ 32);
        Ok(())
    }))
}

/// GFX950: the odd groups of `group` lanes of the destination change places with the even ones of the source.
pub fn swap(instruction: &Instruction, group: usize) -> Result<Action, Box<Fault>> {
    let source = vector(instruction, instruction.sources[0], 1)?;
    let destination = vector(instruction, instruction.destinations[0], 1)?;
    Ok(Box::new(move |wave, _| {
        let exec = wave.exec();
        for lane in (0..wave.lanes).filter(|lane| lane & group != 0) {
            let other = lane - group;
            let (upper, lower) = (wave.vector.get(destination, lane), wave.vector.get(source, other));
            if exec >> lane & 1 != 0 {
                wave.vector.set(destination, lane, lower);
            }
            if exec >> other & 1 != 0 {
                wave.vector.set(source, other, upper);
            }
        }
        Ok(())
    }))
}
