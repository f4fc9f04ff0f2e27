//! Depthwise convolution of one plane: one output line's vectors at a time, of several lines at once.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::finish::{Finish, Masks};
use super::planes::Planes;
use super::tile::Lines;

/// Output lines that are computed at a time.
const LINES: usize = 4;

/// Some output planes.
pub(super) struct Depthwise<'a> {
    pub(super) planes: &'a Planes,
    /// All images.
    pub(super) images: &'a [f32],
    /// All kernels.
    pub(super) kernels: &'a [f32],
    /// Images' channels, and output channels for each of them.
    pub(super) channels: usize,
    pub(super) multiplier: usize,
    /// The output planes to compute, counted over all images.
    pub(super) outputs: Range<usize>,
    /// Room for the planes of one channel and a vector.
    pub(super) room: &'a mut [f32],
    /// `start` is that of the first image.
    pub(super) finish: Finish<'a>,
}

impl SimdOp for Depthwise<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let masks = Masks::new(isa);
        let Planes { taps, lines, positions, .. } = self.planes;
        let (image, size, room) = (self.planes.image(), self.planes.size(), self.room);
        let last = taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(
            room.len() >= (last + positions + isa.f32().len()).max(size),
            "room for the planes of one channel"
        );
        let mut copied = None;
        for output in self.outputs {
            let channel = output / self.multiplier;
            if copied != Some(channel) {
                let from = &self.images[channel * image..][..image];
                self.planes.copy(isa, &masks, from, &mut room[..size], copied.is_none());
                copied = Some(channel);
            }
            let row = output % (self.channels * self.multiplier);
            let at = self.finish.start + output * self.finish.columns;
            // SAFETY: each plane of the output is computed once.
            let out = unsafe { self.finish.out.get(at..at + self.finish.columns) };
            let kernel = &self.kernels[row * taps.len()..][..taps.len()];
            let bias = self.finish.bias.map_or(0.0, |bias| bias[row]);
            let plane = Plane { kernel, taps, lines: *lines, plane: room, bias };
            match self.planes.kernel() {
                Some([3, 3]) => plane.lines(isa, &masks, out, &Kernel::<3, 3> { pitch: self.planes.pitch }),
                Some([5, 5]) => plane.lines(isa, &masks, out, &Kernel::<5, 5> { pitch: self.planes.pitch }),
                _ => plane.lines(isa, &masks, out, &Taps),
            }
            self.finish.plane(isa, &masks, at, out);
        }
    }
}

/// One plane, one kernel.
struct Plane<'a> {
    kernel: &'a [f32],
    taps: &'a [usize],
    lines: Lines,
    plane: &'a [f32],
    bias: f32,
}

/// How sums are computed.
trait Sum {
    /// The sums of `N` vectors below each other, of which the first is read at `from`; each in two parts,
    /// so that additions need not wait for each other.
    ///
    /// # Safety
    /// From the position in each line, a vector from any tap must lie inside the plane.
    unsafe fn sum<I: Isa, const N: usize>(&self, isa: I, plane: &Plane<'_>, from: usize) -> [[I::F32; 2]; N];
}

impl Plane<'_> {
    #[inline(always)]
    fn lines<I: Isa>(&self, isa: I, masks: &Masks<I>, out: &mut [f32], sum: &impl Sum) {
        let count = out.len() / self.lines.line;
        for y in (0..count).step_by(LINES) {
            for x in (0..self.lines.line).step_by(isa.f32().len()) {
                match (count - y).min(LINES) {
                    1 => self.vectors::<I, 1>(isa, masks, out, sum, x, y),
                    2 => self.vectors::<I, 2>(isa, masks, out, sum, x, y),
                    3 => self.vectors::<I, 3>(isa, masks, out, sum, x, y),
                    _ => self.vectors::<I, LINES>(isa, masks, out, sum, x, y),
                }
            }
        }
    }

