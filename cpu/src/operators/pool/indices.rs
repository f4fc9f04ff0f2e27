//! Max pooling that also tells where each maximum was.

use crate::ops::OpError;
use crate::tensor::{TensorView, TensorViewMut};

use super::fold::Ordered;
use super::geometry;
use crate::conv::PatchTable;
use crate::kernel::{Argument, Kernel, KernelContext, Prepared};
use crate::loops::parallel::Parts;

pub(super) struct MaxIndices<T> {
    pub(super) op: crate::ops::pool::Pool,
    pub(super) _element: std::marker::PhantomData<fn(T)>,
}

struct State {
    table: PatchTable,
    /// Where column-major indices are wanted: for each element of a plane its index.
    renumber: Option<Vec<i64>>,
}

impl<T: Ordered> Kernel for MaxIndices<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let renumber = self.op.column_major.then(|| column_major(&x.shape[2..]));
        let state = State { table: PatchTable::new(&geometry(&self.op.window, x.shape)?), renumber };
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let [Some(y), Some(indices)] = outputs else { return Ok(()) };
        let Some(x) = inputs[0] else { return Ok(()) };
        let State { table, renumber } = cx.state::<State>();
        let (x, line) = (x.slice::<T>(), table.line());
        let out = table.lines() * line;
        let count = y.len() / out.max(1);
        let (y, indices) = (Parts::new(y.slice::<T>()), Parts::new(indices.slice::<i64>()));
        cx.pool.split(count, (1 << 15) / out.max(1) + 1, |range| {
            for plane in range {
                let image = &x[plane * table.plane()..][..table.plane()];
                // SAFETY: each plane is written by one piece of the split.
                let (y, at) = unsafe {
                    let part = plane * out..(plane + 1) * out;
                    (y.get(part.clone()), indices.get(part))
                };
                y.fill(T::LEAST);
                at.fill(0);
                for (i, (y, at)) in y.chunks_mut(line).zip(at.chunks_mut(line)).enumerate() {
                    find(table, i, image, y, at);
                }
                let base = (plane * table.plane()) as i64;
                for at in at {
                    *at = base + renumber.as_ref().map_or(*at, |r| r.get(*at as usize).copied().unwrap_or(0));
                }
            }
        });
        Ok(())
    }
}

/// The maxima of one output line and their positions in the plane; the first of equals wins.
fn find<T: Ordered>(table: &PatchTable, i: usize, image: &[T], y: &mut [T], at: &mut [i64]) {
    let stride = table.stride();
    table.taps(i, |_, start, range, offset| {
        for o in range.clone() {
            let from = (start as isize + (o * stride) as isize + offset) as usize;
            let x = image[from];
            let larger = x > y[o] || (x.partial_cmp(&x).is_none() && y[o].partial_cmp(&y[o]).is_some());
            if larger {
                (y[o], at[o]) = (x, from as i64);
            }
        }
    });
}

/// For each element in row-major order, its index in column-major order.
fn column_major(shape: &[usize]) -> Vec<i64> {
    let mut all = vec![0i64];
    let mut stride = 1i64;
    for &extent in shape {
        let step = stride;
        all = all.iter().flat_map(|&at| (0..extent as i64).map(move |i| at + i * step)).collect();
        stride *= extent as i64;
    }
    all
}
