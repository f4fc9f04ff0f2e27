//! Depthwise convolution of one plane: one output line's vectors at a time, of several lines at once.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::finish::{Finish, Masks};
use super::planes::Planes;

/// Sums that are computed at a time, to hide the latency of an addition.
const SUMS: usize = 4;

/// A vector of outputs: where it is read for tap 0, where it is written, how much of it.
pub(super) struct Slot {
    from: usize,
    to: usize,
    len: usize,
}

/// The vectors of all output lines, `len` long: from top to bottom in groups of `SUMS` lines, from left to
/// right in a group; then those of the lines that are left.
pub(super) fn slots(planes: &Planes, len: usize) -> Vec<Slot> {
    let (line, pitch) = (planes.lines.line, planes.lines.pitch);
    let lines = planes.positions.div_ceil(pitch);
    let slot = move |x: usize, y: usize| Slot { from: y * pitch + x, to: y * line + x, len: len.min(line - x) };
    let group = |first: usize| {
        let below = move |x: usize| (first..first + SUMS).map(move |y| slot(x, y));
        (0..line).step_by(len).flat_map(below)
    };
    let grouped = lines / SUMS * SUMS;
    let rest = (grouped..lines).flat_map(|y| (0..line).step_by(len).map(move |x| slot(x, y)));
    (0..grouped).step_by(SUMS).flat_map(group).chain(rest).collect()
}

/// Some output planes.
pub(super) struct Depthwise<'a> {
    pub(super) planes: &'a Planes,
    pub(super) slots: &'a [Slot],
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
        let taps = self.planes.taps.as_slice();
        let (image, size, room) = (self.planes.image(), self.planes.size(), self.room);
        let last = taps.iter().fold(0, |last, &tap| last.max(tap));
        let reach = self.slots.iter().fold(0, |reach, slot| reach.max(slot.from)) + last + isa.f32().len();
        assert!(room.len() >= reach.max(size), "room for the planes of one channel");
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
            let plane = Plane { kernel, taps, slots: self.slots, plane: room, bias: self.finish.bias.map_or(0.0, |b| b[row]) };
            match self.planes.kernel() {
                Some([3, 3]) => plane.of_kernel::<I, 3, 3, 9>(isa, &masks, out),
                Some([5, 5]) => plane.of_kernel::<I, 5, 5, 25>(isa, &masks, out),
                _ => plane.of_taps(isa, &masks, out),
            }
            self.finish.plane(isa, &masks, at, out);
        }
    }
}

/// One plane, one kernel.
struct Plane<'a> {
    kernel: &'a [f32],
    taps: &'a [usize],
    slots: &'a [Slot],
    plane: &'a [f32],
    bias: f32,
}

impl Plane<'_> {
    #[inline(always)]
    fn of_taps<I: Isa>(&self, isa: I, masks: &Masks<I>, out: &mut [f32]) {
        let (groups, rest) = self.slots.as_chunks::<SUMS>();
        for slots in groups {
            self.add_taps(isa, masks, slots, out);
        }
        for slot in rest {
            self.add_taps(isa, masks, std::array::from_ref(slot), out);
        }
    }

    /// The sums of `N` vectors.
    #[inline(always)]
    fn add_taps<I: Isa, const N: usize>(&self, isa: I, masks: &Masks<I>, slots: &[Slot; N], out: &mut [f32]) {
        let ops = isa.f32();
        let mut sums = [ops.splat(self.bias); N];
        for (&weight, &tap) in self.kernel.iter().zip(self.taps) {
            let weight = ops.splat(weight);
            for i in 0..N {
                // SAFETY: `Depthwise::eval` asserts that a vector from any slot's position and any tap
                // lies inside the plane.
                let x = unsafe { ops.load_ptr(self.plane.as_ptr().add(tap + slots[i].from)) };
                sums[i] = ops.mul_add(weight, x, sums[i]);
            }
        }
        for i in 0..N {
            slots[i].write(isa, masks, sums[i], out);
        }
    }

    /// A kernel of `H × W` elements with strides and dilations of 1: what one line of the image
    /// contributes to the lines around it is read once.
    #[inline(always)]
    fn of_kernel<I: Isa, const H: usize, const W: usize, const HW: usize>(
        &self,
        isa: I,
        masks: &Masks<I>,
        out: &mut [f32],
    ) {
        let ops = isa.f32();
        let mut weights = [ops.zero(); HW];
        for (weight, &x) in weights.iter_mut().zip(self.kernel) {
            *weight = ops.splat(x);
        }
        let (groups, rest) = self.slots.as_chunks::<SUMS>();
        for slots in groups {
            self.add_lines::<I, H, W, HW, SUMS>(isa, masks, &weights, slots, out);
        }
        for slot in rest {
            self.add_lines::<I, H, W, HW, 1>(isa, masks, &weights, std::array::from_ref(slot), out);
        }
    }

    /// The sums of `N` vectors below each other.
    #[inline(always)]
    fn add_lines<I: Isa, const H: usize, const W: usize, const HW: usize, const N: usize>(
        &self,
        isa: I,
        masks: &Masks<I>,
        weights: &[I::F32; HW],
        slots: &[Slot; N],
        out: &mut [f32],
    ) {
        let ops = isa.f32();
        let mut sums = [ops.splat(self.bias); N];
        // The first tap of each of the kernel's lines tells how far these are apart.
        let pitch = self.taps[W * (H - 1)] / (H - 1);
        for line in 0..N + H - 1 {
            for k in 0..W {
                // SAFETY: the position of the last slot that uses it and its tap, see `add_taps`.
                let x = unsafe { ops.load_ptr(self.plane.as_ptr().add(slots[0].from + line * pitch + k)) };
                for i in 0..N {
                    if line >= i && line - i < H {
                        sums[i] = ops.mul_add(weights[(line - i) * W + k], x, sums[i]);
                    }
                }
            }
        }
        for i in 0..N {
            slots[i].write(isa, masks, sums[i], out);
        }
    }
}

impl Slot {
    #[inline(always)]
    fn write<I: Isa>(&self, isa: I, masks: &Masks<I>, x: I::F32, out: &mut [f32]) {
        let ops = isa.f32();
        let out = &mut out[self.to..self.to + self.len];
        // SAFETY: a vector when the slice has as many elements, else as many of it as the mask.
        unsafe {
            if out.len() == ops.len() {
                ops.store_ptr(x, out.as_mut_ptr());
            } else {
                ops.store_ptr_mask(x, out.as_mut_ptr(), masks.first(self.len));
            }
        }
    }
}
