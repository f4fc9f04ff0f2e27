//! Reductions over any axes.

mod accumulate;
mod finish;
mod layout;
mod singles;
mod sum_plus;

use std::ops::Range;

use crate::ops::OpError;
use crate::ops::reduce::{Axes, Reduce, Reduction};
use crate::tensor::{Bool, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::same_type::{same_type, same_type_mut};
use crate::loops::widen::{RUN, Widen};
use accumulate::{Accumulate, Accumulator, Several, accumulator};
use finish::{AreFinite, Finish};
pub(super) use layout::Layout;
use singles::TOGETHER;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("ReduceL1", build),
    Entry::new("ReduceL2", build),
    Entry::new("ReduceLogSum", build),
    Entry::new("ReduceLogSumExp", build),
    Entry::new("ReduceMax", build),
    Entry::new("ReduceMean", build),
    Entry::new("ReduceMin", build),
    Entry::new("ReduceProd", build),
    Entry::new("ReduceSum", build),
    Entry::new("ReduceSumSquare", build),
    Entry::new("ReduceSum", sum_plus::build).domain("rukh"),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Reduce>().clone();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, Bool] =>
            Box::new(ReduceKernel::<T> { first: accumulator(op.reduction), op }),
            else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct ReduceKernel<T: Widen<Wide: Accumulate>> {
    op: Reduce,
    first: Accumulator<T::Wide>,
}

/// Columns that are reduced at a time, when rows are kept.
const COLUMNS: usize = 256;

impl<T: Widen<Wide: Accumulate>> Kernel for ReduceKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let (x, y) = (x.slice::<T>(), output.slice::<T>());
        let layout: &Layout = cx.state();
        if layout.count == 0 {
            y.fill(T::down(self.finish(self.first.start, self.first.start, 0)));
            return Ok(());
        }
        let parts = Parts::new(y);
        if layout.row_reduced {
            let grain = (GRAIN / layout.count).max(1);
            cx.pool.split(layout.rows(), grain, |rows| {
                // SAFETY: the ranges that `split` hands out do not overlap.
                let y = unsafe { parts.get(rows.clone()) };
                if let Some(of_rows) = self.first.rows
                    && layout.is_rows()
                    && let (Some(x), Some(y)) = (same_type(x), same_type_mut(&mut *y))
                {
                    return of_rows(&x[rows.start * layout.row..rows.end * layout.row], layout.row, y);
                }
                let mut buffer = [T::Wide::default(); RUN];
                y.iter_mut().zip(rows).for_each(|(y, i)| *y = self.one_row(layout, x, i, &mut buffer));
            });
        } else {
            let blocks = layout.row.div_ceil(COLUMNS);
            let grain = (GRAIN / (layout.count * COLUMNS)).max(1);
            cx.pool.split(layout.rows() * blocks, grain, |units| {
                for unit in units {
                    let (row, block) = (unit / blocks, unit % blocks);
                    let columns = block * COLUMNS..((block + 1) * COLUMNS).min(layout.row);
                    // SAFETY: each unit has columns of its own.
                    let y = unsafe {
                        parts.get(row * layout.row + columns.start..row * layout.row + columns.end)
                    };
                    self.columns(layout, x, row, columns, y);
                }
            });
        }
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        prepared(&self.op, inputs)
    }
}

