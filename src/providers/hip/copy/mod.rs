//! Operators that copy elements by regular rules: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth,
//! NhwcSpaceToDepth, Slice, Concat, Split, Pad, CenterCropPad, Dropout outside of training.

mod blocks;
mod mapped;
mod matrix;
mod pad;
mod strided;
#[cfg(test)]
mod tests;

use crate::ops::OpError;
use crate::ops::concat::{Concat, Split};
use crate::ops::int_list::IntList;
use crate::ops::movement::{Movement, axis_of};
use crate::ops::slice::{Cut, Slice, cuts};
use crate::providers::ints::{int_list, required_ints, shape_input};
use crate::providers::{Argument, NodeContext};

use super::elements::{element_size, shape_of, shape_of_output};
use super::launch::Operand;
use super::{Entry, HipKernel, PlanBuilder};

pub(super) use mapped::{AxisMap, MappedCopy};
pub(crate) use matrix::upload_transposed;
pub(super) use strided::{Axis, StridedCopy, strides_of};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("CenterCropPad", pad::centre),
    Entry::new("Concat", |node| build(node, Copy::Join(node.op::<Concat>().clone()))),
    Entry::new("DepthToSpace", movement),
    Entry::new("Expand", movement),
    Entry::new("NhwcSpaceToDepth", blocks::build).domain("rukh"),
    Entry::new("Pad", pad::pad),
    Entry::new("Slice", |node| build(node, Copy::Cut(node.op::<Slice>().clone()))),
    Entry::new("SpaceToDepth", movement),
    Entry::new("Split", |node| build(node, Copy::Split(node.op::<Split>().clone()))),
    Entry::new("Tile", movement),
    Entry::new("Transpose", movement),
];

fn movement(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    build(node, Copy::Move(node.op::<Movement>().clone()))
}

fn build(node: &NodeContext<'_>, what: Copy) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(CopyKernel { what, size: element_size(node, 0)? }))
}

enum Copy {
    Move(Movement),
    Cut(Slice),
    Join(Concat),
    Split(Split),
}

struct CopyKernel {
    what: Copy,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for CopyKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let one = match &self.what {
            Copy::Move(movement) => moved(movement, inputs, self.size)?,
            Copy::Cut(slice) => cut(slice, inputs, self.size)?,
            Copy::Join(concat) => return self.join(concat, plan, inputs, shape_of_output(outputs)?),
            Copy::Split(split) => return self.split(split, plan, inputs, outputs),
        };
        one.plan(plan, Operand::Output(0), Operand::Input(0))
    }
}

impl CopyKernel {
    fn join(
        &self,
        concat: &Concat,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        output: &[usize],
    ) -> Result<(), OpError> {
        let axis = axis_of(concat.axis, output.len())?;
        let outer = output[..axis].iter().product();
        let below: usize = output[axis + 1..].iter().product();
        let total = output[axis] * below;
        let mut start = 0;
        for (i, argument) in inputs.iter().enumerate() {
            // A tensor without elements may have any shape.
            let Some(argument) = argument.filter(|a| !a.shape.contains(&0)) else { continue };
            let length = argument.shape[axis] * below;
            let axes = [
                Axis { length: outer, to: total as i64, from: length as i64 },
                Axis { length, to: 1, from: 1 },
            ];
            StridedCopy::new(&axes, start, 0, self.size).plan(plan, Operand::Output(0), Operand::Input(i))?;
            start += length;
        }
        Ok(())
    }

    fn split(
        &self,
        split: &Split,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let axis = axis_of(split.axis, shape.len())?;
        let lengths = match int_list(&split.lengths, inputs)? {
            Some(lengths) => lengths.into_iter().map(|n| n as usize).collect(),
            None => split.equal_lengths(shape[axis]),
        };
        let outer = shape[..axis].iter().product();
        let below: usize = shape[axis + 1..].iter().product();
        let total = shape[axis] * below;
        let mut start = 0;
        for (i, length) in lengths.into_iter().map(|n| n * below).enumerate() {
            if outputs.get(i).is_some_and(Option::is_some) {
                let copy = StridedCopy::dense(&[outer, length], &[total as i64, 1], start, self.size);
                copy.plan(plan, Operand::Output(i), Operand::Input(0))?;
            }
            start += length;
        }
        Ok(())
    }
}

