//! Convolution over three axes: a slice of the output is a convolution over two axes of those slices of the image that it
//! reads, each of which is a channel. Slices are copied with their padding, once for all that read them.

use std::sync::Arc;

use super::panels::Panels;
use super::plan::LinesPlan;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::planes::{CopyPlanes, Planes};
use crate::isa::Dispatch;
use crate::kernel::KernelContext;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::ops::window::Geometry;

/// Elements of the copied slices, at most: 64 MiB.
const MOST: usize = 1 << 24;
/// Elements of the weight, at most. Each slice of the output reads all of it, which so should stay in a processor's own cache.
pub(super) const MOST_WEIGHT: usize = 1 << 18;
/// Multiplications of a slice for each thread, at least, as slices follow one another.
const LEAST_OF_SLICE: usize = 1 << 20;

/// What depends on shapes.
pub(crate) struct VolumePlan {
    /// For the slices that the first slice of the output reads.
    plan: LinesPlan,
    channels: usize,
    /// Slices of a channel, and of its copy with padding; of these, what lies before the image.
    slices: usize,
    copied: usize,
    before: usize,
    /// Slices of the output, and slices from what one of them reads to what the next one reads.
    outputs: usize,
    stride: usize,
}

impl VolumePlan {
    /// For a weight with so many input channels. `None` for other than three axes, with groups, where the layout would waste
    /// memory or work, without elements, and for threads that had little to do in each slice.
    pub(crate) fn new(
        g: &Geometry,
        panels: &Panels,
        channels: usize,
        threads: usize,
        residual: bool,
    ) -> Option<Self> {
        let [1, m, depth] = panels.shape() else { return None };
        if g.input.len() != 3 || g.output[0] == 0 {
            return None;
        }
        let area: usize = g.output[1..].iter().product();
        if threads > 1 && area.saturating_mul(m * depth) < threads * LEAST_OF_SLICE {
            return None;
        }
        let slice = |list: &[usize]| list[1..].to_vec();
        let planes = Planes::new(&Geometry {
            input: slice(&g.input),
            kernel: slice(&g.kernel),
            output: slice(&g.output),
            strides: slice(&g.strides),
            dilations: slice(&g.dilations),
            pads_begin: slice(&g.pads_begin),
            pads_end: slice(&g.pads_end),
        })?;
        let (stride, size) = (g.strides[0], planes.size());
        let reach = (g.kernel[0] - 1).checked_mul(g.dilations[0])?.checked_add(1)?;
        let copied = (g.output[0] - 1).checked_mul(stride)?.checked_add(reach)?;
        channels.checked_mul(copied)?.checked_mul(size).filter(|&all| all <= MOST)?;
        let slice = |c: usize, d: usize| (c * copied + d * g.dilations[0]) * size;
        let slices = (0..channels).flat_map(|c| (0..g.kernel[0]).map(move |d| slice(c, d)));
        let taps: Arc<[usize]> =
            slices.flat_map(|slice| planes.taps.iter().map(move |tap| slice + tap)).collect();
        if taps.len() != depth {
            return None;
        }
        let plan = LinesPlan::new(planes, panels, threads, residual, taps);
        let (slices, before) = (g.input[0], g.pads_begin[0]);
        Some(VolumePlan { plan, channels, slices, copied, before, outputs: g.output[0], stride })
    }

    /// Elements of scratch.
    pub(crate) fn scratch_len(&self) -> usize {
        self.channels * self.copied * self.plan.planes().size()
    }

    /// Convolves images of so many elements that follow one another.
    pub(crate) fn convolve(
        &self,
        cx: &KernelContext<'_>,
        panels: &Panels,
        (x, size): (&[f32], usize),
        epilogue: F32Epilogue<'_>,
    ) {
        let ([_, m, _], of_slice) = (panels.shape(), self.plan.planes().size());
        let scratch = &mut cx.scratch::<f32>()[..self.scratch_len()];
        let area = epilogue.columns / self.outputs;
        for (i, image) in x.chunks_exact(size).enumerate() {
            self.copy(cx, image, scratch);
            for z in (0..self.outputs).take_while(|_| !cx.cancelled()) {
                let start = epilogue.start + i * m * epilogue.columns + z * area;
                let source = &scratch[z * self.stride * of_slice..];
                self.plan.products(panels, source, F32Epilogue { start, ..epilogue }).compute(cx.pool);
            }
        }
    }

    /// Copies the slices of an image; those beside it are 0.
    fn copy(&self, cx: &KernelContext<'_>, image: &[f32], out: &mut [f32]) {
        let planes = self.plan.planes();
        let (size, area) = (planes.size(), planes.image());
        split_mut(cx.pool, out, size, GRAIN.div_ceil(size.max(1)), |range, out| {
            for (i, out) in range.zip(out.chunks_exact_mut(size)) {
                let (channel, slice) = (i / self.copied, i % self.copied);
                match slice.checked_sub(self.before).filter(|&slice| slice < self.slices) {
                    None => out.fill(0.0),
                    Some(slice) => {
                        let image = &image[(channel * self.slices + slice) * area..][..area];
                        if planes.copied() {
                            CopyPlanes { planes, image, channel: area, first: 0, out }.widest();
                        } else {
                            out.copy_from_slice(image);
                        }
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::panels::panel_rows;
    use super::*;
    use crate::threads::Pool;

    #[test]
    fn slices_serve_where_they_fit_and_threads_have_work() {
        // Image, kernel, input and output channels, threads.
        for (input, kernel, [channels, outputs], threads, expected) in [
            ([5, 6, 7], [3, 3, 3], [3, 4], 1, true),
            ([5, 6, 7], [3, 3, 3], [3, 4], 2, false),
            ([3, 20, 20], [3, 3, 3], [16, 32], 2, true),
            // 64 MiB of copies.
            ([8, 1200, 1200], [3, 3, 3], [1, 1], 1, true),
            ([8, 1200, 1200], [3, 3, 3], [2, 1], 1, false),
        ] {
            let geometry = Geometry {
                output: input.to_vec(),
                input: input.to_vec(),
                kernel: kernel.to_vec(),
                strides: vec![1; 3],
                dilations: vec![1; 3],
                pads_begin: vec![1; 3],
                pads_end: vec![1; 3],
            };
            let depth = channels * kernel.iter().product::<usize>();
            let weight = vec![0.0; outputs * depth];
            let pool = Pool::new(1);
            let panels = Panels::new(&weight, panel_rows(), 1, outputs, depth, (&pool).into());
            let plan = VolumePlan::new(&geometry, &panels, channels, threads, false);
            assert_eq!(plan.is_some(), expected, "{input:?} of {channels} channels, {threads} threads");
        }
    }
}
