//! Depthwise convolution with sixteen channels side by side in the lanes of a vector (NCHW16c): no lane is lost at the
//! edges of small planes, nor to strides. Some lines of the channels are there at a time, with what lies around the image as
//! zeros. Where they come from is the caller's, see `Source`: from planes they are transposed, bfloat16 numbers widened. The
//! outputs are transposed back, or to NCHW2c.

#[cfg(target_arch = "x86_64")]
mod avx512;

use std::ops::Range;

use super::window::Window;
use crate::conv::common::partition::KEPT;
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
    /// Whether there is `store_blocked`.
    const BLOCKS: bool;

    /// Whether the processor has what the functions ask for.
    fn available() -> bool;

    /// Whether a channel at a time takes longer, as was measured.
    fn pays_off(lanes: &Nchw16c) -> bool;

    /// Writes lines of channels, each as long as others or empty.
    ///
    /// # Safety
    /// `available()`
    unsafe fn load_transposed(from: &[&[Self]; VECTOR], to: Place<'_>);

    /// Applies the activation to sums and stores them: `count` for each lane, to where this one's go, if anywhere.
    /// There are sums for a multiple of `TRANSPOSED`.
    ///
    /// # Safety
    /// `available()`; pointers are null or have room.
    unsafe fn store_transposed(activation: Activation, sums: &[f32], count: usize, to: [*mut Self; VECTOR]);

    /// The same with pairs of lanes side by side (NCHW2c), each pair where that of its first lane is told to go.
    ///
    /// # Safety
    /// As of `store_transposed`, for pairs; `BLOCKS`.
    unsafe fn store_blocked(activation: Activation, sums: &[f32], count: usize, to: [*mut Self; VECTOR]);
}

/// What depends on shapes.
pub(crate) struct Nchw16c {
    window: Window,
    /// Positions from one line of floats to the next.
    pitch: usize,
    /// Output lines at a time.
    band: usize,
}

/// Images of `T` that are convolved, with channels in lanes.
pub(crate) trait Source<T>: Sync {
    /// Writes some lines of up to sixteen channels of an image, each between the margins of a line of floats. Lanes without a
    /// channel get anything.
    ///
    /// # Safety
    /// The processor has what `Nchw16cElement::available` asks for, of `T`.
    unsafe fn lines(&self, part: ChannelLines, to: Place<'_>);
}

/// Some lines of some channels of an image of a batch.
pub(crate) struct ChannelLines {
    pub(crate) image: usize,
    pub(crate) channels: Range<usize>,
    pub(crate) lines: Range<usize>,
}

/// Where the first of some lines of floats begins, sixteen lanes for each position, with its margins.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
pub(crate) struct Place<'a> {
    floats: &'a mut [f32],
    /// Positions from one line to the next, of a line, and before it.
    pitch: usize,
    width: usize,
    before: usize,
}

