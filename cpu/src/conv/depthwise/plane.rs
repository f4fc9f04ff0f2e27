//! Depthwise convolution: each output plane reads one plane of the image, see `square`, or a copy of it where
//! kernels, strides or dilations are unusual.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::square::{Square, SquarePlane};
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::{LONGEST, Masks};
use crate::conv::common::planes::Planes;
use crate::isa::Dispatch;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::store::store_first;
use crate::ops::activation::Activation;
use crate::ops::window::Geometry;
use crate::threads::Pool;

/// Multiplications of a channel worth handing to another thread: some 20 µs of work.
const GRAIN: usize = 1 << 16;

/// How one channel is read; depends on shapes only.
pub(crate) enum PlaneLayout {
    Square(Square),
    Copied(Planes),
}

impl PlaneLayout {
    /// `None` where that would waste memory or work, and for more than two axes.
    pub(crate) fn new(g: &Geometry) -> Option<Self> {
        let square = Square::new(g).map(PlaneLayout::Square);
        square.or_else(|| Planes::new(g).map(PlaneLayout::Copied))
    }

    /// Multiplications of a plane, or elements copied, if there are more of them; at least 1.
    pub(crate) fn work(&self) -> usize {
        match self {
            PlaneLayout::Square(square) => square.work().max(1),
            PlaneLayout::Copied(planes) => (planes.positions * planes.taps.len()).max(planes.size()),
        }
    }

    /// Elements of the scratch that a thread needs.
    pub(crate) fn scratch_len(&self) -> usize {
        match self {
            PlaneLayout::Square(square) => square.scratch_len(),
            PlaneLayout::Copied(planes) => planes.size() + LONGEST,
        }
    }
}

/// Some output planes.
pub(crate) struct OutputPlanes<'a> {
    pub(crate) layout: &'a PlaneLayout,
    /// All images.
    pub(crate) images: &'a [f32],
    /// All kernels.
    pub(crate) kernels: &'a [f32],
    /// Images' channels, and output channels for each of them.
    pub(crate) channels: usize,
    pub(crate) multiplier: usize,
    /// The output planes to compute, counted over all images.
    pub(crate) outputs: Range<usize>,
    /// See `PlaneLayout::scratch_len`.
    pub(crate) scratch: &'a mut [f32],
    /// Whether other planes of the same layout were computed with this scratch just before: its padding is zeros already.
    pub(crate) padded: bool,
    /// `start` is that of the first image.
    pub(crate) epilogue: F32Epilogue<'a>,
}

impl SimdOp for OutputPlanes<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let masks = Masks::new(isa);
        match self.layout {
            PlaneLayout::Square(square) => self.lines(isa, &masks, square),
            PlaneLayout::Copied(planes) => self.copied(isa, &masks, planes),
        }
    }
}

impl OutputPlanes<'_> {
    #[inline(always)]
    fn lines<I: Isa>(mut self, isa: I, masks: &Masks<I>, square: &Square) {
        let (image, taps) = (square.image(), square.taps());
        let scratch = std::mem::take(&mut self.scratch);
        if !self.padded {
            scratch.fill(0.0);
        }
        let padded = square.padded(isa.f32().len());
        let shape = padded.unwrap_or(*square);
        let (zeros, copy) = scratch.split_at_mut(shape.width());
        let mut copied = None;
        for output in self.outputs.clone() {
            let (row, at) = self.place(output);
            // SAFETY: each plane of the output is computed once.
            let out = unsafe { self.epilogue.out.get(at..at + square.outputs()) };
            let channel = output / self.multiplier;
            let from = &self.images[channel * image..][..image];
            if let Some(padded) = padded.filter(|_| copied != Some(channel)) {
                square.pad(isa, masks, &padded, from, copy);
                copied = Some(channel);
            }
            let lines = SquarePlane {
                shape,
                image: if padded.is_some() { &*copy } else { from },
                zeros: &*zeros,
                kernel: &self.kernels[row * taps..][..taps],
                bias: self.epilogue.bias.map_or(0.0, |bias| bias[row]),
                // Outputs of short lines are more quickly activated as a whole.
                epilogue: (self.epilogue.residual.is_none() && square.is_wide()).then_some(self.epilogue),
            };
            lines.run(isa, masks, out);
            match lines.epilogue {
                Some(epilogue) => epilogue.written(out),
                None => self.epilogue.plane(isa, masks, at, out),
            }
        }
    }

    #[inline(always)]
    fn copied<I: Isa>(self, isa: I, masks: &Masks<I>, planes: &Planes) {
        let (image, size, taps) = (planes.image(), planes.size(), planes.taps.len());
        let last = planes.taps.iter().fold(0, |last, &tap| last.max(tap));
        let reach = last + planes.positions + isa.f32().len();
        assert!(self.scratch.len() >= reach.max(size), "scratch for a channel");
        let mut copied = None;
        for output in self.outputs.clone() {
            let channel = output / self.multiplier;
            if copied != Some(channel) {
                let from = &self.images[channel * image..][..image];
                planes.copy(isa, masks, from, &mut self.scratch[..size], copied.is_none().then_some(0.0));
                copied = Some(channel);
            }
            let (row, at) = self.place(output);
            // SAFETY: each plane of the output is computed once.
            let out = unsafe { self.epilogue.out.get(at..at + self.epilogue.columns) };
            let plane = Plane {
                kernel: &self.kernels[row * taps..][..taps],
                planes,
                plane: self.scratch,
                bias: self.epilogue.bias.map_or(0.0, |bias| bias[row]),
            };
            plane.lines(isa, masks, out);
            self.epilogue.plane(isa, masks, at, out);
        }
    }

    /// The output channel of a plane, and where the plane begins.
    #[inline(always)]
    fn place(&self, output: usize) -> (usize, usize) {
        (output % (self.channels * self.multiplier), self.epilogue.start + output * self.epilogue.columns)
    }
}

