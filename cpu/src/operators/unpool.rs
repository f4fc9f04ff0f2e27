//! Puts pooled maxima back where they were.

use std::marker::PhantomData;

use crate::graph::Dim;
use crate::ops::OpError;
use crate::ops::unpool::MaxUnpool;
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;

pub(super) const KERNELS: &[Entry] = &[Entry::new("MaxUnpool", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(Unpool::<T>(node.op::<MaxUnpool>().clone(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct Unpool<T>(MaxUnpool, PhantomData<fn(T)>);

impl<T: Element> Kernel for Unpool<T> {
    /// Keeps the shape that the indices refer to.
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let dims: Vec<Dim> = x.shape.iter().map(|&d| Dim::from(d)).collect();
        let inferred = self.0.inferred(&dims)?;
        let shape: Vec<usize> =
            inferred.iter().map(|d| d.known().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)).collect();
        Ok(Prepared { state: Some(Box::new(shape)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(indices), Some(y)) = (inputs[0], inputs[1], &mut outputs[0]) else {
            return Ok(());
        };
        let inferred = cx.state::<Vec<usize>>();
        let indices = indices.slice::<i64>();
        let limit: usize = inferred.iter().product();
        if let Some(at) = indices.iter().find(|&&at| at < 0 || at as usize >= limit) {
            return Err(OpError::Data(format!("an index is {at}; allowed are 0 to {}", limit as i64 - 1)));
        }
        let shape = y.shape();
        let y = y.slice::<T>();
        y.fill(T::default());
        for (&x, &at) in x.slice::<T>().iter().zip(indices) {
            if let Some(at) = moved(at as usize, inferred, shape) {
                y[at] = x;
            }
        }
        Ok(())
    }
}

/// The offset in `to` of the element at an offset of `from`; `None` where `to` lacks it.
fn moved(mut at: usize, from: &[usize], to: &[usize]) -> Option<usize> {
    if from == to {
        return Some(at);
    }
    let (mut offset, mut stride) = (0, 1);
    for (&extent, &target) in from.iter().zip(to).rev() {
        let i = at % extent;
        at /= extent;
        if i >= target {
            return None;
        }
        offset += i * stride;
        stride *= target;
    }
    Some(offset)
}
