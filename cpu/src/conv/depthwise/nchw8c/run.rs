//! The work of a thread: blocks of channels of some output lines.

use std::ops::Range;

use rten_simd::isa::Avx2Isa;

use super::super::window::Window;
use super::windows::Windows;
use super::{Nchw8c, Nchw8cOutputs, SIDE};
use crate::conv::common::avx2::SumsToPlanes;
use crate::gemm::VECTOR;
use crate::loops::avx2::LEN;
use crate::loops::scratch::with_scratch;
use crate::threads::Pool;

/// Multiplications of vectors worth handing to another thread: some 10 µs of work.
const GRAIN: usize = 1 << 15;

/// Images that are convolved, with channels in lanes.
pub(crate) trait Source: Sync {
    /// Makes lines of the sixteen channels of an image from `first` on, or of the first eight of them if `V` is 1. `place` says
    /// where the first position of a line goes, all lanes of it, which the others follow.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; there is room for a line at each place, of `VECTOR` floats for each position.
    unsafe fn lines<const V: usize>(
        &self,
        isa: Avx2Isa,
        at: [usize; 2],
        lines: Range<usize>,
        place: impl Fn(usize) -> *mut f32,
    );
}

impl Nchw8c {
    /// Convolves all channels on all threads of the pool. Making an element of the image takes so many multiplications.
    pub(crate) fn convolve(&self, pool: &Pool, source: &impl Source, each: usize, all: &Nchw8cOutputs<'_>) {
        let Window { image: [height, width], output: [lines, line], kernel, .. } = self.window;
        let taps = kernel[0] * kernel[1];
        let (blocks, planes) = (all.channels.div_ceil(VECTOR), all.images * all.channels);
        assert!(
            all.out.len() >= planes * lines * line
                && all.kernels.len() >= blocks * taps * VECTOR
                && all.bias.is_none_or(|bias| bias.len() >= all.channels)
        );
        if lines * line == 0 {
            return;
        }
        let work = (lines * line * taps + height * width * each) / self.bands.len();
        pool.split(all.images * self.bands.len() * blocks, GRAIN.div_ceil(work.max(1)), |range| {
            with_scratch(self.scratch_lens(), |[image, sums]: [&mut [f32]; 2]| {
                self.clear(image);
                for i in range {
                    let Some(isa) = Avx2Isa::new() else { return };
                    let (at, band, block) =
                        (i / blocks / self.bands.len(), i / blocks % self.bands.len(), i % blocks);
                    let (band, first) = (self.bands[band].clone(), block * VECTOR);
                    let scratch = [&mut *image, &mut *sums];
                    // SAFETY: such a value is there where the processor has AVX2 and FMA.
                    unsafe {
                        match all.channels - first {
                            ..=LEN => self.block::<1>(isa, source, all, [at, first], band, scratch),
                            _ => self.block::<2>(isa, source, all, [at, first], band, scratch),
                        }
                    }
                }
            });
        });
    }

    /// Floats of scratch: lines and one of zeros; sums.
    fn scratch_lens(&self) -> [usize; 2] {
        [(self.read + 1) * self.pitch * VECTOR, self.lines * self.window.output[1] * VECTOR]
    }

    /// Sets to zero what lies around lines, and the line after the last.
    fn clear(&self, lines: &mut [f32]) {
        let [before, width] = [self.window.pads[1], self.window.image[1]].map(|count| count * VECTOR);
        let (lines, zeros) = lines.split_at_mut(self.read * self.pitch * VECTOR);
        for line in lines.chunks_exact_mut(self.pitch * VECTOR) {
            line[..before].fill(0.0);
            line[before + width..].fill(0.0);
        }
        zeros.fill(0.0);
    }

    /// Some output lines of the channels from `first` on.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn block<const V: usize>(
        &self,
        isa: Avx2Isa,
        source: &impl Source,
        all: &Nchw8cOutputs<'_>,
        [image, first]: [usize; 2],
        band: Range<usize>,
        [between, sums]: [&mut [f32]; 2],
    ) {
        let Window { image: [height, width], output: [lines, line], pads, kernel, dilations, stride } =
            self.window;
        let (taps, outputs) = (kernel[0] * kernel[1], lines * line);
        let channels = (all.channels - first).min(V * LEN);
        let mut bias = [0.0; VECTOR];
        if let Some(all) = all.bias {
            bias[..channels].copy_from_slice(&all[first..][..channels]);
        }
        let pitch = self.pitch * VECTOR;
        assert!(between.len() >= (self.read + 1) * pitch && self.pitch >= pads[1] + width);
        assert!(self.pitch > (line - 1) * stride + (kernel[1] - 1) * dilations[1]);
        assert!(self.read > (self.lines - 1) * stride + (kernel[0] - 1) * dilations[0]);
        assert!(sums.len() >= self.lines * line * V * LEN);
        let between = between.as_mut_ptr();
        let place = |y: usize| between.wrapping_add(y % self.read * pitch);
        let zeros = between.wrapping_add(self.read * pitch).cast_const();
        let windows = Windows {
            kernel: &all.kernels[first * taps..][..taps * VECTOR],
            width: kernel[1],
            across: dilations[1] * VECTOR,
        };
        let mut done = 0;
        for start in band.clone().step_by(self.lines) {
            let end = (start + self.lines).min(band.end);
            let top = (start * stride).saturating_sub(pads[0]).max(done);
            let bottom = ((end - 1) * stride + (kernel[0] - 1) * dilations[0] + 1).saturating_sub(pads[0]);
            let bottom = bottom.min(height);
            if top < bottom {
                // SAFETY: as the caller promises; the pitch has room for a line beside its padding.
                unsafe {
                    source.lines::<V>(isa, [image, first], top..bottom, |y| {
                        place(y).wrapping_add(pads[1] * VECTOR)
                    });
                }
                done = bottom;
            }
            for y in start..end {
                let mut rows = [zeros; SIDE];
                for (k, row) in rows[..kernel[0]].iter_mut().enumerate() {
                    let inside = (y * stride + k * dilations[0]).checked_sub(pads[0]).filter(|&y| y < height);
                    *row = inside.map_or(zeros, |y| place(y).cast_const());
                }
                let (rows, to) = (&rows[..kernel[0]], sums[(y - start) * line * V * LEN..].as_mut_ptr());
                // SAFETY: windows read no farther than the pitch, and there is room for all lines' sums.
                unsafe {
                    match stride {
                        1 => windows.line::<1, V>(rows, line, to),
                        _ => windows.line::<2, V>(rows, line, to),
                    }
                }
            }
            let to_planes = SumsToPlanes {
                out: all.out,
                at: (image * all.channels + first) * outputs + start * line,
                plane: outputs,
                channels,
                bias,
                activation: all.activation,
            };
            // SAFETY: as the caller promises; each output is computed once.
            unsafe { to_planes.store::<V>(isa, &sums[..(end - start) * line * V * LEN]) };
        }
    }
}
