//! Pools regions of images to one size.

use std::marker::PhantomData;

use num_traits::Float as _;

use crate::ops::OpError;
use crate::ops::roi::{RoiMode, RoiPool};
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::{Float, dispatch};
use crate::loops::parallel::split_mut;
use crate::loops::scratch::with_scratch;

pub(super) const KERNELS: &[Entry] = &[Entry::new("MaxRoiPool", build), Entry::new("RoiAlign", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(Roi::<T>(*node.op::<RoiPool>(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct Roi<T>(RoiPool, PhantomData<fn(T)>);

/// The image's extent, and one region: corners in elements.
struct Region<C> {
    height: usize,
    width: usize,
    /// x1, y1, x2, y2.
    corners: [C; 4],
}

impl<T: Float<Compute: Element>> Kernel for Roi<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(rois), Some(y)) = (inputs[0], inputs[1], &mut outputs[0]) else { return Ok(()) };
        let &[images, channels, height, width] = x.shape() else { return Ok(()) };
        let columns = rois.shape()[1];
        let (x, rois) = (x.slice::<T>(), rois.slice::<T>());
        let given = inputs.get(2).copied().flatten().map(|b| b.slice::<i64>());
        let image_of = |r: usize| match given {
            Some(given) => given[r] as f64,
            None => num_traits::AsPrimitive::<f64>::as_(rois[r * columns].up()),
        };
        for r in 0..rois.len() / columns.max(1) {
            let image = image_of(r);
            if !(0.0..images as f64).contains(&image) {
                let reason =
                    format!("region {r} is of image {image}; allowed are 0 to {}", images as i64 - 1);
                return Err(OpError::Data(reason));
            }
        }
        if height * width == 0 {
            y.bytes().fill(0);
            return Ok(());
        }
        let bins = self.0.height * self.0.width;
        let area = height * width;
        split_mut(
            cx.pool,
            y.slice::<T>(),
            channels * bins,
            1024 / (channels * bins).max(1) + 1,
            |range, y| {
                for (r, y) in range.zip(y.chunks_exact_mut(channels * bins)) {
                    let from = &x[image_of(r) as usize * channels * area..][..channels * area];
                    let roi = &rois[r * columns + columns - 4..][..4];
                    let corners = std::array::from_fn(|i| roi[i].up());
                    let region = Region { height, width, corners };
                    match self.0.mode {
                        RoiMode::MaxElements => {
                            let planes = from.chunks_exact(area).zip(y.chunks_exact_mut(bins));
                            planes.for_each(|(from, y)| self.max_elements(&region, from, y));
                        }
                        _ => self.sample(&region, from, y),
                    }
                }
            },
        );
        Ok(())
    }
}

impl<T: Float<Compute: Element>> Roi<T> {
    /// Corners are rounded to elements, and a bin is the elements it touches.
    fn max_elements(&self, region: &Region<T::Compute>, x: &[T], y: &mut [T]) {
        let scale = T::constant(self.0.scale as f64);
        let [x1, y1, x2, y2] =
            region.corners.map(|c| num_traits::AsPrimitive::<f64>::as_((c * scale).round()));
        let bin = |low: f64, high: f64, bins: usize, i: usize, extent: usize| {
            let size = (high - low + 1.0).max(1.0) / bins as f64;
            let start = ((i as f64 * size).floor() + low).clamp(0.0, extent as f64) as usize;
            let end = (((i + 1) as f64 * size).ceil() + low).clamp(0.0, extent as f64) as usize;
            start..end
        };
        for (i, y) in y.iter_mut().enumerate() {
            let rows = bin(y1, y2, self.0.height, i / self.0.width, region.height);
            let columns = bin(x1, x2, self.0.width, i % self.0.width, region.width);
            let max = rows
                .flat_map(|r| columns.clone().map(move |c| r * region.width + c))
                .map(|at| x[at].up())
                .reduce(|a, b| if b > a { b } else { a });
            *y = max.map_or_else(T::default, T::down);
        }
    }

    /// Samples a grid in each bin bilinearly, all channels at each place.
    fn sample(&self, region: &Region<T::Compute>, x: &[T], y: &mut [T]) {
        let zero = T::constant(0.0);
        let (scale, shift) =
            (T::constant(self.0.scale as f64), T::constant(if self.0.half_pixel { 0.5 } else { 0.0 }));
        let [x1, y1, x2, y2] = region.corners.map(|c| c * scale - shift);
        let (mut w, mut h) = (x2 - x1, y2 - y1);
        if !self.0.half_pixel {
            (w, h) = (w.max(T::constant(1.0)), h.max(T::constant(1.0)));
        }
        let (bin_w, bin_h) = (w / T::constant(self.0.width as f64), h / T::constant(self.0.height as f64));
        // An adaptive grid of a huge region is bounded by the image: more samples see nothing new.
        let grid = |bin: T::Compute, extent: usize| match self.0.sampling {
            0 => (num_traits::AsPrimitive::<f64>::as_(bin.ceil()).max(0.0) as usize).min(4 * extent + 4),
            n => n,
        };
        let (grid_h, grid_w) = (grid(bin_h, region.height), grid(bin_w, region.width));
        let (area, bins) = (region.height * region.width, self.0.height * self.0.width);
        let (channels, count) = (x.len() / area, T::constant((grid_h * grid_w).max(1) as f64));
        with_scratch([channels], |[totals]: [&mut [T::Compute]; 1]| {
            for i in 0..bins {
                let (row, column) = (i / self.0.width, i % self.0.width);
                let at = |start: T::Compute, bin: T::Compute, i: usize, j: usize, grid: usize| {
                    start
                        + T::constant(i as f64) * bin
                        + T::constant(j as f64 + 0.5) * bin / T::constant(grid as f64)
                };
                totals.fill(zero);
                for g in 0..grid_h * grid_w {
                    let (gy, gx) = (g / grid_w, g % grid_w);
                    let place = (at(y1, bin_h, row, gy, grid_h), at(x1, bin_w, column, gx, grid_w));
                    let corners = corners::<T>(region, place.0, place.1);
                    for (total, x) in totals.iter_mut().zip(x.chunks_exact(area)) {
                        let [a, b, c, d] = match corners {
                            Some(corners) => corners.map(|(at, weight)| weight * x[at].up()),
                            None => [zero; 4],
                        };
                        *total = match self.0.mode {
                            RoiMode::Max if g == 0 => a.max(b).max(c).max(d),
                            RoiMode::Max => total.max(a.max(b).max(c).max(d)),
                            _ => *total + (a + b + c + d),
                        };
                    }
                }
                let divisor = if self.0.mode == RoiMode::Max { T::constant(1.0) } else { count };
                y[i..]
                    .iter_mut()
                    .step_by(bins)
                    .zip(&*totals)
                    .for_each(|(y, &total)| *y = T::down(total / divisor));
            }
        });
    }
}

/// The four neighbours of a point with their weights; none outside of the image.
fn corners<T: Float>(
    region: &Region<T::Compute>,
    py: T::Compute,
    px: T::Compute,
) -> Option<[(usize, T::Compute); 4]> {
    let (zero, one) = (T::constant(0.0), T::constant(1.0));
    let inside = |p: T::Compute, extent: usize| p >= -one && p <= T::constant(extent as f64);
    if !inside(py, region.height) || !inside(px, region.width) {
        return None;
    }
    let neighbours = |p: T::Compute, extent: usize| {
        let p = p.max(zero);
        let low = num_traits::AsPrimitive::<f64>::as_(p) as usize;
        if low >= extent - 1 {
            (extent - 1, extent - 1, zero)
        } else {
            (low, low + 1, p - T::constant(low as f64))
        }
    };
    let (top, bottom, fy) = neighbours(py, region.height);
    let (left, right, fx) = neighbours(px, region.width);
    let at = |r: usize, c: usize| r * region.width + c;
    Some([
        (at(top, left), (one - fy) * (one - fx)),
        (at(top, right), (one - fy) * fx),
        (at(bottom, left), fy * (one - fx)),
        (at(bottom, right), fy * fx),
    ])
}
