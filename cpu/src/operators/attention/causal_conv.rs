//! CausalConvWithState: a depthwise convolution over past and present positions. Bound by memory.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::attention::recurrent::CausalConv;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::gemm::{Store, activate};
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(Causal::<T>(*node.op::<CausalConv>(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct Causal<T>(CausalConv, PhantomData<fn(T)>);

impl<T: Store<Compute = f32>> Kernel for Causal<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let [Some(x), Some(w), ..] = *inputs else { return Ok(()) };
        let &[batch, channels, length] = x.shape() else { return Ok(()) };
        let kernel = w.shape()[2];
        let (x, w) = (x.slice::<T>(), w.slice::<T>());
        let input = |i: usize| inputs.get(i).copied().flatten().map(|v| v.slice::<T>());
        let (bias, past, state) = (input(2), input(3), kernel - 1);
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let y = slots.next().flatten().map(|y| Parts::new(y.slice::<T>()));
        let present = slots.next().flatten().map(|s| Parts::new(s.slice::<T>()));
        cx.pool.split(batch * channels, 8192 / (length * kernel).max(1) + 1, |range| {
            with_scratch([state + length, length], |[line, sums]: [&mut [f32]; 2]| {
                for row in range {
                    let channel = row % channels;
                    let (before, now) = line.split_at_mut(state);
                    match past {
                        Some(past) => {
                            before.iter_mut().zip(&past[row * state..]).for_each(|(y, x)| *y = x.load());
                        }
                        None => before.fill(0.0),
                    }
                    now.iter_mut().zip(&x[row * length..]).for_each(|(y, x)| *y = x.load());
                    sums.fill(bias.map_or(0.0, |b| b[channel].load()));
                    for (i, w) in w[channel * kernel..][..kernel].iter().enumerate() {
                        let w = w.load();
                        sums.iter_mut().zip(&line[i..]).for_each(|(y, &x)| *y += w * x);
                    }
                    activate(self.0.activation, sums);
                    // SAFETY: each row of both outputs belongs to one piece of the split.
                    unsafe {
                        if let Some(y) = &y {
                            store(sums, y.get(row * length..(row + 1) * length));
                        }
                        if let Some(present) = &present {
                            store(&line[length..], present.get(row * state..(row + 1) * state));
                        }
                    }
                }
            });
        });
        Ok(())
    }
}

fn store<T: Store<Compute = f32>>(from: &[f32], to: &mut [T]) {
    to.iter_mut().zip(from).for_each(|(y, &x)| *y = T::store(x));
}
