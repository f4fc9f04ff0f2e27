//! DS_APPEND and DS_CONSUME: a counter in LDS to which the number of active lanes is added.

use crate::isa::{Instruction, sgpr};

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Space};
use crate::machine::step::Action;
use crate::machine::wave::lanes_of;

/// Adds, or subtracts where not `append`. All active lanes get the value before.
pub fn action(instruction: &Instruction, append: bool) -> Result<Action, Box<Fault>> {
    let to = vector(instruction, instruction.destinations[0], 1)?;
    let offset = instruction.modifiers.memory.offset.max(0) as usize;
    Ok(Box::new(move |wave, group| {
        let exec = wave.exec();
        let at = (wave.scalar[usize::from(sgpr::M0)] & 0xffff) as usize + offset;
        if group.is_observed() && exec != 0 {
            let addresses = [at as u64; 64];
            let mask = exec & exec.wrapping_neg();
            let access =
                Access { space: Space::Lds, kind: AccessKind::Atomic, bytes: 4, mask, addresses: &addresses };
            group.observe(wave, &access)?;
        }
        let size = group.lds.len();
        let Some(counter) = group.lds.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else {
            return Err(Fault::address(format!("4 bytes at byte {at} of an LDS of {size} bytes")));
        };
        let (old, count) = (u32::from_le_bytes(*counter), exec.count_ones());
        let new = if append { old.wrapping_add(count) } else { old.wrapping_sub(count) };
        *counter = new.to_le_bytes();
        for lane in lanes_of(exec) {
            wave.vector.set(to, lane, old);
        }
        Ok(())
    }))
}
