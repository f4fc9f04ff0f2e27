//! Cycles of LDS instructions, and how many of them are due to bank conflicts.
//!
//! LDS has 32 banks, each four bytes wide; the bank is the address's bits 2 to 6 (CDNA and RDNA ISA manuals, "Local Data
//! Share"). A cycle serves one word of each bank; lanes that read the same word are served together. The lanes of an
//! instruction are served in groups that could do with one cycle: 32 lanes with elements of up to four bytes, 16 with
//! eight, 8 with twelve or sixteen. Which eight lanes a load of sixteen bytes takes together on CDNA is not in the
//! manuals; the groups are those of Composable Kernel's documentation ("Understanding AMD GPU LDS and Bank Conflicts").

use crate::isa::Generation;
use crate::machine::group::{Access, AccessKind};

const BANKS: usize = 32;

/// The first lanes of the two runs of four lanes that CDNA loads together, of 32 lanes.
const PAIRS: [[usize; 2]; 4] = [[0, 20], [4, 16], [8, 28], [12, 24]];

/// Cycles of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    pub all: u64,
    /// Those that an access without conflicts would not need.
    pub conflicts: u64,
}

/// `lanes`: those of a wave.
pub fn cycles(access: &Access<'_>, lanes: usize, generation: Generation) -> Cycles {
    let width = match access.bytes {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let mut cycles = Cycles::default();
    for first in (0..lanes).step_by(width) {
        let group = group(first, width, access, generation);
        if access.mask & group != 0 {
            let needed = most_in_a_bank(access, group);
            cycles.all += needed;
            cycles.conflicts += needed - 1;
        }
    }
    cycles
}

/// A bit for each lane that is served together with `first`.
fn group(first: usize, width: usize, access: &Access<'_>, generation: Generation) -> u64 {
    let cdna = generation <= Generation::Gfx940;
    if width == 8 && cdna && access.kind == AccessKind::Load && access.bytes == 16 {
        let [a, b] = PAIRS[first % 32 / 8];
        return (0xf << a | 0xf << b) << (first & 32);
    }
    ((1 << width) - 1) << first
}

/// How many different words the busiest bank has to serve. An atomic operation is done for one lane after the other.
fn most_in_a_bank(access: &Access<'_>, group: u64) -> u64 {
    let mut words: Vec<u64> = Vec::with_capacity(64);
    for lane in crate::machine::wave::lanes_of(access.mask & group) {
        let first = access.addresses[lane] / 4;
        words.extend(first..first + u64::from(access.bytes.div_ceil(4)));
    }
    words.sort_unstable();
    if access.kind != AccessKind::Atomic {
        words.dedup();
    }
    let mut banks = [0_u64; BANKS];
    for word in words {
        banks[word as usize % BANKS] += 1;
    }
    banks.into_iter().max().unwrap_or(0).max(1)
}
