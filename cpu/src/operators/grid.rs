//! GridSample and AffineGrid.

use std::marker::PhantomData;

use num_traits::AsPrimitive;
use smallvec::SmallVec;

use crate::ops::OpError;
use crate::ops::grid::{AffineGrid, GridSample, SampleMode, SamplePadding};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::{Float, dispatch};
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::sample::Sample;
use crate::loops::scratch::with_scratch;
use crate::loops::strided::strides_of;
use crate::provider::resample::cubic;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("GridSample", sample),
    Entry::new("GridSample", sample).domain("com.microsoft"),
    Entry::new("AffineGrid", affine),
];

fn sample(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<GridSample>().clone();
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] =>
            Ok(CpuKernel::Tensor(Box::new(Sampler::<T> { op, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

struct Sampler<T> {
    op: GridSample,
    _element: PhantomData<fn(T)>,
}

/// The elements that one axis contributes to a place, and how much; `None` lies outside.
struct AxisTaps {
    positions: [Option<usize>; 4],
    weights: [f64; 4],
    count: usize,
}

impl<T: Sample> Kernel for Sampler<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(grid), Some(output)) = (inputs[0], inputs[1], &mut outputs[0]) else {
            return Ok(());
        };
        let (channels, space) = (x.shape()[1], &x.shape()[2..]);
        let plane: usize = space.iter().product();
        if output.len() == 0 {
            return Ok(());
        }
        if plane == 0 {
            return Err(OpError::Data(format!("an image of shape {space:?} has nothing to sample")));
        }
        let points = output.len() / (x.shape()[0] * channels);
        let strides = strides_of(space);
        let data = x.slice::<T>();
        let places = Places::of(grid)?;
        let output = Parts::new(output.slice::<T>());
        let grain = (GRAIN / 8 / channels.max(1)).max(1);
        cx.pool.split(x.shape()[0] * points, grain, |range| {
            let mut taps: SmallVec<[(usize, T::Compute); 64]> = SmallVec::new();
            for place in range {
                let (n, p) = (place / points, place % points);
                taps.clear();
                taps.push((0, T::weight(1.0)));
                for (axis, &length) in space.iter().enumerate() {
                    // The grid names the last axis (x) first.
                    let at = places.get(place * space.len() + space.len() - 1 - axis);
                    extend(&mut taps, &self.taps(at, length, places.single), strides[axis] as usize);
                }
                for c in 0..channels {
                    let image = &data[(n * channels + c) * plane..][..plane];
                    let sum = taps.iter().fold(T::weight(0.0), |sum, &(at, w)| sum + w * image[at].load());
                    let to = (n * channels + c) * points + p;
                    // SAFETY: each place writes elements of its own.
                    let y = unsafe { output.get(to..to + 1) };
                    y[0] = T::store(sum);
                }
            }
        });
        Ok(())
    }
}

/// Combines the taps so far with those of one more axis.
fn extend<C: Sample<Compute = C> + num_traits::Float>(
    taps: &mut SmallVec<[(usize, C); 64]>,
    axis: &AxisTaps,
    stride: usize,
) {
    let before = taps.len();
    for k in 0..axis.count {
        let Some(position) = axis.positions[k] else { continue };
        let weight = C::weight(axis.weights[k]);
        for t in 0..before {
            let (at, w) = taps[t];
            taps.push((at + position * stride, w * weight));
        }
    }
    taps.drain(..before);
}

impl<T> Sampler<T> {
    /// What a coordinate in −1…1 takes from an axis.
    fn taps(&self, at: f64, length: usize, single: bool) -> AxisTaps {
        let n = length as f64;
        let mut x =
            if self.op.align_corners { (at + 1.0) / 2.0 * (n - 1.0) } else { ((at + 1.0) * n - 1.0) / 2.0 };
        if single {
            // As the grid's own precision gives it, so that ties fall the same way.
            x = x as f32 as f64;
        }
        if self.op.mode == SampleMode::Nearest {
            x = x.round_ties_even();
        }
        // The edges that a reflection is at: pixel centres, or the outer edges of pixels.
        let (low, high) = if self.op.align_corners { (0.0, n - 1.0) } else { (-0.5, n - 0.5) };
        // Cubic taps are brought inside one by one, as PyTorch does.
        if self.op.mode != SampleMode::Cubic && !(low..=high).contains(&x) {
            x = match self.op.padding {
                SamplePadding::Zeros => x,
                SamplePadding::Border => x.clamp(0.0, n - 1.0),
                SamplePadding::Reflection => reflect(x, low, high),
            };
        }
        let left = x.floor();
        let ratio = x - left;
        let (first, weights, count) = match self.op.mode {
            SampleMode::Nearest => (left, [1.0, 0.0, 0.0, 0.0], 1),
            SampleMode::Linear => (left, [1.0 - ratio, ratio, 0.0, 0.0], 2),
            SampleMode::Cubic => {
                let w = |d: f64| cubic(d, -0.75);
                (left - 1.0, [w(1.0 + ratio), w(ratio), w(1.0 - ratio), w(2.0 - ratio)], 4)
            }
        };
        let position = |x: f64| match self.op.padding {
            _ if (0.0..n).contains(&x) => Some(x as usize),
            SamplePadding::Zeros => None,
            SamplePadding::Border => Some(x.clamp(0.0, n - 1.0) as usize),
            SamplePadding::Reflection => Some(reflect(x, low, high).clamp(0.0, n - 1.0) as usize),
        };
        let mut positions = [None; 4];
        (0..count).for_each(|k| positions[k] = position(first + k as f64));
        AxisTaps { positions, weights, count }
    }
}

/// Mirrors a coordinate at both edges until it lies between them; what is no number becomes the edge.
fn reflect(x: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 || !x.is_finite() {
        return low;
    }
    let offset = (x - low).rem_euclid(2.0 * range);
    low + offset.min(2.0 * range - offset)
}

/// The grid's numbers.
struct Places<'a> {
    view: TensorView<'a>,
    load: fn(TensorView<'_>, usize) -> f64,
    /// Whether coordinates are computed in f32.
    single: bool,
}

impl<'a> Places<'a> {
    fn of(view: TensorView<'a>) -> Result<Self, OpError> {
        let load: fn(TensorView<'_>, usize) -> f64 = dispatch!(
            Some(view.ty()),
            T in [f32, f64, f16, bf16] => |view, i| view.slice::<T>()[i].up().as_(),
            else return Err(OpError::Unsupported(format!("a grid of type {}", view.ty())))
        );
        Ok(Places { view, load, single: view.ty() != ElementType::F64 })
    }

    fn get(&self, i: usize) -> f64 {
        (self.load)(self.view, i)
    }
}

fn affine(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let align_corners = node.op::<AffineGrid>().align_corners;
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16] =>
            Ok(CpuKernel::Tensor(Box::new(Affine::<T> { align_corners, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

struct Affine<T> {
    align_corners: bool,
    _element: PhantomData<fn(T)>,
}

impl<T: Float> Kernel for Affine<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(theta), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let shape = output.shape();
        let d = shape.len() - 2;
        let space = &shape[1..=d];
        let points: usize = space.iter().product();
        if shape[0] > theta.shape()[0] {
            let reason = format!("theta has {} maps for a batch of {}", theta.shape()[0], shape[0]);
            return Err(OpError::Data(reason));
        }
        let theta = theta.slice::<T>();
        let centre = |i: usize, n: usize| match (self.align_corners, n) {
            (true, 1) => -1.0,
            (true, _) => 2.0 * i as f64 / (n - 1) as f64 - 1.0,
            (false, _) => (2 * i + 1) as f64 / n as f64 - 1.0,
        };
        // A line of the last axis (x) at a time.
        let line = space[d - 1];
        let lines = points.checked_div(line).unwrap_or(0);
        let value = |x: T| -> f64 { x.up().as_() };
        split_mut(cx.pool, output.slice::<T>(), line * d, GRAIN / 8 / line.max(1) + 1, |range, part| {
            with_scratch([line], |[x]: [&mut [f64]; 1]| {
                x.iter_mut().enumerate().for_each(|(i, x)| *x = centre(i, line));
                for (place, y) in range.zip(part.chunks_exact_mut(line * d)) {
                    let map = &theta[place / lines * d * (d + 1)..][..d * (d + 1)];
                    for (axis, row) in map.chunks_exact(d + 1).enumerate() {
                        // What the other axes add, the last but one first.
                        let mut others = [0.0; 2];
                        let mut rest = place % lines;
                        for ((other, &m), &n) in
                            others.iter_mut().zip(&row[1..d]).zip(space.iter().rev().skip(1))
                        {
                            *other = value(m) * centre(rest % n, n);
                            rest /= n;
                        }
                        let (along, shift) = (value(row[0]), value(row[d]));
                        for (y, x) in y[axis..].iter_mut().step_by(d).zip(&*x) {
                            *y = T::down(T::constant(along * x + others[0] + others[1] + shift));
                        }
                    }
                }
            });
        });
        Ok(())
    }
}