/// What becomes of the images of a batch, with as many outputs as channels.
pub(crate) struct Nchw16cOutputs<'a, T> {
    pub(crate) images: usize,
    pub(crate) channels: usize,
    /// See `nchw16c_kernels`.
    pub(crate) kernels: &'a [f32],
    pub(crate) bias: Option<&'a [T]>,
    pub(crate) activation: Activation,
    /// Whether outputs are NCHW2c: bfloat16 numbers of an even number of channels.
    pub(crate) blocked: bool,
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

    /// The same whatever memory lines take, and whether or not this is the fastest way, for a source to which each line is
    /// work: of those that are made at a time the next ones read no more than one of eight again, if these take no more than
    /// `KEPT`. `None` without outputs.
    pub(crate) fn of_costly_lines(g: &Geometry) -> Option<Self> {
        let window = Window::new(g)?;
        let (reach, line) = (window.reach(0)?, window.pitch()?.checked_mul(VECTOR)?);
        let shared = reach.saturating_sub(window.stride);
        let wanted = line.saturating_mul(shared.saturating_mul(9));
        let least = line.checked_mul(reach)?;
        Self::with_image_of(g, IMAGE_FLOATS.max(wanted.min(KEPT)).max(least))
    }

    fn with_image_of(g: &Geometry, scratch: usize) -> Option<Self> {
        let window = Window::new(g)?;
        if window.output.contains(&0) {
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

    /// Floats that a thread needs for lines of the image and for sums.
    fn scratch_lens(&self) -> [usize; 2] {
        let sums = (self.band * self.window.output[1]).next_multiple_of(TRANSPOSED);
        [self.lines(self.band) * self.pitch * VECTOR, sums * VECTOR]
    }

    /// Convolves all channels on all threads of the pool. Making an element of the image takes so many multiplications.
    pub(crate) fn convolve<T: Nchw16cElement>(
        &self,
        pool: &Pool,
        source: &impl Source<T>,
        each: usize,
        all: &Nchw16cOutputs<'_, T>,
    ) {
        let ([height, width], [lines, line]) = (self.window.image, self.window.output);
        let taps = self.window.kernel[0] * self.window.kernel[1];
        let (blocks, bands) = (all.channels.div_ceil(VECTOR), lines.div_ceil(self.band));
        assert!(
            all.out.len() >= all.images * all.channels * lines * line
                && all.kernels.len() >= blocks * taps * VECTOR
                && all.bias.is_none_or(|bias| bias.len() >= all.channels)
                && T::available()
                && !(all.blocked && (all.channels % 2 == 1 || !T::BLOCKS))
        );
        let work = (lines * line * taps + height * width * each) / bands;
        pool.split(all.images * bands * blocks, GRAIN.div_ceil(work.max(1)), |range| {
            with_scratch(self.scratch_lens(), |[image, sums]: [&mut [f32]; 2]| {
                image.fill(0.0);
                for i in range.take_while(|_| !pool.cancelled()) {
                    let (at, band, block) = (i / blocks / bands, i / blocks % bands, i % blocks);
                    let channels = block * VECTOR..((block + 1) * VECTOR).min(all.channels);
                    let band = lines * band / bands..lines * (band + 1) / bands;
                    self.band(source, all, (at, channels), band, [&mut *image, &mut *sums]);
                }
            });
        });
    }

    /// Convolves for some output lines channels of an image.
    fn band<T: Nchw16cElement>(
        &self,
        source: &impl Source<T>,
        all: &Nchw16cOutputs<'_, T>,
        (at, channels): (usize, Range<usize>),
        band: Range<usize>,
        [image, sums]: [&mut [f32]; 2],
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
        let outputs = band.len() * line;
        let mut bias = [0.0; VECTOR];
        if let Some(given) = all.bias {
            bias.iter_mut().zip(&given[channels.clone()]).for_each(|(y, &x)| *y = x.into());
        }
        let taps = self.window.kernel[0] * self.window.kernel[1];
        let kernel = &all.kernels[channels.start * taps..][..taps * VECTOR];
        let mut to = [std::ptr::null_mut(); VECTOR];
        // Of channels that lie side by side the first says where.
        let beside = if all.blocked { 2 } else { 1 };
        for (to, channel) in to.iter_mut().zip(channels.clone()).step_by(beside) {
            let plane = (at * all.channels + channel) * self.window.output[0] * line;
            let start = plane + band.start * line * beside;
            // SAFETY: each output is computed once.
            *to = unsafe { all.out.get(start..start + outputs * beside) }.as_mut_ptr();
        }
        let part = ChannelLines { image: at, channels, lines: row..row + (end - begin) };
        let place = Place {
            floats: &mut image[begin * self.pitch * VECTOR..],
            pitch: self.pitch,
            width,
            before: self.window.pads[1],
        };
        // SAFETY: the instructions were asserted in `convolve`; lanes have as many outputs, or none.
        unsafe {
            if begin < end && width > 0 {
                source.lines(part, place);
            }
            if self.window.stride == 1 {
                self.multiply::<1>(band.len(), image, kernel, &bias, sums);
            } else {
                self.multiply::<2>(band.len(), image, kernel, &bias, sums);
            }
            match all.blocked {
                true => T::store_blocked(all.activation, sums, outputs, to),
                false => T::store_transposed(all.activation, sums, outputs, to),
            }
        }
    }
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
impl Place<'_> {
    /// Where the first position of the first line goes, and floats from one line to the next. Asserts that there is room for
    /// so many lines of so many positions.
    pub(crate) fn of(self, lines: usize, width: usize) -> (*mut f32, usize) {
        let Place { floats, pitch, before, .. } = self;
        assert!(
            width == self.width && floats.len() >= lines * pitch * VECTOR && pitch >= width + before,
            "there is room for all lines"
        );
        (floats.as_mut_ptr().wrapping_add(before * VECTOR), pitch * VECTOR)
    }
}

/// The planes of images, so many channels of so many positions each.
pub(crate) struct Planes<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) channels: usize,
    pub(crate) area: usize,
    pub(crate) width: usize,
}

impl<T: Nchw16cElement> Source<T> for Planes<'_, T> {
    unsafe fn lines(&self, ChannelLines { image, channels, lines }: ChannelLines, to: Place<'_>) {
        let &Planes { x, channels: all, area, width } = self;
        let from: [&[T]; VECTOR] = std::array::from_fn(|lane| match channels.start + lane {
            channel if channel < channels.end => {
                &x[(image * all + channel) * area + lines.start * width..][..lines.len() * width]
            }
            _ => &[],
        });
        // SAFETY: as the caller promises.
        unsafe { T::load_transposed(&from, to) };
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
        const BLOCKS: bool = false;

        fn available() -> bool {
            false
        }

        fn pays_off(_: &Nchw16c) -> bool {
            false
        }

        unsafe fn load_transposed(_: &[&[Self]; VECTOR], _: Place<'_>) {}

        unsafe fn store_transposed(_: Activation, _: &[f32], _: usize, _: [*mut Self; VECTOR]) {}

        unsafe fn store_blocked(_: Activation, _: &[f32], _: usize, _: [*mut Self; VECTOR]) {}
    }
}

#[cfg(test)]
mod tests;
