//! Caches that keep the last keys alone: launches of `kernels/window_cache.hip`, before and behind attention.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;

use super::super::PlanBuilder;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::{Divider, divider};

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
    back: u32,
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

    /// Puts all that attention sees together.
    pub(super) fn plan(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        self.launch(plan, self.room(), false)
    }

    /// Brings the last rows into the caches, behind attention.
    pub(super) fn plan_back(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        if self.caches.iter().all(Option::is_none) {
            return Ok(());
        }
        self.launch(plan, self.capacity, true)
    }

    fn launch(&self, plan: &mut PlanBuilder<'_>, rows: usize, back: bool) -> Result<(), OpError> {
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
            back: u32::from(back),
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
        let kernel = KernelName { family: "window_cache", name: c"window_cache" };
        plan.launch(kernel, [groups * self.batch * self.kv_heads, 2, 1], &params, &addresses)
    }
}
