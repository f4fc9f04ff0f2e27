//! DFT and STFT.
//!
//! Each transform gathers one line of the input into a complex buffer, transforms it there, and
//! writes what is wanted. Everything is transformed in f64: sums that cancel exactly, as those of
//! regular signals do, would leave noise in a spectrum otherwise.

use std::marker::PhantomData;

use num_traits::AsPrimitive;
use rukh_deps::fft::Fft;

use crate::ops::OpError;
use crate::ops::fourier::{Dft, Stft};
use crate::ops::movement::axis_of;
use crate::tensor::{C128, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared, data_shape};
use crate::loops::number::{Float, dispatch};
use crate::loops::parallel::Parts;
use crate::provider::ints::{int_list, shape_input};

pub(super) const KERNELS: &[Entry] = &[Entry::new("DFT", dft), Entry::new("STFT", stft)];

fn dft(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Dft>().clone();
    let pieces = node.pool.threads() * 4;
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16] =>
            Ok(CpuKernel::Tensor(Box::new(DftKernel::<T> { op, pieces, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

fn stft(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Stft>().clone();
    let pieces = node.pool.threads() * 4;
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16] =>
            Ok(CpuKernel::Tensor(Box::new(StftKernel::<T> { op, pieces, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

/// A transform with the memory its lines need.
struct Lines {
    fft: Fft,
    length: usize,
    count: usize,
    /// Parts that the lines are cut into; each has a buffer of its own.
    pieces: usize,
}

impl Lines {
    fn new(length: usize, inverse: bool, count: usize, pieces: usize) -> Self {
        Lines { fft: Fft::new(length, inverse), length, count, pieces: pieces.min(count) }
    }

    /// Complex numbers that one piece needs: a line, and what the transform asks for.
    fn room(&self) -> usize {
        self.length + self.fft.scratch_len()
    }

    fn scratch(&self) -> usize {
        self.pieces * self.room() * size_of::<C128>()
    }

    /// For each line: fills the buffer, transforms it, and hands it on.
    fn run(
        &self,
        cx: &KernelContext<'_>,
        fill: impl Fn(usize, &mut [C128]) + Sync,
        store: impl Fn(usize, &[C128]) + Sync,
    ) {
        let scratch = Parts::new(cx.scratch::<C128>());
        cx.pool.for_each(self.pieces, &|piece| {
            // SAFETY: each piece has a part of its own.
            let room = unsafe { scratch.get(piece * self.room()..(piece + 1) * self.room()) };
            let (buffer, work) = room.split_at_mut(self.length);
            for line in self.count * piece / self.pieces..self.count * (piece + 1) / self.pieces {
                fill(line, buffer);
                self.fft.run(buffer, work);
                store(line, buffer);
            }
        });
    }
}

/// A real or complex element, by the size of the last axis.
fn load<T: Float>(data: &[T], at: usize, parts: usize) -> C128 {
    let value = |i: usize| -> f64 { data[i].up().as_() };
    C128::new(value(at * parts), if parts == 2 { value(at * 2 + 1) } else { 0.0 })
}

struct DftKernel<T> {
    op: Dft,
    pieces: usize,
    _element: PhantomData<fn(T)>,
}

/// The input as `[outer, from, inner, parts]`, the output as `[outer, to, inner, 2 or 1]`.
struct DftPlan {
    lines: Lines,
    from: usize,
    to: usize,
    inner: usize,
    parts: usize,
}

impl<T: Float> Kernel for DftKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let plan: &DftPlan = cx.state();
        let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let input = input.slice::<T>();
        let output = Parts::new(output.slice::<T>());
        let (inner, from, to, n) = (plan.inner, plan.from, plan.to, plan.lines.length);
        let real_result = self.op.inverse && self.op.one_sided;
        let scale = if self.op.inverse { 1.0 / n as f64 } else { 1.0 };
        let fill = |line: usize, buffer: &mut [C128]| {
            let (o, i) = (line / inner, line % inner);
            let at = |k: usize| load(input, (o * from + k) * inner + i, plan.parts);
            if real_result {
                // The spectrum of a real signal: the other half is the mirrored conjugate, and the
                // parts that are their own mirror image are real.
                for k in 0..n / 2 + 1 {
                    let x = if k < from { at(k) } else { C128::new(0.0, 0.0) };
                    buffer[(n - k) % n] = x.conj();
                    buffer[k] = if k == 0 || 2 * k == n { C128::new(x.re, 0.0) } else { x };
                }
                return;
            }
            let given = n.min(from);
            buffer[..given].iter_mut().enumerate().for_each(|(k, x)| *x = at(k));
            buffer[given..].fill(C128::new(0.0, 0.0));
        };
        let store = |line: usize, buffer: &[C128]| {
            let (o, i) = (line / inner, line % inner);
            let width = if real_result { 1 } else { 2 };
            for (k, x) in buffer[..to].iter().enumerate() {
                let at = ((o * to + k) * inner + i) * width;
                // SAFETY: each line writes elements of its own.
                let y = unsafe { output.get(at..at + width) };
                y[0] = T::down(T::constant(x.re * scale));
                if width == 2 {
                    y[1] = T::down(T::constant(x.im * scale));
                }
            }
        };
        plan.lines.run(cx, fill, store);
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let shape = data_shape(inputs)?;
        let axis = int_list(&self.op.axis, inputs)?.and_then(|v| v.first().copied());
        let axis = axis_of(axis.unwrap_or(self.op.default_axis), shape.len())?;
        let given = shape_input(inputs, 1)?.and_then(|v| v.first().copied());
        let length = given.map_or_else(|| self.op.default_length(shape[axis]), |n| n as usize);
        let last = shape.len() - 1;
        let inner = shape[axis + 1..last].iter().product();
        // A transform of no points has nothing to write.
        let count = if length == 0 { 0 } else { shape[..axis].iter().product::<usize>() * inner };
        let to = outputs.first().copied().flatten().map_or(0, |s| s[axis]);
        let lines = Lines::new(length, self.op.inverse, count, self.pieces);
        let scratch = lines.scratch();
        let plan = DftPlan { lines, from: shape[axis], to, inner, parts: shape[last] };
        Ok(Prepared { state: Some(Box::new(plan)), scratch })
    }
}

struct StftKernel<T> {
    op: Stft,
    pieces: usize,
    _element: PhantomData<fn(T)>,
}

struct StftPlan {
    lines: Lines,
    /// The length of the signal, what each element consists of, and the step between frames.
    signal: usize,
    parts: usize,
    step: usize,
    frames: usize,
    bins: usize,
}

impl<T: Float> Kernel for StftKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let plan: &StftPlan = cx.state();
        let (Some(signal), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let signal = signal.slice::<T>();
        let window = inputs.get(2).copied().flatten().map(|w| w.slice::<T>());
        let length = plan.lines.length;
        if let Some(window) = window
            && window.len() > length
        {
            let n = window.len();
            return Err(OpError::Data(format!("the window has {n} points, more than a frame of {length}")));
        }
        let output = Parts::new(output.slice::<T>());
        let fill = |line: usize, buffer: &mut [C128]| {
            let start = line / plan.frames * plan.signal + line % plan.frames * plan.step;
            for (k, x) in buffer.iter_mut().enumerate() {
                *x = load(signal, start + k, plan.parts);
                if let Some(window) = window {
                    *x = x.scale(window.get(k).map_or(0.0, |w| w.up().as_()));
                }
            }
        };
        let store = |line: usize, buffer: &[C128]| {
            let width = plan.bins * 2;
            // SAFETY: each line writes elements of its own.
            let row = unsafe { output.get(line * width..(line + 1) * width) };
            for (y, x) in row.chunks_exact_mut(2).zip(buffer) {
                y[0] = T::down(T::constant(x.re));
                y[1] = T::down(T::constant(x.im));
            }
        };
        plan.lines.run(cx, fill, store);
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let shape = data_shape(inputs)?;
        let &[batch, signal, parts] = shape else {
            return Err(OpError::Data(format!(
                "the signal has shape {shape:?}; [batch, length, 1 or 2] is needed"
            )));
        };
        let first = |i: usize| Ok::<_, OpError>(shape_input(inputs, i)?.and_then(|v| v.first().copied()));
        let step = first(1)?.unwrap_or(1).max(1) as usize;
        let window = inputs.get(2).copied().flatten().map(|w| w.shape[0]);
        let length = first(3)?.map(|n| n as usize).or(window).unwrap_or(signal);
        let (frames, bins) = match outputs.first().copied().flatten() {
            Some(&[_, frames, bins, _]) => (frames, bins),
            _ => (0, 0),
        };
        debug_assert!(bins == if self.op.one_sided { length / 2 + 1 } else { length });
        let lines = Lines::new(length, false, batch * frames, self.pieces);
        let scratch = lines.scratch();
        let plan = StftPlan { lines, signal, parts, step, frames, bins };
        Ok(Prepared { state: Some(Box::new(plan)), scratch })
    }
}
