//! Which aligned pieces of memory an instruction touches.

use crate::machine::group::Access;
use crate::machine::wave::lanes_of;

/// Fills `lines` with the numbers of the aligned segments of `size` bytes that an access touches, sorted, each once.
pub fn touched(access: &Access<'_>, size: u64, lines: &mut Vec<u64>) {
    lines.clear();
    for lane in lanes_of(access.mask) {
        let first = access.addresses[lane];
        let last = first.saturating_add(u64::from(access.bytes.max(1)) - 1);
        // Lanes side by side are usual.
        for line in first / size..=last / size {
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
    }
    lines.sort_unstable();
    lines.dedup();
}

/// Counts segments of twice the size among sorted ones.
pub fn doubled(lines: &[u64]) -> u64 {
    lines.chunk_by(|a, b| a / 2 == b / 2).count() as u64
}
