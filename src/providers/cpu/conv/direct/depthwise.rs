//! Depthwise convolution: each output plane reads one plane of the image, see `lines`, or a copy of it where
//! kernels, strides or dilations are unusual.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use crate::ops::activation::Activation;
use crate::ops::window::Geometry;
use crate::providers::cpu::parallel::Parts;

use super::finish::{Finish, LONGEST, Masks};
use super::lines::{Lines, Square};
use super::planes::Planes;

/// How one channel is read; depends on shapes only.
pub(super) enum Layout {
    Square(Square),
    Copied(Planes),
}

impl Layout {
    /// `None` where that would waste memory or work, and for more than two axes.
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        let square = Square::new(g).map(Layout::Square);
        square.or_else(|| Planes::new(g).map(Layout::Copied))
    }

    /// Multiplications of a plane, or elements copied, if there are more of them; at least 1.
    pub(super) fn work(&self) -> usize {
        match self {
            Layout::Square(square) => square.work().max(1),
            Layout::Copied(planes) => (planes.positions * planes.taps.len()).max(planes.size()),
        }
    }

    /// Elements of the room that a thread needs.
    pub(super) fn room(&self) -> usize {
        match self {
            Layout::Square(square) => square.width(),
            Layout::Copied(planes) => planes.size() + LONGEST,
        }
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
        match self.layout {
            Layout::Square(square) => self.lines(isa, &masks, square),
            Layout::Copied(planes) => self.copied(isa, &masks, planes),
        }
    }
}

impl Depthwise<'_> {
    #[inline(always)]
    fn lines<I: Isa>(self, isa: I, masks: &Masks<I>, square: &Square) {
        let (image, taps) = (square.image(), square.taps());
        self.room.fill(0.0);
        for output in self.outputs.clone() {
            let (row, at) = self.place(output);
            // SAFETY: each plane of the output is computed once.
            let out = unsafe { self.finish.out.get(at..at + self.finish.columns) };
            let lines = Lines {
                shape: *square,
                image: &self.images[output / self.multiplier * image..][..image],
                zeros: self.room,
                kernel: &self.kernels[row * taps..][..taps],
                bias: self.finish.bias.map_or(0.0, |bias| bias[row]),
            };
            lines.run(isa, masks, out);
            self.finish.plane(isa, masks, at, out);
        }
    }

    #[inline(always)]
    fn copied<I: Isa>(self, isa: I, masks: &Masks<I>, planes: &Planes) {
        let (image, size, taps) = (planes.image(), planes.size(), planes.taps.len());
        let last = planes.taps.iter().fold(0, |last, &tap| last.max(tap));
        let reach = last + planes.positions + isa.f32().len();
        assert!(self.room.len() >= reach.max(size), "room for a channel");
        let mut copied = None;
        for output in self.outputs.clone() {
            let channel = output / self.multiplier;
            if copied != Some(channel) {
                let from = &self.images[channel * image..][..image];
                planes.copy(isa, masks, from, &mut self.room[..size], copied.is_none().then_some(0.0));
                copied = Some(channel);
            }
            let (row, at) = self.place(output);
            // SAFETY: each plane of the output is computed once.
            let out = unsafe { self.finish.out.get(at..at + self.finish.columns) };
            let plane = Plane {
                kernel: &self.kernels[row * taps..][..taps],
                planes,
                plane: self.room,
                bias: self.finish.bias.map_or(0.0, |bias| bias[row]),
            };
            plane.lines(isa, masks, out);
            self.finish.plane(isa, masks, at, out);
        }
    }

    /// The output channel of a plane, and where the plane begins.
    #[inline(always)]
    fn place(&self, output: usize) -> (usize, usize) {
        (output % (self.channels * self.multiplier), self.finish.start + output * self.finish.columns)
    }
}

/// How one channel of a depthwise convolution is read, for those who convolve it alone.
pub(in crate::providers::cpu) struct DepthwisePlane {
    layout: Layout,
    /// Elements of the channel, and of an output.
    image: usize,
    columns: usize,
}

impl DepthwisePlane {
    /// `None` where that would waste memory or work, and for more than two axes.
    pub(in crate::providers::cpu) fn new(g: &Geometry) -> Option<Self> {
        let layout = Layout::new(g)?;
        Some(DepthwisePlane { layout, image: g.input.iter().product(), columns: g.output.iter().product() })
    }

    pub(in crate::providers::cpu) fn image(&self) -> usize {
        self.image
    }

    /// Multiplications for one output; at least 1.
    pub(in crate::providers::cpu) fn work(&self) -> usize {
        self.layout.work()
    }

    /// Elements of the room that a thread needs.
    pub(in crate::providers::cpu) fn room(&self) -> usize {
        self.layout.room()
    }

    /// Convolves the channel with as many kernels as `out` has planes; the bias has one element for each, the
    /// residual `out`'s shape.
    pub(in crate::providers::cpu) fn convolve(
        &self,
        image: &[f32],
        kernels: &[f32],
        bias: Option<&[f32]>,
        residual: Option<&[f32]>,
        activation: Activation,
        room: &mut [f32],
        out: &mut [f32],
    ) {
        let (columns, multiplier) = (self.columns, out.len() / self.columns);
        let out = Parts::new(out);
        let finish = Finish { bias, residual, activation, out: &out, start: 0, columns };
        let (layout, outputs) = (&self.layout, 0..multiplier);
        Depthwise { layout, images: image, kernels, channels: 1, multiplier, outputs, room, finish }
            .dispatch();
    }
}

/// One copied plane, one kernel.
struct Plane<'a> {
    kernel: &'a [f32],
    planes: &'a Planes,
    plane: &'a [f32],
    bias: f32,
}

impl Plane<'_> {
    #[inline(always)]
    fn lines<I: Isa>(&self, isa: I, masks: &Masks<I>, out: &mut [f32]) {
        let ops = isa.f32();
        let (line, pitch) = (self.planes.lines.line, self.planes.lines.pitch);
        for (y, out) in out.chunks_exact_mut(line).enumerate() {
            for x in (0..line).step_by(ops.len()) {
                let sum = self.sum(isa, y * pitch + x);
                let to = &mut out[x..line.min(x + ops.len())];
                // SAFETY: the mask has as many elements as the slice.
                unsafe { ops.store_ptr_mask(sum, to.as_mut_ptr(), masks.first(to.len())) };
            }
        }
    }

    /// The sums of a vector of positions, of which the first is one of the output's.
    #[inline(always)]
    fn sum<I: Isa>(&self, isa: I, from: usize) -> I::F32 {
        let ops = isa.f32();
        let mut sums = [ops.splat(self.bias), ops.zero(), ops.zero(), ops.zero()];
        for (i, (&weight, &tap)) in self.kernel.iter().zip(&self.planes.taps).enumerate() {
            // SAFETY: `Depthwise::copied` asserts that from every position and tap a vector lies inside.
            let x = unsafe { ops.load_ptr(self.plane.as_ptr().add(from + tap)) };
            // In parts, so that additions need not wait for each other.
            sums[i % 4] = ops.mul_add(ops.splat(weight), x, sums[i % 4]);
        }
        ops.add(ops.add(sums[0], sums[1]), ops.add(sums[2], sums[3]))
    }
}
