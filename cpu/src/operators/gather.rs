//! Gather, GatherElements and GatherND.

use crate::ops::OpError;
use crate::ops::gather::Gather;
use crate::ops::movement::axis_of;
use crate::tensor::Shape;

use crate::kernel::{Argument, CpuKernel, Entry, KernelContext, NodeContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::parallel::{GRAIN, split_mut};
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
}

impl ElementsPlan {
    pub(super) fn new(data: &[usize], indices: &[usize], axis: i64) -> Result<Self, OpError> {
        let axis = axis_of(axis, data.len())?;
        let strides = strides_of(data);
        let last = data.len() - 1;
        let row_strides = (0..last).map(|k| if k == axis { 0 } else { strides[k] }).collect();
        Ok(ElementsPlan {
            rows: indices[..last].into(),
            row_size: indices[last],
            row_strides,
            step: usize::from(axis != last),
            axis_length: data[axis],
            axis_stride: strides[axis] as usize,
        })
    }

    /// Calls `body(i, position)` for the indices of rows `rows`: `i` counts the indices, `position`
    /// is where the element lies in the data.
    pub(super) fn walk(
        &self,
        indices: Ints<'_>,
        rows: std::ops::Range<usize>,
        mut body: impl FnMut(usize, usize),
    ) {
        let mut walk = Walk::new(&self.rows, &self.row_strides, 0, rows.start);
        for r in rows {
            for j in 0..self.row_size {
                let i = r * self.row_size + j;
                let along = indices.wrapped(i, self.axis_length) * self.axis_stride;
                body(i, walk.position + j * self.step + along);
            }
            walk.next();
        }
    }

    pub(super) fn row_count(&self) -> usize {
        if self.row_size == 0 { 0 } else { self.rows.iter().product() }
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
        indices.check(plan.axis_length)?;
        split_mut(cx.pool, output, plan.row_size, (GRAIN / plan.row_size.max(1)).max(1), |rows, output| {
            let first = rows.start * plan.row_size;
            plan.walk(indices, rows, |i, position| output[i - first] = data[position].clone());
        });
        Ok(())
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
