//! Reductions over windows of elements of any type.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::pool::{Pool, Reduction};
use crate::tensor::{Element, TensorView, TensorViewMut};

use super::fold::Fold;
use super::{geometry, window_counts};
use crate::conv::PatchTable;
use crate::kernel::{Argument, Kernel, KernelContext, Prepared};
use crate::loops::parallel::{Parts, threads_of_image};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};

pub(super) struct Windowed<T, F> {
    op: Pool,
    fold: F,
    _element: PhantomData<fn(T)>,
}

struct State {
    table: PatchTable,
    /// The number of elements of each window; empty where the reduction does not ask.
    counts: Vec<usize>,
}

impl<T: Element, F: Fold<T>> Windowed<T, F> {
    pub(super) fn boxed(op: Pool, fold: F) -> Box<dyn Kernel> {
        Box::new(Windowed { op, fold, _element: PhantomData })
    }
}

impl<T: Element, F: Fold<T>> Kernel for Windowed<T, F> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let g = geometry(&self.op.window, x.shape)?;
        let counts = match self.op.reduction {
            Reduction::Average { count_padding } => window_counts(&g, count_padding),
            _ => Vec::new(),
        };
        let state = State { table: PatchTable::new(&g), counts };
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let State { table, counts } = cx.state::<State>();
        let (images, x, line) = (x.shape()[0], x.slice::<T>(), table.line());
        let (lines, out) = (table.lines(), table.lines() * line);
        let planes = y.len() / out.max(1);
        let y = Parts::new(y.slice::<T>());
        // A thread has images, or the same lines of all planes, as of convolutions.
        let bands = threads_of_image(images, cx.pool.threads()).min(lines).max(1);
        cx.pool.split(bands * planes, (1 << 15) / out.div_ceil(bands).max(1) + 1, |range| {
            with_scratch([line, table.width()], |[sums, columns]: [&mut [F::Sum]; 2]| {
                for i in range {
                    let (band, plane) = (i / planes, i % planes);
                    let lines = lines * band / bands..lines * (band + 1) / bands;
                    let image = &x[plane * table.plane()..][..table.plane()];
                    // SAFETY: each line is written by one piece of the split.
                    let y =
                        unsafe { y.get(plane * out + lines.start * line..plane * out + lines.end * line) };
                    let (columns, sums) = (&mut *columns, &mut *sums);
                    widest(Plane {
                        fold: &self.fold,
                        table,
                        counts,
                        first: lines.start,
                        image,
                        columns,
                        sums,
                        y,
                    });
                }
            });
        });
        Ok(())
    }
}

/// Pools lines of one plane: for each the columns of its windows, then these along the line.
struct Plane<'a, T, F: Fold<T>> {
    fold: &'a F,
    table: &'a PatchTable,
    counts: &'a [usize],
    /// The first line.
    first: usize,
    image: &'a [T],
    /// A line of the image, and one of the output.
    columns: &'a mut [F::Sum],
    sums: &'a mut [F::Sum],
    y: &'a mut [T],
}

impl<T: Element, F: Fold<T>> Loop for Plane<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Plane { fold, table, counts, first, image, columns, sums, y } = self;
        let (line, stride) = (table.line(), table.stride());
        for (i, y) in (first..).zip(y.chunks_mut(line.max(1))) {
            columns.fill(fold.start());
            for start in table.rows(i) {
                let row = &image[start..][..columns.len()];
                columns.iter_mut().zip(row).for_each(|(sum, &x)| *sum = fold.add(*sum, x));
            }
            sums.fill(fold.start());
            for (range, at) in table.spans() {
                if !range.is_empty() {
                    let from = &columns[((range.start * stride) as isize + at) as usize..];
                    join(fold, &mut sums[range.clone()], from, stride);
                }
            }
            match counts.get(i * line..(i + 1) * line) {
                Some(counts) => {
                    for ((y, &sum), &count) in y.iter_mut().zip(&*sums).zip(counts) {
                        *y = fold.finish(sum, count);
                    }
                }
                None => y.iter_mut().zip(&*sums).for_each(|(y, &sum)| *y = fold.finish(sum, 1)),
            }
        }
    }
}

/// Adds a part to each sum, at a stride.
#[inline(always)]
fn join<T: Element, F: Fold<T>>(fold: &F, sums: &mut [F::Sum], from: &[F::Sum], stride: usize) {
    match stride {
        1 => sums.iter_mut().zip(from).for_each(|(sum, &x)| *sum = fold.join(*sum, x)),
        2 => {
            // Pairs are loaded as vectors, single elements at a stride are not.
            let (pairs, rest) = from.as_chunks::<2>();
            let whole = pairs.len().min(sums.len());
            for i in 0..whole {
                sums[i] = fold.join(sums[i], pairs[i][0]);
            }
            if let (Some(sum), Some(&x)) = (sums.get_mut(whole), rest.first()) {
                *sum = fold.join(*sum, x);
            }
        }
        _ => sums.iter_mut().zip(from.iter().step_by(stride)).for_each(|(sum, &x)| *sum = fold.join(*sum, x)),
    }
}
