//! Queries, keys and values brought to where attention reads them: after those of the past, with their
//! bias, normalised and rotated.

use num_traits::AsPrimitive;

use crate::tensor::{TensorView, TensorViewMut};
use crate::threads::Pool;

use super::heads::{Heads, head_strides};
use crate::gemm::{Activate, Store};
use crate::kernel::KernelContext;
use crate::loops::parallel::split_mut;

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
                self.own_rows(sample, head, change, new);
            }
        });
        Heads { data: out, strides: head_strides(4, heads, capacity, size) }
    }

    /// Writes the operand's own rows behind the first `past(sample)` of each head in `cache`, `[batch, heads,
    /// capacity, size]`. Nothing else of it is touched.
    pub(super) fn append<'o>(
        &self,
        past: &dyn Fn(usize) -> usize,
        change: Option<Change<'_, T>>,
        capacity: usize,
        cache: &'o mut [T],
    ) -> Heads<'o, T> {
        let &Operand { heads, rows, size, .. } = self;
        for (i, plane) in cache.chunks_exact_mut((capacity * size).max(1)).enumerate() {
            let (sample, head) = (i / heads, i % heads);
            let start = past(sample) * size;
            self.own_rows(sample, head, change, &mut plane[start..start + rows * size]);
        }
        Heads { data: cache, strides: head_strides(4, heads, capacity, size) }
    }

    /// Writes the operand's own rows of a head.
    pub(super) fn own_rows(&self, sample: usize, head: usize, change: Option<Change<'_, T>>, out: &mut [T]) {
        let ([b, h, r], size) = (self.rows_of.strides, self.size);
        let from = sample * b + head * h;
        for (row, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
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

    /// The elements that `gather` needs.
    pub(super) fn space(&self, capacity: usize) -> usize {
        self.batch * self.heads * capacity * self.size
    }
}

/// New values and those of the past, of whatever type.
pub(super) struct Values<'a> {
    pub(super) new: TensorView<'a>,
    pub(super) past: Option<TensorView<'a>>,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) size: usize,
}

/// Brings values into the element type `T`, in the memory that comes last; the output, when there is
/// one, takes them as they are.
pub(super) type Convert<T> =
    for<'a> fn(&KernelContext<'_>, Values<'_>, Option<&mut TensorViewMut<'_>>, &'a mut [T]) -> Heads<'a, T>;

/// [`Convert`] from values of type `U`.
pub(super) fn converted<'a, T, U>(
    cx: &KernelContext<'_>,
    values: Values<'_>,
    out: Option<&mut TensorViewMut<'_>>,
    scratch: &'a mut [T],
) -> Heads<'a, T>
where
    T: Store<Compute: Activate>,
    U: Store<Compute: Activate + AsPrimitive<f64>>,
{
    let Values { new, past, batch, heads, rows, size } = values;
    let past_rows = past.map_or(0, |past| past.shape()[2]);
    let capacity = past_rows + rows;
    let strides = head_strides(new.rank(), heads, rows, size);
    let rows_of = Heads { data: new.slice::<U>(), strides };
    let past = past.map(|past| past.slice::<U>());
    if let Some(out) = out {
        let past_count = |_| past_rows;
        let past = past.map(|data| Past { data, capacity: past_rows, rows: &past_count, whole: false });
        let new = Operand { rows_of, batch, heads, rows, size, bias: None };
        new.gather(cx.pool, past, None, capacity, out.slice());
    }
    let change = |x: &U| T::store(T::Compute::of_f64(x.load().as_()));
    split_mut(cx.pool, scratch, size, (1 << 13) / size.max(1) + 1, |range, out| {
        for (i, out) in range.zip(out.chunks_exact_mut(size)) {
            let (plane, row) = (i / capacity, i % capacity);
            let from = match (past, row.checked_sub(past_rows)) {
                (Some(past), None) => &past[(plane * past_rows + row) * size..][..size],
                (_, row) => {
                    let [b, h, r] = strides;
                    let at = plane / heads * b + plane % heads * h + row.unwrap_or(0) * r;
                    &rows_of.data[at..at + size]
                }
            };
            out.iter_mut().zip(from).for_each(|(y, x)| *y = change(x));
        }
    });
    Heads { data: scratch, strides: head_strides(4, heads, capacity, size) }
}
