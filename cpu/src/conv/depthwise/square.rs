//! Depthwise convolution with square kernels of 3 or 5 and strides of 1 or 2: reads the image where it lies,
//! several output lines at a time. What lies outside the image is masked out of vectors.

use rten_simd::Isa;
use rten_simd::ops::{BitOps, MaskOps, NumOps};

use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::{LONGEST, Masks};
use crate::loops::store::store_first;
use crate::ops::window::Geometry;

/// Output lines that are computed at a time.
const LINES: usize = 4;
/// Outputs of a line up to which planes are copied with their padding: on 28 that was measured to be twice as fast as with
/// masks, on 56 with stride 1 0.8 times.
const WIDEST: usize = 32;
/// Image lines that these read at most.
const READ: usize = 2 * (LINES - 1) + 5;

/// The shape of a convolution.
#[derive(Clone, Copy)]
pub(crate) struct Square {
    image: [usize; 2],
    output: [usize; 2],
    pads: [usize; 2],
    kernel: usize,
    stride: usize,
}

impl Square {
    /// `None` for others than described above.
    pub(crate) fn new(g: &Geometry) -> Option<Self> {
        let pair = |list: &[usize]| <[usize; 2]>::try_from(list).ok();
        let ([kernel, other], [stride, across]) = (pair(&g.kernel)?, pair(&g.strides)?);
        let square = kernel == other && stride == across && g.dilations == [1, 1];
        if !square || ![3, 5].contains(&kernel) || ![1, 2].contains(&stride) {
            return None;
        }
        let (image, output, pads) = (pair(&g.input)?, pair(&g.output)?, pair(&g.pads_begin)?);
        Some(Square { image, output, pads, kernel, stride })
    }

    /// Elements of a plane of the image.
    pub(crate) fn image(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Outputs of a plane.
    pub(crate) fn outputs(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Elements of a kernel.
    pub(crate) fn taps(&self) -> usize {
        self.kernel * self.kernel
    }

    /// The same over planes that are copied with their padding, for vectors of eight on lines that are not wide: without
    /// masks at the edges, which cost such vectors more than the copy. With AVX-512 1.0 to 1.1 times as fast, and 2 to 3 times
    /// in some processes, where masks took long for a reason that was not found; strided ones are slower.
    pub(crate) fn padded(&self, vector: usize) -> Option<Square> {
        let kind = match vector {
            8 => self.kernel == 3,
            LONGEST => self.stride == 1,
            _ => false,
        };
        (kind && (1..=WIDEST).contains(&self.output[1]) && self.output[0] > 0)
            .then(|| self.with_padding(vector))
    }

    fn with_padding(&self, vector: usize) -> Square {
        let [lines, line] = [self.output[0].max(1), self.output[1].next_multiple_of(vector)];
        let read = [(lines - 1) * self.stride + self.kernel, line * self.stride + self.kernel - 1];
        let image = [0, 1].map(|axis| read[axis].max(self.pads[axis] + self.image[axis]));
        Square { image, pads: [0, 0], ..*self }
    }

    /// Floats of scratch: a line of zeros, and a plane with its padding for whatever vectors.
    pub(crate) fn scratch_len(&self) -> usize {
        let padded = self.with_padding(LONGEST);
        let copy = if self.output[1] <= WIDEST { padded.image() } else { 0 };
        padded.width().max(self.width()) + copy
    }

    /// Copies a plane with its padding. What lies outside the image is written as zeros at the end of a line, else not.
    #[inline(always)]
    pub(crate) fn pad<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        padded: &Square,
        image: &[f32],
        out: &mut [f32],
    ) {
        let (ops, [_, width], pitch) = (isa.f32(), self.image, padded.image[1]);
        let first = self.pads[0] * pitch + self.pads[1];
        for (y, from) in image.chunks_exact(width).enumerate() {
            let to = &mut out[first + y * pitch..];
            assert!(to.len() >= width, "room for a line");
            // With AVX-512 masks cost nothing, and another way to write the first vector of a line made 5 × 5 on 28 × 28 take 1.3
            // times as long. A store by a mask of AVX2 takes 18 cycles and more on AMD's processors.
            let all = if ops.len() < LONGEST { width / ops.len() * ops.len() } else { 0 };
            let whole = if ops.len() < LONGEST { to.len() } else { 0 };
            // SAFETY: so many vectors lie inside both lines. A mask has no more elements than are left, and a whole vector is
            // stored where it has room.
            unsafe {
                let (from, to) = (from.as_ptr(), to.as_mut_ptr());
                for x in (0..all).step_by(ops.len()) {
                    ops.store_ptr(ops.load_ptr(from.add(x)), to.add(x));
                }
                for x in (all..width).step_by(ops.len()) {
                    let mask = masks.first(ops.len().min(width - x));
                    let elements = ops.load_ptr_mask(from.add(x), mask);
                    if x + ops.len() <= whole {
                        // Zeros beyond the line lie in its padding, or where the next line is written after this one.
                        ops.store_ptr(elements, to.add(x));
                    } else {
                        ops.store_ptr_mask(elements, to.add(x), mask);
                    }
                }
            }
        }
    }

    /// Elements of a line of zeros.
    pub(crate) fn width(&self) -> usize {
        self.image[1]
    }

    /// Whether output lines are longer than vectors.
    pub(crate) fn is_wide(&self) -> bool {
        self.output[1] > LONGEST
    }

    /// Multiplications of one plane.
    pub(crate) fn work(&self) -> usize {
        self.output[0] * self.output[1] * self.kernel * self.kernel
    }
}

/// One plane and one kernel.
pub(crate) struct SquarePlane<'a> {
    pub(crate) shape: Square,
    pub(crate) image: &'a [f32],
    /// A line of zeros.
    pub(crate) zeros: &'a [f32],
    pub(crate) kernel: &'a [f32],
    pub(crate) bias: f32,
    /// Whose activation is applied before outputs are written.
    pub(crate) epilogue: Option<F32Epilogue<'a>>,
}

