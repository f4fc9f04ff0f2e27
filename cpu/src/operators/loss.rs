//! Losses: the negative log-likelihood of class labels.

use std::marker::PhantomData;

use num_traits::{Float as _, Zero};

use crate::ops::OpError;
use crate::ops::loss::{Loss, LossReduction};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::along::around;
use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::statistics::Real;
use crate::loops::widen::{RUN, Widen};
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("NegativeLogLikelihoodLoss", build), Entry::new("SoftmaxCrossEntropyLoss", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Loss>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
        Box::new(LossKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct LossKernel<T> {
    op: Loss,
    _type: PhantomData<fn(T)>,
}

impl<T: Widen<Wide: Real>> Kernel for LossKernel<T> {
    fn run(
        &self,
        _cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(scores), Some(labels)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let indices = Ints::required(inputs[1], "labels")?;
        let weights = inputs.get(2).copied().flatten().map(|w| w.slice::<T>());
        let (_, classes, inner) = around(scores.shape(), 1);
        let scores = scores.slice::<T>();
        let (loss_out, mut log_out) = match outputs {
            [loss, log] => (loss, log.as_mut().map(|l| l.slice::<T>())),
            [loss, ..] => (loss, None),
            [] => return Ok(()),
        };
        let mut losses = loss_out.as_mut().map(|l| l.slice::<T>());
        let (mut sum, mut total) = (0.0, 0.0);
        for i in 0..labels.len() {
            // The scores of sample i are every `inner`-th element from here on.
            let start = i / inner * classes * inner + i % inner;
            let at = |c: usize| start + c * inner;
            let shift = match (self.op.softmax, inner) {
                (false, _) => 0.0,
                (true, 1) => log_sum_of(&scores[start..start + classes]),
                (true, _) => self.log_sum(scores, at, classes),
            };
            if let Some(log) = &mut log_out {
                (0..classes).for_each(|c| log[at(c)] = T::down(T::Wide::of(value(scores[at(c)]) - shift)));
            }
            let label = indices.get(i);
            let (loss, weight) = if self.op.ignore_index == Some(label) {
                (0.0, 0.0)
            } else {
                let class = usize::try_from(label).ok().filter(|&c| c < classes).ok_or_else(|| {
                    OpError::Data(format!("label {i} is {label}; allowed are 0 to {}", classes as i64 - 1))
                })?;
                let weight = weights.map_or(1.0, |w| value(w[class]));
                ((shift - value(scores[at(class)])) * weight, weight)
            };
            if self.op.reduction == LossReduction::None
                && let Some(losses) = &mut losses
            {
                losses[i] = T::down(T::Wide::of(loss));
            }
            sum += loss;
            total += weight;
        }
        if let (Some(losses), false) = (losses, self.op.reduction == LossReduction::None) {
            let result = if self.op.reduction == LossReduction::Mean { sum / total } else { sum };
            losses.fill(T::down(T::Wide::of(result)));
        }
        Ok(())
    }
}

fn value<T: Widen<Wide: Real>>(x: T) -> f64 {
    x.up().wide()
}

/// log(Σ exp(score)) of scores side by side, over vectors.
fn log_sum_of<T: Widen<Wide: Real>>(scores: &[T]) -> f64 {
    let (mut buffer, mut shifted) = ([T::Wide::zero(); RUN], [T::Wide::zero(); RUN]);
    let max = scores.chunks(RUN).fold(T::Wide::neg_infinity(), |max, x| {
        let here = T::Wide::largest(T::load(x, &mut buffer));
        if max > here || max.is_nan() { max } else { here }
    });
    let mut sum = 0.0;
    for x in scores.chunks(RUN) {
        let shifted = &mut shifted[..x.len()];
        shifted.iter_mut().zip(T::load(x, &mut buffer)).for_each(|(y, &x)| *y = x - max);
        T::Wide::exp_all(shifted);
        sum += T::Wide::sum(shifted);
    }
    max.wide() + sum.ln()
}

impl<T: Widen<Wide: Real>> LossKernel<T> {
    /// log(Σ exp(score)) of one sample.
    fn log_sum(&self, scores: &[T], at: impl Fn(usize) -> usize, classes: usize) -> f64 {
        let scores = || (0..classes).map(|c| value(scores[at(c)]));
        let max = scores().fold(f64::NEG_INFINITY, f64::max);
        max + scores().map(|s| (s - max).exp()).sum::<f64>().ln()
    }
}
