//! Col2Im: each element of the image is the sum of the column elements that were cut from it.

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::ops::OpError;
use crate::ops::image::{BlockAxis, Col2Im};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::ints::shape_input;
use super::number::dispatch;
use super::parallel::{GRAIN, split_mut};
use super::sample::Sample;
use super::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Col2Im", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Col2Im>().clone();
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] =>
            Ok(CpuKernel::Tensor(Box::new(Sum::<T> { op, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

struct Sum<T> {
    op: Col2Im,
    _element: PhantomData<fn(T)>,
}

impl<T: Sample> Kernel for Sum<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let axes: &Vec<BlockAxis> = cx.state();
        let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let input = input.slice::<T>();
        let count: usize = axes.iter().map(|a| a.count).product();
        let block: usize = axes.iter().map(|a| a.block).product();
        let plane: usize = axes.iter().map(|a| a.image).product();
        split_mut(cx.pool, output.slice::<T>(), 1, (GRAIN / block).max(1), |range, part| {
            let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, axes.len());
            for (i, y) in range.zip(part) {
                let mut rest = i % plane;
                for (x, axis) in at.iter_mut().zip(axes).rev() {
                    *x = rest % axis.image;
                    rest /= axis.image;
                }
                let columns = &input[i / plane * block * count..][..block * count];
                let mut sum = T::weight(0.0);
                for k in 0..block {
                    if let Some(column) = block_of(axes, &at, k) {
                        sum += columns[k * count + column].load();
                    }
                }
                *y = T::store(sum);
            }
        });
        Ok(())
    }

    fn prepare(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Prepared, OpError> {
        let image = shape_input(inputs, 1)?.unwrap_or_default();
        let block = shape_input(inputs, 2)?.unwrap_or_default();
        Ok(Prepared { state: Some(Box::new(self.op.axes(&image, &block)?)), scratch: 0 })
    }
}

/// The number of the block whose element `k` lies at a position of the image.
fn block_of(axes: &[BlockAxis], at: &[usize], k: usize) -> Option<usize> {
    let (mut rest, mut column, mut scale) = (k, 0, 1);
    for (axis, &x) in axes.iter().zip(at).rev() {
        let offset = rest % axis.block * axis.dilation;
        rest /= axis.block;
        let from = (x + axis.pad).checked_sub(offset)?;
        if !from.is_multiple_of(axis.stride) || from / axis.stride >= axis.count {
            return None;
        }
        column += from / axis.stride * scale;
        scale *= axis.count;
    }
    Some(column)
}
