//! The product of a panel's weights with elements at some positions of an image, in registers, and what becomes of the sums.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use rten_simd::isa::Avx2Isa;
use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::part::Part;
#[cfg(target_arch = "x86_64")]
use crate::conv::common::avx2::SumsToPlanes;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::{Lines, Segments};
use crate::conv::common::masks::{LONGEST, Masks};
#[cfg(target_arch = "x86_64")]
use crate::gemm::VECTOR;
#[cfg(target_arch = "x86_64")]
use crate::isa::has_avx2;
#[cfg(target_arch = "x86_64")]
use crate::loops::avx2::LEN;
use crate::loops::parallel::Parts;
use crate::loops::transpose;

/// How far ahead weights are fetched, in floats: what finds them by itself stops where a page ends.
const AHEAD: usize = 1024;
/// The same with shorter vectors.
const AHEAD_AVX2: usize = 256;
/// Floats of a line of a cache.
const LINE: usize = 16;
/// Positions that are transposed at a time.
const TRANSPOSED: usize = 48;

/// The products of a part with some channels of an image.
pub(crate) struct Block<'a> {
    /// The channels, so many elements each.
    pub(super) image: &'a [f32],
    pub(super) channels: usize,
    pub(super) plane: usize,
    /// As of the plan.
    pub(super) step: [usize; 2],
    pub(super) part: &'a Part,
    /// A panel from the first of the channels on, and elements from a position of the kernel to the next.
    pub(super) weights: &'a [f32],
    pub(super) tap: usize,
    /// Vectors of the panel's lanes.
    pub(super) vectors: usize,
    /// The line of outputs that sums begin with, and the outputs of a line.
    pub(super) place: [usize; 2],
    /// All lanes for each output.
    pub(super) sums: &'a mut [f32],
    /// Whether products are added to what is there.
    pub(super) add: bool,
}

impl SimdOp for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let len = isa.f32().len();
        // With 32 registers sums take up to 24, with 16 they take 12.
        match (self.vectors, len == 16) {
            (1, _) => self.tiles::<I, 1, 8>(isa),
            (2, false) => self.tiles::<I, 2, 6>(isa),
            (2, true) => self.tiles::<I, 2, 8>(isa),
            (3, true) => self.tiles::<I, 3, 8>(isa),
            (4, true) => self.tiles::<I, 4, 6>(isa),
            _ => unreachable!("a panel has no more vectors than a tile"),
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn tiles<I: Isa, const V: usize, const P: usize>(self, isa: I) {
        let ops = isa.f32();
        let (lanes, channels) = (V * ops.len(), self.channels);
        assert!(self.image.len() >= channels * self.plane);
        let Part { first, step, count: [height, width], ref taps } = *self.part;
        let ([down, across], [start, line]) = (self.step, self.place);
        // How much farther the last output reads than the first.
        let reach = (height - 1) * down + (width - 1) * across;
        for tap in taps {
            assert!(tap.from + reach < self.plane, "taps lie inside");
            assert!(tap.index * self.tap + channels * lanes <= self.weights.len(), "there are weights");
        }
        let place = |y: usize, x: usize| (first[0] + y * step[0] - start) * line + first[1] + x * step[1];
        assert!(first[0] >= start && (place(height - 1, width - 1) + 1) * lanes <= self.sums.len());
        let (count, mut y, mut x) = (height * width, 0, 0);
        for at in (0..count).step_by(P) {
            // Beyond the last output, that one again.
            let (mut from, mut to) = ([0; P], [0; P]);
            for p in 0..P {
                (from[p], to[p]) = (y * down + x * across, place(y, x) * lanes);
                if at + p + 1 < count {
                    x += 1;
                    if x == width {
                        (x, y) = (0, y + 1);
                    }
                }
            }
            // SAFETY: what is read and written lies inside by the assertions above.
            unsafe {
                let sums = self.sums.as_mut_ptr();
                let mut acc = [[ops.zero(); V]; P];
                if self.add {
                    for (acc, to) in acc.iter_mut().zip(to) {
                        for (v, acc) in acc.iter_mut().enumerate() {
                            *acc = ops.load_ptr(sums.add(to + v * ops.len()));
                        }
                    }
                }
                let positions: [*const f32; P] = from.map(|from| self.image.as_ptr().add(from));
                for tap in taps {
                    let mut weights = self.weights.as_ptr().add(tap.index * self.tap);
                    let mut at = tap.from;
                    // Two channels at a time: fewer instructions beside the multiplications.
                    for _ in 0..channels / 2 {
                        multiply(isa, weights, positions.map(|position| position.add(at)), &mut acc);
                        let next = at + self.plane;
                        multiply(
                            isa,
                            weights.add(lanes),
                            positions.map(|position| position.add(next)),
                            &mut acc,
                        );
                        (weights, at) = (weights.add(2 * lanes), next + self.plane);
                    }
                    if channels % 2 == 1 {
                        multiply(isa, weights, positions.map(|position| position.add(at)), &mut acc);
                    }
                }
                for (acc, to) in acc.into_iter().zip(to) {
                    for (v, acc) in acc.into_iter().enumerate() {
                        ops.store_ptr(acc, sums.add(to + v * ops.len()));
                    }
                }
            }
        }
    }
}

