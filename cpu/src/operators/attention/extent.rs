//! Extents of one attention and of its temporary memory, told from shapes alone.

use crate::gemm::Store;
use crate::kernel::KernelContext;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) queries: usize,
    /// Rows of keys that the node gives.
    pub(super) new: usize,
    pub(super) size: usize,
    pub(super) v_size: usize,
    /// Rows that the memory of the past has room for.
    pub(super) past: usize,
    /// Rows that past and new keys together have room for.
    pub(super) capacity: usize,
    /// Elements of temporary memory: projection, queries, keys, values.
    pub(super) scratch: [usize; 4],
}

impl Extent {
    /// Elements of queries, keys and values gathered.
    pub(super) fn spaces(&self) -> [usize; 3] {
        let &Extent { batch, heads, kv_heads, queries, size, v_size, capacity, .. } = self;
        let rows = batch * kv_heads * capacity;
        [batch * heads * queries * size, rows * size, rows * v_size]
    }

    /// The temporary memory in bytes.
    pub(super) fn bytes<T>(&self) -> usize {
        self.scratch.iter().sum::<usize>() * size_of::<T>()
    }

    /// The temporary memory in its parts.
    pub(super) fn split<'a, T: Store>(&self, cx: &KernelContext<'a>) -> [&'a mut [T]; 4] {
        let mut rest = cx.scratch::<T>();
        self.scratch.map(|len| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(len);
            rest = after;
            part
        })
    }
}
