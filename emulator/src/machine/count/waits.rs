//! What an instruction waits for: the counters of memory operations that are under way.
//!
//! Fields as in the ISA manuals ("S_WAITCNT", GFX12: "S_WAIT_*CNT").

use crate::isa::{Generation, Instruction};

/// The queues of operations that are under way. Before GFX12, LDS and scalar memory share a counter; on GFX9, stores count
/// as loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    Load,
    Store,
    Lds,
    Scalar,
}

pub const QUEUES: usize = 4;

/// How many operations may be under way afterwards, by queue; `None`: any number.
pub type Wait = [Option<u32>; QUEUES];

/// A queue of an instruction's operation, on this generation.
pub fn queue(queue: Queue, generation: Generation) -> Queue {
    match queue {
        Queue::Store if generation < Generation::Gfx10 => Queue::Load,
        Queue::Scalar if generation < Generation::Gfx12 => Queue::Lds,
        other => other,
    }
}

/// What a wait instruction demands; `None` of others.
pub fn wait(instruction: &Instruction, generation: Generation) -> Option<Wait> {
    let bits = instruction.modifiers.immediate as u32;
    let mut wait = [None; QUEUES];
    let mut set = |queue: Queue, count: u32| wait[queue as usize] = Some(count);
    match instruction.name {
        "s_waitcnt" => {
            let (loads, lds) = match generation {
                Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
                    (bits & 15 | bits >> 10 & 0x30, bits >> 8 & 15)
                }
                Generation::Gfx10 => (bits & 15 | bits >> 10 & 0x30, bits >> 8 & 0x3f),
                _ => (bits >> 10 & 0x3f, bits >> 4 & 0x3f),
            };
            set(Queue::Load, loads);
            set(Queue::Lds, lds);
        }
        "s_waitcnt_vscnt" | "s_wait_storecnt" => set(Queue::Store, bits & 0x3f),
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => set(Queue::Load, bits & 0x3f),
        "s_waitcnt_lgkmcnt" | "s_wait_dscnt" => set(Queue::Lds, bits & 0x3f),
        "s_wait_kmcnt" => set(Queue::Scalar, bits & 0x3f),
        "s_wait_loadcnt_dscnt" => {
            set(Queue::Load, bits >> 8 & 0x3f);
            set(Queue::Lds, bits & 0x3f);
        }
        "s_wait_storecnt_dscnt" => {
            set(Queue::Store, bits >> 8 & 0x3f);
            set(Queue::Lds, bits & 0x3f);
        }
        "s_wait_idle" => wait = [Some(0); QUEUES],
        _ => return None,
    }
    Some(wait)
}
