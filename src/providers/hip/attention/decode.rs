//! Attention of few queries along many keys, as a decoder's: launches of `kernels/include/rukh/flash_decode.h` and
//! `flash_decode_mma.h`, and what joins their parts on sm_90, `flash_decode_cluster.h`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{NoUninit, Pod, Zeroable};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{COUNTERS, KernelName, Operand};
use super::super::params::Divider;
use super::super::unit::Unit;
use super::gather::Rotation;
use super::heads::Heads;
use super::params::FlashParams;
use super::scores::Problem;

/// Work items of a workgroup, and rows of keys that each loads before it uses one, as in the kernel.
pub(super) const ITEMS: usize = 128;
const AHEAD: usize = 4;

/// Parts of the keys, at most, as in the kernel: the last workgroup joins them.
pub(super) const MOST_SPLITS: usize = 64;

/// Workgroups for each processor that hide each other's waits.
pub(super) const RESIDENT: usize = 2;
/// The same where workgroups take one row each, in a quarter of the registers.
const RESIDENT_OF_ONE_ROW: usize = 5;

/// Bytes that workgroups may read so that each takes one row, though rows of a head read the same: a wave takes longer for
/// more rows than the memory between the processors for as many bytes.
const READ_BY_ROWS: usize = 128 << 20;

/// Workgroups of a cluster, as in the kernel: the most that every device with clusters runs together.
pub(super) const CLUSTER: usize = 8;
/// Steps of a part, at most, along which one cluster takes all keys, as in the kernel.
const FEW_STEPS: usize = 3;
/// Parts at most that come together by clusters, so that few are left for device memory to join. A step of Llama 1B in f16 after
/// 8000 tokens takes 0.917 ms with 16, 0.889 with 24, 0.878 with 32 and 0.881 with 40 (H200). More than others have only where so
/// many workgroups a processor suffice: two samples with 16 take 1.083 ms, and 1.174 with 24, which are three.
const CLUSTERED_SPLITS: usize = 32;
const RESIDENT_OF_CLUSTERS: usize = 2;

/// What the addresses of caches must be multiples of: the bytes that a work item loads at once.
pub(super) const ALIGNMENT: u32 = 16;

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct DecodeParams {
    flash: FlashParams,
    partial: u64,
    arrived: u64,
    fresh_k: u64,
    fresh_v: u64,
    cosines: u64,
    sines: u64,
    positions: u64,
    last: u64,
    /// Elements between samples and between key heads, of new keys and of new values.
    fresh_strides: [[i64; 2]; 2],
    splits: Divider,
    queries: Divider,
    tiles: u32,
    half: u32,
    cache_rows: u32,
    interleaved: u32,
    pub(super) early: u32,
    unused: u32,
}

const _: () = assert!(size_of::<DecodeParams>() == 464);

/// A kernel and how it is launched.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodeKernel {
    pub(super) kernel: KernelName,
    /// Parts of the keys, and of the rows that share a key head.
    splits: usize,
    tiles: usize,
    /// Bytes of the sums of a part.
    part: usize,
    /// Whether keys come through a ring.
    ring: bool,
}

/// A kernel, and what its launches follow from.
pub(super) struct Way {
    pub(super) kernel: KernelName,
    /// Rows and numbers of a head that a workgroup has room for.
    pub(super) rows: usize,
    pub(super) size: usize,
    /// Keys that it loads before it uses one.
    pub(super) keys_at_once: usize,
    /// Workgroups for each processor, and parts of the keys at most.
    pub(super) resident: usize,
    pub(super) most_splits: usize,
    /// The kernel of which [`CLUSTER`] parts come together in workgroup memory, and the family of those whose keys come through rings
    /// there.
    pub(super) clustered: Option<&'static CStr>,
    pub(super) ring: Option<&'static str>,
}

/// A new key and value of each sample and key head, which the launch puts into the caches that it reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) keys: Heads,
    pub(super) values: Heads,
    /// The index of each sample's last key.
    pub(super) last: Operand,
    /// Whether the kernel just before writes none of the caches, `last` and positions.
    pub(super) early: bool,
    pub(super) rotation: Option<Rotation>,
}

impl Problem {
    /// Appends launches that do without the kernel for many rows.
    pub(super) fn plan_few_or_scores(&self, plan: &mut PlanBuilder<'_>, group: usize) -> Result<(), OpError> {
        match self.decode_kernel(plan.provider.unit(), plan.is_behind_full_memory()) {
            Some(kernel) if !self.has_enough_rows() => plan.by_alignment(
                ALIGNMENT,
                &self.packed_operands(),
                |plan| self.plan_decode(plan, kernel, None),
                |plan| self.plan_scores(plan, group),
            ),
            _ => self.plan_scores(plan, group),
        }
    }

