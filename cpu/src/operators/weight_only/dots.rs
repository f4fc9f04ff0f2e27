//! Dot products with rows of a weight of a few bits. Bound by reading the weight, once.
//!
//! The numbers are unpacked in registers: a vector of words holds several numbers in each of its lanes, and
//! shifts bring one after the other to the low bits. Rows of A are arranged beforehand in the order in
//! which they come out.

use rten_simd::ops::{BitOps, IntOps, NumOps, ToFloat};
use rten_simd::{Isa, SimdOp};

use crate::isa::Dispatch;
use crate::ops::weight_only::MatMulNBits;

/// Words of 32 bits that are unpacked side by side: a run.
const LANES: usize = 16;

/// Runs in a row of the weight; the last is filled up with zeros.
fn runs(op: &MatMulNBits) -> usize {
    (op.blocks() * op.block * op.bits).div_ceil(LANES * 32)
}

/// Numbers in an arranged row of A.
pub(super) fn arranged_size(op: &MatMulNBits) -> usize {
    runs(op) * LANES * (32 / op.bits)
}

/// Scales, and zero points, of a row of the weight: one for each block, also of what is filled up.
pub(super) fn blocks_of_runs(op: &MatMulNBits) -> usize {
    (runs(op) * LANES).div_ceil(op.block * op.bits / 32)
}

/// Arranges a row of A: of each run first the numbers that meet the first number of each word, then those
/// that meet the second, and so on. What is filled up is zero.
pub(super) fn arrange(op: &MatMulNBits, a: impl Fn(usize) -> f32, arranged: &mut [f32]) {
    let each = 32 / op.bits;
    for (run, to) in arranged.chunks_exact_mut(LANES * each).enumerate() {
        for (i, to) in to.iter_mut().enumerate() {
            let k = run * LANES * each + i % LANES * each + i / LANES;
            *to = if k < op.k { a(k) } else { 0.0 };
        }
    }
}

/// A row of the weight.
#[derive(Clone, Copy)]
pub(super) struct PackedRow<'a> {
    pub(super) op: &'a MatMulNBits,
    pub(super) data: &'a [u8],
    pub(super) scales: &'a [f32],
    pub(super) zeros: &'a [f32],
}

impl PackedRow<'_> {
    /// The dot products with the first `R` of rows that were arranged.
    pub(super) fn dots<const R: usize>(&self, rows: &[f32]) -> [f32; R] {
        match self.op.bits {
            2 => Dots::<R, 2> { row: self, rows }.widest(),
            4 => Dots::<R, 4> { row: self, rows }.widest(),
            _ => Dots::<R, 8> { row: self, rows }.widest(),
        }
    }
}

struct Dots<'a, const R: usize, const BITS: i32> {
    row: &'a PackedRow<'a>,
    rows: &'a [f32],
}

impl<const R: usize, const BITS: i32> SimdOp for Dots<'_, R, BITS> {
    type Output = [f32; R];

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> [f32; R] {
        let (ops, ints) = (isa.f32(), isa.i32());
        let (step, each) = (ops.len(), (32 / BITS) as usize);
        let &PackedRow { op, data, scales, zeros } = self.row;
        let (runs, span) = (runs(op), op.block * op.bits / 32);
        let mask = ints.splat((1 << BITS) - 1);
        let mut sums = [ops.zero(); R];
        for run in 0..runs {
            let words = words(data, run);
            let (scales, zeros) = (lanes(scales, run, span), lanes(zeros, run, span));
            for lane in (0..LANES).step_by(step) {
                let mut word = ints.load(&words[lane..lane + step]);
                let zero = ops.load(&zeros[lane..lane + step]);
                let mut parts = [ops.zero(); R];
                for p in 0..each {
                    let w = ops.sub(ints.to_float(ints.and(word, mask)), zero);
                    word = ints.shift_right::<BITS>(word);
                    for (r, part) in parts.iter_mut().enumerate() {
                        let at = ((r * runs + run) * each + p) * LANES + lane;
                        *part = ops.mul_add(w, ops.load(&self.rows[at..at + step]), *part);
                    }
                }
                let scale = ops.load(&scales[lane..lane + step]);
                for r in 0..R {
                    sums[r] = ops.mul_add(parts[r], scale, sums[r]);
                }
            }
        }
        // Plain loops over indices here and below: iterators' methods are not always inlined into what is
        // compiled for the machine's vectors.
        let mut totals = [0.0; R];
        for r in 0..R {
            totals[r] = ops.sum(sums[r]);
        }
        totals
    }
}

/// The words of a run, the first number in the lowest bits.
#[inline(always)]
fn words(data: &[u8], run: usize) -> [i32; LANES] {
    const BYTES: usize = LANES * 4;
    let data = &data[run * BYTES..];
    let mut words: [i32; LANES] = if data.len() >= BYTES {
        bytemuck::pod_read_unaligned(&data[..BYTES])
    } else {
        let mut filled = [0u8; BYTES];
        filled[..data.len()].copy_from_slice(data);
        bytemuck::pod_read_unaligned(&filled)
    };
    for word in &mut words {
        *word = i32::from_le(*word);
    }
    words
}

/// For each word of a run the value of its block, which has `span` words.
#[inline(always)]
fn lanes(values: &[f32], run: usize, span: usize) -> [f32; LANES] {
    match span {
        1 => spread::<1>(values, run),
        2 => spread::<2>(values, run),
        4 => spread::<4>(values, run),
        8 => spread::<8>(values, run),
        _ => [values[run * LANES / span]; LANES],
    }
}

#[inline(always)]
fn spread<const SPAN: usize>(values: &[f32], run: usize) -> [f32; LANES] {
    let values = &values[run * (LANES / SPAN)..][..LANES / SPAN];
    let mut lanes = [0.0; LANES];
    for i in 0..LANES {
        lanes[i] = values[i / SPAN];
    }
    lanes
}
