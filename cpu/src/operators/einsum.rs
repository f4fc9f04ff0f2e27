//! Einstein summation as matrix products of two operands at a time.
//!
//! A dimension that both operands and the result have is a batch, one that only one operand and the
//! result have is a row or a column, and what the result lacks is summed over. Operands are gathered
//! through tables of offsets, so no order of dimensions needs a transposition. Where they are matrices with rows
//! or columns without gaps, they are read as they lie.

use std::marker::PhantomData;
use std::ops::Range;

use crate::ops::OpError;
use crate::ops::einsum::{Einsum, Label};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::matmul::row_major;
use crate::gemm::{
    Epilogue, FusedEpilogue, InMemory, Left, Matrix, Offsets, Product, Right, Source, Store, multiply,
};
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;

pub(super) const KERNELS: &[Entry] = &[Entry::new("Einsum", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] => {
        Ok(CpuKernel::Tensor(Box::new(EinsumKernel::<T>(node.op::<Einsum>().clone(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct EinsumKernel<T>(Einsum, PhantomData<fn(T)>);

/// Labels of a tensor's dimensions, their sizes and strides.
#[derive(Clone, Default)]
struct Named {
    labels: Vec<Label>,
    sizes: Vec<usize>,
    strides: Vec<usize>,
}

impl Named {
    /// A tensor without gaps.
    fn dense(labels: Vec<Label>, sizes: Vec<usize>) -> Self {
        let strides = row_major(&sizes);
        Named { labels, sizes, strides }
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }

    /// The step of a label: the sum over its places (a repeated label walks the diagonal); 0 where the
    /// tensor lacks it or has size 1 there.
    fn stride(&self, label: Label) -> usize {
        let places = self.labels.iter().zip(&self.sizes).zip(&self.strides);
        places.filter(|((l, size), _)| **l == label && **size != 1).map(|(_, stride)| *stride).sum()
    }

    /// The offset of each index over `labels`, in their order.
    fn offsets(&self, labels: &[(Label, usize)]) -> Vec<usize> {
        let mut all = vec![0];
        for &(label, size) in labels {
            let stride = self.stride(label);
            all = all.iter().flat_map(|&at| (0..size).map(move |i| at + i * stride)).collect();
        }
        all
    }

    fn len(&self) -> usize {
        self.sizes.iter().product()
    }
}

/// Offsets of one operand or of the result: by batch, row, column.
struct Tables {
    batch: Vec<usize>,
    row: Vec<usize>,
    column: Vec<usize>,
}

impl Tables {
    /// Elements between rows and between columns, where these are the same for all and not 0.
    fn strides(&self) -> Option<(usize, usize)> {
        let column = stride(&self.column, 1)?;
        Some((stride(&self.row, self.column.len() * column)?, column))
    }

    /// Whether matrices are row-major and follow one another.
    fn are_dense(&self) -> bool {
        let size = self.row.len() * self.column.len();
        let follow = self.batch.iter().enumerate().all(|(i, &at)| at == i * size);
        follow && self.strides() == Some((self.column.len(), 1))
    }
}

/// The distance between the entries of a table, if it is the same for all and not 0; `alone` for a single one.
fn stride(table: &[usize], alone: usize) -> Option<usize> {
    let &[first, second, ..] = table else { return Some(alone) };
    let stride = second.checked_sub(first).filter(|&stride| stride > 0)?;
    table.windows(2).all(|pair| pair[1] == pair[0] + stride).then_some(stride)
}

/// One product of the running result and the next operand.
struct Step {
    a: Tables,
    b: Tables,
    out: Tables,
    out_len: usize,
    /// The strides of operands that products read as they lie: rows of the left one without gaps, rows or columns of the
    /// right one.
    in_place: [Option<(usize, usize)>; 2],
    /// Whether the result is written as matrices that follow one another.
    dense: bool,
}

impl Step {
    fn new(a: &Named, b: &Named, out: &Named, size: &dyn Fn(Label) -> usize) -> Self {
        let (mut batch, mut rows, mut columns, mut summed) = (vec![], vec![], vec![], vec![]);
        let mut all = [&a.labels[..], &b.labels[..]].concat();
        all.sort_unstable();
        all.dedup();
        // In the result's order first, so that its rows come out contiguous where they can.
        all.sort_by_key(|l| out.labels.iter().position(|o| o == l));
        for label in all {
            let entry = (label, size(label));
            match (out.has(label), a.has(label), b.has(label)) {
                (false, ..) => summed.push(entry),
                (true, true, true) => batch.push(entry),
                (true, true, false) => rows.push(entry),
                (true, false, _) => columns.push(entry),
            }
        }
        let tables = |named: &Named, row: &[(Label, usize)], column: &[(Label, usize)]| Tables {
            batch: named.offsets(&batch),
            row: named.offsets(row),
            column: named.offsets(column),
        };
        let a = tables(a, &rows, &summed);
        let b = tables(b, &summed, &columns);
        let written = tables(out, &rows, &columns);
        // A single column is one that is read from its begin to its end.
        let lies = |&(row, column): &(usize, usize)| row == 1 || column == 1 && b.column.len() > 1;
        let in_place = [a.strides().filter(|&(_, column)| column == 1), b.strides().filter(lies)];
        let dense = written.are_dense();
        Step { a, b, out: written, out_len: out.len(), in_place, dense }
    }
}

struct State {
    steps: Vec<Step>,
}

impl State {
    fn new(op: &Einsum, shapes: &[&[usize]]) -> Result<Self, OpError> {
        let ranks: Vec<usize> = shapes.iter().map(|s| s.len()).collect();
        let (operands, output) = op.labels(&ranks)?;
        let size = |label: Label| {
            let places = operands.iter().zip(shapes).flat_map(|(l, s)| l.iter().zip(*s));
            // A dimension of 1 broadcasts to that of the others.
            let mut sizes = places.filter(|(l, _)| **l == label).map(|(_, &size)| size);
            let first = sizes.next().unwrap_or(1);
            sizes.fold(first, |a, b| if a == 1 { b } else { a })
        };
        let mut named = operands.iter().zip(shapes).map(|(l, s)| Named::dense(l.clone(), s.to_vec()));
        let mut running = named.next().unwrap_or_default();
        let mut rest: Vec<Named> = named.collect();
        if rest.is_empty() {
            // A single operand is multiplied by one.
            rest.push(Named::default());
        }
        let mut steps = Vec::new();
        for (i, next) in rest.iter().enumerate() {
            let needed = |l: &Label| output.contains(l) || rest[i + 1..].iter().any(|o| o.has(*l));
            let labels = if i + 1 == rest.len() {
                output.clone()
            } else {
                let mut labels = [&running.labels[..], &next.labels[..]].concat();
                labels.sort_unstable();
                labels.dedup();
                labels.retain(needed);
                labels
            };
            let sizes = labels.iter().map(|&l| size(l)).collect();
            let out = Named::dense(labels, sizes);
            steps.push(Step::new(&running, next, &out, &size));
            running = out;
        }
        Ok(State { steps })
    }
}

impl<T: Store> Kernel for EinsumKernel<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let shapes: Vec<&[usize]> = inputs.iter().flatten().map(|a| a.shape).collect();
        let state = State::new(&self.0, &shapes)?;
        // Two results at a time: the one before and the one being made.
        let longest = state.steps.iter().map(|s| s.out_len).max().unwrap_or(0);
        let scratch = if state.steps.len() > 1 { 2 * longest * size_of::<T::Compute>() } else { 0 };
        Ok(Prepared { state: Some(Box::new(state)), scratch })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(y) = &mut outputs[0] else { return Ok(()) };
        let y = y.slice::<T>();
        let State { steps } = cx.state::<State>();
        let operands: Vec<&[T]> = inputs.iter().flatten().map(|v| v.slice::<T>()).collect();
        let scratch = cx.scratch::<T::Compute>();
        let half = scratch.len() / 2;
        let (mut before, mut now) = scratch.split_at_mut(half);
        let one = [T::store(one::<T>())];
        for (i, step) in steps.iter().enumerate() {
            let b = Gather { data: operands.get(i + 1).copied().unwrap_or(&one), tables: &step.b };
            let last = i + 1 == steps.len();
            match (i, last) {
                (0, true) => {
                    run_step::<T, T, T>(cx, step, Gather { data: operands[0], tables: &step.a }, b, y)
                }
                (0, false) => {
                    run_step::<T, T, T::Compute>(
                        cx,
                        step,
                        Gather { data: operands[0], tables: &step.a },
                        b,
                        now,
                    );
                }
                (_, true) => {
                    run_step::<T::Compute, T, T>(cx, step, Gather { data: before, tables: &step.a }, b, y)
                }
                (_, false) => {
                    let a = Gather { data: &*before, tables: &step.a };
                    run_step::<T::Compute, T, T::Compute>(cx, step, a, b, now);
                }
            }
            std::mem::swap(&mut before, &mut now);
        }
        Ok(())
    }
}

fn one<T: Store>() -> T::Compute {
    <T::Compute as crate::gemm::Compute>::ONE
}

fn run_step<A: Store, B: Store<Compute = A::Compute>, O: Store<Compute = A::Compute>>(
    cx: &KernelContext<'_>,
    step: &Step,
    a: Gather<'_, A>,
    b: Gather<'_, B>,
    out: &mut [O],
) {
    let [left, right] = step.in_place;
    let (left, right) = (left.map(|strides| a.matrix(strides)), right.map(|strides| b.matrix(strides)));
    let product = Product {
        batch: step.out.batch.len(),
        m: step.out.row.len(),
        n: step.out.column.len(),
        k: step.a.column.len(),
        a: left.as_ref().map_or(Left::Source(&a), InMemory::left),
        b: right.as_ref().map_or(Right::Source(&b), InMemory::right),
    };
    let out = &mut out[..step.out_len];
    if step.dense {
        return multiply(cx.pool, &product, &FusedEpilogue::new(out, product.m, product.n));
    }
    multiply(cx.pool, &product, &Scatter { out: Parts::new(out), tables: &step.out });
}

/// A matrix whose elements lie where tables say.
struct Gather<'a, T> {
    data: &'a [T],
    tables: &'a Tables,
}

impl<'a, T> Gather<'a, T> {
    /// The matrices with these strides.
    fn matrix(&self, (row_stride, column_stride): (usize, usize)) -> InMemory<'a, T> {
        let matrix = Matrix { data: self.data, row_stride, column_stride };
        InMemory { matrix, offsets: Offsets::Table(&self.tables.batch) }
    }
}

impl<T: Store> Source<T::Compute> for Gather<'_, T> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [T::Compute]) {
        if columns.is_empty() {
            return;
        }
        let table = &self.tables.column[columns];
        let contiguous = table.windows(2).all(|w| w[1] == w[0] + 1);
        for (row, out) in rows.zip(out.chunks_exact_mut(table.len())) {
            let base = self.tables.batch[batch] + self.tables.row[row];
            if contiguous {
                let from = &self.data[base + table[0]..][..out.len()];
                out.iter_mut().zip(from).for_each(|(y, x)| *y = x.load());
            } else {
                out.iter_mut().zip(table).for_each(|(y, &at)| *y = self.data[base + at].load());
            }
        }
    }
}

struct Scatter<'a, O> {
    out: Parts<'a, O>,
    tables: &'a Tables,
}

