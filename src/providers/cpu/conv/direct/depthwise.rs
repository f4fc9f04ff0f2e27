//! Depthwise convolution of one plane: one output line's vectors at a time, of several lines at once.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use crate::ops::window::Geometry;

use super::finish::{Finish, LONGEST, Masks};
use super::planes::Planes;
use super::tile::Lines;

/// Output lines that are computed at a time.
const LINES: usize = 4;

/// How one channel lies in memory; depends on shapes only.
pub(super) struct Layout {
    planes: Planes,
    /// Of every so many positions along both axes, one is an output.
    step: usize,
}

impl Layout {
    /// `None` where that would waste memory or work, and for more than two axes.
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        if g.kernel.len() == 2 && (g.kernel == [3, 3] || g.kernel == [5, 5]) && g.strides == [2, 2] {
            // The outputs of stride 1, of which every second one is wanted.
            let output = g.output.iter().map(|n| (2 * n).saturating_sub(1)).collect();
            let planes = Planes::new(&Geometry { strides: vec![1, 1], output, ..g.clone() })
                .filter(|planes| planes.kernel().is_some() && planes.lines.pitch == planes.pitch);
            if let Some(planes) = planes {
                return Some(Layout { planes, step: 2 });
            }
        }
        Some(Layout { planes: Planes::new(g)?, step: 1 })
    }

    /// Multiplications of a plane, or elements copied, if there are more of them.
    pub(super) fn work(&self) -> usize {
        (self.planes.positions * self.planes.taps.len() / self.step).max(self.planes.size())
    }

    /// Elements of the room that a thread needs.
    pub(super) fn room(&self) -> usize {
        self.planes.size() + self.step * LONGEST
    }
}

/// Some output planes.
pub(super) struct Depthwise<'a> {
    pub(super) layout: &'a Layout,
    /// All images.
    pub(super) images: &'a [f32],
    /// All kernels.
    pub(super) kernels: &'a [f32],
    /// Images' channels, and output channels for each of them.
    pub(super) channels: usize,
    pub(super) multiplier: usize,
    /// The output planes to compute, counted over all images.
    pub(super) outputs: Range<usize>,
    /// See `Layout::room`.
    pub(super) room: &'a mut [f32],
    /// `start` is that of the first image.
    pub(super) finish: Finish<'a>,
}

