//! Depthwise convolution in bfloat16 with sixteen channels side by side in the lanes of a vector: no lane is lost at
//! the edges of small planes, nor to strides. Some lines of the channels are turned into floats at a time, with what
//! lies around the image as zeros, and their outputs turned back.

#[cfg(target_arch = "x86_64")]
mod vectors;

use std::ops::Range;

use crate::ops::activation::Activation;
use crate::ops::window::Geometry;
use crate::providers::cpu::gemm::{HalfWord, VECTOR, Word};
use crate::providers::cpu::parallel::Parts;
use crate::providers::cpu::scratch::with_scratch;
use crate::tensor::bf16;
use crate::threads::Pool;

#[cfg(target_arch = "x86_64")]
use vectors::narrow_with;

/// Multiplications of vectors worth handing to another thread: some 10 µs of work.
const GRAIN: usize = 1 << 15;
/// Floats of the image that are there at a time: a part of a processor's own cache.
const ROOM: usize = 32 * 1024;
/// Outputs in a line of which, with stride 1, vectors of one channel lose few lanes.
const WIDE: usize = 32;
/// Positions that are turned at a time: pairs of them in words.
const TURNED: usize = 2 * VECTOR;

/// What depends on shapes. Pairs are of rows and columns.
pub(in crate::providers::cpu) struct ChannelLanes {
    image: [usize; 2],
    output: [usize; 2],
    pads: [usize; 2],
    kernel: [usize; 2],
    dilations: [usize; 2],
    stride: usize,
    /// Positions from one line of floats to the next.
    pitch: usize,
    /// Output lines at a time.
    band: usize,
}

/// A batch of images to convolve, with as many outputs as channels.
pub(in crate::providers::cpu) struct ChannelImages<'a> {
    pub(in crate::providers::cpu) x: &'a [bf16],
    pub(in crate::providers::cpu) images: usize,
    pub(in crate::providers::cpu) channels: usize,
    /// See `lane_kernels`.
    pub(in crate::providers::cpu) kernels: &'a [f32],
    pub(in crate::providers::cpu) bias: Option<&'a [bf16]>,
    pub(in crate::providers::cpu) activation: Activation,
    pub(in crate::providers::cpu) out: &'a Parts<'a, bf16>,
}

/// Kernels of `taps` elements for each channel as vectors: sixteen channels for each tap.
pub(in crate::providers::cpu) fn lane_kernels(kernels: &[f32], taps: usize) -> Vec<f32> {
    let channels = kernels.len() / taps.max(1);
    let mut lanes = vec![0.0; channels.next_multiple_of(VECTOR) * taps];
    for (i, &x) in kernels.iter().enumerate() {
        let (channel, tap) = (i / taps, i % taps);
        lanes[(channel / VECTOR * taps + tap) * VECTOR + channel % VECTOR] = x;
    }
    lanes
}

impl ChannelLanes {
    /// `None` on a processor without products of bfloat16 numbers, for strides that differ or are more than 2, where
    /// much memory would be needed or a channel at a time is as fast, for more than two axes, and without elements.
    pub(in crate::providers::cpu) fn new(g: &Geometry) -> Option<Self> {
        let lanes = if HalfWord::available() { Self::with_room(g, ROOM) } else { None };
        lanes.filter(|lanes| lanes.stride > 1 || lanes.output[1] <= WIDE)
    }

    fn with_room(g: &Geometry, room: usize) -> Option<Self> {
        let axes = g.input.len();
        if !(1..=2).contains(&axes) || [&g.input, &g.output, &g.kernel].iter().any(|list| list.contains(&0)) {
            return None;
        }
        let two = |list: &[usize], one: usize| if axes == 1 { [one, list[0]] } else { [list[0], list[1]] };
        let (image, kernel, output) = (two(&g.input, 1), two(&g.kernel, 1), two(&g.output, 1));
        let (dilations, pads) = (two(&g.dilations, 1), two(&g.pads_begin, 0));
        let stride = g.strides[0];
        if stride > 2 || g.strides.iter().any(|&other| other != stride) {
            return None;
        }
        let reach = |axis: usize| (kernel[axis] - 1).checked_mul(dilations[axis]);
        let pitch = reach(1)?.checked_add((output[1] - 1) * stride + 1)?.max(image[1].checked_add(pads[1])?);
        let line = pitch.checked_mul(VECTOR)?;
        let lines = (room / line).checked_sub(reach(0)?).filter(|&lines| lines > 0)?;
        let band = ((lines - 1) / stride + 1).min(output[0]);
        Some(ChannelLanes { image, output, pads, kernel, dilations, stride, pitch, band })
    }

