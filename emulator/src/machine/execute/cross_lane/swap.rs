//! V_SWAP: two registers change places in each lane.

use crate::isa::{Instruction, sgpr};

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::registers::ROWS;
use crate::machine::step::Action;
use crate::machine::wave::{Wave, lanes_of};

pub fn words(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let (first, second) = registers(instruction)?;
    Ok(Box::new(move |wave, _| {
        exchange(wave, first, second);
        Ok(())
    }))
}

/// Halves of registers: OP_SEL says which.
pub fn halves(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let (first, second) = registers(instruction)?;
    let selected = instruction.modifiers.op_sel;
    let shift = |bit: u32| if selected >> bit & 1 != 0 { 16 } else { 0 };
    let (first_shift, second_shift) = (shift(3), shift(0));
    Ok(Box::new(move |wave, _| {
        for lane in lanes_of(wave.exec()) {
            let a = wave.vector.get(first, lane) >> first_shift & 0xffff;
            let b = wave.vector.get(second, lane) >> second_shift & 0xffff;
            for (register, shift, half) in [(first, first_shift, b), (second, second_shift, a)] {
                let old = wave.vector.get(register, lane);
                wave.vector.set(register, lane, old & !(0xffff << shift) | half << shift);
            }
        }
        Ok(())
    }))
}

/// V_SWAPREL: M0 holds what is added to the registers' numbers, of the source in the lowest bits, of the destination
/// from bit 16 on.
pub fn relative(instruction: &Instruction) -> Result<Action, Box<Fault>> {
    let (first, second) = registers(instruction)?;
    Ok(Box::new(move |wave, _| {
        let m0 = wave.scalar[usize::from(sgpr::M0)] as usize;
        let (first, second) = (first + (m0 >> 16 & 0x3ff), second + (m0 & 0x3ff));
        if first.max(second) >= ROWS / 2 {
            return Err(Fault::instruction(format!("M0 leads to vector register {}", first.max(second))));
        }
        exchange(wave, first, second);
        Ok(())
    }))
}

fn registers(instruction: &Instruction) -> Result<(usize, usize), Box<Fault>> {
    Ok((
        vector(instruction, instruction.destinations[0], 1)?,
        vector(instruction, instruction.sources[0], 1)?,
    ))
}

fn exchange(wave: &mut Wave, first: usize, second: usize) {
    for lane in lanes_of(wave.exec()) {
        let (a, b) = (wave.vector.get(first, lane), wave.vector.get(second, lane));
        wave.vector.set(first, lane, b);
        wave.vector.set(second, lane, a);
    }
}