    /// The kernel that serves this problem, for operands at multiples of 16 bytes, and how it is launched.
    /// `behind_full_memory`: between kernels that leave no workgroup memory beside them.
    pub(super) fn decode_kernel(&self, unit: Unit, behind_full_memory: bool) -> Option<DecodeKernel> {
        let pack = 16 / self.ty.size().max(1);
        let mask = self.mask.is_none_or(|m| [ElementType::Bool, ElementType::F32, self.ty].contains(&m.ty));
        let whole = |x: &Heads| {
            let numbers = [x.offset, x.size].into_iter().chain(x.strides);
            numbers.into_iter().all(|n| n.is_multiple_of(pack))
        };
        let caches = [self.k, self.v];
        if !mask || self.kept.is_some() || !caches.iter().all(whole) || self.k.heads == 0 {
            return None;
        }
        let size = self.k.size.max(self.v.size);
        let rows = self.q.heads / self.k.heads * self.q.rows;
        let way = self.by_mma(unit, rows, size).or_else(|| self.by_numbers(unit, rows, size))?;
        let ring = way.ring.filter(|_| behind_full_memory);
        self.launched(unit, Way { ring, ..way })
    }

    /// How a kernel is launched.
    pub(super) fn launched(&self, unit: Unit, way: Way) -> Option<DecodeKernel> {
        let rows = self.q.heads / self.k.heads * self.q.rows;
        let tiles = rows.div_ceil(way.rows);
        let heads = self.batch * self.k.heads * tiles;
        let fit = [self.k.heads, self.batch].iter().all(|&n| n <= usize::from(u16::MAX));
        if !fit || heads == 0 {
            return None;
        }
        // One part more would begin a second round, in which most processors have nothing to do; and a part has as many
        // keys at least as a workgroup loads at a time.
        let fitting = way.resident * unit.compute_units / heads;
        let with_keys = self.k.rows.div_ceil(way.keys_at_once);
        let splits = fitting.min(with_keys).min(way.most_splits);
        let ring = way.ring.and_then(|family| self.through_rings(unit, heads, family));
        let clustered = way.clustered.and_then(|name| {
            let few_a_processor = RESIDENT_OF_CLUSTERS * unit.compute_units / heads;
            let most = splits.max(few_a_processor.min(with_keys).min(CLUSTERED_SPLITS));
            // Along few keys no more than a cluster has work; along many fewer parts take longer.
            let few = self.k.rows <= CLUSTER * FEW_STEPS * way.keys_at_once;
            let whole = if few { CLUSTER } else { (most / CLUSTER).max(1) * CLUSTER };
            // Workgroups of a cluster are in one group of 16 processors or more.
            let fits = heads * whole <= unit.compute_units / 16 * 16 * way.resident;
            (splits > 1 && fits && (few || whole * 8 >= splits * 7))
                .then_some((KernelName { name, ..way.kernel }, whole))
        });
        let (kernel, splits) = ring.or(clustered).unwrap_or((way.kernel, splits));
        Some(DecodeKernel {
            kernel,
            splits: if heads <= COUNTERS { splits.max(1) } else { 1 },
            tiles,
            part: way.rows * (way.size + 2) * size_of::<f32>(),
            ring: ring.is_some(),
        })
    }

    /// By multiplications and additions of single numbers, for `rows` that share keys; `size`: of the larger head.
    fn by_numbers(&self, unit: Unit, rows: usize, size: usize) -> Option<Way> {
        let (family, sizes): (_, &[usize]) = match self.ty {
            ElementType::F16 => ("flash_decode_f16", &[64, 128, 256]),
            ElementType::BF16 => ("flash_decode_bf16", &[64, 128, 256]),
            ElementType::F32 => ("flash_decode_f32", &[64, 128]),
            _ => return None,
        };
        let at = sizes.iter().position(|&most| size <= most)?;
        let most_rows = [1, 4, 8];
        let few = self.batch * self.k.heads * rows <= RESIDENT * unit.compute_units;
        let bytes = self.batch * self.k.heads * self.k.rows * (self.k.size + self.v.size) * self.ty.size();
        let by_rows = match few && rows * bytes <= READ_BY_ROWS {
            true => 0,
            false => most_rows.iter().position(|&most| rows <= most).unwrap_or(2),
        };
        Some(Way {
            kernel: KernelName { family, name: NAMES[at][by_rows] },
            rows: most_rows[by_rows],
            size: sizes[at],
            keys_at_once: ITEMS * (16 / self.ty.size()) / sizes[at] * AHEAD,
            resident: if by_rows == 0 { RESIDENT_OF_ONE_ROW } else { RESIDENT },
            most_splits: MOST_SPLITS,
            clustered: None,
            ring: None,
        })
    }

