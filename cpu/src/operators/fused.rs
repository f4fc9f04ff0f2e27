//! Operators of domain com.microsoft that stand for two or three of the standard's.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::fused::{BiasActivation, SkipNorm};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use super::layer_norm::Statistic;
use super::unary::{function, function_f32};
use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::map::Function;
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::add;
use crate::loops::statistics::{Real, affine, moments, total};
use crate::loops::widen::{RUN, Widen};

const DOMAIN: &str = "com.microsoft";

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("FastGelu", build_bias).domain(DOMAIN),
    Entry::new("BiasGelu", build_bias).domain(DOMAIN),
    Entry::new("BiasAdd", build_bias).domain(DOMAIN),
    Entry::new("SkipLayerNormalization", build_skip).domain(DOMAIN),
    Entry::new("SkipSimplifiedLayerNormalization", build_skip).domain(DOMAIN),
];

fn build_bias(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let activation = node.op::<BiasActivation>().activation;
    fn kernel<T: Widen<Wide: Real>>(f: Option<Box<dyn Function<T::Wide>>>) -> Box<dyn Kernel> {
        Box::new(BiasKernel::<T> { f })
    }
    Ok(CpuKernel::Tensor(match node.input(0) {
        Some(ElementType::F32) => kernel::<f32>(activation.and_then(function_f32)),
        Some(ElementType::F64) => kernel::<f64>(activation.and_then(function)),
        Some(ElementType::F16) => kernel::<f16>(activation.and_then(function_f32)),
        Some(ElementType::BF16) => kernel::<bf16>(activation.and_then(function_f32)),
        _ => return Err(node.no_kernel()),
    }))
}

/// `f(x + bias + skip)`. Bound: one read and one write of the tensor.
struct BiasKernel<T: Widen> {
    f: Option<Box<dyn Function<T::Wide>>>,
}

