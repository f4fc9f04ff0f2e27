//! Parameters of the attention kernels, as `kernels/attention.hip` and `kernels/heads.hip` declare them.

use std::mem::size_of;

use bytemuck::{Pod, Zeroable};

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct SoftmaxParams {
    pub(super) scores: u64,
    pub(super) out: u64,
    pub(super) kept: u64,
    pub(super) mask: u64,
    pub(super) lengths: u64,
    pub(super) errors: u64,
    pub(super) sinks: u64,
    pub(super) out_row: i64,
    pub(super) mask_strides: [i64; 3],
    /// Batch, head and query at which the launch's part begins.
    pub(super) first: [u32; 3],
    pub(super) all_heads: u32,
    pub(super) all_queries: u32,
    /// Batches, heads and queries of the part.
    pub(super) part: [u32; 3],
    pub(super) keys: u32,
    pub(super) stage: u32,
    pub(super) mask_type: u32,
    pub(super) mask_keys: u32,
    pub(super) offset: i32,
    pub(super) by_length: u32,
    pub(super) causal: u32,
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) scale: f32,
    pub(super) softcap: f32,
    pub(super) smooth: u32,
}

const _: () = assert!(size_of::<SoftmaxParams>() == 168);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct JoinParams {
    pub(super) past: u64,
    pub(super) fresh: u64,
    pub(super) out: u64,
    pub(super) count: u64,
    pub(super) strides: [i64; 3],
    pub(super) heads: u32,
    pub(super) past_rows: u32,
    pub(super) rows: u32,
    pub(super) words: u32,
    pub(super) width: u32,
    pub(super) unused: u32,
}

const _: () = assert!(size_of::<JoinParams>() == 80);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct RotaryParams {
    pub(super) x: u64,
    pub(super) cosines: u64,
    pub(super) sines: u64,
    pub(super) positions: u64,
    pub(super) out: u64,
    pub(super) errors: u64,
    pub(super) count: u64,
    pub(super) row: i64,
    pub(super) heads_inside: u32,
    pub(super) heads: u32,
    pub(super) steps: u32,
    pub(super) size: u32,
    pub(super) half: u32,
    pub(super) rows: u32,
    pub(super) kind: u32,
    pub(super) interleaved: u32,
    pub(super) scale: f32,
    pub(super) columns: u32,
}

const _: () = assert!(size_of::<RotaryParams>() == 104);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct FlashParams {
    pub(super) softmax: SoftmaxParams,
    pub(super) q: u64,
    pub(super) k: u64,
    pub(super) v: u64,
    pub(super) y: u64,
    /// Of queries, keys, values and the result: elements between batches, heads and rows.
    pub(super) strides: [[i64; 3]; 4],
    pub(super) group: u32,
    pub(super) kv_heads: u32,
    pub(super) size: u32,
    pub(super) v_size: u32,
    /// Blocks of keys and values in workgroup memory, of the kernels of four waves.
    pub(super) stages: u32,
    pub(super) unused: u32,
}

const _: () = assert!(size_of::<FlashParams>() == 320);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct GatherPart {
    pub(super) past: u64,
    pub(super) fresh: u64,
    pub(super) bias: u64,
    pub(super) weight: u64,
    pub(super) out: u64,
    pub(super) count: u64,
    pub(super) strides: [i64; 3],
    pub(super) heads: u32,
    pub(super) size: u32,
    pub(super) capacity: u32,
    pub(super) past_rows: u32,
    pub(super) rows: u32,
    pub(super) used: u32,
    pub(super) flags: u32,
    pub(super) step: u32,
}

const _: () = assert!(size_of::<GatherPart>() == 104);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct GatherParams {
    pub(super) parts: [GatherPart; 3],
    pub(super) last: u64,
    pub(super) lengths: u64,
    pub(super) cosines: u64,
    pub(super) sines: u64,
    pub(super) positions: u64,
    pub(super) errors: u64,
    pub(super) start: u32,
    pub(super) prompt: u32,
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) half: u32,
    pub(super) cache_rows: u32,
    pub(super) interleaved: u32,
    pub(super) epsilon: f32,
}

const _: () = assert!(size_of::<GatherParams>() == 392);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct PaddingParams {
    pub(super) mask: u64,
    pub(super) bias: u64,
    pub(super) out: u64,
    pub(super) count: u64,
    pub(super) mask_strides: [i64; 2],
    pub(super) bias_strides: [i64; 3],
    pub(super) batch: u32,
    pub(super) heads: u32,
    pub(super) queries: u32,
    pub(super) keys: u32,
    pub(super) kind: u32,
    pub(super) bias_type: u32,
    pub(super) filter: f32,
    pub(super) unused: u32,
}

const _: () = assert!(size_of::<PaddingParams>() == 104);
