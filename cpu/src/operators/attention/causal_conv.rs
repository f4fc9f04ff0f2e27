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
        let Some([batch, channels, length]) = self.0.sizes(x.shape()) else { return Ok(()) };
        let (kernel, dilation) = (w.shape()[2], self.0.dilation);
        let (x, w) = (x.slice::<T>(), w.slice::<T>());
        let input = |i: usize| inputs.get(i).copied().flatten().map(|v| v.slice::<T>());
        let (bias, past, state) = (input(2), input(3), (kernel - 1) * dilation);
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let y = slots.next().flatten().map(|y| Parts::new(y.slice::<T>()));
        let present = slots.next().flatten().map(|s| Parts::new(s.slice::<T>()));
        if self.0.channels_last {
            let sizes = [length, channels, kernel, state];
            cx.pool.split(batch * length.max(state), 8192 / (channels * kernel).max(1) + 1, |range| {
                with_scratch([channels], |[sums]: [&mut [f32]; 1]| {
                    for row in range {
                        // SAFETY: each row of both outputs belongs to one piece of the split.
                        unsafe { self.position(row, sizes, [x, w], [bias, past], [&y, &present], sums) };
                    }
                });
            });
            return Ok(());
        }
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
                        sums.iter_mut().zip(&line[i * dilation..]).for_each(|(y, &x)| *y += w * x);
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

impl<T: Store<Compute = f32>> Causal<T> {
    /// All channels of one position of the output, and of one of the state, where there are so many.
    ///
    /// # Safety
    /// Nobody else uses these rows of the outputs meanwhile.
    unsafe fn position(
        &self,
        row: usize,
        [length, channels, kernel, state]: [usize; 4],
        [x, w]: [&[T]; 2],
        [bias, past]: [Option<&[T]>; 2],
        [y, present]: [&Option<Parts<'_, T>>; 2],
        sums: &mut [f32],
    ) {
        let (batch, at) = (row / length.max(state), row % length.max(state));
        let piece = |of: usize, at: usize| (batch * of + at) * channels..(batch * of + at + 1) * channels;
        // Position `i` of the past and the input behind it; there is none in a past that was not given.
        let seen = |i: usize| match i.checked_sub(state) {
            Some(i) => Some(&x[piece(length, i)]),
            None => past.map(|past| &past[piece(state, i)]),
        };
        if let Some(y) = y
            && at < length
        {
            match bias {
                Some(bias) => sums.iter_mut().zip(bias).for_each(|(y, b)| *y = b.load()),
                None => sums.fill(0.0),
            }
            for i in 0..kernel {
                let Some(line) = seen(at + i * self.0.dilation) else { continue };
                let weights = w[i..].iter().step_by(kernel);
                sums.iter_mut().zip(line).zip(weights).for_each(|((y, x), w)| *y += w.load() * x.load());
            }
            activate(self.0.activation, sums);
            // SAFETY: the caller's promise.
            store(sums, unsafe { y.get(piece(length, at)) });
        }
        if let Some(present) = present
            && at < state
        {
            // SAFETY: as above.
            let to = unsafe { present.get(piece(state, at)) };
            match seen(length + at) {
                Some(line) => to.copy_from_slice(line),
                None => to.fill(T::store(0.0)),
            }
        }
    }
}

fn store<T: Store<Compute = f32>>(from: &[f32], to: &mut [T]) {
    to.iter_mut().zip(from).for_each(|(y, &x)| *y = T::store(x));
}
