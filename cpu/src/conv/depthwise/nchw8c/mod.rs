//! Depthwise convolution in `f32` with eight or sixteen channels side by side in the lanes of AVX2's vectors: no lane is lost
//! at the edges of images, nor to strides. Some lines of the image are there at a time, with what lies around them as zeros,
//! so that they stay in the first cache; each is made once. Where they come from is the caller's: see `Source`.

#[cfg(target_arch = "x86_64")]
mod planes;
#[cfg(target_arch = "x86_64")]
mod run;
#[cfg(target_arch = "x86_64")]
mod windows;

use std::ops::Range;

use super::window::Window;
use crate::gemm::VECTOR;
use crate::loops::parallel::{Parts, threads_of_image};
use crate::ops::activation::Activation;
use crate::ops::window::Geometry;
use crate::threads::Pool;

#[cfg(target_arch = "x86_64")]
pub(crate) use run::Source;

/// Floats of lines that are there at a time, if windows do not read more: the first cache.
const CACHED: usize = 8 * 1024;
/// Positions of images of which each thread has lines, from so many on.
const LARGE: usize = 2048;
/// Outputs of a long line, and floats of lines that are there at a time, at most: half of the second cache.
const LONG: usize = 48;
const MOST: usize = 64 * 1024;
/// Lines of the largest kernel.
const SIDE: usize = 16;

/// What depends on shapes.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
pub(crate) struct Nchw8c {
    window: Window,
    /// Positions from one line to the next, with padding.
    pitch: usize,
    /// Output lines at a time, and lines of the image that they read.
    lines: usize,
    read: usize,
    /// Output lines of a piece of work.
    bands: Vec<Range<usize>>,
}

/// What becomes of the images of a batch.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
pub(crate) struct Nchw8cOutputs<'a> {
    pub(crate) images: usize,
    pub(crate) channels: usize,
    /// See `nchw16c_kernels`.
    pub(crate) kernels: &'a [f32],
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    pub(crate) out: &'a Parts<'a, f32>,
}

/// Whether the processor's widest vectors are those of AVX2.
pub(crate) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::isa::has_avx2() && !crate::isa::has_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl Nchw8c {
    /// For so many channels. `None` for windows that `Window` does not have, and for more than 16 lines of a kernel.
    pub(crate) fn new(g: &Geometry, channels: usize, images: usize, threads: usize) -> Option<Self> {
        let window = Window::new(g).filter(|window| window.kernel[0] <= SIDE)?;
        let Window { image, output, stride, .. } = window;
        let (reach, pitch) = (window.reach(0)?, window.pitch()?);
        // Of a small image threads have channels.
        let large = image.iter().product::<usize>() >= LARGE;
        let threads = if large { threads_of_image(images, threads) } else { 1 };
        let few = threads > 1 && channels.div_ceil(VECTOR) < 4 * threads;
        let count = if few { 2 * threads } else { threads }.min(output[0]);
        let band = |i: usize| output[0] * i / count..output[0] * (i + 1) / count;
        let bands: Vec<_> = (0..count).map(band).collect();
        let longest = bands.iter().map(|band| band.len()).max().unwrap_or(0);
        let cached = CACHED / pitch.checked_mul(VECTOR)?;
        let lines = (cached.saturating_sub(reach) / stride + 1).clamp(1, longest.max(1));
        let read = reach.checked_add((lines - 1) * stride)?;
        Some(Nchw8c { window, pitch, lines, read, bands })
    }

    /// Whether this takes less time than a channel at a time where the image is in planes: 0.3 to 0.95 of it, as was measured,
    /// but 1.1 to 1.2 with 3 × 3 on long lines of whole vectors.
    fn pays_off(&self) -> bool {
        let Window { output: [_, line], kernel, dilations, stride, .. } = self.window;
        let long = line >= LONG && line.is_multiple_of(8);
        let neighbours = kernel == [3, 3] && stride == 1 && dilations == [1, 1];
        !(long && neighbours) && self.read * self.pitch * VECTOR <= MOST
    }

    /// Whether this is the fastest way on this processor: with AVX2 where it `pays_off`, and where vectors of AVX-512 take two
    /// steps on lines that lose lanes to their ends, to strides or dilations. On a Zen 4 it takes 0.77 to 0.95 of the time there,
    /// and 1.02 to 1.2 of it on longer lines.
    pub(crate) fn fastest(&self) -> bool {
        if crate::isa::halves_avx512() {
            let Window { output: [_, line], dilations, stride, .. } = self.window;
            return (line <= VECTOR || stride > 1 || dilations != [1, 1]) && self.pays_off();
        }
        available() && self.pays_off()
    }

    /// Convolves the planes of images.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn convolve_planes(&self, pool: &Pool, x: &[f32], outputs: &Nchw8cOutputs<'_>) {
        let area: usize = self.window.image.iter().product();
        let source = planes::Planes { x, channels: outputs.channels, area, width: self.window.image[1] };
        self.convolve(pool, &source, 1, outputs);
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn convolve_planes(&self, _: &Pool, _: &[f32], _: &Nchw8cOutputs<'_>) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