impl<O: Store> Epilogue<O::Compute> for Scatter<'_, O> {
    fn write(&self, batch: usize, row: usize, start: usize, values: &mut [O::Compute]) {
        let base = self.tables.batch[batch] + self.tables.row[row];
        for (&at, &mut x) in self.tables.column[start..].iter().zip(values) {
            // SAFETY: each element of the result has its own offset and is written once.
            let out = unsafe { self.out.get(base + at..base + at + 1) };
            out[0] = O::store(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::{Element, f16};
    use crate::testing::{checksum, elements, ramp, run, t};

    fn check<T: Element + num_traits::FromPrimitive + num_traits::ToPrimitive>() {
        // numpy.einsum over ramps: shapes, equation, result shape, checksum.
        type Case<'a> = (&'a str, &'a [&'a [usize]], &'a [usize], f64);
        let cases: &[Case<'_>] = &[
            ("ij,jk->ik", &[&[3, 4], &[4, 5]], &[3, 5], -117.0),
            ("bhid,bhjd->bhij", &[&[2, 3, 4, 5], &[2, 3, 6, 5]], &[2, 3, 4, 6], 723.0),
            ("ii", &[&[4, 4]], &[], 15.0),
            ("ij->ji", &[&[3, 5]], &[5, 3], -13.0),
            ("ijk->j", &[&[2, 3, 4]], &[3], 25.0),
            ("...ij,...jk->...ik", &[&[2, 1, 3, 4], &[5, 4, 2]], &[2, 5, 3, 2], 259.0),
            ("i,j", &[&[3], &[4]], &[3, 4], -60.0),
            ("ij,jk,kl->il", &[&[2, 3], &[3, 4], &[4, 2]], &[2, 2], 189.0),
            ("bij,bij->b", &[&[2, 3, 4], &[2, 3, 4]], &[2], -435.0),
            ("iij->ij", &[&[3, 3, 2]], &[3, 2], 32.0),
            ("ij,kl->jl", &[&[2, 3], &[4, 5]], &[3, 5], -57.0),
            (",ij->ij", &[&[], &[2, 2]], &[2, 2], -78.0),
            ("abc,cd,de->eab", &[&[2, 3, 4], &[4, 3], &[3, 5]], &[5, 2, 3], 254.0),
            // Matrices that are read as they lie: rows and columns in either order, a single row, a single column.
            ("bik,bkj->bij", &[&[2, 9, 17], &[2, 17, 13]], &[2, 9, 13], -2616.0),
            ("bihd,bjhd->bhij", &[&[1, 9, 2, 8], &[1, 11, 2, 8]], &[1, 2, 9, 11], -424.0),
            ("k,jk->j", &[&[8], &[3, 8]], &[3], -225.0),
            ("ik,k->i", &[&[5, 7], &[7]], &[5], -420.0),
            ("ki,k->i", &[&[7, 5], &[7]], &[5], -84.0),
            ("ki,kj->ij", &[&[7, 9], &[7, 6]], &[9, 6], 294.0),
        ];
        for &(equation, shapes, shape, want) in cases {
            let inputs: Vec<_> = shapes.iter().map(|s| t(s, &ramp::<T>(s.iter().product()))).collect();
            let attributes = [("equation", Attribute::String(equation.into()))];
            let out = run("Einsum", 12, &attributes, &inputs, 1).unwrap();
            let (got_shape, got) = elements::<T>(&out[0]);
            assert_eq!((got_shape.as_slice(), checksum(&got)), (shape, want), "{equation}");
        }
    }

    #[test]
    fn as_numpy_does() {
        check::<f32>();
        check::<f64>();
        check::<i32>();
        check::<f16>();
    }
}
