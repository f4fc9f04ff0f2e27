//! How the lines of a product of few rows are spread over the device.

use super::super::unit::Unit;

/// Waves of a workgroup, as in `kernels/include/rukh/gemv_rows.h`.
pub(super) const WAVES: usize = 4;

/// What counts of lines here: how many a wave takes at a time, a bundle; the bytes of one, and of it what a wave loads at
/// once; and the bytes that would come to a processor while a workgroup stores a round's results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    pub(super) columns: usize,
    pub(super) line_bytes: usize,
    pub(super) step_bytes: usize,
    pub(super) round_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// Waves that share a bundle.
    pub(super) parts: usize,
    /// Workgroups of each block of rows.
    pub(super) groups: usize,
}

impl Split {
    /// Whether all of the bundles are on their way before a wave uses the first: two steps of K of each wave.
    pub(super) fn loads_all_at_once(self, bundles: usize, k: usize, step: usize) -> bool {
        self.groups * (WAVES / self.parts) >= bundles && k <= 2 * self.parts * step
    }
}

/// Spreads bundles for so many blocks of rows over a device's processors, each with room for `resident` workgroups: what takes
/// the processor with the most of them the least time.
pub(super) fn split(bundles: usize, lines: Lines, [row_blocks, resident]: [usize; 2], unit: Unit) -> Split {
    /// Bytes that come to a processor while it waits for the first: so many must be on their way.
    const LATENCY: usize = 24 << 10;
    let Lines { columns, line_bytes, step_bytes, round_bytes } = lines;
    let units = unit.compute_units.max(1);
    let slots = (resident * units / row_blocks).max(1);
    let ways = [1, 2, 4].into_iter().filter(|parts| *parts == 1 || line_bytes >= parts * step_bytes);
    let best = ways.min_by_key(|parts| {
        let (groups, rounds) = rounds(bundles, *parts, slots);
        let resident = (groups * row_blocks).div_ceil(units);
        let bytes = resident * rounds * (WAVES / parts) * columns * line_bytes;
        let of_wave = (columns * line_bytes * rounds / parts).min(2 * columns * step_bytes);
        let on_the_way = (resident * WAVES * of_wave).max(1);
        let loads = match unit.wgmma {
            // It waits so long for each lot that is on its way. On an H200 33.5 MB took 12.8 µs with 64 KB on their way to a
            // processor, and 9.2 with 128.
            true => bytes + bytes * LATENCY / on_the_way,
            false => bytes * LATENCY.max(on_the_way) / on_the_way,
        };
        LATENCY + loads + resident * rounds * round_bytes
    });
    let parts = best.unwrap_or(1);
    Split { parts, groups: rounds(bundles, parts, slots).0 }
}

/// Workgroups, and how many bundles each team of their waves takes, one after the other.
pub(super) fn rounds(bundles: usize, parts: usize, slots: usize) -> (usize, usize) {
    let wanted = bundles.div_ceil(WAVES / parts).max(1);
    let rounds = wanted.div_ceil(slots);
    (wanted.div_ceil(rounds), rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_at_once() {
        for (parts, groups, bundles, k, expected) in [
            (1, 256, 1024, 2048, true),
            (1, 256, 1025, 2048, false),
            (2, 512, 1024, 4096, true),
            (2, 512, 1024, 4097, false),
            (4, 512, 513, 4096, false),
        ] {
            let split = Split { parts, groups };
            assert_eq!(split.loads_all_at_once(bundles, k, 1024), expected, "{split:?}, {bundles} of {k}");
        }
    }
}
