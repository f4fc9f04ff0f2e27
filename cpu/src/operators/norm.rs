//! `BatchNormalization`, `InstanceNormalization`, `GroupNormalization`.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::norm::{BatchNorm, GroupNorm};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::statistics::{Real, affine, moments, total};
use crate::loops::widen::{RUN, Widen};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("BatchNormalization", build_batch_norm),
    Entry::new("InstanceNormalization", build_group_norm),
    Entry::new("GroupNormalization", build_group_norm),
];

fn build_batch_norm(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<BatchNorm>();
    let known = |i: usize| matches!(node.input(i), Some(ty) if ty.is_float());
    if !(1..5).all(known) {
        return Err(node.no_kernel());
    }
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
        Box::new(BatchNormKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// One element of a float tensor; parameters may have another type than the data.
fn parameter(view: &TensorView<'_>, i: usize) -> f64 {
    match view.ty() {
        ElementType::F32 => view.slice::<f32>()[i] as f64,
        ElementType::F64 => view.slice::<f64>()[i],
        ElementType::F16 => view.slice::<f16>()[i].to_f64(),
        _ => view.slice::<bf16>()[i].to_f64(),
    }
}

fn set_parameter(view: &mut TensorViewMut<'_>, i: usize, x: f64) {
    match view.ty() {
        ElementType::F32 => view.slice::<f32>()[i] = x as f32,
        ElementType::F64 => view.slice::<f64>()[i] = x,
        ElementType::F16 => view.slice::<f16>()[i] = f16::from_f64(x),
        _ => view.slice::<bf16>()[i] = bf16::from_f64(x),
    }
}

struct BatchNormKernel<T> {
    op: BatchNorm,
    _type: PhantomData<fn(T)>,
}

impl<T: Widen<Wide: Real>> Kernel for BatchNormKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let [x, Some(scale), Some(bias), Some(mean), Some(variance), ..] = inputs else { return Ok(()) };
        let x = x.map(|x| x.slice::<T>());
        let Some(shape) = outputs[0].as_ref().map(|y| y.shape()).or(inputs[0].map(|x| x.shape())) else {
            return Ok(());
        };
        let (channels, inner) = self.layout(shape);
        let (factors, rest) = cx.scratch::<T::Wide>().split_at_mut(channels);
        let (offsets, centers) = rest.split_at_mut(channels);
        let training = self.op.training;
        for c in 0..channels {
            let (center, spread) = match x {
                Some(x) if self.op.training => {
                    let (center, spread) = batch_moments(x, c, channels, inner);
                    self.update_statistics(c, [center, spread], [mean, variance], outputs);
                    (center, spread)
                }
                _ => (parameter(mean, c), parameter(variance, c)),
            };
            let factor = parameter(scale, c) / (spread + self.op.epsilon as f64).sqrt();
            factors[c] = T::Wide::of(factor);
            // The batch's own mean is taken off first: its deviations may be small beside it.
            let (first, then) = if training { (center, 0.0) } else { (0.0, center * factor) };
            centers[c] = T::Wide::of(first);
            offsets[c] = T::Wide::of(parameter(bias, c) - then);
        }
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let (zero, one) = (T::Wide::of(0.0), T::Wide::of(1.0));
        let (factors, offsets, centers) = (&*factors, &*offsets, &centers[..channels]);
        // With one element a channel (a matrix), a sample is a run; else a channel of a sample is.
        let unit = if inner == 1 { channels } else { inner };
        split_mut(cx.pool, output.slice::<T>(), unit, (GRAIN / unit.max(1)).max(1), |range, part| {
            for (i, y) in range.zip(part.chunks_mut(unit)) {
                let x = x.map(|x| &x[i * unit..][..unit]);
                match inner {
                    1 if training => {
                        for c in 0..channels {
                            let x = x.map(|x| &x[c..=c]);
                            affine(x, &mut y[c..=c], centers[c], factors[c], &[one], &offsets[c..=c]);
                        }
                    }
                    1 => affine(x, y, zero, one, factors, offsets),
                    _ => {
                        let c = i % channels;
                        affine(x, y, centers[c], factors[c], &[one], &offsets[c..=c]);
                    }
                }
            }
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let channels = inputs[0].map_or(0, |x| self.layout(x.shape).0);
        Ok(Prepared { state: None, scratch: 3 * channels * size_of::<T::Wide>() })
    }

    fn in_place(&self) -> &[usize] {
        if self.op.training { &[] } else { &[0] }
    }
}

impl<T> BatchNormKernel<T> {
    /// The number of channels, and of elements that a channel has in a sample.
    fn layout(&self, shape: &[usize]) -> (usize, usize) {
        let behind = |from: usize| shape.get(from..).unwrap_or(&[]).iter().product();
        match self.op.spatial {
            true => (shape.get(1).copied().unwrap_or(1), behind(2)),
            false => (behind(1), 1),
        }
    }

    /// Moves the running statistics of a channel towards those of the batch. Old versions also give
    /// the latter as outputs 3 and 4.
    fn update_statistics(
        &self,
        c: usize,
        batch: [f64; 2],
        running: [&TensorView<'_>; 2],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) {
        let momentum = self.op.momentum as f64;
        for k in 0..2 {
            if let Some(Some(output)) = outputs.get_mut(1 + k) {
                set_parameter(output, c, parameter(running[k], c) * momentum + batch[k] * (1.0 - momentum));
            }
            if let Some(Some(output)) = outputs.get_mut(3 + k) {
                set_parameter(output, c, batch[k]);
            }
        }
    }
}

/// Mean and mean squared deviation of a channel over the whole batch.
fn batch_moments<T: Widen<Wide: Real>>(x: &[T], c: usize, channels: usize, inner: usize) -> (f64, f64) {
    let rows = || x.chunks(inner.max(1)).skip(c).step_by(channels);
    let count: usize = rows().map(<[T]>::len).sum();
    let mean = rows().map(|row| total(row, T::Wide::sum)).sum::<f64>() / count as f64;
    let center = T::Wide::of(mean);
    let squares = rows().map(|row| total(row, |x| T::Wide::sum_squares_from(x, center)));
    (mean, squares.sum::<f64>() / count as f64)
}

fn build_group_norm(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<GroupNorm>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
        Box::new(GroupNormKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// Elements of a group that stay in a cache as floats.
const TOGETHER: usize = 64 * 1024;

struct GroupNormKernel<T> {
    op: GroupNorm,
    _type: PhantomData<fn(T)>,
}

impl<T: Widen<Wide: Real>> Kernel for GroupNormKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(scale), Some(bias)) = (&mut outputs[0], inputs[1], inputs[2]) else {
            return Ok(());
        };
        let (scale, bias) = (scale.slice::<T>(), bias.slice::<T>());
        let x = inputs[0].map(|x| x.slice::<T>());
        let shape = output.shape();
        let (channels, inner) = (shape[1], shape[2..].iter().product::<usize>());
        let groups = self.op.groups.unwrap_or(channels);
        let in_group = channels / groups.max(1);
        let unit = in_group * inner;
        // Half types of short channels are widened and rounded a group at a time. Channels of a run or more gained nothing.
        let whole = size_of::<T>() < size_of::<T::Wide>() && inner < RUN && unit <= TOGETHER;
        let measure = |(mean, variance): (f64, f64)| {
            (T::Wide::of(mean), T::Wide::of(1.0 / (variance + self.op.epsilon as f64).sqrt()))
        };
        split_mut(cx.pool, output.slice::<T>(), unit, (GRAIN / unit.max(1)).max(1), |range, part| {
            for (i, y) in range.zip(part.chunks_mut(unit)) {
                let x = x.map(|x| &x[i * unit..][..unit]);
                let group = i % groups;
                let at = |k: usize| if self.op.scale_by_group { group } else { group * in_group + k };
                if whole {
                    with_scratch([unit], |[wide]: [&mut [T::Wide]; 1]| {
                        let normalise = |y: &mut [T::Wide]| {
                            let (mean, factor) = measure(moments(&*y));
                            for (k, y) in y.chunks_mut(inner).enumerate() {
                                let (scale, bias) = (scale[at(k)].up(), bias[at(k)].up());
                                affine(None, y, mean, factor, &[scale], &[bias]);
                            }
                        };
                        match x {
                            Some(x) => T::store(y, wide, |y| {
                                T::copy(x, y);
                                normalise(y);
                            }),
                            None => T::update(y, wide, normalise),
                        }
                    });
                    continue;
                }
                let (mean, factor) = measure(moments(x.unwrap_or(y)));
                for (k, y) in y.chunks_mut(inner).enumerate() {
                    let (x, at) = (x.map(|x| &x[k * inner..][..inner]), at(k));
                    affine(x, y, mean, factor, &scale[at..=at], &bias[at..=at]);
                }
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

#[cfg(test)]
mod tests;