/// How a channel of a depthwise convolution is read, where elements are no floats: each becomes floats by itself.
pub(crate) struct DepthwisePlane {
    layout: PlaneLayout,
    /// Elements of the channel, of an output and of a kernel.
    image: usize,
    columns: usize,
    volume: usize,
}

impl DepthwisePlane {
    /// `None` where that would waste memory or work, and for more than two axes.
    pub(crate) fn new(g: &Geometry) -> Option<Self> {
        let layout = PlaneLayout::new(g)?;
        let [image, columns, volume] = [&g.input, &g.output, &g.kernel].map(|list| list.iter().product());
        Some(DepthwisePlane { layout, image, columns, volume })
    }

    /// Convolves all channels of a batch: `load` writes one as floats, `store` takes what its outputs are.
    pub(crate) fn convolve(
        &self,
        pool: &Pool,
        channels: &Channels<'_>,
        load: impl Fn(usize, &mut [f32]) + Sync,
        store: impl Fn(usize, &[f32]) + Sync,
    ) {
        let &Channels { images, channels, kernels, bias, residual, activation } = channels;
        let (rows, columns) = (kernels.len() / self.volume, self.columns);
        let multiplier = rows / channels;
        let outputs = multiplier * columns;
        let added = if residual.is_some() { outputs } else { 0 };
        pool.split(images * channels, GRAIN.div_ceil(self.layout.work() * multiplier), |range| {
            let lengths = [self.image, outputs, added, self.layout.scratch_len()];
            with_scratch(lengths, |[image, sums, added, scratch]: [&mut [f32]; 4]| {
                let first = range.start;
                for i in range {
                    let row = i % channels * multiplier;
                    load(i, image);
                    if let Some(residual) = residual {
                        residual(i, added);
                    }
                    let out = Parts::new(&mut *sums);
                    let epilogue = F32Epilogue {
                        bias: bias.map(|bias| &bias[row..row + multiplier]),
                        residual: residual.map(|_| &*added),
                        activation,
                        out: &out,
                        start: 0,
                        columns,
                    };
                    let work = OutputPlanes {
                        layout: &self.layout,
                        images: image,
                        kernels: &kernels[row * self.volume..][..multiplier * self.volume],
                        channels: 1,
                        multiplier,
                        outputs: 0..multiplier,
                        scratch: &mut *scratch,
                        padded: i > first,
                        epilogue,
                    };
                    work.widest();
                    store(i, sums);
                }
            });
        });
    }
}

/// Writes something of a channel as floats.
pub(crate) type Load<'a> = dyn Fn(usize, &mut [f32]) + Sync + 'a;

/// The channels of a batch of images, one after the other, and what they are convolved with.
pub(crate) struct Channels<'a> {
    pub(crate) images: usize,
    pub(crate) channels: usize,
    /// As many for each channel as it has outputs.
    pub(crate) kernels: &'a [f32],
    /// One element for each kernel.
    pub(crate) bias: Option<&'a [f32]>,
    /// Writes what is added to a channel's outputs.
    pub(crate) residual: Option<&'a Load<'a>>,
    pub(crate) activation: Activation,
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
                // SAFETY: the slice has so many elements.
                unsafe { store_first(isa, sum, to.as_mut_ptr(), to.len(), masks.first(to.len())) };
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