    /// Appends the launch. With `fresh`, only for one query of each sample, whose number of keys `fresh` tells.
    pub(super) fn plan_decode(
        &self,
        plan: &mut PlanBuilder<'_>,
        kernel: DecodeKernel,
        fresh: Option<Fresh>,
    ) -> Result<(), OpError> {
        let (params, addresses) = self.decode_params(plan, kernel, fresh);
        match kernel.ring {
            true => self.launch_ring(plan, kernel, params, &addresses),
            false => self.launch_decode(plan, kernel, &params, &addresses),
        }
    }

    pub(super) fn launch_decode<P: NoUninit>(
        &self,
        plan: &mut PlanBuilder<'_>,
        decode: DecodeKernel,
        params: &P,
        addresses: &[(usize, Operand)],
    ) -> Result<(), OpError> {
        plan.launch_with(decode.kernel, self.decode_grid(decode), ITEMS as u32, 0, params, addresses)
    }

    pub(super) fn decode_grid(&self, DecodeKernel { splits, tiles, .. }: DecodeKernel) -> [usize; 3] {
        [splits * tiles, self.k.heads, self.batch]
    }

    /// The parameters, and the addresses that they take.
    pub(super) fn decode_params(
        &self,
        plan: &mut PlanBuilder<'_>,
        DecodeKernel { splits, tiles, part, ring, .. }: DecodeKernel,
        fresh: Option<Fresh>,
    ) -> (DecodeParams, Vec<(usize, Operand)>) {
        const { assert!(offset_of!(DecodeParams, flash) == 0) };
        let (flash, mut addresses) = self.flash_params();
        let mut params = DecodeParams { flash, ..DecodeParams::zeroed() };
        (params.splits, params.queries) = (Divider::new(splits), Divider::new(self.q.rows));
        params.tiles = tiles as u32;
        // What comes through rings is never joined by device memory.
        if splits > 1 && !ring {
            let partial = plan.scratch(self.batch * self.k.heads * tiles * splits * part);
            addresses.push((offset_of!(DecodeParams, partial), partial));
            addresses.push((offset_of!(DecodeParams, arrived), Operand::Counters));
        }
        if let Some(Fresh { keys, values, last, early, rotation }) = fresh {
            let bytes = |heads: Heads| (heads.offset * self.ty.size()) as u64;
            (params.fresh_k, params.fresh_v) = (bytes(keys), bytes(values));
            params.early = early.into();
            params.fresh_strides = [keys, values].map(|x| [x.strides[0] as i64, x.strides[1] as i64]);
            addresses.extend([
                (offset_of!(DecodeParams, fresh_k), keys.at),
                (offset_of!(DecodeParams, fresh_v), values.at),
                (offset_of!(DecodeParams, last), last),
                (ERRORS, Operand::Errors),
            ]);
            if let Some(rotation) = rotation {
                (params.half, params.cache_rows) = (rotation.half as u32, rotation.rows as u32);
                params.interleaved = u32::from(rotation.interleaved);
                addresses.push((offset_of!(DecodeParams, cosines), rotation.cosines));
                addresses.push((offset_of!(DecodeParams, sines), rotation.sines));
                addresses.extend(rotation.positions.map(|at| (offset_of!(DecodeParams, positions), at)));
            }
        }
        (params, addresses)
    }

    /// The operands whose addresses must be multiples of [`ALIGNMENT`], with their offsets in bytes.
    pub(super) fn packed_operands(&self) -> [(Operand, u64); 2] {
        [self.k, self.v].map(|x| (x.at, (x.offset * self.ty.size()) as u64))
    }
}

#[cfg(test)]
impl super::super::LaunchPlan {
    /// Whether attention of few queries reads caches before the kernel before it has ended; `None` where it has no part.
    pub(crate) fn reads_caches_early(&self) -> Option<bool> {
        let params = self.params_of("flash_decode");
        let at = offset_of!(DecodeParams, early);
        params.first().map(|params| params[at..at + size_of::<u32>()] != [0; size_of::<u32>()])
    }
}

/// Where the parameters have the run's error word.
const ERRORS: usize = offset_of!(super::params::SoftmaxParams, errors);

/// By the size of heads, and by rows of a workgroup.
const NAMES: [[&CStr; 3]; 3] = [
    [c"flash_decode_64_1", c"flash_decode_64_4", c"flash_decode_64_8"],
    [c"flash_decode_128_1", c"flash_decode_128_4", c"flash_decode_128_8"],
    [c"flash_decode_256_1", c"flash_decode_256_4", c"flash_decode_256_8"],
];