    /// Lines of the image that so many output lines read.
    fn lines(&self, outputs: usize) -> usize {
        (outputs - 1) * self.stride + (self.kernel[0] - 1) * self.dilations[0] + 1
    }

    /// Convolves all channels on all threads of the pool.
    pub(in crate::providers::cpu) fn convolve(&self, pool: &Pool, all: &ChannelImages<'_>) {
        let ([height, width], [lines, line]) = (self.image, self.output);
        let blocks = all.channels.div_ceil(VECTOR);
        let taps = self.kernel[0] * self.kernel[1];
        let planes = all.images * all.channels;
        assert!(
            all.x.len() >= planes * height * width
                && all.out.len() >= planes * lines * line
                && all.kernels.len() >= blocks * taps * VECTOR
                && all.bias.is_none_or(|bias| bias.len() >= all.channels)
                && HalfWord::available()
        );
        let work = lines * line * taps + height * width;
        let lengths = [
            self.lines(self.band) * self.pitch * VECTOR,
            (self.band * line).next_multiple_of(TURNED) * VECTOR,
        ];
        pool.split(all.images * blocks, GRAIN.div_ceil(work), |range| {
            with_scratch(lengths, |[image, sums]: [&mut [f32]; 2]| {
                image.fill(0.0);
                for i in range {
                    let (first, block) = (i / blocks * all.channels, i % blocks);
                    let channels = block * VECTOR..((block + 1) * VECTOR).min(all.channels);
                    for start in (0..lines).step_by(self.band) {
                        let band = start..(start + self.band).min(lines);
                        self.band(all, first, channels.clone(), band, image, sums);
                    }
                }
            });
        });
    }