/// Adds the products of a channel: the vectors of its weights times an element for each position.
///
/// # Safety
/// As many can be read.
#[inline(always)]
unsafe fn multiply<I: Isa, const V: usize, const P: usize>(
    isa: I,
    weights: *const f32,
    positions: [*const f32; P],
    sums: &mut [[I::F32; V]; P],
) {
    let ops = isa.f32();
    let mut vectors = [ops.zero(); V];
    // SAFETY: as the caller promises.
    unsafe {
        for (v, vector) in vectors.iter_mut().enumerate() {
            let from = weights.add(v * ops.len());
            if (v * ops.len()).is_multiple_of(LINE) {
                ops.prefetch(from.wrapping_add(if ops.len() == LONGEST { AHEAD } else { AHEAD_AVX2 }));
            }
            *vector = ops.load_ptr(from);
        }
        for (sums, position) in sums.iter_mut().zip(positions) {
            let x = ops.splat(*position);
            for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                *sum = ops.mul_add(x, vector, *sum);
            }
        }
    }
}

/// Sums on their way to outputs that follow one another.
pub(crate) struct Outputs<'a> {
    pub(super) sums: &'a [f32],
    /// Sums of an output position.
    pub(super) lanes: usize,
    /// The output channels of the lanes, maybe of fewer than all.
    pub(super) rows: Range<usize>,
    /// The first output's place in its channel.
    pub(super) start: usize,
    pub(super) epilogue: F32Epilogue<'a>,
}

impl SimdOp for Outputs<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        #[cfg(target_arch = "x86_64")]
        if isa.f32().len() == LEN && self.by_columns() {
            return;
        }
        let Outputs { sums, lanes, rows, start, epilogue } = self;
        let (len, masks) = (isa.f32().len(), Masks::new(isa));
        let mut segments = Segments::NONE;
        let mut turned = [0.0; 4 * LONGEST * TRANSPOSED + LONGEST];
        assert!(lanes <= 4 * LONGEST && TRANSPOSED <= 3 * LONGEST);
        for (i, sums) in sums.chunks(TRANSPOSED * lanes).enumerate() {
            let (columns, start) = (sums.len() / lanes, start + i * TRANSPOSED);
            let out = Parts::<[u8; 4]>::new(bytemuck::cast_slice_mut(&mut turned));
            let block = transpose::Block {
                input: bytemuck::cast_slice(sums),
                stride: lanes,
                output: &out,
                at: 0,
                row_size: TRANSPOSED,
                rows: rows.len(),
                columns,
            };
            // SAFETY: nobody else has this memory.
            unsafe { block.transpose() };
            segments.set(Lines::whole(epilogue.columns), start, columns, len);
            epilogue.rows(isa, &masks, &turned, TRANSPOSED, rows.clone(), &segments);
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Outputs<'_> {
    /// With vectors of AVX2, where nothing is added: a square of lanes and positions at a time. Tells whether it was done.
    fn by_columns(&self) -> bool {
        let &Outputs { sums, lanes, ref rows, start, epilogue } = self;
        let isa = Avx2Isa::new().filter(|_| has_avx2());
        let Some(isa) = isa.filter(|_| epilogue.residual.is_none() && !sums.is_empty()) else { return false };
        let mut bias = [0.0; VECTOR];
        if let Some(all) = epilogue.bias {
            bias[..rows.len()].copy_from_slice(&all[rows.clone()]);
        }
        let to_planes = SumsToPlanes {
            out: epilogue.out,
            at: epilogue.start + rows.start * epilogue.columns + start,
            plane: epilogue.columns,
            channels: rows.len(),
            bias,
            activation: epilogue.activation,
        };
        // SAFETY: such a value is there where the processor has AVX2 and FMA; each output is computed once.
        unsafe {
            match lanes {
                LEN => to_planes.store::<1>(isa, sums),
                _ => to_planes.store::<2>(isa, sums),
            }
        }
        true
    }
}
