//! The counters of memory operations that are not done, and the instructions that wait for them (ISA manuals, "Data
//! dependency resolution"; LLVM, "User Guide for AMDGPU Backend", "Memory Model").

use crate::isa::{Encoding, Generation, Instruction};

/// A counter. Generations that have fewer of them count several kinds of operations by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Vector memory that returns something: `vmcnt`, `loadcnt`.
    Load,
    /// Vector memory that returns nothing: `vscnt`, `storecnt`; of GFX9 the same as `Load`.
    Store,
    /// LDS: `lgkmcnt`, `dscnt`.
    Lds,
    /// Scalar memory and messages: `kmcnt`; before GFX12 the same as `Lds`.
    Scalar,
}

pub const COUNTERS: usize = 4;

/// For each counter how many operations may be outstanding behind an instruction that waits.
pub type Allowed = [Option<u32>; COUNTERS];

impl Counter {
    /// The counter that a generation really has.
    pub fn of(self, generation: Generation) -> Counter {
        match self {
            Counter::Store if generation < Generation::Gfx10 => Counter::Load,
            Counter::Scalar if generation < Generation::Gfx12 => Counter::Lds,
            counter => counter,
        }
    }

    /// Its name in the assembler.
    pub fn name(self, generation: Generation) -> &'static str {
        let gfx12 = generation == Generation::Gfx12;
        match self.of(generation) {
            Counter::Load if gfx12 => "loadcnt",
            Counter::Load => "vmcnt",
            Counter::Store if gfx12 => "storecnt",
            Counter::Store => "vscnt",
            Counter::Lds if gfx12 => "dscnt",
            Counter::Lds => "lgkmcnt",
            Counter::Scalar => "kmcnt",
        }
    }
}

/// What an instruction waits for; `None` for one that does not wait.
pub fn allowed(instruction: &Instruction, generation: Generation) -> Option<Allowed> {
    let value = instruction.modifiers.immediate as u32 & 0xffff;
    let field = |shift: u32, bits: u32| Some(value >> shift & ((1 << bits) - 1));
    let counts = match (instruction.encoding, instruction.name) {
        (Encoding::Sopp, "s_waitcnt") => packed(value, generation),
        (Encoding::Sopk, "s_waitcnt_vmcnt") => [field(0, 6), None, None, None],
        (Encoding::Sopk, "s_waitcnt_vscnt") => [None, field(0, 6), None, None],
        (Encoding::Sopk, "s_waitcnt_lgkmcnt") => [None, None, field(0, 6), None],
        (Encoding::Sopp, "s_wait_loadcnt") => [field(0, 6), None, None, None],
        (Encoding::Sopp, "s_wait_storecnt") => [None, field(0, 6), None, None],
        (Encoding::Sopp, "s_wait_dscnt") => [None, None, field(0, 6), None],
        (Encoding::Sopp, "s_wait_kmcnt") => [None, None, None, field(0, 5)],
        (Encoding::Sopp, "s_wait_loadcnt_dscnt") => [field(8, 6), None, field(0, 6), None],
        (Encoding::Sopp, "s_wait_storecnt_dscnt") => [None, field(8, 6), field(0, 6), None],
        (Encoding::Sopp, "s_wait_idle") => [Some(0); COUNTERS],
        _ => return None,
    };
    Some(counts)
}

/// S_WAITCNT. GFX9: `vmcnt` in bits 0 to 3, 14 and 15, `lgkmcnt` in 8 to 11; GFX10: in 8 to 13. GFX11: `vmcnt` in bits 10
/// to 15, `lgkmcnt` in 4 to 9. The highest value of a field waits for nothing.
fn packed(value: u32, generation: Generation) -> Allowed {
    let field = |shift: u32, bits: u32| value >> shift & ((1 << bits) - 1);
    let (load, lds, highest) = match generation {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
            (field(0, 4) | field(14, 2) << 4, field(8, 4), 15)
        }
        Generation::Gfx10 => (field(0, 4) | field(14, 2) << 4, field(8, 6), 63),
        _ => (field(10, 6), field(4, 6), 63),
    };
    [Some(load).filter(|&count| count != 63), None, Some(lds).filter(|&count| count != highest), None]
}