impl<T: Widen<Wide: Real>> Kernel for BiasKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let given = |i: usize| inputs.get(i).copied().flatten().map(|x| x.slice::<T>());
        let (x, bias, skip) = (given(0), given(1), given(2));
        let row = output.shape().last().copied().unwrap_or(1);
        split_mut(cx.pool, output.slice::<T>(), row, (GRAIN / row.max(1)).max(1), |rows, part| {
            let (mut own, mut other) = ([T::Wide::default(); RUN], [T::Wide::default(); RUN]);
            for (i, y) in rows.zip(part.chunks_mut(row)) {
                for (k, y) in y.chunks_mut(RUN).enumerate() {
                    let (start, count) = (k * RUN, y.len());
                    if let Some(x) = x {
                        y.copy_from_slice(&x[i * row + start..][..count]);
                    }
                    T::update(y, &mut own, |y| {
                        if let Some(bias) = bias {
                            add(y, T::load(&bias[start..][..count], &mut other));
                        }
                        if let Some(skip) = skip {
                            add(y, T::load(&skip[i * row + start..][..count], &mut other));
                        }
                        if let Some(f) = &self.f {
                            f.map_mut(y);
                        }
                    });
                }
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

fn build_skip(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<SkipNorm>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
        Box::new(SkipKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct SkipKernel<T> {
    op: SkipNorm,
    _type: PhantomData<fn(T)>,
}

impl<T: Widen<Wide: Real>> Kernel for SkipKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(skip), Some(gamma)) = (inputs[0], inputs[1], inputs[2]) else { return Ok(()) };
        let row = x.shape().last().copied().unwrap_or(1);
        let (x, skip, gamma) = (x.slice::<T>(), skip.slice::<T>(), gamma.slice::<T>());
        if x.is_empty() || skip.is_empty() {
            return Ok(());
        }
        let given = |i: usize| inputs.get(i).copied().flatten().map(|x| x.slice::<T>());
        let (beta, bias) = if self.op.rms { (None, given(3)) } else { (given(3), given(4)) };
        let zero = [T::down(T::Wide::of(0.0))];
        let beta = beta.unwrap_or(&zero);
        let mut outputs = outputs.iter_mut().map(Option::as_mut);
        let mut output = || outputs.next().flatten();
        let Some(y) = output() else { return Ok(()) };
        let y = Parts::new(y.slice::<T>());
        let (mean_out, deviation_out) = (Statistic::new(output()), Statistic::new(output()));
        let sum_out = output().map(|sum| Parts::new(sum.slice::<T>()));
        cx.pool.split(x.len() / row, (GRAIN / row).max(1), |rows| {
            with_scratch([row; 5], |[own, other, bias_room, gamma_room, beta_room]: [&mut [T::Wide]; 5]| {
                let bias = bias.map(|x| T::load(x, bias_room));
                let (gamma, beta) = (T::load(gamma, gamma_room), T::load(beta, beta_room));
                for i in rows {
                    let elements = i * row..(i + 1) * row;
                    // SAFETY: each row belongs to one thread.
                    let y = unsafe { y.get(elements.clone()) };
                    y.copy_from_slice(&x[elements.clone()]);
                    T::update(y, own, |y| {
                        // A skip without batch serves every sample.
                        add(y, T::load(&skip[i * row % skip.len()..][..row], other));
                        if let Some(bias) = bias {
                            add(y, bias);
                        }
                        if let Some(sum) = &sum_out {
                            // SAFETY: as above.
                            T::store(unsafe { sum.get(elements) }, other, |sum| sum.copy_from_slice(y));
                        }
                        let (mean, spread) = match self.op.rms {
                            true => (0.0, total(y, T::Wide::sum_squares) / row as f64),
                            false => moments(y),
                        };
                        let factor = 1.0 / (spread + self.op.epsilon as f64).sqrt();
                        // SAFETY: as above, one element for each row.
                        unsafe {
                            mean_out.set(i, mean);
                            deviation_out.set(i, factor);
                        }
                        affine(None, y, T::Wide::of(mean), T::Wide::of(factor), gamma, beta);
                    });
                }
            });
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;

    use crate::testing::{elements, run_in, t};

    /// Numbers of the runtime that defines these operators.
    #[test]
    fn normalise_and_activate() {
        let close = |got: &crate::tensor::Value, want: &[f32]| {
            for (got, want) in elements::<f32>(got).1.iter().zip(want) {
                assert!((got - want).abs() < 1e-5, "{got} {want}");
            }
        };
        let x = t(&[1, 2, 3], &[1.0f32, -2.0, 3.0, 0.5, 0.0, -1.0]);
        let skip = t(&[2, 3], &[0.5f32, 1.0, -1.0, 2.0, 2.0, 2.0]);
        let gamma = t(&[3], &[1.0f32, 2.0, 0.5]);
        let beta = t(&[3], &[0.1f32, 0.2, 0.3]);
        let bias = t(&[3], &[1.0f32, 0.0, -1.0]);
        let epsilon = [("epsilon", Attribute::Float(1e-5))];
        let inputs = [x.clone(), skip, gamma, beta, bias.clone()];
        let out = run_in("com.microsoft", "SkipLayerNormalization", 1, &epsilon, &inputs, 4).unwrap();
        close(&out[0], &[1.2624736, -2.3574417, 0.3581237, 1.2624736, 0.43249482, -0.33936042]);
        close(&out[1], &[0.8333333, 1.8333333]);
        close(&out[2], &[0.697_484_1, 0.697_484_1]);
        close(&out[3], &[2.5, -1.0, 1.0, 3.5, 2.0, 0.0]);
        let inputs = [inputs[0].clone(), inputs[1].clone(), inputs[2].clone(), bias.clone()];
        let out =
            run_in("com.microsoft", "SkipSimplifiedLayerNormalization", 1, &epsilon, &inputs, 4).unwrap();
        close(&out[0], &[1.5075539, -1.2060431, 0.30151078, 1.5038399, 1.7186742, 0.0]);
        for (name, want) in [
            ("FastGelu", [1.9545977, -0.04540235, 1.9545977, 1.3995715, 0.0, -0.04540235]),
            ("BiasGelu", [1.9544997, -0.04550028, 1.9544997, 1.3997892, 0.0, -0.04550028]),
        ] {
            let out = run_in("com.microsoft", name, 1, &[], &[x.clone(), bias.clone()], 1).unwrap();
            close(&out[0], &want);
        }
    }
}
