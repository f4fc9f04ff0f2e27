//! `ImageScaler`: images times a number, plus a number for each channel.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::image_scaler::ImageScaler;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::statistics::Real;
use crate::loops::widen::Widen;

pub(super) const KERNELS: &[Entry] = &[Entry::new("ImageScaler", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<ImageScaler>().clone();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
        Box::new(ScalerKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct ScalerKernel<T> {
    op: ImageScaler,
    _type: PhantomData<fn(T)>,
}

/// Bound: one read and one write.
impl<T: Widen<Wide: Real>> Kernel for ScalerKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let &[_, channels, height, width] = x.shape() else { return Ok(()) };
        let (unit, x) = (height * width, x.slice::<T>());
        split_mut(cx.pool, output.slice::<T>(), unit, (GRAIN / unit.max(1)).max(1), |images, part| {
            for (i, y) in images.zip(part.chunks_exact_mut(unit)) {
                let bias = self.op.bias.as_ref().map_or(0.0, |bias| bias[i % channels]) as f64;
                let scale = self.op.scale as f64;
                for (y, x) in y.iter_mut().zip(&x[i * unit..]) {
                    *y = T::down(T::Wide::of(x.up().wide() * scale + bias));
                }
            }
        });
        Ok(())
    }
}
