//! Attention on Hopper by workgroups that stay, whose operands the copy engine brings.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::hip::{Numbers, Part, TENSOR_MAP_BYTES, TensorMap};
use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{KernelName, Operand};
use super::super::unit::Unit;
use super::heads::Heads;
use super::params::FlashParams;
use super::scores::Problem;

/// Queries of one group of four waves, numbers of a panel, and keys of a block, as in `flash_hopper.h`.
const LINES: usize = 64;
const PANEL: usize = 64;
const KEYS: usize = 128;

/// Numbers that lie together in every operand, in 16 bytes.
const PACK: usize = 8;

/// Bytes of keys and values that stay in the second cache while tiles of their heads are computed: half of an H100's.
const SECTION_BYTES: usize = 24 << 20;

/// Tiles of a head up to which heads come one after another: they cost nearly the same.
const FEW_TILES: usize = 4;

/// `HopperFlashParams` of `kernels/include/rukh/flash_hopper.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct HopperFlashParams {
    /// Of queries, keys, values and the result.
    maps: [[u64; TENSOR_MAP_BYTES / 8]; 4],
    flash: FlashParams,
    taken: u64,
    heads: u32,
    tiles: u32,
    section: u32,
    all: u32,
    unused: [u32; 10],
}

const _: () = assert!(size_of::<HopperFlashParams>() == 896);

/// How such a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pipeline {
    workgroups: usize,
    items: u32,
    lds: u32,
    /// Tiles of a head, heads of a section, all tiles.
    tiles: usize,
    section: usize,
    all: usize,
}

impl Pipeline {
    /// Whether all processors have a tile.
    pub(super) fn fills(&self, unit: Unit) -> bool {
        self.all >= unit.compute_units
    }
}

/// The launch where the copy engine can bring the operands and each head has queries for a tile. `masked`: with a mask in
/// memory, capped scores, or a scale that is not above 0.
pub(super) fn pipeline(unit: Unit, problem: &Problem, masked: bool) -> Option<Pipeline> {
    let Problem { q, k, v, y, batch, .. } = *problem;
    let packs = |n: usize| n.is_multiple_of(PACK);
    let moves = |n: usize| n > 0 && packs(n);
    let mapped = [q, k, v, y].iter().all(|x| packs(x.size) && x.strides.into_iter().all(moves));
    let wide = q.size.max(v.size) > 64;
    // Three groups of heads of up to 64 numbers have registers enough without masks.
    let groups = if wide || masked { 2 } else { 3 };
    if !unit.wgmma || !unit.tensor_maps || !mapped || q.rows < groups * LINES {
        return None;
    }
    let tiles = q.rows.div_ceil(groups * LINES);
    let unequal = problem.causal || problem.window.iter().any(Option::is_some);
    let bytes = 2 * k.rows * (q.size + v.size);
    let section = match unequal && tiles > FEW_TILES {
        true => (SECTION_BYTES / bytes.max(1)).max(1) * (q.heads / k.heads.max(1)),
        false => 1,
    };
    let (all, size) = (tiles * q.heads * batch, if wide { 128 } else { 64 });
    // What aligns the rest; queries and results of each group; two blocks of keys and of values; barriers and a place.
    let lds = 1024 + (2 * groups * LINES + 4 * KEYS) * size * 2 + 10 * 8 + 32;
    Some(Pipeline {
        workgroups: all.min(unit.compute_units),
        items: 128 * (groups as u32 + 1),
        lds: lds as u32,
        tiles,
        section: section.min(q.heads * batch),
        all,
    })
}

