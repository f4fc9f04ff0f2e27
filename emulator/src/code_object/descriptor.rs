//! What a kernel asks of the hardware before it begins.

use crate::isa::{Generation, Target};

/// The 64 bytes of a kernel descriptor (LLVM, "User Guide for AMDGPU Backend", code object V3 kernel descriptor).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelDescriptor {
    /// LDS in bytes, before what the launch adds.
    pub group_segment_fixed_size: u32,
    /// Scratch of a work item in bytes.
    pub private_segment_fixed_size: u32,
    pub kernarg_size: u32,
    /// From the descriptor to the first instruction, in bytes.
    pub kernel_code_entry_byte_offset: i64,
    pub compute_pgm_rsrc1: u32,
    pub compute_pgm_rsrc2: u32,
    pub compute_pgm_rsrc3: u32,
    pub kernel_code_properties: u16,
    pub kernarg_preload: u16,
}

impl KernelDescriptor {
    pub const SIZE: usize = 64;

    /// `None` where there are fewer bytes than a descriptor has.
    pub fn parse(bytes: &[u8]) -> Option<KernelDescriptor> {
        let bytes: &[u8; Self::SIZE] = bytes.first_chunk()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Some(KernelDescriptor {
            group_segment_fixed_size: word(0),
            private_segment_fixed_size: word(4),
            kernarg_size: word(8),
            kernel_code_entry_byte_offset: (u64::from(word(16)) | u64::from(word(20)) << 32) as i64,
            compute_pgm_rsrc3: word(44),
            compute_pgm_rsrc1: word(48),
            compute_pgm_rsrc2: word(52),
            kernel_code_properties: half(56),
            kernarg_preload: half(58),
        })
    }

    /// How many vector registers a wave gets, accumulation registers included (GRANULATED_WORKITEM_VGPR_COUNT).
    pub fn vector_registers(&self, target: Target, lanes: usize) -> usize {
        let unit = match target.generation {
            Generation::Gfx9 => 4,
            Generation::Gfx90a | Generation::Gfx940 => 8,
            _ if lanes == 32 => 8,
            _ => 4,
        };
        let most = if target.generation <= Generation::Gfx940 { 512 } else { 256 };
        ((self.compute_pgm_rsrc1 as usize & 63) + 1).saturating_mul(unit).min(most)
    }

    /// Whether its waves have 32 lanes; of targets that have both.
    pub fn is_wave32(&self) -> bool {
        self.kernel_code_properties & 1 << 10 != 0
    }
}
