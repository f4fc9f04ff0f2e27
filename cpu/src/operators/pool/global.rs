//! Pooling over whole planes. Bound by reading the input once.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::pool::{GlobalPool, Reduction};
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use super::channel_blocked::block_len;
use super::fold::{Fold, Max, Mean, Norm};
use crate::isa::Dispatch;
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;
use crate::loops::row_extremes::RowExtremes;
use crate::loops::same_type::{same_type, same_type_mut};
use crate::loops::simd::{Loop, widest};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let &GlobalPool { reduction, channel_blocked } = node.op::<GlobalPool>();
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] => {
        Ok(CpuKernel::Tensor(match reduction {
            Reduction::Max => Global::<T, _>::boxed(Max, channel_blocked),
            Reduction::Average { .. } => Global::<T, _>::boxed(Mean(PhantomData), channel_blocked),
            Reduction::Norm { p } => Global::<T, _>::boxed(Norm::new(p), channel_blocked),
        }))
    }, else Err(node.no_kernel()))
}

pub(super) struct Global<T, F> {
    fold: F,
    /// Channels whose elements lie beside each other.
    each: usize,
    _element: PhantomData<fn(T)>,
}

impl<T: Element, F: Fold<T>> Global<T, F> {
    pub(super) fn boxed(fold: F, channel_blocked: bool) -> Box<dyn Kernel> {
        let each = if channel_blocked { block_len::<T>() } else { 1 };
        Box::new(Global { fold, each, _element: PhantomData })
    }
}

impl<T: Element, F: Fold<T>> Kernel for Global<T, F> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (plane, each): (usize, usize) = (x.shape()[2..].iter().product(), self.each);
        let x = x.slice::<T>();
        let y = Parts::new(y.slice::<T>());
        cx.pool.split(y.len() / each, (1 << 16) / plane.max(1) + 1, |range| {
            // SAFETY: the ranges of a split do not overlap.
            let y = unsafe { y.get(range.start * each..range.end * each) };
            let planes = &x[range.start * plane..range.end * plane];
            if F::IS_MAX
                && each == 1
                && let (Some(x), Some(y)) = (same_type(planes), same_type_mut(&mut *y))
            {
                return RowExtremes::<false> { x, length: plane, y }.widest();
            }
            match each {
                2 => widest(Planes::<_, _, 2> { fold: &self.fold, planes, plane, y }),
                _ => widest(Planes::<_, _, 1> { fold: &self.fold, planes, plane, y }),
            }
        });
        Ok(())
    }
}

/// Reduces planes of `plane` elements, each to `EACH` numbers.
struct Planes<'a, T, F, const EACH: usize> {
    fold: &'a F,
    planes: &'a [T],
    plane: usize,
    y: &'a mut [T],
}

impl<T: Element, F: Fold<T>, const EACH: usize> Loop for Planes<'_, T, F, EACH> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, y) in self.y.as_chunks_mut::<EACH>().0.iter_mut().enumerate() {
            *y = reduce(self.fold, &self.planes[i * self.plane..][..self.plane]);
        }
    }
}

/// Sums in sixteen lanes, of which every `EACH`-th belongs together.
#[inline(always)]
fn reduce<T: Element, F: Fold<T>, const EACH: usize>(fold: &F, plane: &[T]) -> [T; EACH] {
    let (chunks, rest) = plane.as_chunks::<16>();
    let mut lanes = [fold.start(); 16];
    for chunk in chunks {
        for i in 0..16 {
            lanes[i] = fold.add(lanes[i], chunk[i]);
        }
    }
    let mut sums = [fold.start(); EACH];
    for (i, &x) in rest.iter().enumerate() {
        sums[i % EACH] = fold.add(sums[i % EACH], x);
    }
    for (i, lane) in lanes.into_iter().enumerate() {
        sums[i % EACH] = fold.join(sums[i % EACH], lane);
    }
    sums.map(|sum| fold.finish(sum, plane.len() / EACH))
}