    /// Convolves for some output lines channels of the image whose first plane is `first`.
    fn band(
        &self,
        all: &ChannelImages<'_>,
        first: usize,
        channels: Range<usize>,
        band: Range<usize>,
        image: &mut [f32],
        sums: &mut [f32],
    ) {
        let ([height, width], line) = (self.image, self.output[1]);
        // Of the lines that are read, those inside the image.
        let (top, lines) = (band.start * self.stride, self.lines(band.len()));
        let begin = self.pads[0].saturating_sub(top).min(lines);
        let end = (height + self.pads[0]).saturating_sub(top).clamp(begin, lines);
        let image = &mut image[..lines * self.pitch * VECTOR];
        image[..begin * self.pitch * VECTOR].fill(0.0);
        image[end * self.pitch * VECTOR..].fill(0.0);
        // Not negative, unless nothing lies inside.
        let row = (top + begin).saturating_sub(self.pads[0]);
        let from: [&[bf16]; VECTOR] = std::array::from_fn(|lane| match channels.start + lane {
            channel if channel < channels.end => {
                &all.x[((first + channel) * height + row) * width..][..(end - begin) * width]
            }
            _ => &[],
        });
        let outputs = band.len() * line;
        let mut bias = [0.0; VECTOR];
        if let Some(given) = all.bias {
            bias.iter_mut().zip(&given[channels.clone()]).for_each(|(y, x)| *y = x.to_f32());
        }
        let taps = self.kernel[0] * self.kernel[1];
        let kernel = &all.kernels[channels.start * taps..][..taps * VECTOR];
        let mut to = [std::ptr::null_mut(); VECTOR];
        for (to, channel) in to.iter_mut().zip(channels) {
            let start = (first + channel) * self.output[0] * line + band.start * line;
            // SAFETY: each output is computed once.
            *to = unsafe { all.out.get(start..start + outputs) }.as_mut_ptr();
        }
        // SAFETY: the instructions were asserted in `convolve`; lanes have as many outputs, or none.
        unsafe {
            self.widen(&from, &mut image[begin * self.pitch * VECTOR..]);
            if self.stride == 1 {
                self.multiply::<1>(band.len(), image, kernel, &bias, sums);
            } else {
                self.multiply::<2>(band.len(), image, kernel, &bias, sums);
            }
            narrow_with(all.activation, sums, outputs, to);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl ChannelLanes {
    unsafe fn widen(&self, _from: &[&[bf16]; VECTOR], _image: &mut [f32]) {}

    unsafe fn multiply<const S: usize>(
        &self,
        _: usize,
        _: &[f32],
        _: &[f32],
        _: &[f32; VECTOR],
        _: &mut [f32],
    ) {
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn narrow_with(_: Activation, _: &[f32], _: usize, _: [*mut bf16; VECTOR]) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition, with small whole numbers, whose sums are exact.
    #[test]
    fn shapes() {
        if !HalfWord::available() {
            println!("skipped: this processor has no such products");
            return;
        }
        let number = |i: usize| ((i * 7919) % 7) as f32 - 3.0;
        // Image, kernel, stride, dilation, paddings at the begin and the end, channels, room.
        for (image, kernel, stride, dilation, [begin, end], channels, room) in [
            ([7, 7], [5, 5], 1, 1, [2, 2], 19, ROOM),
            ([14, 13], [3, 3], 2, 1, [0, 1], 16, ROOM),
            ([14, 14], [3, 3], 2, 1, [1, 1], 33, 5 * 16 * 16),
            ([9, 21], [3, 2], 1, 2, [3, 0], 5, 6 * 24 * 16),
            ([1, 1], [3, 3], 1, 1, [1, 1], 2, ROOM),
            ([6, 5], [1, 1], 2, 1, [0, 0], 17, ROOM),
        ] {
            let extent =
                |axis: usize| (image[axis] + begin + end - (kernel[axis] - 1) * dilation - 1) / stride + 1;
            let output = [extent(0), extent(1)];
            let geometry = Geometry {
                input: image.to_vec(),
                output: output.to_vec(),
                kernel: kernel.to_vec(),
                strides: vec![stride; 2],
                dilations: vec![dilation; 2],
                pads_begin: vec![begin; 2],
                pads_end: vec![end; 2],
            };
            let lanes = ChannelLanes::with_room(&geometry, room).unwrap();
            let (planes, size, taps) = (2 * channels, image[0] * image[1], kernel[0] * kernel[1]);
            let x: Vec<f32> = (0..planes * size).map(number).collect();
            let kernels: Vec<f32> = (0..channels * taps).map(|i| number(3 * i + 1)).collect();
            let bias: Vec<f32> = (0..channels).map(|i| number(5 * i + 2)).collect();
            let halves = |x: &[f32]| x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>();
            let mut y = vec![bf16::ZERO; planes * output[0] * output[1]];
            lanes.convolve(
                &Pool::new(2),
                &ChannelImages {
                    x: &halves(&x),
                    images: 2,
                    channels,
                    kernels: &lane_kernels(&kernels, taps),
                    bias: Some(&halves(&bias)),
                    activation: Activation::Relu,
                    out: &Parts::new(&mut y),
                },
            );
            for (i, y) in y.iter().enumerate() {
                let (plane, row, column) =
                    (i / output[1] / output[0], i / output[1] % output[0], i % output[1]);
                let channel = plane % channels;
                let mut want = bias[channel];
                for tap in 0..taps {
                    let at = |position: usize, k: usize, extent: usize| {
                        (position * stride + k * dilation).checked_sub(begin).filter(|&at| at < extent)
                    };
                    let (v, h) = (at(row, tap / kernel[1], image[0]), at(column, tap % kernel[1], image[1]));
                    if let (Some(v), Some(h)) = (v, h) {
                        want += kernels[channel * taps + tap] * x[plane * size + v * image[1] + h];
                    }
                }
                assert_eq!(y.to_f32(), bf16::from_f32(want.max(0.0)).to_f32(), "{image:?} {kernel:?}, {i}");
            }
        }
    }
}
