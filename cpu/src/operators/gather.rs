//! Gather, GatherElements and GatherND.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::ops::OpError;
use crate::ops::gather::Gather;
use crate::ops::movement::axis_of;
use crate::tensor::Shape;

use crate::kernel::{Argument, CpuKernel, Entry, KernelContext, NodeContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::simd::{Loop, widest};
use crate::loops::strided::{Walk, strides_of};
use crate::provider::ints::{Ints, in_axis, out_of_range};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Gather", build), Entry::new("GatherElements", build), Entry::new("GatherND", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    match *node.op::<Gather>() {
        Gather::Slices { axis } => mover::build::<Gather, _>(node, Slices { axis }),
        Gather::Elements { axis } => mover::build::<Gather, _>(node, Elements { axis }),
        Gather::Tuples { batch } => mover::build::<Gather, _>(node, Tuples { batch }),
    }
}

/// Copies runs of contiguous elements. Bound: one read and one write of the output.
struct Slices {
    axis: i64,
}

/// The length of the axis, and the number of elements of one slice below it.
struct SlicesPlan {
    length: usize,
    inner: usize,
}

impl Mover for Slices {
    type Plan = SlicesPlan;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<SlicesPlan, OpError> {
        let shape = data_shape(inputs)?;
        let axis = axis_of(self.axis, shape.len())?;
        Ok(SlicesPlan { length: shape[axis], inner: shape[axis + 1..].iter().product() })
    }

    fn run<T: Item>(
        &self,
        &SlicesPlan { length, inner }: &SlicesPlan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let (Some(data), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) else { return Ok(()) };
        let indices = Ints::required(inputs.view(1), "indices")?;
        indices.check(length)?;
        let count = indices.len();
        if count == 0 {
            return Ok(());
        }
        split_mut(cx.pool, output, inner, (GRAIN / inner.max(1)).max(1), |rows, output| {
            let mut outer = rows.start / count;
            let mut i = rows.start % count;
            for y in output.chunks_exact_mut(inner) {
                let from = (outer * length + indices.wrapped(i, length)) * inner;
                y.clone_from_slice(&data[from..from + inner]);
                i += 1;
                if i == count {
                    i = 0;
                    outer += 1;
                }
            }
        });
        Ok(())
    }
}

struct Elements {
    axis: i64,
}

/// Indices that become positions at a time.
const RUN: usize = 256;

/// How positions of an indices tensor lie in the data: see [`ElementsPlan::new`].
pub(super) struct ElementsPlan {
    /// The shape of the indices without its last axis.
    rows: Shape,
    row_size: usize,
    /// The data's strides for these axes, 0 for the indexed one.
    row_strides: Vec<isize>,
    /// What one step along a row of indices is in the data, 0 when the last axis is the indexed one.
    step: usize,
    pub(super) axis_length: usize,
    axis_stride: usize,
    /// Elements of the data up to the last one that indices may name.
    reach: usize,
}

impl ElementsPlan {
    pub(super) fn new(data: &[usize], indices: &[usize], axis: i64) -> Result<Self, OpError> {
        let axis = axis_of(axis, data.len())?;
        let strides = strides_of(data);
        let last = data.len() - 1;
        let row_strides = (0..last).map(|k| if k == axis { 0 } else { strides[k] }).collect();
        let farthest = (0..=last).map(|k| {
            let extent = if k == axis { data[k] } else { indices[k] };
            extent.saturating_sub(1) * strides[k] as usize
        });
        Ok(ElementsPlan {
            rows: indices[..last].into(),
            row_size: indices[last],
            row_strides,
            step: usize::from(axis != last),
            axis_length: data[axis],
            axis_stride: strides[axis] as usize,
            reach: farthest.sum::<usize>() + 1,
        })
    }

    /// Calls `body(i, position)` for the indices of rows `rows`: `i` counts the indices, `position`
    /// is where the element lies in the data. Ends at the first index outside the axis, and tells whether there was none.
    pub(super) fn walk(
        &self,
        indices: Ints<'_>,
        rows: std::ops::Range<usize>,
        mut body: impl FnMut(usize, usize),
    ) -> bool {
        self.runs(indices, rows, |first, mut position, along| {
            for (i, &along) in (first..).zip(along) {
                body(i, position + along);
                position += self.step;
            }
        })
    }

