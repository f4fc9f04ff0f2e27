//! Col2Im: each element of the image is the sum of the column elements that were cut from it.

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::ops::OpError;
use crate::ops::col2im::{BlockAxis, Col2Im};
use crate::tensor::{C64, C128, Element, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::scratch::with_scratch;
use crate::provider::ints::shape_input;

pub(super) const KERNELS: &[Entry] = &[Entry::new("Col2Im", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Col2Im>().clone();
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64, C64, C128] =>
            Ok(CpuKernel::Tensor(Box::new(Sum::<T> { op, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

struct Sum<T> {
    op: Col2Im,
    _element: PhantomData<fn(T)>,
}

/// An element, and how many are summed up: half types in f32, integers with wrapping.
trait Term: Element {
    type Total: Element;
    fn add(total: Self::Total, x: Self) -> Self::Total;
    fn total(total: Self::Total) -> Self;
}

macro_rules! terms {
    ($($ty:ty => $total:ty: $add:expr, $store:expr);* $(;)?) => {$(
        impl Term for $ty {
            type Total = $total;
            #[inline(always)]
            fn add(total: $total, x: Self) -> $total { ($add)(total, x) }
            #[inline(always)]
            fn total(total: $total) -> Self { ($store)(total) }
        }
    )*};
}
terms! {
    f32 => f32: |t, x| t + x, |t| t;
    f64 => f64: |t, x| t + x, |t| t;
    f16 => f32: |t, x: f16| t + x.to_f32(), f16::from_f32;
    bf16 => f32: |t, x: bf16| t + x.to_f32(), bf16::from_f32;
    C64 => C64: |t, x| t + x, |t| t;
    C128 => C128: |t, x| t + x, |t| t;
}
macro_rules! integer_terms {
    ($($ty:ty)*) => { terms! { $($ty => $ty: <$ty>::wrapping_add, |t| t);* } };
}
integer_terms!(u8 u16 u32 u64 i8 i16 i32 i64);

impl<T: Term> Kernel for Sum<T> {
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
        let output = output.slice::<T>();
        let Some((last, outer)) = axes.split_last() else {
            output.copy_from_slice(input);
            return Ok(());
        };
        let lines: usize = outer.iter().map(|a| a.image).product();
        let work = (last.image * block).max(1);
        split_mut(cx.pool, output, last.image, (GRAIN / work).max(1), |range, part| {
            let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
            with_scratch([last.image], |[sums]: [&mut [T::Total]; 1]| {
                for (i, y) in range.zip(part.chunks_exact_mut(last.image)) {
                    let mut rest = i % lines;
                    for (x, axis) in at.iter_mut().zip(outer).rev() {
                        *x = rest % axis.image;
                        rest /= axis.image;
                    }
                    let columns = &input[i / lines * block * count..][..block * count];
                    sums.fill(T::Total::default());
                    for k in 0..block / last.block {
                        let Some(line) = block_of(outer, &at, k) else { continue };
                        for inner in 0..last.block {
                            let from = &columns[(k * last.block + inner) * count + line * last.count..];
                            add_line(last, inner, &from[..last.count], sums);
                        }
                    }
                    y.iter_mut().zip(&*sums).for_each(|(y, &sum)| *y = T::total(sum));
                }
            });
        });
        Ok(())
    }

    fn prepare(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Prepared, OpError> {
        let image = shape_input(inputs, 1)?.unwrap_or_default();
        let block = shape_input(inputs, 2)?.unwrap_or_default();
        Ok(Prepared { state: Some(Box::new(self.op.axes(&image, &block)?)), scratch: 0 })
    }
}

/// Adds the elements `k` of a line of blocks where they lie in the image.
fn add_line<T: Term>(axis: &BlockAxis, k: usize, blocks: &[T], sums: &mut [T::Total]) {
    let offset = k * axis.dilation;
    // Block `b` puts its element at `b · stride + offset − pad`.
    let first = axis.pad.saturating_sub(offset).div_ceil(axis.stride);
    let Some(start) = (first * axis.stride + offset).checked_sub(axis.pad) else { return };
    if first >= blocks.len() || start >= sums.len() {
        return;
    }
    let (sums, blocks) = (&mut sums[start..], &blocks[first..]);
    if axis.stride == 1 {
        sums.iter_mut().zip(blocks).for_each(|(sum, &x)| *sum = T::add(*sum, x));
    } else {
        sums.iter_mut().step_by(axis.stride).zip(blocks).for_each(|(sum, &x)| *sum = T::add(*sum, x));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{elements, run, t};

    /// The results of the standard's reference implementation.
    #[test]
    fn every_kind_of_element() {
        // Columns of two, over an image of three: the one in the middle is in both.
        let shapes = [t::<i64>(&[1], &[3]), t::<i64>(&[1], &[2])];
        let sum = |x| run("Col2Im", 18, &[], &[x, shapes[0].clone(), shapes[1].clone()], 1).unwrap();
        let c = C64::new;
        let out = sum(t::<C64>(&[1, 2, 2], &[c(1.0, 2.0), c(3.0, 4.0), c(5.0, 6.0), c(7.0, 8.0)]));
        assert_eq!(elements::<C64>(&out[0]), (vec![1, 1, 3], vec![c(1.0, 2.0), c(8.0, 10.0), c(7.0, 8.0)]));
        let out = sum(t::<i64>(&[1, 2, 2], &[1, 1 << 60, 1, 7]));
        assert_eq!(elements::<i64>(&out[0]).1, [1, (1 << 60) + 1, 7]);
        let out = sum(t::<u8>(&[1, 2, 2], &[1, 200, 100, 7]));
        assert_eq!(elements::<u8>(&out[0]).1, [1, 44, 7]);
    }
}
