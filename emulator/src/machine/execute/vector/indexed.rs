//! GFX9's indexing of vector registers: V_MOV_B32 between S_SET_GPR_IDX_ON and S_SET_GPR_IDX_OFF.

use crate::isa::{Encoding, Generation, Instruction, Source, sgpr};
use crate::machine::fault::Fault;
use crate::machine::registers::ROWS;
use crate::machine::step::{Action, Setting};

use super::Operation;
use super::RESULT;

/// Bits of the mode: the first source, and the destination.
const SOURCE: u32 = 1;
const DESTINATION: u32 = 8;

/// `None` for other instructions and targets.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Option<Action>, Box<Fault>> {
    let plain = instruction.modifiers.dpp.is_none() && instruction.modifiers.sdwa.is_none();
    if instruction.name != "v_mov_b32"
        || setting.target.generation > Generation::Gfx940
        || !plain
        || instruction.encoding != Encoding::Vop1
    {
        return Ok(None);
    }
    let operation = Operation::new(instruction, setting)?;
    let (Source::Vector(to), from) = (instruction.destinations[0].source, instruction.sources[0].source)
    else {
        return Ok(None);
    };
    Ok(Some(Box::new(move |wave, _| {
        if wave.gpr_index_mode == 0 {
            if let Some(written) = operation.compute(wave, RESULT)? {
                operation.write(wave, RESULT, written);
            }
            return Ok(());
        }
        let index = (wave.scalar[usize::from(sgpr::M0)] & 0xff) as usize;
        let shift = |register: u16, bit: u32| {
            usize::from(register) + if wave.gpr_index_mode & bit != 0 { index } else { 0 }
        };
        let to = shift(to, DESTINATION);
        let row: Vec<u32> = match from {
            Source::Vector(from) if shift(from, SOURCE) < ROWS => {
                wave.vector.row(shift(from, SOURCE)).to_vec()
            }
            Source::Vector(from) => return Err(out_of_range(shift(from, SOURCE))),
            other => vec![wave.read32(other)?; wave.lanes],
        };
        if to >= ROWS {
            return Err(out_of_range(to));
        }
        let exec = wave.exec();
        for (lane, value) in row.into_iter().enumerate() {
            if exec >> lane & 1 != 0 {
                wave.vector.set(to, lane, value);
            }
        }
        Ok(())
    })))
}

fn out_of_range(register: usize) -> Box<Fault> {
    Fault::instruction(format!("M0 indexes vector register {register}, and there are {ROWS}"))
}
