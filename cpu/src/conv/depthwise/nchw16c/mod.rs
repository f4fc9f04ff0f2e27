//! Depthwise convolution with sixteen channels side by side in the lanes of a vector (NCHW16c): no lane is lost at the
//! edges of small planes, nor to strides. Some lines of the channels are transposed at a time, bfloat16 numbers widened,
//! with what lies around the image as zeros, and their outputs transposed back.

#[cfg(target_arch = "x86_64")]
mod avx512;

use std::ops::Range;

use super::window::Window;
use crate::gemm::VECTOR;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::ops::activation::Activation;
use crate::ops::window::Geometry;
use crate::tensor::Element;
use crate::threads::Pool;

/// Multiplications of vectors worth handing to another thread: some 10 µs of work.
const GRAIN: usize = 1 << 15;
/// Floats of the image that are there at a time: a part of a processor's own cache.
const IMAGE_FLOATS: usize = 32 * 1024;
/// Positions that are transposed at a time, at most: pairs of bfloat16 numbers in vectors.
const TRANSPOSED: usize = 2 * VECTOR;

/// An element of images that are convolved in lanes.
pub(crate) trait Nchw16cElement: Element + Into<f32> {
    /// Whether the processor has what the functions ask for.
    fn available() -> bool;

    /// Whether a channel at a time takes longer, as was measured.
    fn pays_off(lanes: &Nchw16c) -> bool;

    /// Writes lines of channels, each as long as others or empty, between the margins of an image of floats.
    ///
    /// # Safety
    /// `available()`
    unsafe fn load_transposed(lanes: &Nchw16c, from: &[&[Self]; VECTOR], image: &mut [f32]);

    /// Applies the activation to sums and stores them: `count` for each lane, to where this one's go, if anywhere.
    /// There are sums for a multiple of `TRANSPOSED`.
    ///
    /// # Safety
    /// `available()`; pointers are null or have room.
    unsafe fn store_transposed(activation: Activation, sums: &[f32], count: usize, to: [*mut Self; VECTOR]);
}

/// What depends on shapes.
pub(crate) struct Nchw16c {
    window: Window,
    /// Positions from one line of floats to the next.
    pitch: usize,
    /// Output lines at a time.
    band: usize,
}

/// A batch of images to convolve, with as many outputs as channels.
pub(crate) struct Nchw16cImages<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) images: usize,
    pub(crate) channels: usize,
    /// See `nchw16c_kernels`.
    pub(crate) kernels: &'a [f32],
    pub(crate) bias: Option<&'a [T]>,
    pub(crate) activation: Activation,
    pub(crate) out: &'a Parts<'a, T>,
}

/// Kernels of `taps` elements for each channel as vectors: sixteen channels for each tap.
pub(crate) fn nchw16c_kernels(kernels: &[f32], taps: usize) -> Vec<f32> {
    let channels = kernels.len() / taps.max(1);
    let mut lanes = vec![0.0; channels.next_multiple_of(VECTOR) * taps];
    for (i, &x) in kernels.iter().enumerate() {
        let (channel, tap) = (i / taps, i % taps);
        lanes[(channel / VECTOR * taps + tap) * VECTOR + channel % VECTOR] = x;
    }
    lanes
}

impl Nchw16c {
    /// `None` on a processor that has not what images of such elements ask for, for strides that differ or are more
    /// than 2, where much memory would be needed or a channel at a time is as fast, for more than two axes, and
    /// without elements.
    pub(crate) fn new<T: Nchw16cElement>(g: &Geometry) -> Option<Self> {
        let lanes = if T::available() { Self::with_image_of(g, IMAGE_FLOATS) } else { None };
        lanes.filter(T::pays_off)
    }

    fn with_image_of(g: &Geometry, scratch: usize) -> Option<Self> {
        let window = Window::new(g)?;
        if window.image.contains(&0) || window.output.contains(&0) {
            return None;
        }
        let pitch = window.pitch()?;
        let line = pitch.checked_mul(VECTOR)?;
        let lines = (scratch / line).checked_sub(window.reach(0)? - 1).filter(|&lines| lines > 0)?;
        let band = ((lines - 1) / window.stride + 1).min(window.output[0]);
        Some(Nchw16c { window, pitch, band })
    }

    /// Lines of the image that so many output lines read.
    fn lines(&self, outputs: usize) -> usize {
        (outputs - 1) * self.window.stride + (self.window.kernel[0] - 1) * self.window.dilations[0] + 1
    }

    /// Elements of the two scratch_lens that a thread needs.
    pub(crate) fn scratch_lens(&self) -> [usize; 2] {
        let sums = (self.band * self.window.output[1]).next_multiple_of(TRANSPOSED);
        [self.lines(self.band) * self.pitch * VECTOR, sums * VECTOR]
    }

    /// Convolves all channels on all threads of the pool.
    pub(crate) fn convolve<T: Nchw16cElement>(&self, pool: &Pool, all: &Nchw16cImages<'_, T>) {
        let ([height, width], [lines, line]) = (self.window.image, self.window.output);
        let blocks = all.channels.div_ceil(VECTOR);
        let work = lines * line * self.window.kernel[0] * self.window.kernel[1] + height * width;
        pool.split(all.images * blocks, GRAIN.div_ceil(work), |range| {
            with_scratch(self.scratch_lens(), |scratch_lens| self.blocks(all, range, scratch_lens));
        });
    }