impl SquarePlane<'_> {
    #[inline(always)]
    pub(crate) fn run<I: Isa>(&self, isa: I, masks: &Masks<I>, out: &mut [f32]) {
        match (self.shape.kernel, self.shape.stride) {
            (3, 1) => self.lines::<I, 3, 1>(isa, masks, out),
            (3, _) => self.lines::<I, 3, 2>(isa, masks, out),
            (_, 1) => self.lines::<I, 5, 1>(isa, masks, out),
            _ => self.lines::<I, 5, 2>(isa, masks, out),
        }
    }

    #[inline(always)]
    fn lines<I: Isa, const K: usize, const S: usize>(&self, isa: I, masks: &Masks<I>, out: &mut [f32]) {
        let Square { image: [height, width], output: [lines, line], pads, .. } = self.shape;
        assert!(
            self.image.len() >= height * width && self.zeros.len() >= width && self.kernel.len() >= K * K
        );
        for y in (0..lines).step_by(LINES) {
            let mut rows = [self.zeros; READ];
            for (i, row) in rows.iter_mut().enumerate() {
                if let Some(y) = (S * y + i).checked_sub(pads[0]).filter(|&y| y < height) {
                    *row = &self.image[y * width..];
                }
            }
            let out = &mut out[y * line..];
            for x in (0..line).step_by(isa.f32().len()) {
                match (lines - y).min(LINES) {
                    1 => self.vectors::<I, K, S, 1>(isa, masks, &rows, x, out),
                    2 => self.vectors::<I, K, S, 2>(isa, masks, &rows, x, out),
                    3 => self.vectors::<I, K, S, 3>(isa, masks, &rows, x, out),
                    _ => self.vectors::<I, K, S, LINES>(isa, masks, &rows, x, out),
                }
            }
        }
    }

    /// Writes `N` vectors below each other. Where the stride is 2, outputs in between are computed along a
    /// line and dropped, which takes less time than to part the image's even and odd columns.
    #[inline(always)]
    fn vectors<I: Isa, const K: usize, const S: usize, const N: usize>(
        &self,
        isa: I,
        masks: &Masks<I>,
        rows: &[&[f32]; READ],
        x: usize,
        out: &mut [f32],
    ) {
        let ops = isa.f32();
        let line = self.shape.output[1];
        let len = ops.len().min(line - x);
        let mut sums = self.neighbours::<I, K, S, N>(isa, masks, rows, S * x);
        if S == 2 {
            let second = match 2 * len > ops.len() {
                true => self.neighbours::<I, K, S, N>(isa, masks, rows, S * x + ops.len()),
                false => sums,
            };
            for i in 0..N {
                let mut both = [0.0; 2 * LONGEST];
                ops.store(sums[i], &mut both);
                ops.store(second[i], &mut both[ops.len()..]);
                let mut even = [0.0; LONGEST];
                for k in 0..LONGEST {
                    even[k] = both[2 * k];
                }
                sums[i] = ops.load(&even);
            }
        }
        if let Some(epilogue) = &self.epilogue {
            sums = epilogue.vectors(isa, sums);
        }
        for (i, sum) in sums.into_iter().enumerate() {
            let to = &mut out[i * line + x..][..len];
            // SAFETY: the slice has so many elements.
            unsafe {
                if len == ops.len() {
                    ops.store_ptr(sum, to.as_mut_ptr());
                } else {
                    store_first(isa, sum, to.as_mut_ptr(), len, masks.first(len));
                }
            }
        }
    }

    /// The sums of neighbouring positions from `x` on, of every `S`-th line.
    #[inline(always)]
    fn neighbours<I: Isa, const K: usize, const S: usize, const N: usize>(
        &self,
        isa: I,
        masks: &Masks<I>,
        rows: &[&[f32]; READ],
        x: usize,
    ) -> [I::F32; N] {
        let inside = x >= self.shape.pads[1]
            && x - self.shape.pads[1] + K - 1 + isa.f32().len() <= self.shape.image[1];
        match inside {
            true => self.columns::<I, K, S, N, false>(isa, masks, rows, x),
            false => self.columns::<I, K, S, N, true>(isa, masks, rows, x),
        }
    }

    /// What a line of the image contributes to the output lines around it is read once.
    #[inline(always)]
    fn columns<I: Isa, const K: usize, const S: usize, const N: usize, const MASKED: bool>(
        &self,
        isa: I,
        masks: &Masks<I>,
        rows: &[&[f32]; READ],
        x: usize,
    ) -> [I::F32; N] {
        let (ops, width) = (isa.f32(), self.shape.image[1] as isize);
        // Each in two parts, so that additions need not wait for each other.
        let mut sums = [[ops.splat(self.bias), ops.zero()]; N];
        let mut column = [[ops.zero(); K]; N];
        for k in 0..K {
            let at = (x + k) as isize - self.shape.pads[1] as isize;
            let mask = match MASKED {
                true => masks.range(isa, -at, width - at),
                false => masks.first(ops.len()),
            };
            for i in 0..N {
                for h in 0..K {
                    column[i][h] = if i > 0 && h + S < K {
                        column[i - 1][h + S]
                    } else {
                        let from = rows[S * i + h].as_ptr().wrapping_offset(at);
                        // SAFETY: each row has at least the image's width; without a mask all elements lie
                        // inside (see `neighbours`), with one those that are in it.
                        unsafe { if MASKED { ops.load_ptr_mask(from, mask) } else { ops.load_ptr(from) } }
                    };
                }
            }
            for h in 0..K {
                let weight = ops.splat(self.kernel[h * K + k]);
                for i in 0..N {
                    sums[i][h % 2] = ops.mul_add(weight, column[i][h], sums[i][h % 2]);
                }
            }
        }
        let mut total = [ops.zero(); N];
        for i in 0..N {
            total[i] = ops.add(sums[i][0], sums[i][1]);
        }
        total
    }
}

impl<I: Isa> Masks<I> {
    /// The elements `from..end` of a vector, which may reach beyond it.
    #[inline(always)]
    fn range(&self, isa: I, from: isize, end: isize) -> I::M32 {
        const COUNT: [f32; LONGEST] =
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
        let ops = isa.f32();
        let len = ops.len() as isize;
        let before = ops.splat(from.clamp(0, len) as f32);
        isa.m32().and(self.first(end.clamp(0, len) as usize), ops.ge(ops.load(&COUNT), before))
    }
}
