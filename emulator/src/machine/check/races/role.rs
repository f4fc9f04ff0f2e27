//! What an instruction means for the order of accesses.

use crate::isa::{Encoding, Generation, Instruction, Source};
use crate::machine::check::counters::{Allowed, allowed};
use crate::machine::check::data::Data;

/// What an instruction means.
pub enum Role {
    Other,
    Wait(Allowed),
    /// Caches are made invalid.
    Invalidate,
    Memory {
        /// Where stores take their data from; DS has two of them.
        data: [Option<Data>; 2],
        /// It passes the caches that workgroups do not share, as atomic loads and stores do.
        coherent: bool,
    },
}

const INVALIDATE: &[&str] =
    &["buffer_gl0_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_inv", "buffer_invl2", "global_inv"];

impl Role {
    pub fn new(instruction: &Instruction, generation: Generation) -> Role {
        if let Some(allowed) = allowed(instruction, generation) {
            return Role::Wait(allowed);
        }
        if INVALIDATE.contains(&instruction.name) {
            return Role::Invalidate;
        }
        match instruction.encoding {
            Encoding::Ds | Encoding::Buffer | Encoding::Flat | Encoding::Global | Encoding::Scratch => {}
            Encoding::Smem => return Role::Memory { data: [None; 2], coherent: false },
            _ => return Role::Other,
        }
        let data = Data::of(instruction);
        Role::Memory { data, coherent: is_coherent(instruction, generation) }
    }
}

/// GLC of loads; SC1 of GFX940; a scope of the device or more on GFX12. Stores have no such bit before GFX940.
fn is_coherent(instruction: &Instruction, generation: Generation) -> bool {
    let policy = instruction.modifiers.memory.policy;
    let loads = instruction.destinations[0].source != Source::None;
    match generation {
        _ if instruction.encoding == Encoding::Ds => false,
        Generation::Gfx940 => policy >> 2 & 1 != 0,
        Generation::Gfx12 => policy >> 3 & 3 >= 2,
        _ => loads && policy & 1 != 0,
    }
}
