//! Reductions over any axes.

mod accumulate;

use std::ops::Range;

use smallvec::SmallVec;

use crate::ops::OpError;
use crate::ops::reduce::{Axes, Reduce, Reduction};
use crate::tensor::{Bool, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::widen::{RUN, Widen};
use accumulate::{Accumulate, Accumulator, accumulator};

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
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Reduce>().clone();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, Bool] =>
            Box::new(ReduceKernel::<T> { first: accumulator(op.reduction), op }),
            else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// How a tensor is read to reduce it: neighbouring axes of one kind are merged.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Kept axes, outermost first, without the innermost when that lies innermost of all: (size, stride).
    kept: Loops,
    /// Reduced axes, without the innermost one when it lies innermost of all.
    reduced: Loops,
    /// Elements that lie side by side: one group of axes.
    row: usize,
    /// Whether the row is reduced to one element, or kept.
    row_reduced: bool,
    /// Elements that become one.
    count: usize,
}

type Loops = SmallVec<[(usize, usize); 4]>;

impl Layout {
    pub(super) fn new(shape: &[usize], reduced: &[bool]) -> Self {
        // Innermost first: (size, stride, reduced).
        let mut groups: SmallVec<[(usize, usize, bool); 6]> = SmallVec::new();
        let mut stride = 1;
        for (&size, &r) in shape.iter().zip(reduced).rev() {
            if size == 1 {
                continue;
            }
            match groups.last_mut() {
                Some(group) if group.2 == r => group.0 *= size,
                _ => groups.push((size, stride, r)),
            }
            stride *= size;
        }
        let count = shape.iter().zip(reduced).filter(|(_, r)| **r).map(|(d, _)| d).product();
        let (row, row_reduced) = match groups.first() {
            Some(&(size, _, r)) => (size, r),
            None => (1, true),
        };
        let of =
            |kind: bool| groups.iter().skip(1).rev().filter(|g| g.2 == kind).map(|g| (g.0, g.1)).collect();
        Layout { kept: of(false), reduced: of(true), row, row_reduced, count }
    }

    /// Elements that become one.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of elements that stay.
    pub(super) fn groups(&self) -> usize {
        self.rows() * if self.row_reduced { 1 } else { self.row }
    }

    /// Calls `body` with the runs of elements that become element `group`.
    pub(super) fn each_run(&self, group: usize, mut body: impl FnMut(Range<usize>)) {
        match self.row_reduced {
            true => self.each_row(group, |start| body(start..start + self.row)),
            false => {
                let (row, column) = (group / self.row, group % self.row);
                self.each_row(row, |start| body(start + column..start + column + 1));
            }
        }
    }

    /// The number of rows that stay, each of one element or of `row`.
    fn rows(&self) -> usize {
        self.kept.iter().map(|l| l.0).product()
    }

    /// Calls `body` with where each row to be put into output row `i` starts.
    fn each_row(&self, i: usize, body: impl FnMut(usize)) {
        let mut rest = i;
        let mut start = 0;
        for (size, stride) in self.kept.iter().rev() {
            start += rest % size * stride;
            rest /= size;
        }
        visit(&self.reduced, start, body);
    }
}

