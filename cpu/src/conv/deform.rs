//! Deformable convolution: a product whose right operand samples the image multilinearly.

use std::marker::PhantomData;
use std::ops::Range;

use num_traits::{One, Zero};

use crate::gemm::{
    Activate, Addend, FusedEpilogue, InMemory, Matrix, Offsets, Product, Right, Source, Store, multiply,
};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::ops::OpError;
use crate::ops::conv::deform::DeformConv;
use crate::ops::window::Geometry;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

/// Spatial axes that are supported; the standard's reference has two.
const AXES: usize = 4;

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        Ok(CpuKernel::Tensor(Box::new(Deform::<T>(node.op::<DeformConv>().clone(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct Deform<T>(DeformConv, PhantomData<fn(T)>);

impl<T: Store<Compute: Activate>> Kernel for Deform<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let geometry = self.0.window.geometry(&x.shape[2..], &w.shape[2..])?;
        if geometry.input.len() > AXES {
            let reason = format!("deformable convolution has at most {AXES} spatial axes on the CPU");
            return Err(OpError::Unsupported(reason));
        }
        Ok(Prepared { state: Some(Box::new(geometry)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let [Some(x), Some(w), Some(offset), ..] = *inputs else { return Ok(()) };
        let Some(y) = &mut outputs[0] else { return Ok(()) };
        let (geometry, group) = (cx.state::<Geometry>(), self.0.group);
        let (m, k) = (w.shape()[0] / group, w.shape()[1..].iter().product());
        let n = geometry.output.iter().product();
        let input = |i: usize| inputs.get(i).copied().flatten().map(|v| v.slice::<T>());
        let samples = Samples {
            geometry,
            x: x.slice::<T>(),
            offset: offset.slice::<T>(),
            mask: input(4),
            group,
            channels: w.shape()[1],
            offset_group: self.0.offset_group,
        };
        let a = InMemory {
            matrix: Matrix::new(w.slice::<T>(), k),
            offsets: Offsets::Cycle { period: group, stride: m * k },
        };
        let mut epilogue = FusedEpilogue::new(y.slice::<T>(), m, n);
        epilogue.addends[0] = input(3).map(|data| Addend {
            data,
            offsets: Offsets::Cycle { period: group, stride: m },
            row_stride: 1,
            column_stride: 0,
            scale: 1.0,
        });
        let batch = x.shape()[0] * group;
        let product = Product { batch, m, n, k, a: a.left(), b: Right::Source(&samples) };
        multiply(cx.pool, &product, &epilogue);
        Ok(())
    }
}

/// The moved patches of a group of channels.
struct Samples<'a, T> {
    geometry: &'a Geometry,
    x: &'a [T],
    offset: &'a [T],
    mask: Option<&'a [T]>,
    group: usize,
    /// Channels of a group.
    channels: usize,
    offset_group: usize,
}

/// Positions whose corners are worked out at a time, for all channels that move alike.
const RUN: usize = 64;

/// Where a position samples: the corners of its cell with their weights, 0 outside the image, and the mask.
#[derive(Clone, Copy)]
struct Cell<C> {
    corners: [(usize, C); 1 << AXES],
    mask: C,
}

impl<T: Store<Compute: Activate>> Source<T::Compute> for Samples<'_, T> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [T::Compute]) {
        let g = self.geometry;
        let volume: usize = g.kernel.iter().product();
        let (plane, corners) = (g.input.iter().product::<usize>(), 1 << g.input.len());
        let (image, group) = (batch / self.group, batch % self.group);
        let all_channels = self.channels * self.group;
        let zero = T::Compute::zero();
        let mut cells = [Cell { corners: [(0, zero); 1 << AXES], mask: T::Compute::one() }; RUN];
        for first in rows.clone().take(volume) {
            for start in columns.clone().step_by(RUN) {
                let end = (start + RUN).min(columns.end);
                let mut known = None;
                for row in (first..rows.end).step_by(volume) {
                    let (channel, tap) = (group * self.channels + row / volume, row % volume);
                    let offsets = channel / (all_channels / self.offset_group);
                    let moved = (image * self.offset_group + offsets) * volume + tap;
                    if known != Some(moved) {
                        cells
                            .iter_mut()
                            .zip(start..end)
                            .for_each(|(cell, at)| self.sample(moved, tap, at, cell));
                        known = Some(moved);
                    }
                    let x = &self.x[(image * all_channels + channel) * plane..][..plane];
                    let at = (row - rows.start) * columns.len() + start - columns.start;
                    for (y, cell) in out[at..at + end - start].iter_mut().zip(&cells) {
                        let mut sum = zero;
                        for &(at, weight) in &cell.corners[..corners] {
                            if weight != zero {
                                sum = sum + x[at].load() * weight;
                            }
                        }
                        *y = sum * cell.mask;
                    }
                }
            }
        }
    }
}

impl<T: Store<Compute: Activate>> Samples<'_, T> {
    /// The cell that `tap` of an output position samples, moved by the offsets `moved`.
    fn sample(&self, moved: usize, tap: usize, position: usize, cell: &mut Cell<T::Compute>) {
        let g = self.geometry;
        let (axes, positions) = (g.input.len(), g.output.iter().product::<usize>());
        let mut point = [T::Compute::zero(); AXES];
        let (mut o, mut t) = (position, tap);
        for axis in (0..axes).rev() {
            let at = o % g.output[axis] * g.strides[axis] + t % g.kernel[axis] * g.dilations[axis];
            (o, t) = (o / g.output[axis], t / g.kernel[axis]);
            let by = self.offset[(moved * axes + axis) * positions + position].load();
            point[axis] = T::Compute::of_f64(at as f64 - g.pads_begin[axis] as f64) + by;
        }
        if let Some(mask) = self.mask {
            cell.mask = mask[moved * positions + position].load();
        }
        // The two neighbours along each axis.
        let mut pairs = [[(None, T::Compute::zero()); 2]; AXES];
        for ((pair, &p), &extent) in pairs.iter_mut().zip(&point[..axes]).zip(&g.input) {
            *pair = neighbours(p, extent);
        }
        for (corner, to) in cell.corners[..1 << axes].iter_mut().enumerate() {
            let (mut at, mut weight) = (Some(0), T::Compute::one());
            for (axis, pair) in pairs[..axes].iter().enumerate() {
                let (index, part) = pair[corner >> axis & 1];
                at = at.zip(index).map(|(at, index)| at * g.input[axis] + index);
                weight = weight * part;
            }
            *to = at.map_or((0, T::Compute::zero()), |at| (at, weight));
        }
    }
}

/// The elements of an axis on both sides of a point, `None` outside, with their weights.
fn neighbours<C: Activate>(point: C, extent: usize) -> [(Option<usize>, C); 2] {
    // By way of an integer: rounding down is a call on older processors.
    let whole = point.to_f64().filter(|p| p.abs() < 1e15).map(|p| {
        let towards_zero = p as i64;
        towards_zero - i64::from((towards_zero as f64) > p)
    });
    let Some(low) = whole else { return [(None, C::zero()); 2] };
    let fraction = point - C::of_f64(low as f64);
    let inside = |at: i64| usize::try_from(at).ok().filter(|&at| at < extent);
    [(inside(low), C::one() - fraction), (inside(low + 1), fraction)]
}
