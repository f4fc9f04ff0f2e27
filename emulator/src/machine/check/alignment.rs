//! Accesses that are not aligned.
//!
//! In the mode that the driver sets (SH_MEM_CONFIG.alignment_mode is UNALIGNED; LLVM, "User Guide for AMDGPU Backend",
//! `unaligned-access-mode`) such an access gives the right result, but the hardware splits it, so that it is slow. In the
//! hardware's own default, DWORD, it traps or goes to another address (RDNA3 ISA, "LDS Alignment", "Memory Alignment").
//!
//! | memory | bytes of an access | multiple of |
//! |---|---|---|
//! | global | 1, 2 | its size |
//! | global | 4, 8, 12, 16 | 4 |
//! | LDS | 1, 2, 4, 8 | its size |
//! | LDS | 12, 16 | 16 |
//! | LDS, by flat addresses | any | as of global memory |
//!
//! Atomic operations that are not aligned are errors without this check.

use super::Launch;
use crate::isa::{Encoding, Instruction, Source};
use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Observer, Space, Watch};
use crate::machine::wave::{Wave, lanes_of};

/// The alignment of a launch's accesses.
pub struct Alignment<'a> {
    launch: Launch<'a>,
}

impl<'a> Alignment<'a> {
    pub fn new(launch: Launch<'a>) -> Alignment<'a> {
        Alignment { launch }
    }
}

impl Watch for Alignment<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(Observing { launch: self.launch, flat: false })
    }
}

struct Observing<'a> {
    launch: Launch<'a>,
    /// The instruction does not know which memory it reaches.
    flat: bool,
}

impl Observer for Observing<'_> {
    fn before(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        self.flat = instruction.encoding == Encoding::Flat;
        // The hardware leaves the lowest two bits out, and so does the machine: the access itself shows nothing.
        if instruction.encoding != Encoding::Smem || !is_of_words(instruction.name) {
            return Ok(());
        }
        let Source::Scalar(base) = instruction.sources[0].source else { return Ok(()) };
        let offset = i64::from(instruction.modifiers.memory.offset)
            + i64::from(wave.read32(instruction.sources[1].source)?);
        let address = wave.scalar64(base).wrapping_add_signed(offset);
        if address.is_multiple_of(4) {
            return Ok(());
        }
        let name = self.launch.program.target.name;
        Err(Fault::check(format!(
            "alignment: a scalar load at {address:#x}, which is not a multiple of 4: {name} loads from {:#x}",
            address & !3
        )))
    }

    fn access(&mut self, _: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        let Some((place, multiple)) = needed(access, self.flat) else { return Ok(()) };
        let Some(lane) = lanes_of(access.mask).find(|&lane| !access.addresses[lane].is_multiple_of(multiple))
        else {
            return Ok(());
        };
        Err(Fault::check(format!(
            "alignment: lane {lane} {} {} bytes at {:#x} of {place}, which is not a multiple of {multiple}: slow, and \
             it traps where the driver does not allow it",
            if access.kind == AccessKind::Load { "reads" } else { "writes" },
            access.bytes,
            access.addresses[lane],
        )))
    }
}

/// The kind of memory, and what the address of an access must be a multiple of.
fn needed(access: &Access<'_>, flat: bool) -> Option<(&'static str, u64)> {
    let bytes = u64::from(access.bytes);
    match access.space {
        Space::Global => Some(("global memory", bytes.min(4))),
        Space::Lds if flat => Some(("LDS", bytes.min(4))),
        Space::Lds => Some(("LDS", bytes.next_power_of_two())),
        Space::Scratch | Space::Scalar => None,
    }
}

/// Loads of whole words. Those of buffers have their alignment from the buffer.
fn is_of_words(name: &str) -> bool {
    name.starts_with("s_load_b")
}
