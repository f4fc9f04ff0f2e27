//! RMS normalisation whose scale, and so its output, has another type than its input.

use std::marker::PhantomData;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::layer_norm::LayerNorm;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::Statistic;
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::broadcast::Broadcast;
use crate::loops::number::{Float, dispatch};
use crate::loops::parallel::{GRAIN, Parts};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<LayerNorm>();
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] => {
        dispatch!(node.input(1), S in [f32, f64, f16, bf16] => {
            Ok(CpuKernel::Tensor(Box::new(MixedRms::<T, S> { op, _types: PhantomData })))
        }, else Err(node.no_kernel()))
    }, else Err(node.no_kernel()))
}

/// Computes in f64: the combination is rare, and no type loses by it.
struct MixedRms<T, S> {
    op: LayerNorm,
    _types: PhantomData<fn(T) -> S>,
}

/// Elements of a row, and how the scale broadcasts to the input.
type State = (usize, Broadcast<1>);

impl<T: Float, S: Float> Kernel for MixedRms<T, S> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(scale)) = (inputs[0], inputs[1]) else { return Ok(Prepared::default()) };
        let axis = crate::ops::normalize_axis("axis", self.op.axis, x.shape.len())?;
        let state: State = (x.shape[axis..].iter().product(), Broadcast::new(x.shape, [scale.shape]));
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (row, walk) = cx.state::<State>();
        let (Some(x), Some(scale)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let (x, scale) = (x.slice::<T>(), scale.slice::<S>());
        if x.is_empty() {
            return Ok(());
        }
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let Some(Some(y)) = slots.next() else { return Ok(()) };
        let (y, deviations) = (Parts::new(y.slice::<S>()), Statistic::new(slots.next().flatten()));
        cx.pool.split(x.len() / row, (GRAIN / row).max(1), |rows| {
            for i in rows {
                let range = i * row..(i + 1) * row;
                let wide = |x: &T| -> f64 { x.up().as_() };
                let squares: f64 = x[range.clone()].iter().map(|x| wide(x) * wide(x)).sum();
                let factor = 1.0 / (squares / *row as f64 + self.op.epsilon as f64).sqrt();
                // SAFETY: each row belongs to one thread.
                let y = unsafe {
                    deviations.set(i, factor);
                    y.get(range.clone())
                };
                walk.each(range, |out, [read]| {
                    let (scale, step) = (&scale[read.clone()], usize::from(read.len() > 1));
                    let start = out.start - i * row;
                    for (k, (y, x)) in y[start..].iter_mut().zip(&x[out]).enumerate() {
                        let scale: f64 = scale[k * step].up().as_();
                        *y = S::down(S::constant(wide(x) * factor * scale));
                    }
                });
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::tensor::f16;
    use crate::testing::{elements, run, t};

    #[test]
    fn scales_of_another_type() {
        // numpy.
        let x = t(&[2, 3], &[1.0f32, -2.0, 3.0, 0.5, 0.0, -1.0]);
        let scale = [1.0, 2.0, 0.5];
        let want = [0.462_909_6, -1.851_638_2, 0.694_364_3, 0.774_587_4, 0.0, -0.774_587_4];
        let halves: Vec<f16> = scale.iter().map(|&x| f16::from_f64(x)).collect();
        let half =
            elements::<f16>(&run("RMSNormalization", 23, &[], &[x.clone(), t(&[3], &halves)], 1).unwrap()[0]);
        let double = elements::<f64>(&run("RMSNormalization", 23, &[], &[x, t(&[3], &scale)], 1).unwrap()[0]);
        for (i, want) in want.into_iter().enumerate() {
            assert!((half.1[i].to_f64() - want).abs() < 1e-3, "{i}");
            assert!((double.1[i] - want).abs() < 1e-5, "{i}");
        }
    }
}
