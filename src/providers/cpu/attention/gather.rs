//! Queries, keys and values brought to where attention reads them: after those of the past, with their
//! bias, normalised and rotated.

use crate::threads::Pool;

use super::super::gemm::{Activate, Store};
use super::super::parallel::split_mut;
use super::flash::{Heads, head_strides};

/// Queries, keys or values as a node gives them.
pub(super) struct Operand<'a, T> {
    pub(super) rows_of: Heads<'a, T>,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) size: usize,
    /// One element for each column of all heads.
    pub(super) bias: Option<&'a [T]>,
}

/// What came before the operand's rows: `[batch, heads, capacity, size]`, of which the first
/// `rows(sample)` of each head count.
pub(super) struct Past<'a, T> {
    pub(super) data: &'a [T],
    pub(super) capacity: usize,
    pub(super) rows: &'a (dyn Fn(usize) -> usize + Sync),
    /// Whether the rest of the capacity, which must be that of the whole, is kept too.
    pub(super) whole: bool,
}

/// A change of one row of a head: by sample and by row of the operand.
pub(super) type Change<'a, T> = &'a (dyn Fn(usize, usize, &mut [T]) + Sync);

impl<T: Store<Compute: Activate>> Operand<'_, T> {
    /// Writes rows of the past and then the operand's own into `out`, `[batch, heads, capacity, size]`;
    /// what is left of the capacity becomes zero
    /// unless the past tells it.
    pub(super) fn gather<'o>(
        &self,
        pool: &Pool,
        past: Option<Past<'_, T>>,
        change: Option<Change<'_, T>>,
        capacity: usize,
        out: &'o mut [T],
    ) -> Heads<'o, T> {
        let &Operand { heads, rows, size, .. } = self;
        let plane = capacity * size;
        let [b, h, r] = self.rows_of.strides;
        let zero = T::store(T::Compute::default());
        split_mut(pool, out, plane, (1 << 15) / plane.max(1) + 1, |range, out| {
            for (i, out) in range.zip(out.chunks_exact_mut(plane.max(1))) {
                let (sample, head) = (i / heads, i % heads);
                let mut start = 0;
                if let Some(past) = &past {
                    start = (past.rows)(sample) * size;
                    out[..start].copy_from_slice(&past.data[i * past.capacity * size..][..start]);
                }
                let (new, rest) = out[start..].split_at_mut(rows * size);
                match past.as_ref().filter(|past| past.whole) {
                    Some(past) => {
                        rest.copy_from_slice(&past.data[(i + 1) * plane - rest.len()..][..rest.len()])
                    }
                    None => rest.fill(zero),
                }
                let from = sample * b + head * h;
                for (row, out) in new.chunks_exact_mut(size.max(1)).enumerate() {
                    out.copy_from_slice(&self.rows_of.data[from + row * r..][..size]);
                    if let Some(bias) = self.bias {
                        let bias = &bias[head * size..][..size];
                        out.iter_mut().zip(bias).for_each(|(y, x)| *y = T::store(y.load() + x.load()));
                    }
                    if let Some(change) = change {
                        change(sample, row, out);
                    }
                }
            }
        });
        Heads { data: out, strides: head_strides(4, heads, capacity, size) }
    }

    /// The elements that `gather` needs.
    pub(super) fn space(&self, capacity: usize) -> usize {
        self.batch * self.heads * capacity * self.size
    }
}