/// The layout of a reduction whose axes are known.
fn prepared(op: &Reduce, inputs: &[Option<Argument<'_>>]) -> Result<Prepared, OpError> {
    let Some(data) = inputs[0] else { return Ok(Prepared::default()) };
    let axes = match (&op.axes, inputs.get(1).copied().flatten()) {
        (Axes::Attribute(axes), _) => axes.clone().unwrap_or_default(),
        (Axes::Input, None) => Vec::new(),
        (Axes::Input, Some(axes)) => match axes.value {
            Some(value) => value.slice::<i64>().to_vec(),
            None => return Err(OpError::Unsupported("the axes of a reduction are not known".into())),
        },
    };
    let reduced = op.reduced(&axes, data.shape.len())?;
    Ok(Prepared { state: Some(Box::new(Layout::new(data.shape, &reduced))), scratch: 0 })
}

type Acc<T> = <<T as Widen>::Wide as Accumulate>::Acc;

impl<T: Widen<Wide: Accumulate>> ReduceKernel<T> {
    /// Rows that become one element.
    fn one_row(&self, layout: &Layout, x: &[T], i: usize, buffer: &mut [T::Wide; RUN]) -> T {
        let mut pass = |a: &Accumulator<T::Wide>, shift: Acc<T>| {
            let mut acc = a.start;
            layout.each_row(i, |start| {
                for x in x[start..start + layout.row].chunks(RUN) {
                    acc = (a.row)(T::load(x, buffer), acc, shift);
                }
            });
            acc
        };
        let first = pass(&self.first, self.first.start);
        let second = match self.first.second {
            Some(exponentials) => pass(&exponentials(), first),
            None => first,
        };
        T::down(self.finish(first, second, layout.count))
    }

    /// Columns of rows that are kept.
    fn columns(&self, layout: &Layout, x: &[T], row: usize, columns: Range<usize>, y: &mut [T]) {
        let mut buffer = [T::Wide::default(); RUN];
        let mut first = Values([self.first.start; COLUMNS]);
        let mut second = Values([self.first.start; COLUMNS]);
        let width = columns.len();
        let mut pass = |a: &Accumulator<T::Wide>, acc: &mut [Acc<T>], shift: &[Acc<T>]| {
            let mut each = |acc: &mut [Acc<T>], start: usize| {
                let x = T::load(&x[start + columns.start..start + columns.end], &mut buffer);
                (a.column)(x, acc, shift);
            };
            acc.fill(a.start);
            if let Some((several, x)) = a.several.zip(same_type(x)) {
                if let Some((first, count, stride)) = layout.even_rows(row) {
                    let groups = count / TOGETHER;
                    several(Several::Even { x: &x[first + columns.start..], stride, groups }, acc);
                    (groups * TOGETHER..count).for_each(|k| each(acc, first + k * stride));
                } else {
                    let (mut starts, mut found) = ([0; TOGETHER], 0);
                    layout.each_row(row, |start| {
                        starts[found % TOGETHER] = start;
                        found += 1;
                        if found % TOGETHER == 0 {
                            let rows = starts.map(|start| &x[start + columns.start..start + columns.end]);
                            several(Several::Rows(rows), acc);
                        }
                    });
                    starts[..found % TOGETHER].iter().for_each(|&start| each(acc, start));
                }
                if T::Wide::run(AreFinite::<T::Wide>(acc)) {
                    return;
                }
                acc.fill(a.start);
            }
            layout.each_row(row, |start| each(acc, start));
        };
        pass(&self.first, &mut first.0[..width], &[]);
        match self.first.second {
            Some(exponentials) => pass(&exponentials(), &mut second.0[..width], &first.0[..width]),
            None => second.0[..width].copy_from_slice(&first.0[..width]),
        }
        let count = layout.count;
        match self.op.reduction {
            // Loops of their own, which can be in vectors.
            Reduction::Sum => {
                T::Wide::run(Finish { y, sums: &first.0, f: |sum| T::down(T::Wide::finish(sum)) })
            }
            Reduction::Mean => {
                T::Wide::run(Finish { y, sums: &first.0, f: |sum| T::down(T::Wide::mean(sum, count)) });
            }
            _ => y.iter_mut().zip(&first.0).zip(&second.0).for_each(|((y, &first), &second)| {
                *y = T::down(self.finish(first, second, layout.count));
            }),
        }
    }

    /// The result from the accumulated value of the (first and) last pass.
    fn finish(&self, first: Acc<T>, last: Acc<T>, count: usize) -> T::Wide {
        match self.op.reduction {
            Reduction::L1
            | Reduction::Max
            | Reduction::Min
            | Reduction::Prod
            | Reduction::Sum
            | Reduction::SumSquare => T::Wide::finish(last),
            Reduction::Mean => T::Wide::mean(last, count),
            Reduction::L2 => T::Wide::finish_f64(T::Wide::as_f64(last).sqrt()),
            Reduction::LogSum => T::Wide::finish_f64(T::Wide::as_f64(last).ln()),
            Reduction::LogSumExp => {
                let max = T::Wide::as_f64(first);
                match max.is_finite() && count > 0 {
                    true => T::Wide::finish_f64(max + T::Wide::as_f64(last).ln()),
                    // Nothing, all −∞, or ∞ or NaN among them.
                    false => T::Wide::finish_f64(if count == 0 { f64::NEG_INFINITY } else { max }),
                }
            }
        }
    }
}

/// Accumulated values of columns, so that no vector lies across two lines of the cache.
#[repr(align(64))]
struct Values<A>([A; COLUMNS]);

#[cfg(test)]
mod tests;
