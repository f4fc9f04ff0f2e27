//! DS instructions that exchange values between lanes and touch no memory.

use crate::isa::{Generation, Instruction};

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::{Wave, lanes_of};

/// How many lanes exchange values among themselves: on GFX10 and later 32 also where a wave has 64.
fn reach(setting: Setting) -> usize {
    if setting.target.generation < Generation::Gfx10 { setting.lanes } else { 32 }
}

/// Each lane gives its value to the lane that it names, in units of four bytes.
pub fn permute<const LANES: usize>(
    instruction: &Instruction,
    setting: Setting,
) -> Result<Action, Box<Fault>> {
    let (address, data, to) = registers(instruction)?;
    let (offset, reach) = (instruction.modifiers.memory.offset as u32, reach(setting));
    Ok(Box::new(move |wave, _| {
        let rows = wave.vector.rows::<LANES>();
        let mut values = [0; LANES];
        for lane in lanes_of(wave.exec()) {
            let named = (rows[address][lane].wrapping_add(offset) / 4) as usize;
            values[lane / reach * reach + named % reach] = rows[data][lane];
        }
        write(wave, to, &values);
        Ok(())
    }))
}

/// Each lane takes the value of the lane that it names. One that is not active gives 0, unless `inactive`.
pub fn bpermute<const LANES: usize>(
    instruction: &Instruction,
    setting: Setting,
    inactive: bool,
) -> Result<Action, Box<Fault>> {
    let (address, data, to) = registers(instruction)?;
    let (offset, reach) = (instruction.modifiers.memory.offset as u32, reach(setting));
    Ok(Box::new(move |wave, _| {
        let rows = wave.vector.rows::<LANES>();
        let givers = if inactive { u64::MAX } else { wave.exec() };
        let values: [u32; LANES] = std::array::from_fn(|lane| {
            let named = (rows[address][lane].wrapping_add(offset) / 4) as usize;
            let from = lane / reach * reach + named % reach;
            if givers >> from & 1 == 0 { 0 } else { rows[data][from] }
        });
        write(wave, to, &values);
        Ok(())
    }))
}

/// Lanes take values by a pattern in the offset.
pub fn swizzle<const LANES: usize>(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let data = vector(instruction, instruction.sources[0], 1);
    let data = data.or_else(|fault| vector(instruction, instruction.sources[1], 1).map_err(|_| fault))?;
    let to = vector(instruction, instruction.destinations[0], 1)?;
    let pattern = instruction.modifiers.memory.offset as u32 & 0xffff;
    if pattern >> 12 >= 0xe {
        return Err(Fault::instruction(format!("ds_swizzle_b32 by {pattern:#x}, a pattern of the FFT mode")));
    }
    let sources: [usize; LANES] = std::array::from_fn(|lane| swizzled(pattern, lane));
    Ok(Box::new(move |wave, _| {
        let (row, exec) = (&wave.vector.rows::<LANES>()[data], wave.exec());
        let values: [u32; LANES] = std::array::from_fn(|lane| {
            let from = sources[lane];
            if exec >> from & 1 == 0 { 0 } else { row[from] }
        });
        write(wave, to, &values);
        Ok(())
    }))
}

/// The lane that gives its value to `lane` (RDNA3 ISA, "DS_SWIZZLE_B32").
fn swizzled(pattern: u32, lane: usize) -> usize {
    let (half, within) = (lane & !31, (lane & 31) as u32);
    let from = if pattern >> 12 == 0xc {
        // Rotation: the bits of the mask stay.
        let (amount, mask) = (pattern >> 5 & 31, pattern & 31);
        let left = pattern >> 10 & 1 == 0;
        let rotated = if left { within + amount } else { within + 32 - amount } & 31;
        within & mask | rotated & !mask
    } else if pattern & 0x8000 != 0 {
        within & !3 | pattern >> (2 * (within & 3)) & 3
    } else {
        (within & pattern & 31 | pattern >> 5 & 31) ^ pattern >> 10 & 31
    };
    half | (from & 31) as usize
}

fn registers(instruction: &Instruction) -> Result<(usize, usize, usize), Box<Fault>> {
    let [address, data, ..] = instruction.sources;
    Ok((
        vector(instruction, address, 1)?,
        vector(instruction, data, 1)?,
        vector(instruction, instruction.destinations[0], 1)?,
    ))
}

fn write<const LANES: usize>(wave: &mut Wave, to: usize, values: &[u32; LANES]) {
    for lane in lanes_of(wave.exec()) {
        wave.vector.set(to, lane, values[lane]);
    }
}
