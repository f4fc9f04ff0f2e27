//! Rows of a weight of a few bits, unpacked as columns of a matrix: a lane has words of one row, which shifts take
//! numbers from. Bound by writing.

use std::ops::Range;

use rten_simd::ops::{BitOps, IntOps, NumOps, ToFloat};
use rten_simd::{Isa, SimdOp};

use crate::ops::weight_only::MatMulNBits;

/// Some depths of some rows.
pub(super) struct Words<'a, F> {
    pub(super) op: &'a MatMulNBits,
    pub(super) data: &'a [u8],
    /// Writes scales and zero points of a row's blocks.
    pub(super) blocks: &'a F,
    pub(super) rows: Range<usize>,
    /// From a multiple of 16 on.
    pub(super) depths: Range<usize>,
    /// Numbers of each depth: whole vectors, of which those beyond the rows are nobody's.
    pub(super) width: usize,
    pub(super) out: &'a mut [f32],
}

/// `(q − zero)·scale` of numbers of so many bits.
pub(super) struct UnpackWords<'a, const BITS: i32, F>(pub(super) Words<'a, F>);

/// Elements of the longest vector.
const LANES: usize = 16;
/// Words of a row that are taken at a time.
const RUN: usize = 8;
/// Depths that are unpacked at a time, so that columns stay in a processor's own cache; and blocks that these lie in.
pub(super) const DEPTHS: usize = 512;
const BLOCKS: usize = DEPTHS / 16 + 1;

impl<const BITS: i32, F: Fn(usize, Range<usize>, &mut [f32], &mut [f32])> SimdOp
    for UnpackWords<'_, BITS, F>
{
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (ops, ints) = (isa.f32(), isa.i32());
        let Words { op, data, blocks: given, rows, depths, width, out } = self.0;
        let (len, each, bits) = (ops.len(), (32 / BITS) as usize, BITS as usize);
        let bytes = op.blocks() * op.block * bits / 8;
        let mask = ints.splat((1 << BITS) - 1);
        let blocks = depths.start / op.block..depths.end.div_ceil(op.block);
        let (mut scales, mut zeros) = ([[0.0; LANES]; BLOCKS], [[0.0; LANES]; BLOCKS]);
        let (mut words, mut from) = ([[0; LANES]; RUN], [&[][..]; LANES]);
        for column in (0..width).step_by(len) {
            // Widen beyond the last row are like that.
            let row = |l: usize| (rows.start + column + l).min(rows.end - 1);
            // What vectors are loaded from is written well before: a load would wait for stores of its parts.
            for l in 0..len {
                let (mut of_row, mut zeros_of_row) = ([0.0; BLOCKS], [0.0; BLOCKS]);
                given(row(l), blocks.clone(), &mut of_row, &mut zeros_of_row);
                for i in 0..blocks.len() {
                    (scales[i][l], zeros[i][l]) = (of_row[i], zeros_of_row[i]);
                }
                from[l] = data[row(l) * bytes..][..bytes].as_chunks::<4>().0;
            }
            for start in depths.clone().step_by(RUN * each) {
                let whole = (depths.end - start).div_ceil(each).min(RUN);
                for (words, at) in words.iter_mut().zip(start / each..start / each + whole) {
                    for l in 0..len {
                        words[l] = i32::from_le_bytes(from[l][at]);
                    }
                }
                for (at, words) in (start..depths.end).step_by(each).zip(&words) {
                    let i = at / op.block - blocks.start;
                    let (scale, zero) = (ops.load(&scales[i][..len]), ops.load(&zeros[i][..len]));
                    let mut word = ints.load(&words[..len]);
                    for depth in at..(at + each).min(depths.end) {
                        let number = ints.to_float(ints.and(word, mask));
                        word = ints.shift_right::<BITS>(word);
                        let to = &mut out[(depth - depths.start) * width + column..];
                        ops.store(ops.mul(ops.sub(number, zero), scale), to);
                    }
                }
            }
        }
    }
}
