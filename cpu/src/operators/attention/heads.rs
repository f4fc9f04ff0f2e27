//! Queries, keys or values somewhere in memory.

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
