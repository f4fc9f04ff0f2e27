//! `LpNormalization`, `MeanVarianceNormalization`, `LRN`.

use std::marker::PhantomData;

use num_traits::{Float, Zero};

use crate::ops::norm_axes::{LocalResponse, LpNorm, MeanVariance};
use crate::ops::{OpError, normalize_axis};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::along::around;
use super::reduce::Layout;
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::statistics::Real;
use crate::loops::widen::{RUN, Widen};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("LpNormalization", build_lp),
    Entry::new("MeanVarianceNormalization", build_mean_variance),
    Entry::new("LRN", build_lrn),
];

macro_rules! build {
    ($($name:ident: $op:ident, $kernel:ident);* $(;)?) => {$(
        fn $name(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
            let op = node.op::<$op>().clone();
            let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
                Box::new($kernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
            Ok(CpuKernel::Tensor(kernel))
        }

        struct $kernel<T> {
            op: $op,
            _type: PhantomData<fn(T)>,
        }
    )*};
}
build! {
    build_lp: LpNorm, LpKernel;
    build_mean_variance: MeanVariance, MeanVarianceKernel;
    build_lrn: LocalResponse, LrnKernel;
}

impl<T: Widen<Wide: Real>> Kernel for LpKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let (_, along, inner) = around(x.shape(), normalize_axis("axis", self.op.axis, x.rank())?);
        let x = x.slice::<T>();
        let unit = along * inner;
        split_mut(cx.pool, output.slice::<T>(), unit, (GRAIN / unit.max(1)).max(1), |range, part| {
            let x = &x[range.start * unit..range.end * unit];
            for (x, y) in x.chunks(unit).zip(part.chunks_mut(unit)) {
                for column in 0..inner {
                    let values = || x[column..].iter().step_by(inner).map(|x| x.up().wide());
                    let norm = match self.op.p {
                        1 => values().map(f64::abs).sum::<f64>(),
                        _ => values().map(|x| x * x).sum::<f64>().sqrt(),
                    };
                    let factor = if norm == 0.0 { 0.0 } else { 1.0 / norm };
                    for (y, x) in y[column..].iter_mut().step_by(inner).zip(values()) {
                        *y = T::down(T::Wide::of(x * factor));
                    }
                }
            }
        });
        Ok(())
    }
}

impl<T: Widen<Wide: Real>> Kernel for MeanVarianceKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        /// What the standard adds to the deviation.
        const EPSILON: f64 = 1e-9;
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let x = x.slice::<T>();
        let layout: &Layout = cx.state();
        let y = Parts::new(output.slice::<T>());
        let grain = (GRAIN / layout.count().max(1)).max(1);
        cx.pool.split(layout.groups(), grain, |groups| {
            for group in groups {
                let count = layout.count() as f64;
                let mut sum = 0.0;
                layout.each_run(group, |run| x[run].iter().for_each(|x| sum += x.up().wide()));
                let mean = sum / count;
                let mut squares = 0.0;
                layout.each_run(group, |run| {
                    x[run].iter().for_each(|x| squares += (x.up().wide() - mean).powi(2));
                });
                let factor = 1.0 / ((squares / count).sqrt() + EPSILON);
                layout.each_run(group, |run| {
                    // SAFETY: each element belongs to one group, each group to one thread.
                    let y = unsafe { y.get(run.clone()) };
                    for (y, x) in y.iter_mut().zip(&x[run]) {
                        *y = T::down(T::Wide::of((x.up().wide() - mean) * factor));
                    }
                });
            }
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = inputs[0] else { return Ok(Prepared::default()) };
        let reduced = self.op.reduced(x.shape.len())?;
        Ok(Prepared { state: Some(Box::new(Layout::new(x.shape, &reduced))), scratch: 0 })
    }
}

impl<T: Widen<Wide: Real>> Kernel for LrnKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let (_, channels, inner) = around(x.shape(), 1);
        let x = x.slice::<T>();
        let of = |x: f32| T::Wide::of(x as f64);
        let (bias, beta) = (of(self.op.bias), of(self.op.beta));
        let alpha = T::Wide::of(self.op.alpha as f64 / self.op.size as f64);
        let (below, above) = ((self.op.size - 1) / 2, self.op.size / 2);
        let grain = (GRAIN / (inner * self.op.size).max(1)).max(1);
        split_mut(cx.pool, output.slice::<T>(), inner, grain, |range, part| {
            let (mut squares, mut buffer) = ([T::Wide::zero(); RUN], [T::Wide::zero(); RUN]);
            for (i, y) in range.zip(part.chunks_mut(inner)) {
                let c = i % channels;
                let sample = (i - c) * inner;
                let window = c.saturating_sub(below)..(c + above + 1).min(channels);
                for (k, y) in y.chunks_mut(RUN).enumerate() {
                    let piece = |c: usize| &x[sample + c * inner + k * RUN..][..y.len()];
                    squares.fill(T::Wide::zero());
                    for c in window.clone() {
                        for (sum, &x) in squares.iter_mut().zip(T::load(piece(c), &mut buffer)) {
                            *sum = *sum + x * x;
                        }
                    }
                    let x = T::load(piece(c), &mut buffer);
                    for ((y, &x), &sum) in y.iter_mut().zip(x).zip(&squares) {
                        *y = T::down(x / (bias + alpha * sum).powf(beta));
                    }
                }
            }
        });
        Ok(())
    }
}