#[cfg(test)]
mod tests {
    use super::super::scores::FirstQuery;
    use super::*;

    /// One query of four heads for each head of keys.
    fn problem(heads: usize, rows: usize, size: usize) -> Problem {
        let of = |heads, rows| Heads::dense(Operand::Input(0), heads, rows, size);
        Problem {
            ty: ElementType::F16,
            batch: 1,
            q: of(4 * heads, 1),
            k: of(heads, rows),
            v: of(heads, rows),
            y: of(4 * heads, 1),
            scale: 1.0,
            softcap: 0.0,
            causal: true,
            window: [None; 2],
            first: FirstQuery::BeforeEnd,
            lengths: None,
            mask: None,
            sink: None,
            kept: None,
        }
    }

    #[test]
    fn where_memory_is_full_keys_come_through_rings() {
        for (units, heads, rows, size, expected) in [
            (132, 8, 8192, 64, Some(("flash_decode_64_ring_cluster8", 8))),
            (132, 8, 512, 128, Some(("flash_decode_128_ring_cluster8", 8))),
            (132, 15, 512, 80, Some(("flash_decode_128_ring_cluster8", 8))),
            // So many clusters of 8, of 4 and of 2 have no room at the same time.
            (132, 16, 8192, 64, Some(("flash_decode_64_ring_cluster4", 4))),
            (78, 9, 8192, 64, Some(("flash_decode_64_ring_cluster4", 4))),
            (132, 31, 8192, 128, Some(("flash_decode_128_ring_cluster2", 2))),
            (132, 67, 8192, 64, Some(("flash_decode_64_ring_cluster1", 1))),
            (132, 133, 8192, 64, None),
            // One workgroup has all keys.
            (132, 8, 128, 64, None),
        ] {
            let unit = Unit { compute_units: units, ..Unit::HOPPER };
            let problem = problem(heads, rows, size);
            let chosen = |unit, behind_full_memory| {
                let DecodeKernel { kernel, splits, ring, .. } =
                    problem.decode_kernel(unit, behind_full_memory).unwrap();
                ring.then(|| (kernel.name.to_str().unwrap(), splits))
            };
            assert_eq!(chosen(unit, true), expected, "{heads} heads of {size} along {rows} keys on {units}");
            assert_eq!(chosen(unit, false), None);
            assert_eq!(chosen(Unit { tensor_maps: false, ..unit }, true), None);
        }
    }

    #[test]
    fn few_keys_are_parts_of_one_cluster() {
        for (units, heads, rows, size, expected) in [
            (132, 8, 100, 64, ("mma_flash_decode_64", 1)),
            (132, 8, 129, 64, ("mma_flash_decode_64_cluster8", 8)),
            (132, 8, 3072, 64, ("mma_flash_decode_64_cluster8", 8)),
            (132, 8, 3073, 64, ("mma_flash_decode_64_cluster8", 24)),
            (132, 8, 3500, 64, ("mma_flash_decode_64_cluster8", 24)),
            (132, 8, 4097, 64, ("mma_flash_decode_64_cluster8", 32)),
            (132, 8, 20000, 64, ("mma_flash_decode_64_cluster8", 32)),
            (132, 8, 1536, 128, ("mma_flash_decode_128_cluster8", 8)),
            (132, 8, 1537, 128, ("mma_flash_decode_128_cluster8", 24)),
            (132, 8, 1800, 128, ("mma_flash_decode_128_cluster8", 24)),
            (132, 16, 8192, 64, ("mma_flash_decode_64_cluster8", 16)),
            (132, 20, 8192, 64, ("mma_flash_decode_64_cluster8", 16)),
            (132, 28, 8192, 64, ("mma_flash_decode_64", 14)),
            (114, 16, 8192, 64, ("mma_flash_decode_64_cluster8", 16)),
            (114, 8, 8192, 64, ("mma_flash_decode_64_cluster8", 24)),
            (78, 8, 8192, 64, ("mma_flash_decode_64_cluster8", 16)),
            (132, 24, 2048, 64, ("mma_flash_decode_64_cluster8", 8)),
            // So many clusters have no room at the same time.
            (132, 60, 2048, 64, ("mma_flash_decode_64", 6)),
        ] {
            let problem = problem(heads, rows, size);
            let DecodeKernel { kernel, splits, .. } =
                problem.decode_kernel(Unit { compute_units: units, ..Unit::HOPPER }, false).unwrap();
            let chosen = (kernel.name.to_str().unwrap(), splits);
            assert_eq!(chosen, expected, "{heads} heads of {size} along {rows} keys on {units}");
        }
    }
}
