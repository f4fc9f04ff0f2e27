//! Attention of few queries along many keys that are kept in 8 or 4 bits: launches of
//! `kernels/include/rukh/flash_decode_quantized.h`, which reads the caches themselves.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::KernelName;
use super::super::unit::Unit;
use super::decode::{DecodeKernel, DecodeParams, Fresh, ITEMS, MOST_SPLITS, RESIDENT, Way};
use super::quantized_cache::{QuantizedCache, format};
use super::scores::Problem;

/// Columns of a work item (of 4 bits two share them), rows of a workgroup, and keys that a work item loads before it uses one,
/// as in the kernel.
const CODES: usize = 16;
const ROWS: usize = 4;
const AHEAD: usize = 2;

/// Workgroups for each processor where it is none of NVIDIA's: by their registers there is room for four and more on AMD's,
/// but for gfx906 and gfx908.
const RESIDENT_ELSEWHERE: usize = 4;

/// Work items that share a row, as powers of two, for heads of so many columns.
const LANES: [(u32, usize); 3] = [(2, 64), (3, 128), (4, 256)];

/// Those for a head, and the columns that they have room for.
fn lanes(size: usize) -> Option<(u32, usize)> {
    LANES.into_iter().find(|(_, room)| size <= *room)
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct QuantizedDecodeParams {
    decode: DecodeParams,
    scales: [u64; 2],
    by_column: [u32; 2],
    ty: u32,
    format: u32,
    lanes: u32,
    unused: u32,
}

const _: () = assert!(size_of::<QuantizedDecodeParams>() == 504);

impl Problem {
    /// The kernel that reads quantized caches of a type, where there is one for this problem.
    pub(super) fn quantized_decode_kernel(&self, unit: Unit, kept: ElementType) -> Option<DecodeKernel> {
        let size = self.k.size;
        let columns = if kept == ElementType::U8 { 2 * CODES } else { CODES };
        let (lanes, room) = lanes(size)?;
        let plain = self.mask.is_none() && self.kept.is_none() && !self.has_enough_rows();
        let float = matches!(self.ty, ElementType::F32 | ElementType::F16 | ElementType::BF16);
        let usable = plain && float && size.is_multiple_of(columns) && size > 0 && self.k.heads > 0;
        let way = Way {
            kernel: KernelName { family: "flash_decode_quantized", name: c"flash_decode_quantized" },
            rows: ROWS,
            size: room,
            keys_at_once: (ITEMS >> lanes) * AHEAD,
            resident: if unit.mma_sync { RESIDENT } else { RESIDENT_ELSEWHERE },
            most_splits: MOST_SPLITS,
            clustered: None,
            ring: None,
        };
        if usable { self.launched(unit, way) } else { None }
    }

    /// Appends the launch, as `plan_decode` does. Keys and values are what `cache` keeps; their strides are in numbers, of
    /// which a byte may have two.
    pub(super) fn plan_quantized_decode(
        &self,
        plan: &mut PlanBuilder<'_>,
        kernel: DecodeKernel,
        cache: &QuantizedCache,
        fresh: Option<Fresh>,
    ) -> Result<(), OpError> {
        const { assert!(offset_of!(QuantizedDecodeParams, decode) == 0) };
        let (decode, mut addresses) = self.decode_params(plan, kernel, fresh);
        let params = QuantizedDecodeParams {
            decode,
            by_column: cache.parts.map(|part| u32::from(part.per_channel)),
            ty: self.ty as u32,
            format: format(cache.kept) as u32,
            lanes: lanes(self.k.size).map_or(0, |(lanes, _)| lanes),
            ..QuantizedDecodeParams::zeroed()
        };
        let scales = offset_of!(QuantizedDecodeParams, scales);
        let at = cache.parts.map(|part| part.scales);
        addresses.extend((0..).zip(at).map(|(i, at)| (scales + i * size_of::<u64>(), at)));
        self.launch_decode(plan, kernel, &params, &addresses)
    }
}