/// All positions that nested loops reach.
fn visit(loops: &[(usize, usize)], start: usize, mut body: impl FnMut(usize)) {
    let count: usize = loops.iter().map(|l| l.0).product();
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, loops.len());
    let mut at = start;
    for _ in 0..count {
        body(at);
        for (k, (size, stride)) in loops.iter().enumerate().rev() {
            index[k] += 1;
            at += stride;
            if index[k] < *size {
                break;
            }
            index[k] = 0;
            at -= stride * size;
        }
    }
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
        let Some(data) = inputs[0] else { return Ok(Prepared::default()) };
        let axes = match (&self.op.axes, inputs.get(1).copied().flatten()) {
            (Axes::Attribute(axes), _) => axes.clone().unwrap_or_default(),
            (Axes::Input, None) => Vec::new(),
            (Axes::Input, Some(axes)) => match axes.value {
                Some(value) => value.slice::<i64>().to_vec(),
                None => return Err(OpError::Unsupported("the axes of a reduction are not known".into())),
            },
        };
        let reduced = self.op.reduced(&axes, data.shape.len())?;
        Ok(Prepared { state: Some(Box::new(Layout::new(data.shape, &reduced))), scratch: 0 })
    }
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
        let mut first = [self.first.start; COLUMNS];
        let mut second = [self.first.start; COLUMNS];
        let width = columns.len();
        let mut pass = |a: &Accumulator<T::Wide>, acc: &mut [Acc<T>], shift: &[Acc<T>]| {
            acc.fill(a.start);
            layout.each_row(row, |start| {
                let x = T::load(&x[start + columns.start..start + columns.end], &mut buffer);
                (a.column)(x, acc, shift);
            });
        };
        pass(&self.first, &mut first[..width], &[]);
        match self.first.second {
            Some(exponentials) => pass(&exponentials(), &mut second[..width], &first[..width]),
            None => second = first,
        }
        for ((y, &first), &second) in y.iter_mut().zip(&first).zip(&second) {
            *y = T::down(self.finish(first, second, layout.count));
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

#[cfg(test)]
mod tests {
    use std::f32::consts::LN_2;

    use crate::graph::Attribute;
    use crate::tensor::Bool;

    use crate::testing::{elements, run, t};

    #[test]
    fn any_axes_as_attribute_and_as_input() {
        let x: Vec<f32> = (0..24).map(|i| i as f32).collect();
        // numpy.arange(24).reshape(2, 3, 4).sum(axes)
        let cases: &[(&[i64], &[usize], &[f32])] = &[
            (&[0, 1, 2], &[1, 1, 1], &[276.0]),
            (&[2], &[2, 3, 1], &[6.0, 22.0, 38.0, 54.0, 70.0, 86.0]),
            (&[-2], &[2, 1, 4], &[12.0, 15.0, 18.0, 21.0, 48.0, 51.0, 54.0, 57.0]),
            (&[0, 2], &[1, 3, 1], &[60.0, 92.0, 124.0]),
            (&[1, 0], &[1, 1, 4], &[60.0, 66.0, 72.0, 78.0]),
        ];
        for (axes, shape, want) in cases {
            let attribute = [("axes", Attribute::Ints(axes.to_vec()))];
            let out = run("ReduceSum", 11, &attribute, &[t(&[2, 3, 4], &x)], 1).unwrap();
            assert_eq!(elements::<f32>(&out[0]), (shape.to_vec(), want.to_vec()));
            let keep = [("keepdims", Attribute::Int(0))];
            let inputs = [t(&[2, 3, 4], &x), t(&[axes.len()], axes)];
            let out = run("ReduceSum", 13, &keep, &inputs, 1).unwrap();
            let squeezed: Vec<usize> = shape.iter().copied().filter(|&d| d != 1).collect();
            assert_eq!(elements::<f32>(&out[0]), (squeezed, want.to_vec()));
        }
    }

    #[test]
    fn every_reduction_over_rows_and_columns() {
        // numpy over [[1, -2, 3], [0.5, 4, -1]], along the rows and along the columns.
        let x = [1.0f32, -2.0, 3.0, 0.5, 4.0, -1.0];
        let cases: &[(&str, [f32; 2], [f32; 3])] = &[
            ("ReduceL1", [6.0, 5.5], [1.5, 6.0, 4.0]),
            ("ReduceL2", [3.741_657_4, 4.153_312], [1.118_034, 4.472_136, 3.162_277_7]),
            ("ReduceLogSum", [LN_2, 1.252_763], [0.405_465_1, LN_2, LN_2]),
            ("ReduceLogSumExp", [3.132845, 4.03627], [1.474077, 4.002476, 3.01815]),
            ("ReduceMax", [3.0, 4.0], [1.0, 4.0, 3.0]),
            ("ReduceMean", [0.666_666_7, 1.166_666_6], [0.75, 1.0, 1.0]),
            ("ReduceMin", [-2.0, -1.0], [0.5, -2.0, -1.0]),
            ("ReduceProd", [-6.0, -2.0], [0.5, -8.0, -3.0]),
            ("ReduceSum", [2.0, 3.5], [1.5, 2.0, 2.0]),
            ("ReduceSumSquare", [14.0, 17.25], [1.25, 20.0, 10.0]),
        ];
        for (name, rows, columns) in cases {
            for (axis, want) in [(1, rows.as_slice()), (0, columns.as_slice())] {
                let out = run(name, 18, &[], &[t(&[2, 3], &x), t(&[1], &[axis as i64])], 1).unwrap();
                for (got, want) in elements::<f32>(&out[0]).1.iter().zip(want) {
                    assert!((got - want).abs() <= 2e-6 * want.abs().max(1.0), "{name} {axis}: {got} {want}");
                }
            }
        }
    }

    #[test]
    fn nothing_integers_and_truth() {
        for (name, want) in [
            ("ReduceSum", 0.0),
            ("ReduceProd", 1.0),
            ("ReduceMax", f32::NEG_INFINITY),
            ("ReduceMin", f32::INFINITY),
            ("ReduceLogSumExp", f32::NEG_INFINITY),
        ] {
            let out = run(name, 20, &[], &[t::<f32>(&[2, 0], &[]), t(&[1], &[1i64])], 1).unwrap();
            assert_eq!(elements::<f32>(&out[0]), (vec![2, 1], vec![want; 2]), "{name}");
        }
        let out = run("ReduceMean", 18, &[], &[t(&[4], &[1i32, 2, 3, 5])], 1).unwrap();
        assert_eq!(elements::<i32>(&out[0]).1, [2]);
        let out = run(
            "ReduceMax",
            20,
            &[],
            &[t(&[2, 2], &[Bool(0), Bool(2), Bool(0), Bool(0)]), t(&[1], &[1i64])],
            1,
        );
        assert_eq!(elements::<Bool>(&out.unwrap()[0]).1, [Bool(1), Bool(0)]);
    }

    #[test]
    fn extremes_of_long_rows() {
        // Beside the greatest and least of the numbers, in rows longer than what is compared at a time, and NaN anywhere.
        let x: Vec<f32> = (0..2 * 300).map(|i| (i * 7919 % 1009) as f32 - 500.0).collect();
        for length in [1, 63, 64, 65, 128, 300] {
            for wrong in [None, Some(0), Some(length / 2), Some(length - 1)] {
                let mut x = x[..2 * length].to_vec();
                wrong.into_iter().for_each(|at| x[length + at] = f32::NAN);
                let tensor = || [t(&[2, length], &x), t(&[1], &[1i64])];
                for (name, join) in [("ReduceMax", f32::max as fn(f32, f32) -> f32), ("ReduceMin", f32::min)]
                {
                    let got = elements::<f32>(&run(name, 18, &[], &tensor(), 1).unwrap()[0]).1;
                    let row = |i: usize| x[i * length..][..length].iter().copied().reduce(join);
                    assert_eq!(Some(got[0]), row(0), "{name} of {length}");
                    match wrong {
                        None => assert_eq!(Some(got[1]), row(1), "{name} of {length}"),
                        Some(at) => assert!(got[1].is_nan(), "{name} of {length}, NaN at {at}: {}", got[1]),
                    }
                }
            }
        }
    }

    #[test]
    fn long_sums_stay_exact() {
        let x = vec![0.1f32; 3_000_000];
        let out = run("ReduceSum", 13, &[], &[t(&[x.len()], &x)], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, [(0.1f32 as f64 * 3e6) as f32]);
    }
}
