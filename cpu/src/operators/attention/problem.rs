//! What an attention is asked to compute: operands with their strides, mask, sinks.

use crate::ops::attention::Scores;

use super::mask::Mask;
use crate::loops::parallel::Parts;

/// A tensor `[batch, heads, rows, size]` somewhere in memory, its last dimension contiguous.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a, T> {
    pub(super) data: &'a [T],
    /// Elements between batches, heads, rows.
    pub(super) strides: [usize; 3],
}

impl<'a, T> Heads<'a, T> {
    pub(super) fn from(&self, batch: usize, head: usize, row: usize) -> &'a [T] {
        let [b, h, r] = self.strides;
        &self.data[(batch * b + head * h + row * r).min(self.data.len())..]
    }
}

/// Strides of a tensor of rank 4, or of rank 3 with the heads side by side in a row.
pub(super) fn head_strides(rank: usize, heads: usize, rows: usize, size: usize) -> [usize; 3] {
    match rank {
        4 => [heads * rows * size, rows * size, size],
        _ => [rows * heads * size, size, heads * size],
    }
}

/// One attention over a batch.
pub(super) struct Problem<'a, T> {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) size: usize,
    pub(super) v_size: usize,
    pub(super) q: Heads<'a, T>,
    pub(super) k: Heads<'a, T>,
    pub(super) v: Heads<'a, T>,
    pub(super) scale: f32,
    pub(super) softcap: f32,
    pub(super) mask: Mask<'a>,
    pub(super) sink: Option<Sink<'a, T>>,
    pub(super) y_strides: [usize; 3],
}

/// One more score of each row, which takes its part of the softmax and has no value.
#[derive(Clone, Copy)]
pub(super) enum Sink<'a, T> {
    Zero,
    /// One for each head.
    Heads(&'a [T]),
}

/// The scores to write, and at which stage.
pub(super) struct ScoreOutput<'a, T> {
    pub(super) stage: Scores,
    pub(super) data: Parts<'a, T>,
}