fn moved(movement: &Movement, inputs: &[Option<Argument<'_>>], size: usize) -> Result<StridedCopy, OpError> {
    let shape = shape_of(inputs, 0)?;
    Ok(match movement {
        Movement::Transpose { perm } => {
            permuted(shape, &Movement::permutation(perm.as_deref(), shape.len())?, size)
        }
        Movement::Expand => expanded(shape, &shape_input(inputs, 1)?.unwrap_or_default(), size),
        Movement::Tile => tiled(shape, &shape_input(inputs, 1)?.unwrap_or_default(), size),
        Movement::TileAxis => {
            let number = |i: usize| required_ints(&IntList::Floats(i), inputs);
            let (tiles, axis) = (number(1)?, number(2)?);
            let axis = axis_of(axis.first().copied().unwrap_or(0), shape.len())?;
            let mut repeats = vec![1; shape.len()];
            repeats[axis] = tiles.first().copied().unwrap_or(1);
            tiled(shape, &repeats, size)
        }
        &Movement::DepthToSpace { block: b, column_row_depth } => {
            let (n, c, h, w) = (shape[0], shape[1] / (b * b), shape[2], shape[3]);
            if column_row_depth {
                permuted(&[n, c, b, b, h, w], &[0, 1, 4, 2, 5, 3], size)
            } else {
                permuted(&[n, b, b, c, h, w], &[0, 3, 4, 1, 5, 2], size)
            }
        }
        &Movement::SpaceToDepth { block: b, column_row_depth } => {
            let blocks = [shape[0], shape[1], shape[2] / b, b, shape[3] / b, b];
            let perm = if column_row_depth { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
            permuted(&blocks, &perm, size)
        }
        Movement::Trilu { .. } => return Err(OpError::Data("Trilu is no strided copy".to_owned())),
    })
}

/// The axes of a dense input in another order.
fn permuted(shape: &[usize], perm: &[usize], size: usize) -> StridedCopy {
    let strides = strides_of(shape);
    let dims: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
    let from: Vec<i64> = perm.iter().map(|&p| strides[p]).collect();
    StridedCopy::dense(&dims, &from, 0, size)
}

fn expanded(shape: &[usize], target: &[i64], size: usize) -> StridedCopy {
    let rank = shape.len().max(target.len());
    let strides = strides_of(shape);
    let (mut dims, mut from) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
    for k in 0..rank {
        let own = (k + shape.len()).checked_sub(rank);
        let d = own.map_or(1, |i| shape[i]);
        let wanted = (k + target.len()).checked_sub(rank).map_or(1, |i| target[i] as usize);
        dims.push(if d == 1 { wanted } else { d });
        from.push(own.filter(|_| d != 1).map_or(0, |i| strides[i]));
    }
    StridedCopy::dense(&dims, &from, 0, size)
}

fn tiled(shape: &[usize], repeats: &[i64], size: usize) -> StridedCopy {
    let strides = strides_of(shape);
    let (mut dims, mut from) = (Vec::with_capacity(shape.len() * 2), Vec::with_capacity(shape.len() * 2));
    for ((&d, stride), &r) in shape.iter().zip(strides).zip(repeats) {
        dims.extend([r as usize, d]);
        from.extend([0, stride]);
    }
    StridedCopy::dense(&dims, &from, 0, size)
}

fn cut(slice: &Slice, inputs: &[Option<Argument<'_>>], size: usize) -> Result<StridedCopy, OpError> {
    let shape = shape_of(inputs, 0)?;
    let starts = required_ints(&slice.starts, inputs)?;
    let ends = required_ints(&slice.ends, inputs)?;
    let axes = int_list(&slice.axes, inputs)?;
    let steps = int_list(&slice.steps, inputs)?;
    let cuts = cuts(shape, &starts, &ends, axes.as_deref(), steps.as_deref())?;
    let strides = strides_of(shape);
    let dims: Vec<usize> = cuts.iter().map(|c| c.count).collect();
    // A cut of one position may come with a step that no stride can hold.
    let step = |c: &Cut| if c.count > 1 { c.step } else { 1 };
    let from: Vec<i64> = cuts.iter().zip(&strides).map(|(c, s)| step(c) * s).collect();
    let offset = cuts.iter().zip(&strides).map(|(c, &s)| c.start * s as usize).sum();
    Ok(StridedCopy::dense(&dims, &from, offset, size))
}
