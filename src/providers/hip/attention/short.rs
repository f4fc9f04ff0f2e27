//! Attention of short sequences on Hopper: workgroups that copy all keys at once instead of a pipeline.

use super::super::unit::Unit;
use super::heads::Heads;

/// Rows that a group of four waves takes, and keys of a block, as `LINES` in `flash_short.h`.
const LINES: usize = 64;

/// Work items of such a group.
const GROUP: usize = 128;

/// Keys up to which it is faster than the pipeline of longer sequences.
const MOST_KEYS: usize = 512;

/// Bytes of workgroup memory that a processor of sm_90 has, what it keeps of them for each workgroup, and what a
/// workgroup can have.
const MEMORY: usize = 228 << 10;
const KEPT: usize = 1 << 10;
const MOST_LDS: usize = 227 << 10;

/// How a kernel of short sequences is launched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShortLaunch {
    pub(super) grid: [usize; 3],
    pub(super) items: u32,
    pub(super) lds: u32,
    /// Blocks of keys and of values that workgroup memory has room for.
    pub(super) stages: u32,
}

/// How such a kernel does it, where it is faster: for operands at multiples of 16 bytes, as are their heads. `rows` share
/// each of `heads` keys, in each of `batch` samples.
pub(super) fn short_launch(
    unit: Unit,
    operands: [Heads; 4],
    [rows, heads, batch]: [usize; 3],
    masked: bool,
) -> Option<ShortLaunch> {
    let aligned = |n: usize| n.is_multiple_of(8);
    let whole = operands.iter().all(|x| aligned(x.size) && x.strides.into_iter().all(aligned));
    // Limits of a grid's second and third dimension.
    let most = usize::from(u16::MAX);
    let [q, k, v, _] = operands;
    if !unit.wgmma || !whole || k.rows > MOST_KEYS || heads.max(batch) > most {
        return None;
    }
    let wide = q.size.max(v.size) > 64;
    Some(launch(unit, [rows, heads, batch], k.rows, wide, masked))
}

/// `wide`: heads of more than 64 numbers.
fn launch(
    unit: Unit,
    [rows, heads, batch]: [usize; 3],
    keys: usize,
    wide: bool,
    masked: bool,
) -> ShortLaunch {
    let tiles = rows.div_ceil(LINES);
    // Groups that a processor's registers suffice for.
    let resident = if wide || masked { 3 } else { 4 };
    // Two groups share keys where the processors are busy all the same.
    let groups = match tiles > 1 && heads * batch * tiles.div_ceil(2) >= 2 * unit.compute_units {
        true => 2,
        false => 1,
    };
    let grid = [tiles.div_ceil(groups), heads, batch];
    let all = grid.iter().product::<usize>();
    let neighbours = all.div_ceil(unit.compute_units.max(1)).clamp(1, resident / groups);
    let block = LINES * if wide { 128 } else { 64 } * 2;
    // What aligns the blocks, the queries' barrier; then a block of keys, one of values, and their barriers.
    let fixed = 1024 + groups * block + 16;
    let stage = 2 * block + 16;
    let room = (MEMORY / neighbours - KEPT).min(MOST_LDS) - fixed;
    let stages = keys.div_ceil(LINES).clamp(1, (room / stage).max(1));
    ShortLaunch {
        grid,
        items: (groups * GROUP) as u32,
        lds: (fixed + stages * stage) as u32,
        stages: stages as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_filled() {
        let unit = Unit {
            wave: 32,
            mma_sync: true,
            wgmma: true,
            tensor_maps: true,
            compute_units: 132,
            matrix: true,
        };
        let of = |heads, queries, keys, wide| {
            let ShortLaunch { grid, items, lds, stages } =
                launch(unit, [queries, heads, 1], keys, wide, false);
            assert!(lds as usize <= MOST_LDS && stages >= 1);
            (grid[0], items, stages)
        };
        // One sample of BERT: all keys at once.
        assert_eq!(of(12, 128, 128, false), (2, 128, 2));
        // 32 of them: two groups share keys, and two workgroups a processor.
        assert_eq!(of(384, 128, 128, false), (1, 256, 2));
        // Images of 197 tokens.
        assert_eq!(of(12, 197, 197, false), (4, 128, 4));
        assert_eq!(of(384, 197, 197, false), (2, 256, 4));
        // Windows of 49.
        assert_eq!(of(192, 49, 49, false), (1, 128, 1));
        // Four workgroups a processor leave room for two blocks; one leaves it for all.
        assert_eq!(of(2000, 64, 512, false), (1, 128, 2));
        assert_eq!(of(12, 64, 512, false), (1, 128, 8));
        assert_eq!(of(12, 64, 512, true), (1, 128, 6));
    }
}
