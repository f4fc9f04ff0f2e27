//! Attention on Hopper by workgroups of four waves that copy for themselves, instead of the pipeline whose operands the copy
//! engine brings.

use super::super::unit::Unit;
use super::heads::Heads;

/// Rows that a workgroup takes, and keys of a block, as `LINES` in `flash_four_waves.h`.
const LINES: usize = 64;

/// Work items of a workgroup: four waves.
const ITEMS: u32 = 128;

/// Blocks of keys and of values in workgroup memory: with more of them fewer workgroups share a processor, which was
/// slower at every length.
const STAGES: usize = 2;

/// How such a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FourWaves {
    pub(super) grid: [usize; 3],
    pub(super) items: u32,
    pub(super) lds: u32,
    /// Blocks of keys and of values that workgroup memory has room for.
    pub(super) stages: u32,
}

/// The launch for operands at multiples of 16 bytes, as are their heads. `rows` share each of `heads` keys, in each of `batch`
/// samples.
pub(super) fn four_waves(
    unit: Unit,
    operands: [Heads; 4],
    [rows, heads, batch]: [usize; 3],
) -> Option<FourWaves> {
    let aligned = |n: usize| n.is_multiple_of(8);
    let whole = operands.iter().all(|x| aligned(x.size) && x.strides.into_iter().all(aligned));
    // Limits of a grid's second and third dimension.
    let most = usize::from(u16::MAX);
    let [q, k, v, _] = operands;
    let wide = q.size.max(v.size) > 64;
    if !unit.wgmma || !whole || heads.max(batch) > most {
        return None;
    }
    Some(launch([rows, heads, batch], k.rows, wide))
}

/// `wide`: heads of more than 64 numbers. Workgroups of eight waves that share keys were slower.
fn launch([rows, heads, batch]: [usize; 3], keys: usize, wide: bool) -> FourWaves {
    let stages = keys.div_ceil(LINES).clamp(1, STAGES);
    let block = LINES * if wide { 128 } else { 64 } * 2;
    // What aligns the blocks, the queries, their barrier; then a block of keys, one of values, and their barriers.
    let lds = 1024 + block + 16 + stages * (2 * block + 16);
    FourWaves {
        grid: [rows.div_ceil(LINES), heads, batch],
        items: ITEMS,
        lds: lds as u32,
        stages: stages as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_many_as_there_are_keys_for() {
        for (rows, keys, wide, expected) in [
            (128, 128, false, ([2, 12, 3], 2, 1024 + 8192 + 16 + 2 * 16400)),
            (197, 197, false, ([4, 12, 3], 2, 1024 + 8192 + 16 + 2 * 16400)),
            (49, 49, false, ([1, 12, 3], 1, 1024 + 8192 + 16 + 16400)),
            (64, 512, true, ([1, 12, 3], 2, 1024 + 16384 + 16 + 2 * 32784)),
        ] {
            let FourWaves { grid, items, lds, stages } = launch([rows, 12, 3], keys, wide);
            assert_eq!((grid, stages, lds), expected, "{rows} {keys}");
            assert_eq!(items, ITEMS);
        }
    }
}