impl SimdOp for Depthwise<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let masks = Masks::new(isa);
        let Layout { planes, step } = self.layout;
        let Planes { taps, lines, positions, pitch, .. } = planes;
        let (image, size, room) = (planes.image(), planes.size(), self.room);
        let last = taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(room.len() >= (last + positions + step * isa.f32().len()).max(size), "room for a channel");
        let mut copied = None;
        for output in self.outputs {
            let channel = output / self.multiplier;
            if copied != Some(channel) {
                let from = &self.images[channel * image..][..image];
                planes.copy(isa, &masks, from, &mut room[..size], copied.is_none());
                copied = Some(channel);
            }
            let row = output % (self.channels * self.multiplier);
            let at = self.finish.start + output * self.finish.columns;
            // SAFETY: each plane of the output is computed once.
            let out = unsafe { self.finish.out.get(at..at + self.finish.columns) };
            let kernel = &self.kernels[row * taps.len()..][..taps.len()];
            let bias = self.finish.bias.map_or(0.0, |bias| bias[row]);
            let plane = Plane { kernel, taps, lines: *lines, plane: room, bias };
            let pitch = *pitch;
            match (planes.kernel(), step) {
                (Some([3, 3]), 1) => plane.lines(isa, &masks, out, &Kernel::<3, 3, 1> { pitch }),
                (Some([5, 5]), 1) => plane.lines(isa, &masks, out, &Kernel::<5, 5, 1> { pitch }),
                (Some([3, 3]), 2) => plane.lines(isa, &masks, out, &Kernel::<3, 3, 2> { pitch }),
                (Some([5, 5]), 2) => plane.lines(isa, &masks, out, &Kernel::<5, 5, 2> { pitch }),
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
    /// Of every so many positions along both axes, one is an output.
    const STEP: usize = 1;

    /// The sums of `N` outputs' vectors below each other, of which the first is read at `from` and `len`
    /// elements are wanted.
    ///
    /// # Safety
    /// From the position in each line, `STEP` vectors from any tap must lie inside the plane.
    unsafe fn sum<I: Isa, const N: usize>(
        &self,
        isa: I,
        plane: &Plane<'_>,
        from: usize,
        len: usize,
    ) -> [I::F32; N];
}

impl Plane<'_> {
    #[inline(always)]
    fn lines<I: Isa, S: Sum>(&self, isa: I, masks: &Masks<I>, out: &mut [f32], sum: &S) {
        let line = self.lines.line.div_ceil(S::STEP);
        let count = out.len() / line;
        for y in (0..count).step_by(LINES) {
            for x in (0..line).step_by(isa.f32().len()) {
                match (count - y).min(LINES) {
                    1 => self.vectors::<I, S, 1>(isa, masks, out, sum, x, y),
                    2 => self.vectors::<I, S, 2>(isa, masks, out, sum, x, y),
                    3 => self.vectors::<I, S, 3>(isa, masks, out, sum, x, y),
                    _ => self.vectors::<I, S, LINES>(isa, masks, out, sum, x, y),
                }
            }
        }
    }

    /// Writes `N` vectors below each other.
    #[inline(always)]
    fn vectors<I: Isa, S: Sum, const N: usize>(
        &self,
        isa: I,
        masks: &Masks<I>,
        out: &mut [f32],
        sum: &S,
        x: usize,
        y: usize,
    ) {
        let ops = isa.f32();
        let line = self.lines.line.div_ceil(S::STEP);
        let len = ops.len().min(line - x);
        // SAFETY: these are positions of the output; see `Depthwise::eval`.
        let sums = unsafe { sum.sum::<I, N>(isa, self, S::STEP * (y * self.lines.pitch + x), len) };
        for (i, sum) in sums.into_iter().enumerate() {
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
    unsafe fn sum<I: Isa, const N: usize>(
        &self,
        isa: I,
        plane: &Plane<'_>,
        from: usize,
        _len: usize,
    ) -> [I::F32; N] {
        let ops = isa.f32();
        let mut sums = [ops.splat(plane.bias); N];
        let start = plane.plane.as_ptr().wrapping_add(from);
        for (&weight, &tap) in plane.kernel.iter().zip(plane.taps) {
            let weight = ops.splat(weight);
            for i in 0..N {
                // SAFETY: the caller's promise.
                let x = unsafe { ops.load_ptr(start.add(tap + i * plane.lines.pitch)) };
                sums[i] = ops.mul_add(weight, x, sums[i]);
            }
        }
        sums
    }
}

/// A kernel of `H × W` elements without dilations, with a stride of `STEP`. What a line of the image
/// contributes to the output lines around it is read once. Where the stride is 2, outputs in between are
/// computed along a line and dropped, which takes less time than to part the image's even and odd columns.
struct Kernel<const H: usize, const W: usize, const STEP: usize> {
    pitch: usize,
}

impl<const H: usize, const W: usize, const STEP: usize> Sum for Kernel<H, W, STEP> {
    const STEP: usize = STEP;

    #[inline(always)]
    unsafe fn sum<I: Isa, const N: usize>(
        &self,
        isa: I,
        plane: &Plane<'_>,
        from: usize,
        len: usize,
    ) -> [I::F32; N] {
        let ops = isa.f32();
        // SAFETY: the caller's promise.
        let first = unsafe { self.neighbours::<I, N>(isa, plane, from) };
        if STEP == 1 {
            return first;
        }
        let second = match 2 * len > ops.len() {
            // SAFETY: as above.
            true => unsafe { self.neighbours::<I, N>(isa, plane, from + ops.len()) },
            false => first,
        };
        let mut sums = first;
        for i in 0..N {
            let mut both = [0.0; 2 * LONGEST];
            ops.store(first[i], &mut both);
            ops.store(second[i], &mut both[ops.len()..]);
            let mut even = [0.0; LONGEST];
            for k in 0..LONGEST {
                even[k] = both[2 * k];
            }
            sums[i] = ops.load(&even);
        }
        sums
    }
}

impl<const H: usize, const W: usize, const STEP: usize> Kernel<H, W, STEP> {
    /// The sums of neighbouring positions, of every `STEP`-th line.
    #[inline(always)]
    unsafe fn neighbours<I: Isa, const N: usize>(
        &self,
        isa: I,
        plane: &Plane<'_>,
        from: usize,
    ) -> [I::F32; N] {
        let ops = isa.f32();
        // Each in two parts, so that additions need not wait for each other.
        let mut sums = [[ops.splat(plane.bias), ops.zero()]; N];
        let start = plane.plane.as_ptr().wrapping_add(from);
        let weights = &plane.kernel[..H * W];
        // The lines that a column of the kernel reads, of which those of neighbouring outputs overlap.
        let mut column = [[ops.zero(); H]; N];
        for k in 0..W {
            for i in 0..N {
                for h in 0..H {
                    column[i][h] = if i > 0 && h + STEP < H {
                        column[i - 1][h + STEP]
                    } else {
                        // SAFETY: the position of an output line and one of its taps.
                        unsafe { ops.load_ptr(start.add((STEP * i + h) * self.pitch + k)) }
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
        sums.map(
            #[inline(always)]
            |[first, second]| ops.add(first, second),
        )
    }
}