    /// Convolves sixteen channels of images at a time: some of all such blocks.
    pub(crate) fn blocks<T: Nchw16cElement>(
        &self,
        all: &Nchw16cImages<'_, T>,
        range: Range<usize>,
        [image, sums]: [&mut [f32]; 2],
    ) {
        let ([height, width], [lines, line]) = (self.window.image, self.window.output);
        let blocks = all.channels.div_ceil(VECTOR);
        let planes = all.images * all.channels;
        assert!(
            all.x.len() >= planes * height * width
                && all.out.len() >= planes * lines * line
                && all.kernels.len() >= blocks * self.window.kernel[0] * self.window.kernel[1] * VECTOR
                && all.bias.is_none_or(|bias| bias.len() >= all.channels)
                && T::available()
        );
        image.fill(0.0);
        for i in range {
            let (first, block) = (i / blocks * all.channels, i % blocks);
            let channels = block * VECTOR..((block + 1) * VECTOR).min(all.channels);
            for start in (0..lines).step_by(self.band) {
                let band = start..(start + self.band).min(lines);
                self.band(all, first, channels.clone(), band, image, sums);
            }
        }
    }

    /// Convolves for some output lines channels of the image whose first plane is `first`.
    fn band<T: Nchw16cElement>(
        &self,
        all: &Nchw16cImages<'_, T>,
        first: usize,
        channels: Range<usize>,
        band: Range<usize>,
        image: &mut [f32],
        sums: &mut [f32],
    ) {
        let ([height, width], line) = (self.window.image, self.window.output[1]);
        // Of the lines that are read, those inside the image.
        let (top, lines) = (band.start * self.window.stride, self.lines(band.len()));
        let begin = self.window.pads[0].saturating_sub(top).min(lines);
        let end = (height + self.window.pads[0]).saturating_sub(top).clamp(begin, lines);
        let image = &mut image[..lines * self.pitch * VECTOR];
        image[..begin * self.pitch * VECTOR].fill(0.0);
        image[end * self.pitch * VECTOR..].fill(0.0);
        // Not negative, unless nothing lies inside.
        let row = (top + begin).saturating_sub(self.window.pads[0]);
        let from: [&[T]; VECTOR] = std::array::from_fn(|lane| match channels.start + lane {
            channel if channel < channels.end => {
                &all.x[((first + channel) * height + row) * width..][..(end - begin) * width]
            }
            _ => &[],
        });
        let outputs = band.len() * line;
        let mut bias = [0.0; VECTOR];
        if let Some(given) = all.bias {
            bias.iter_mut().zip(&given[channels.clone()]).for_each(|(y, &x)| *y = x.into());
        }
        let taps = self.window.kernel[0] * self.window.kernel[1];
        let kernel = &all.kernels[channels.start * taps..][..taps * VECTOR];
        let mut to = [std::ptr::null_mut(); VECTOR];
        for (to, channel) in to.iter_mut().zip(channels) {
            let start = (first + channel) * self.window.output[0] * line + band.start * line;
            // SAFETY: each output is computed once.
            *to = unsafe { all.out.get(start..start + outputs) }.as_mut_ptr();
        }
        // SAFETY: the instructions were asserted in `blocks`; lanes have as many outputs, or none.
        unsafe {
            T::load_transposed(self, &from, &mut image[begin * self.pitch * VECTOR..]);
            if self.window.stride == 1 {
                self.multiply::<1>(band.len(), image, kernel, &bias, sums);
            } else {
                self.multiply::<2>(band.len(), image, kernel, &bias, sums);
            }
            T::store_transposed(all.activation, sums, outputs, to);
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Nchw16c {
    /// Writes the sums of output lines to `sums`.
    ///
    /// # Safety
    /// The processor has AVX512F.
    unsafe fn multiply<const S: usize>(
        &self,
        lines: usize,
        image: &[f32],
        kernel: &[f32],
        bias: &[f32; VECTOR],
        sums: &mut [f32],
    ) {
        let reach = (self.window.output[1] - 1) * S + (self.window.kernel[1] - 1) * self.window.dilations[1];
        assert!(
            S == self.window.stride
                && kernel.len() >= self.window.kernel[0] * self.window.kernel[1] * VECTOR
                && image.len() >= self.lines(lines) * self.pitch * VECTOR
                && reach < self.pitch
                && sums.len() >= lines * self.window.output[1] * VECTOR
        );
        // SAFETY: extents are asserted; the processor has what is asked for.
        unsafe { self.multiply_avx512::<S>(lines, image, kernel, bias, sums) };
    }

    /// Where the first of the positions of `from` goes. Asserts that there is room for all.
    fn inside<T>(&self, from: &[&[T]; VECTOR], image: &mut [f32]) -> *mut f32 {
        let ([_, width], pitch, count) = (self.window.image, self.pitch, from[0].len());
        assert!(
            image.len() >= count / width * pitch * VECTOR
                && pitch >= width + self.window.pads[1]
                && from.iter().all(|line| line.len() == count || line.is_empty())
        );
        image.as_mut_ptr().wrapping_add(self.window.pads[1] * VECTOR)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod without {
    //! No lanes: nobody comes here.

    use super::*;

    impl Nchw16c {
        pub(crate) unsafe fn multiply<const S: usize>(
            &self,
            _: usize,
            _: &[f32],
            _: &[f32],
            _: &[f32; VECTOR],
            _: &mut [f32],
        ) {
        }
    }

    impl<T: Element + Into<f32>> Nchw16cElement for T {
        fn available() -> bool {
            false
        }

        fn pays_off(_: &Nchw16c) -> bool {
            false
        }

        unsafe fn load_transposed(_: &Nchw16c, _: &[&[Self]; VECTOR], _: &mut [f32]) {}

        unsafe fn store_transposed(_: Activation, _: &[f32], _: usize, _: [*mut Self; VECTOR]) {}
    }
}

#[cfg(test)]
mod tests;
