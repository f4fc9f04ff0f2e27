//! Pooling over whole planes. Bound by reading the input once.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::pool::{GlobalPool, Reduction};
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use super::super::number::dispatch;
use super::super::parallel::Parts;
use super::super::simd::{Loop, widest};
use super::super::{CpuKernel, Kernel, KernelContext, NodeContext};
use super::fold::{Fold, Max, Mean, Norm};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let GlobalPool(reduction) = *node.op::<GlobalPool>();
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] => {
        Ok(CpuKernel::Tensor(match reduction {
            Reduction::Max => Box::new(Global::<T, _>(Max, PhantomData)),
            Reduction::Average { .. } => Box::new(Global::<T, _>(Mean(PhantomData), PhantomData)),
            Reduction::Norm { p } => Box::new(Global::<T, _>(Norm::new(p), PhantomData)),
        }))
    }, else Err(node.no_kernel()))
}

struct Global<T, F>(F, PhantomData<fn(T)>);

impl<T: Element, F: Fold<T>> Kernel for Global<T, F> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let plane: usize = x.shape()[2..].iter().product();
        let x = x.slice::<T>();
        let y = Parts::new(y.slice::<T>());
        cx.pool.split(y.len(), (1 << 16) / plane.max(1) + 1, |range| {
            // SAFETY: the ranges of a split do not overlap.
            let y = unsafe { y.get(range.clone()) };
            widest(Planes { fold: &self.0, planes: &x[range.start * plane..range.end * plane], plane, y });
        });
        Ok(())
    }
}

/// Reduces planes of `plane` elements.
struct Planes<'a, T, F> {
    fold: &'a F,
    planes: &'a [T],
    plane: usize,
    y: &'a mut [T],
}

impl<T: Element, F: Fold<T>> Loop for Planes<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, y) in self.y.iter_mut().enumerate() {
            *y = reduce(self.fold, &self.planes[i * self.plane..][..self.plane]);
        }
    }
}

/// Sums in sixteen lanes.
#[inline(always)]
fn reduce<T: Element, F: Fold<T>>(fold: &F, plane: &[T]) -> T {
    let (chunks, rest) = plane.as_chunks::<16>();
    let mut lanes = [fold.start(); 16];
    for chunk in chunks {
        for i in 0..16 {
            lanes[i] = fold.add(lanes[i], chunk[i]);
        }
    }
    let rest = rest.iter().fold(fold.start(), |sum, &x| fold.add(sum, x));
    let sum = lanes.into_iter().fold(rest, |a, b| fold.join(a, b));
    fold.finish(sum, plane.len())
}
