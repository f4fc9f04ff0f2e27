//! How the lines of a product of few rows are spread over the device.

use super::super::unit::Unit;

/// Waves of a workgroup, as in `kernels/include/rukh/gemv_rows.h`.
pub(super) const WAVES: usize = 4;

/// What counts of lines here: how many a wave takes at a time, a bundle; the bytes of one, and of it what a wave loads at
/// once; the bytes that would come to a processor while a workgroup stores a round's results; and whether waves take lines
/// whole where all of them are on their way at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    pub(super) columns: usize,
    pub(super) line_bytes: usize,
    pub(super) step_bytes: usize,
    pub(super) round_bytes: usize,
    pub(super) whole_lines: bool,
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
    let Lines { columns, line_bytes, step_bytes, round_bytes, whole_lines } = lines;
    let units = unit.compute_units.max(1);
    let slots = (resident * units / row_blocks).max(1);
    // Fewer workgroups bring the row of A, and they leave room for the next launch's. With 3072 columns of 2048 in 4 bits a step of
    // Llama 1B takes 0.458 ms in place of 0.466, after 1900 tokens 0.478 in place of 0.496 (H200); two rows would take 0.771 in
    // place of 0.752.
    let whole = Split { parts: 1, groups: rounds(bundles, 1, slots).0 };
    let at_once = whole.groups * WAVES >= bundles && line_bytes <= 2 * step_bytes;
    if whole_lines && at_once && whole.groups * 16 >= units * 15 {
        return whole;
    }
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

    /// Waves share lines where there are too few for all of them, and not where they would only store more often. Weights of 4
    /// bits, one row and more.
    #[test]
    fn waves_share_lines_of_small_products() {
        for (n, k, whole_lines, parts) in [
            (512, 2048, true, 2),
            (1024, 2048, true, 2),
            (2016, 2048, true, 1),
            (3072, 2048, true, 1),
            (3072, 2048, false, 2),
            (3072, 4096, true, 2),
            (16384, 2048, true, 1),
            (2048, 8192, true, 4),
            (128256, 2048, true, 1),
        ] {
            let lines =
                Lines { columns: 4, line_bytes: k / 2, step_bytes: 512, round_bytes: 3 << 10, whole_lines };
            let split = split(n / 4, lines, [1, 4], Unit::HOPPER);
            assert_eq!(split.parts, parts, "{n} columns of {k}, whole lines {whole_lines}: {split:?}");
        }
    }
}