    /// The same for runs of indices: `body` gets the first one's number, where it would lie with an index of 0, and how far
    /// from there, and from as many steps further, the elements lie.
    fn runs(
        &self,
        indices: Ints<'_>,
        rows: std::ops::Range<usize>,
        mut body: impl FnMut(usize, usize, &[usize]),
    ) -> bool {
        let mut walk = Walk::new(&self.rows, &self.row_strides, 0, rows.start);
        let mut along = [0; RUN];
        for r in rows {
            for first in (0..self.row_size).step_by(RUN) {
                let along = &mut along[..RUN.min(self.row_size - first)];
                let start = r * self.row_size + first;
                let (length, stride) = (self.axis_length, self.axis_stride);
                let inside = match indices {
                    Ints::I32(v) => widest(Along { indices: &v[start..], length, stride, out: &mut *along }),
                    Ints::I64(v) => widest(Along { indices: &v[start..], length, stride, out: &mut *along }),
                };
                if !inside {
                    return false;
                }
                body(start, walk.position + first * self.step, along);
            }
            walk.next();
        }
        true
    }

    pub(super) fn row_count(&self) -> usize {
        if self.row_size == 0 { 0 } else { self.rows.iter().product() }
    }
}

/// How far along an axis indices lie in the data; tells whether all are inside.
struct Along<'a, I> {
    indices: &'a [I],
    length: usize,
    stride: usize,
    out: &'a mut [usize],
}

impl<I: Copy + Into<i64>> Loop for Along<'_, I> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let length = self.length as i64;
        let mut outside = 0;
        for (y, &index) in self.out.iter_mut().zip(self.indices) {
            let index: i64 = index.into();
            // The last bit of a sign is that of a number below zero, and so is that of a difference.
            let index = index.wrapping_add(index >> 63 & length);
            outside |= index | (length - 1).wrapping_sub(index);
            *y = index as usize;
        }
        // Vectors have no products of 64 bits.
        match (u32::try_from(self.length), u32::try_from(self.stride)) {
            (_, Ok(1)) => {}
            (Ok(_), Ok(stride)) => {
                self.out.iter_mut().for_each(|y| *y = (*y as u32 as u64 * u64::from(stride)) as usize)
            }
            _ => self.out.iter_mut().for_each(|y| *y = y.wrapping_mul(self.stride)),
        }
        outside >= 0
    }
}

impl Mover for Elements {
    type Plan = ElementsPlan;

    fn plan(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<ElementsPlan, OpError> {
        let indices = outputs.first().copied().flatten().unwrap_or_default();
        ElementsPlan::new(data_shape(inputs)?, indices, self.axis)
    }

    fn run<T: Item>(
        &self,
        plan: &ElementsPlan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let (Some(data), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) else { return Ok(()) };
        let indices = Ints::required(inputs.view(1), "indices")?;
        if plan.axis_length == 0 {
            return indices.check(0);
        }
        assert!(output.is_empty() || plan.reach <= data.len(), "the data have their extent");
        let outside = AtomicBool::new(false);
        split_mut(cx.pool, output, plan.row_size, (GRAIN / plan.row_size.max(1)).max(1), |rows, output| {
            let first = rows.start * plan.row_size;
            let inside = plan.runs(indices, rows, |start, mut position, along| {
                for (y, along) in output[start - first..].iter_mut().zip(along) {
                    // SAFETY: an index inside the axis names an element inside the data, as the assertion says.
                    y.clone_from(unsafe { data.get_unchecked(position + along) });
                    position += plan.step;
                }
            });
            if !inside {
                outside.store(true, Ordering::Relaxed);
            }
        });
        if outside.into_inner() { indices.check(plan.axis_length) } else { Ok(()) }
    }
}

struct Tuples {
    batch: usize,
}

/// How index tuples lead to blocks of the data.
pub(super) struct TuplesPlan {
    /// Tuples in one batch, and elements of one batch of the data.
    per_batch: usize,
    batch_size: usize,
    /// The axes that the tuples index, and their strides.
    axes: Shape,
    strides: Vec<usize>,
    /// Elements that one tuple names.
    pub(super) block: usize,
}

impl TuplesPlan {
    pub(super) fn new(data: &[usize], indices: &[usize], batch: usize) -> Self {
        let depth = indices.last().copied().unwrap_or(0);
        let strides = strides_of(data);
        TuplesPlan {
            per_batch: indices[batch..indices.len() - 1].iter().product(),
            batch_size: data[batch..].iter().product(),
            axes: data[batch..batch + depth].into(),
            strides: strides[batch..batch + depth].iter().map(|&s| s as usize).collect(),
            block: data[batch + depth..].iter().product(),
        }
    }

