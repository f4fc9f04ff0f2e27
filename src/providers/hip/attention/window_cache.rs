//! Caches that keep the last keys alone: launches of `kernels/include/rukh/window_cache.h`, before and behind attention.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;

use super::super::PlanBuilder;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::{Divider, divider};
use super::quantized_cache::{Kept, QuantizedCache};
use super::scores::Problem;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WindowPart {
    past: u64,
    fresh: u64,
    space: u64,
    cache: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WindowCacheParams {
    parts: [WindowPart; 2],
    lengths: u64,
    seen: u64,
    groups: Divider,
    units: Divider,
    kv_heads: u32,
    capacity: u32,
    rows: u32,
    room: u32,
    window: u32,
    prompt: u32,
    bytes: u32,
    element: u32,
    second: u32,
    unused: u32,
}

const _: () = assert!(size_of::<WindowCacheParams>() == 144);

/// Keys and values of a node with such caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowCache {
    pub(super) batch: usize,
    pub(super) kv_heads: usize,
    /// Bytes of a row of a head, and of a number.
    pub(super) row_bytes: usize,
    pub(super) element: usize,
    /// Keys that a query sees, and rows of the caches.
    pub(super) window: usize,
    pub(super) capacity: usize,
    /// New rows, without gaps, and whether they have no past.
    pub(super) rows: usize,
    pub(super) prompt: bool,
    pub(super) past: [Operand; 2],
    pub(super) fresh: [Operand; 2],
    pub(super) caches: [Option<Operand>; 2],
    /// What attention reads: `room` rows of each head.
    pub(super) space: [Operand; 2],
    /// The keys of each sample, and those that are in `space`.
    pub(super) lengths: Operand,
    pub(super) seen: Operand,
}

impl WindowCache {
    /// Rows that attention has room for.
    pub(super) fn room(&self) -> usize {
        self.capacity + self.rows
    }

    /// Puts all that attention sees together, appends attention along it, and brings the last rows into the caches.
    pub(super) fn plan_attention(
        &self,
        plan: &mut PlanBuilder<'_>,
        problem: &Problem,
        quantized: Option<&QuantizedCache>,
    ) -> Result<(), OpError> {
        let Some(quantized) = quantized else {
            self.plan(plan)?;
            problem.plan(plan)?;
            return self.plan_back(plan);
        };
        // New rows as the caches keep them, which have no past where they are made.
        let fresh = [0, 1].map(|_| plan.scratch(self.batch * self.kv_heads * self.rows * self.row_bytes));
        let [keys, values] = quantized.parts;
        let own = |part: Kept, cache: Operand| Kept { past: None, cache, ..part };
        QuantizedCache {
            capacity: self.rows,
            past_rows: 0,
            parts: [own(keys, fresh[0]), own(values, fresh[1])],
            lengths: plan.table(&vec![self.rows as i64; self.batch]),
            used: 0,
            ..*quantized
        }
        .plan(plan)?;
        let window = WindowCache { fresh, ..*self };
        window.plan(plan)?;
        // All of them are there where attention begins.
        let seen = |part: Kept, space: Operand| Kept {
            past: Some(space),
            cache: space,
            fresh: part.fresh.first(0),
            ..part
        };
        let seen = QuantizedCache {
            capacity: self.room(),
            past_rows: self.room(),
            parts: [seen(keys, self.space[0]), seen(values, self.space[1])],
            lengths: self.seen,
            ..*quantized
        };
        match problem.quantized_decode_kernel(plan.provider.unit(), quantized.kept) {
            Some(kernel) => problem.plan_quantized_decode(plan, kernel, &seen, None)?,
            None => seen.plan_attention(plan, problem, None)?,
        }
        window.plan_back(plan)
    }

    /// Puts all that attention sees together.
    fn plan(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        self.launch(plan, self.room(), false)
    }

    /// Brings the last rows into the caches, behind attention.
    fn plan_back(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        if self.caches.iter().all(Option::is_none) {
            return Ok(());
        }
        self.launch(plan, self.capacity, true)
    }

    fn launch(&self, plan: &mut PlanBuilder<'_>, rows: usize, second: bool) -> Result<(), OpError> {
        let bytes = [16, 8, 4, 2].into_iter().find(|&n| self.row_bytes.is_multiple_of(n)).unwrap_or(1);
        let units = self.row_bytes / bytes;
        let groups = (rows * units).div_ceil(GROUP as usize);
        let params = WindowCacheParams {
            groups: divider(groups.max(1))?,
            units: divider(units.max(1))?,
            kv_heads: self.kv_heads as u32,
            capacity: self.capacity as u32,
            rows: self.rows as u32,
            room: self.room() as u32,
            window: self.window as u32,
            prompt: u32::from(self.prompt),
            bytes: bytes as u32,
            element: self.element as u32,
            second: u32::from(second),
            ..WindowCacheParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(WindowCacheParams, lengths), self.lengths),
            (offset_of!(WindowCacheParams, seen), self.seen),
        ];
        for i in [0, 1] {
            let from = offset_of!(WindowCacheParams, parts) + i * size_of::<WindowPart>();
            addresses.extend([
                (from + offset_of!(WindowPart, past), self.past[i]),
                (from + offset_of!(WindowPart, fresh), self.fresh[i]),
                (from + offset_of!(WindowPart, space), self.space[i]),
            ]);
            addresses.extend(self.caches[i].map(|cache| (from + offset_of!(WindowPart, cache), cache)));
        }
        let kernel = KernelName { family: "quantized_cache", name: c"window_cache" };
        plan.launch(kernel, [groups * self.batch * self.kv_heads, 2, 1], &params, &addresses)
    }
}
