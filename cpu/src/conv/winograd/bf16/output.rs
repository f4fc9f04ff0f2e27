//! The output transform `Aᵀ · sums · A` with output channels in the lanes of vectors, and sums on their way to a `TileEpilogue`.

use std::arch::x86_64::*;

use crate::conv::common::lines::Lines;
use crate::conv::dot::{ALL, FIRST, Positions, TileEpilogue};
use crate::gemm::{Bf16Pair, DotGroup, MicroKernel, VECTOR};

use super::input::{times, transposed_fours};
use super::plan::{Plan, Segment};
use super::{EDGE, Matrices, SIDE};

/// Floats of scratch: the outputs of a segment of tiles, and of a vector of pixels that is read after.
pub(super) fn scratch_len(plan: &Plan) -> usize {
    (SIDE * (SIDE * plan.longest).min(plan.output[1]) + VECTOR) * VECTOR
}

/// Transforms a segment of tiles for a vector of output channels.
pub(super) struct Output<'a, E> {
    pub(super) plan: &'a Plan,
    pub(super) segment: &'a Segment,
    /// Where sums lie, and which of their vectors is meant.
    pub(super) from: Matrices,
    pub(super) sums: &'a [f32],
    pub(super) vector: usize,
    /// The output channels.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) bias: [f32; VECTOR],
    pub(super) scratch: &'a mut [f32],
    pub(super) epilogue: E,
}

impl<E: TileEpilogue> Output<'_, E> {
    pub(super) fn compute(self) {
        let Output { plan, segment, ref from, sums, vector, ref scratch, .. } = self;
        assert!(Bf16Pair::available() && scratch.len() >= scratch_len(plan));
        assert!(sums.len() >= from.len() && vector < from.vectors);
        let tiles = segment.x.len();
        assert!(segment.before + tiles <= from.tiles && (1..=plan.longest).contains(&tiles));
        assert!(segment.x.end <= plan.across() && SIDE * segment.y < plan.output[0]);
        // SAFETY: the instructions and the extents were asserted.
        unsafe { Bf16Pair::run(self) };
    }
}

impl<E: TileEpilogue> MicroKernel for Output<'_, E> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Output { plan, segment, from, sums, vector, rows, bias, scratch, epilogue } = self;
        let [height, across] = plan.output;
        let (y, x) = (SIDE * segment.y, SIDE * segment.x.start);
        // Those of the segment that are the output's.
        let (lines, width) = (SIDE.min(height - y), (SIDE * segment.x.len()).min(across - x));
        let out = scratch.as_mut_ptr();
        // SAFETY: as `compute` asserts; pixels of the segment are written to its lines.
        unsafe {
            let bias = _mm512_loadu_ps(bias.as_ptr());
            for t in 0..segment.x.len() {
                let at = ((segment.before + t) * from.vectors + vector) * VECTOR;
                let sums = sums.as_ptr().add(at);
                let mut columns = [[_mm512_setzero_ps(); SIDE]; EDGE];
                for (j, column) in columns.iter_mut().enumerate() {
                    let mut transformed = [_mm512_setzero_ps(); EDGE];
                    for (i, x) in transformed.iter_mut().enumerate() {
                        *x = _mm512_loadu_ps(sums.add((i * EDGE + j) * from.step()));
                    }
                    *column = transform(transformed);
                }
                let count = SIDE.min(width - SIDE * t);
                for i in 0..lines {
                    let mut row = [_mm512_setzero_ps(); EDGE];
                    for (x, column) in row.iter_mut().zip(&columns) {
                        *x = column[i];
                    }
                    for (k, x) in transform(row).into_iter().enumerate() {
                        if k < count {
                            let to = out.add((i * width + SIDE * t + k) * VECTOR);
                            _mm512_storeu_ps(to, _mm512_add_ps(x, bias));
                        }
                    }
                }
            }
            // Lines of whole rows follow one another.
            let (runs, len) = if width == across { (1, lines * width) } else { (lines, width) };
            for run in 0..runs {
                let begin = (y + run) * across + x;
                for at in (0..len).step_by(VECTOR) {
                    let count = (len - at).min(VECTOR);
                    let tile = transposed(out.add((run * width + at) * VECTOR));
                    let place = Positions::new(Lines::whole(height * across), 0, (begin + at, count));
                    match place.lanes_are() {
                        ALL => epilogue.tile::<VECTOR, 1, ALL>(rows.clone(), &place, tile),
                        _ => epilogue.tile::<VECTOR, 1, FIRST>(rows.clone(), &place, tile),
                    }
                }
            }
        }
    }
}

/// `Aᵀ` times a column, as `output_transform::transform`.
///
/// # Safety
/// Only inside `DotGroup::run`.
#[inline(always)]
unsafe fn transform(x: [__m512; EDGE]) -> [__m512; SIDE] {
    // SAFETY: as the caller promises.
    unsafe {
        let (s, d) = (_mm512_add_ps(x[1], x[2]), _mm512_sub_ps(x[1], x[2]));
        [
            _mm512_add_ps(_mm512_add_ps(x[0], s), _mm512_add_ps(x[3], x[4])),
            times(-2.0, x[4], times(0.5, x[3], d)),
            times(4.0, x[4], times(0.25, x[3], s)),
            times(-8.0, x[4], times(0.125, x[3], _mm512_add_ps(d, x[5]))),
        ]
    }
}

/// Sixteen vectors of channels as those of pixels.
///
/// # Safety
/// Only inside `DotGroup::run`. So many vectors can be read.
#[inline(always)]
unsafe fn transposed(from: *const f32) -> [[__m512i; 1]; VECTOR] {
    // SAFETY: as the caller promises.
    unsafe {
        let mut x = [_mm512_setzero_si512(); VECTOR];
        for (p, x) in x.iter_mut().enumerate() {
            *x = _mm512_loadu_si512(from.add(p * VECTOR).cast());
        }
        // Of each four pixels: four vectors, of which each 128 bits have a channel of every four.
        let mut fours = [[_mm512_setzero_si512(); 4]; 4];
        for (four, &x) in fours.iter_mut().zip(x.as_chunks().0) {
            *four = transposed_fours(x);
        }
        let mut out = [[_mm512_setzero_si512(); 1]; VECTOR];
        for k in 0..4 {
            let [a, b, c, d] = [fours[0][k], fours[1][k], fours[2][k], fours[3][k]];
            let (low, high) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
            let (next, last) = (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d));
            out[k][0] = _mm512_shuffle_i32x4::<0x88>(low, next);
            out[4 + k][0] = _mm512_shuffle_i32x4::<0xdd>(low, next);
            out[8 + k][0] = _mm512_shuffle_i32x4::<0x88>(high, last);
            out[12 + k][0] = _mm512_shuffle_i32x4::<0xdd>(high, last);
        }
        out
    }
}