impl Problem {
    /// Appends the launch for operands whose addresses are multiples of 16.
    pub(super) fn plan_pipeline(
        &self,
        plan: &mut PlanBuilder<'_>,
        kernel: KernelName,
        launch: Pipeline,
    ) -> Result<(), OpError> {
        let (flash, addresses) = self.flash_params();
        let params = HopperFlashParams {
            flash,
            heads: self.q.heads as u32,
            tiles: launch.tiles as u32,
            section: launch.section as u32,
            all: launch.all as u32,
            ..HopperFlashParams::zeroed()
        };
        let inner = offset_of!(HopperFlashParams, flash);
        let mut addresses: Vec<_> =
            addresses.into_iter().map(|(field, operand)| (inner + field, operand)).collect();
        addresses.push((offset_of!(HopperFlashParams, taken), Operand::Counters));
        plan.launch_with(kernel, [launch.workgroups, 1, 1], launch.items, launch.lds, &params, &addresses)?;
        let operands = [(self.q, LINES), (self.k, KEYS), (self.v, KEYS), (self.y, LINES)];
        plan.maps(operands.into_iter().enumerate().map(|(i, (heads, rows))| {
            let at = offset_of!(HopperFlashParams, maps) + i * TENSOR_MAP_BYTES;
            (at, heads.at, (heads.offset * self.ty.size()) as u64, self.map(&heads, rows))
        }));
        Ok(())
    }

    /// How the engine copies so many rows of one head, a panel at a time.
    pub(super) fn map(&self, heads: &Heads, rows: usize) -> TensorMap {
        let [batch, head, row] = heads.strides;
        let sizes = [heads.size, heads.rows, heads.heads, self.batch];
        TensorMap {
            numbers: Numbers::half(self.ty == ElementType::BF16),
            swizzled: true,
            sizes: sizes.map(|n| n as u64).to_vec(),
            strides: [row, head, batch].map(|n| 2 * n as u64).to_vec(),
            part: Part::Box(vec![PANEL as u32, rows as u32, 1, 1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scores::FirstQuery;
    use super::*;

    /// `[batch, heads, queries, size]` with so many key heads and keys.
    fn problem(
        [batch, heads, queries, size]: [usize; 4],
        [key_heads, keys]: [usize; 2],
        causal: bool,
    ) -> Problem {
        let dense = |i, heads, rows| Heads::dense(Operand::Input(i), heads, rows, size);
        Problem {
            ty: ElementType::F16,
            batch,
            q: dense(0, heads, queries),
            k: dense(1, key_heads, keys),
            v: dense(2, key_heads, keys),
            y: Heads::dense(Operand::Output(0), heads, queries, size),
            scale: 1.0,
            softcap: 0.0,
            causal,
            window: [None; 2],
            first: FirstQuery::At(0),
            lengths: None,
            mask: None,
            sink: None,
            kept: None,
        }
    }

    #[test]
    fn launches() {
        for (what, queries, keys, causal, masked, expected) in [
            // Workgroups, work items, tiles of a head, heads of a section, all tiles.
            ("three groups", [1, 12, 2048, 64], [12, 2048], false, false, Some((132, 512, 11, 1, 132))),
            ("masked", [1, 12, 2048, 64], [12, 2048], false, true, Some((132, 384, 16, 1, 192))),
            ("larger heads", [2, 4, 1000, 128], [4, 1000], false, false, Some((64, 384, 8, 1, 64))),
            ("causal", [1, 32, 2048, 128], [32, 2048], true, false, Some((132, 384, 16, 24, 512))),
            ("shared keys", [1, 32, 16384, 128], [8, 16384], true, false, Some((132, 384, 128, 12, 4096))),
            ("few tiles", [32, 16, 512, 128], [16, 512], true, false, Some((132, 384, 4, 1, 2048))),
            ("few queries", [1, 32, 100, 128], [8, 4000], true, false, None),
            ("odd heads", [1, 12, 2048, 60], [12, 2048], false, false, None),
        ] {
            let found = pipeline(Unit::HOPPER, &problem(queries, keys, causal), masked);
            let of = |x: Pipeline| (x.workgroups, x.items, x.tiles, x.section, x.all);
            assert_eq!(found.map(of), expected, "{what}");
        }
        let without = Unit { tensor_maps: false, ..Unit::HOPPER };
        assert_eq!(pipeline(without, &problem([1, 12, 2048, 64], [12, 2048], false), false), None);
    }

    #[test]
    fn workgroup_memory_suffices() {
        // Of sm_90, for one workgroup.
        const MOST: u32 = 227 << 10;
        for size in [64, 128] {
            for masked in [false, true] {
                let found = pipeline(Unit::HOPPER, &problem([1, 1, 512, size], [1, 512], false), masked);
                assert!(found.is_some_and(|x| x.lds <= MOST), "{size} {masked}: {found:?}");
            }
        }
    }
}