    /// Writes `N` vectors below each other.
    #[inline(always)]
    fn vectors<I: Isa, const N: usize>(
        &self,
        isa: I,
        masks: &Masks<I>,
        out: &mut [f32],
        sum: &impl Sum,
        x: usize,
        y: usize,
    ) {
        let ops = isa.f32();
        let Lines { line, pitch } = self.lines;
        // SAFETY: these are positions of the output; see `Depthwise::eval`.
        let sums = unsafe { sum.sum::<I, N>(isa, self, y * pitch + x) };
        let (len, bias) = (ops.len().min(line - x), ops.splat(self.bias));
        for (i, [first, second]) in sums.into_iter().enumerate() {
            let sum = ops.add(ops.add(first, bias), second);
            let to = &mut out[(y + i) * line + x..][..len];
            // SAFETY: a vector when the slice has as many elements, else as many of it as the mask.
            unsafe {
                if len == ops.len() {
                    ops.store_ptr(sum, to.as_mut_ptr());
                } else {
                    ops.store_ptr_mask(sum, to.as_mut_ptr(), masks.first(len));
                }
            }
        }
    }
}

/// Any kernel.
struct Taps;

impl Sum for Taps {
    #[inline(always)]
    unsafe fn sum<I: Isa, const N: usize>(&self, isa: I, plane: &Plane<'_>, from: usize) -> [[I::F32; 2]; N] {
        let ops = isa.f32();
        let mut sums = [[ops.zero(); 2]; N];
        let start = plane.plane.as_ptr().wrapping_add(from);
        let (kernel, taps) = (plane.kernel.as_chunks::<2>(), plane.taps.as_chunks::<2>());
        // SAFETY: the caller's promise.
        unsafe {
            for (weights, taps) in kernel.0.iter().zip(taps.0) {
                for part in 0..2 {
                    let weight = ops.splat(weights[part]);
                    for i in 0..N {
                        let x = ops.load_ptr(start.add(taps[part] + i * plane.lines.pitch));
                        sums[i][part] = ops.mul_add(weight, x, sums[i][part]);
                    }
                }
            }
            for (&weight, &tap) in kernel.1.iter().zip(taps.1) {
                let weight = ops.splat(weight);
                for i in 0..N {
                    let x = ops.load_ptr(start.add(tap + i * plane.lines.pitch));
                    sums[i][0] = ops.mul_add(weight, x, sums[i][0]);
                }
            }
        }
        sums
    }
}

/// A kernel of `H × W` elements with strides and dilations of 1: what a line of the image contributes to
/// the output lines around it is read once.
struct Kernel<const H: usize, const W: usize> {
    pitch: usize,
}

impl<const H: usize, const W: usize> Sum for Kernel<H, W> {
    #[inline(always)]
    unsafe fn sum<I: Isa, const N: usize>(&self, isa: I, plane: &Plane<'_>, from: usize) -> [[I::F32; 2]; N] {
        let ops = isa.f32();
        let mut sums = [[ops.zero(); 2]; N];
        let start = plane.plane.as_ptr().wrapping_add(from);
        let weights = &plane.kernel[..H * W];
        // The lines that a column of the kernel reads, of which those of neighbouring outputs overlap.
        let mut column = [[ops.zero(); H]; N];
        for k in 0..W {
            for i in 0..N {
                for h in 0..H {
                    // SAFETY: the position of an output line and one of its taps.
                    column[i][h] = match i {
                        0 => unsafe { ops.load_ptr(start.add(h * self.pitch + k)) },
                        _ if h + 1 < H => column[i - 1][h + 1],
                        _ => unsafe { ops.load_ptr(start.add((i + h) * self.pitch + k)) },
                    };
                }
            }
            for h in 0..H {
                let weight = ops.splat(weights[h * W + k]);
                for i in 0..N {
                    sums[i][h % 2] = ops.mul_add(weight, column[i][h], sums[i][h % 2]);
                }
            }
        }
        sums
    }
}
