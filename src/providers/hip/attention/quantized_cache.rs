//! Caches of keys and values in 8 or 4 bits: a launch of `kernels/quantized_cache.hip`, which keeps new rows and makes
//! numbers of what attention sees.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::{Divider, divider};
use super::decode::DecodeKernel;
use super::heads::Heads;
use super::scores::Problem;

/// How the kernels call what a cache of a type has: bytes have two numbers of 4 bits.
pub(super) fn format(kept: ElementType) -> ElementType {
    match kept {
        ElementType::U8 => ElementType::U4,
        kept => kept,
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CachePart {
    past: u64,
    fresh: u64,
    scales: u64,
    cache: u64,
    out: u64,
    per_channel: u32,
    fresh_only: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct QuantizedCacheParams {
    parts: [CachePart; 2],
    lengths: u64,
    groups: Divider,
    units: Divider,
    kv_heads: u32,
    size: u32,
    capacity: u32,
    past_rows: u32,
    rows: u32,
    format: u32,
    used: u32,
    step: u32,
}

const _: () = assert!(size_of::<QuantizedCacheParams>() == 160);

/// Columns of a work item, where heads have a multiple of them.
const STEP: usize = 8;

/// Keys or values: the cache before, if there is one, and after, and the new rows without gaps.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) past: Option<Operand>,
    pub(super) fresh: Heads,
    pub(super) scales: Operand,
    pub(super) per_channel: bool,
    pub(super) cache: Operand,
    /// What attention reads where it does not read the cache itself: numbers, without gaps, as many rows as the cache has.
    pub(super) out: Option<Operand>,
}

/// One launch for keys and values.
#[derive(Clone, Copy)]
pub(super) struct QuantizedCache {
    /// Of the numbers.
    pub(super) ty: ElementType,
    /// Of the caches: int8, float8e4m3fn, or uint8 for two numbers of 4 bits.
    pub(super) kept: ElementType,
    pub(super) batch: usize,
    /// Rows of the caches after, and before.
    pub(super) capacity: usize,
    pub(super) past_rows: usize,
    pub(super) parts: [Kept; 2],
    /// The number of keys of each sample.
    pub(super) lengths: Operand,
    /// As in `gather::Part`.
    pub(super) used: usize,
    /// Whether the caches have the past already and attention reads them: new rows alone are kept.
    pub(super) fresh_only: bool,
}

impl QuantizedCache {
    /// Keeps new rows, and appends attention: by the kernel that reads the caches themselves, or else along a copy of them
    /// as numbers.
    pub(super) fn plan_attention(
        &self,
        plan: &mut PlanBuilder<'_>,
        problem: &Problem,
        kernel: Option<DecodeKernel>,
    ) -> Result<(), OpError> {
        if let Some(kernel) = kernel {
            self.plan(plan)?;
            return problem.plan_quantized_decode(plan, kernel, self, None);
        }
        let [k, v] = [problem.k, problem.v]
            .map(|x| Heads { at: plan.scratch(self.batch * x.strides[0] * self.ty.size()), ..x });
        let [keys, values] = self.parts;
        let parts = [Kept { out: Some(k.at), ..keys }, Kept { out: Some(v.at), ..values }];
        QuantizedCache { parts, ..*self }.plan(plan)?;
        Problem { k, v, ..*problem }.plan(plan)
    }

    pub(super) fn plan(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        let name: &'static CStr = match self.ty {
            ElementType::F16 => c"quantized_cache_f16",
            ElementType::BF16 => c"quantized_cache_bf16",
            _ => c"quantized_cache_f32",
        };
        let format = format(self.kept);
        let Heads { heads, rows, size, .. } = self.parts[0].fresh;
        let capacity = self.capacity;
        let step = match format {
            _ if size.is_multiple_of(STEP) => STEP,
            ElementType::U4 => 2,
            _ => 1,
        };
        let units = size / step;
        let launched = if self.fresh_only { rows } else { capacity };
        let groups = (launched * units).div_ceil(GROUP as usize);
        let mut params = QuantizedCacheParams {
            groups: divider(groups.max(1))?,
            units: divider(units.max(1))?,
            kv_heads: heads as u32,
            size: size as u32,
            capacity: capacity as u32,
            past_rows: self.past_rows as u32,
            rows: rows as u32,
            format: format as u32,
            used: self.used as u32,
            step: step as u32,
            ..QuantizedCacheParams::zeroed()
        };
        let mut addresses = vec![(offset_of!(QuantizedCacheParams, lengths), self.lengths)];
        for (i, part) in self.parts.iter().enumerate() {
            let from = offset_of!(QuantizedCacheParams, parts) + i * size_of::<CachePart>();
            params.parts[i].per_channel = u32::from(part.per_channel);
            params.parts[i].fresh_only = u32::from(self.fresh_only);
            addresses.extend(part.past.map(|past| (from + offset_of!(CachePart, past), past)));
            addresses.extend([
                (from + offset_of!(CachePart, fresh), part.fresh.at),
                (from + offset_of!(CachePart, scales), part.scales),
                (from + offset_of!(CachePart, cache), part.cache),
            ]);
            addresses.extend(part.out.map(|out| (from + offset_of!(CachePart, out), out)));
        }
        let kernel = KernelName { family: "quantized_cache", name };
        plan.launch(kernel, [groups * self.batch * heads, self.parts.len(), 1], &params, &addresses)
    }
}