    /// Every tuple must lie inside the data.
    pub(super) fn check(&self, indices: Ints<'_>) -> Result<(), OpError> {
        let depth = self.axes.len();
        for i in 0..indices.len() {
            let length = self.axes[i % depth];
            if !in_axis(indices.get(i), length) {
                return Err(out_of_range(indices.get(i), length));
            }
        }
        Ok(())
    }

    /// Where the block of a tuple begins in the data.
    #[inline]
    pub(super) fn position(&self, indices: Ints<'_>, tuple: usize) -> usize {
        let depth = self.axes.len();
        let mut position = tuple / self.per_batch * self.batch_size;
        for k in 0..depth {
            position += indices.wrapped(tuple * depth + k, self.axes[k]) * self.strides[k];
        }
        position
    }
}

impl Mover for Tuples {
    type Plan = TuplesPlan;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<TuplesPlan, OpError> {
        let indices = inputs.get(1).copied().flatten();
        let indices = indices.ok_or_else(|| OpError::Data("the indices are missing".to_owned()))?.shape;
        Ok(TuplesPlan::new(data_shape(inputs)?, indices, self.batch))
    }

    fn run<T: Item>(
        &self,
        plan: &TuplesPlan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let (Some(data), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) else { return Ok(()) };
        let indices = Ints::required(inputs.view(1), "indices")?;
        plan.check(indices)?;
        split_mut(cx.pool, output, plan.block, (GRAIN / plan.block.max(1)).max(1), |tuples, output| {
            for (t, y) in tuples.zip(output.chunks_exact_mut(plan.block)) {
                let from = plan.position(indices, t);
                y.clone_from_slice(&data[from..from + plan.block]);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    /// Along each axis, with rows longer than what is looked up at a time.
    #[test]
    fn elements_along_an_axis() {
        for (shape, wanted, axis) in
            [([3, 4], [3, 600], 1), ([3, 4], [3, 0], 1), ([5, 300], [2, 300], 0), ([2, 3], [4, 2], 0)]
        {
            let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32).collect();
            let length = shape[axis] as i64;
            let indices: Vec<i64> =
                (0..(wanted[0] * wanted[1]) as i64).map(|i| i * 7 % (2 * length) - length).collect();
            let want: Vec<f32> = (0..indices.len())
                .map(|i| {
                    let mut at = [i / wanted[1], i % wanted[1]];
                    at[axis] = indices[i].rem_euclid(length) as usize;
                    data[at[0] * shape[1] + at[1]]
                })
                .collect();
            let narrow: Vec<i32> = indices.iter().map(|&i| i as i32).collect();
            let attributes = [("axis", Attribute::Int(axis as i64))];
            for indices in [t(&wanted, &indices), t(&wanted, &narrow)] {
                let out = run("GatherElements", 13, &attributes, &[t(&shape, &data), indices], 1).unwrap();
                assert_eq!(elements::<f32>(&out[0]), (wanted.to_vec(), want.clone()), "{shape:?} {axis}");
            }
        }
    }

    #[test]
    fn an_index_outside_the_axis_is_told() {
        for bad in [4i64, -5, i64::MAX, i64::MIN] {
            let indices = t(&[1, 3], &[0, bad, 1]);
            let attributes = [("axis", Attribute::Int(1))];
            let inputs = [t(&[1, 4], &[1.0f32; 4]), indices];
            let error = run("GatherElements", 13, &attributes, &inputs, 1).unwrap_err().to_string();
            assert!(error.contains(&format!("index {bad} is out of range")), "{error}");
        }
        // An axis of no elements has no index, and no indices ask for none.
        for (shape, right) in [([2, 3], false), ([0, 3], true)] {
            let none = t::<f32>(&[0, 3], &[]);
            let indices = t(&shape, &vec![0i64; shape.iter().product()]);
            let found = run("GatherElements", 13, &[("axis", Attribute::Int(0))], &[none, indices], 1);
            assert_eq!(found.is_ok(), right, "{shape:?}");
        }
    }
}
