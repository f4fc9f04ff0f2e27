//! The input transform `Bᵀ · tile · B`, with channels in the lanes of vectors.

use std::arch::x86_64::*;

use crate::conv::dot::Pixels;
use crate::gemm::{Bf16Pair, DotGroup, MicroKernel, VECTOR};
use crate::tensor::bf16;

use super::plan::{Plan, Segment};
use super::{EDGE, Matrices, PAIR, SIDE};

/// Dot groups of a vector of channels.
const GROUPS: usize = VECTOR / PAIR;

/// Floats of scratch: the lines of a segment of tiles, and of what vectors of pixels write after.
pub(super) fn scratch_len(plan: &Plan) -> usize {
    EDGE * width(plan.longest) * VECTOR
}

/// Pixels of a line with room for a vector more.
fn width(tiles: usize) -> usize {
    SIDE * tiles + 2 + VECTOR
}

/// Transforms a segment of tiles for a vector of channels.
pub(super) struct Input<'a> {
    pub(super) plan: &'a Plan,
    pub(super) segment: &'a Segment,
    pub(super) pixels: Pixels<'a, bf16>,
    /// Channels of an image, and which vector of them.
    pub(super) channels: usize,
    pub(super) vector: usize,
    pub(super) to: Matrices,
    pub(super) out: &'a mut [f32],
    pub(super) scratch: &'a mut [f32],
}

impl Input<'_> {
    pub(super) fn compute(self) {
        let tiles = self.segment.x.len();
        assert!(Bf16Pair::available() && self.scratch.len() >= EDGE * width(tiles) * VECTOR);
        assert!(self.segment.before + tiles <= self.to.tiles && self.out.len() >= self.to.len());
        assert!(self.vector < self.to.vectors && self.channels.is_multiple_of(PAIR));
        // SAFETY: the instructions and the extents were asserted; pixels are read from checked slices.
        unsafe { Bf16Pair::run(self) };
    }
}

impl MicroKernel for Input<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Input { plan, segment, pixels, channels, vector, to, out, scratch } = self;
        let ([height, across], [above, left]) = (plan.image, plan.pads);
        let (area, tiles) = (height * across, segment.x.len());
        let (width, used) = (width(tiles), SIDE * tiles + 2);
        // Of the line with its padding, the pixels that are the image's.
        let start = SIDE * segment.x.start;
        let begin = left.saturating_sub(start).min(used);
        let end = (across + left).saturating_sub(start).clamp(begin, used);
        let first = (segment.image * channels + vector * VECTOR) / PAIR;
        let groups = GROUPS.min((channels - vector * VECTOR) / PAIR);
        let (first_row, lines) = (SIDE * segment.y, scratch.as_mut_ptr());
        for i in 0..EDGE {
            // SAFETY: lines have room for a vector of pixels after the last one.
            unsafe {
                let line = lines.add(i * width * VECTOR);
                let row = (first_row + i).checked_sub(above).filter(|&row| row < height && begin < end);
                let Some(row) = row else {
                    zeros(line, 0, used);
                    continue;
                };
                let mut at = begin;
                while at < end {
                    let count = (end - at).min(VECTOR);
                    let mask = (!0u32 >> (32 - count)) as u16;
                    let from = row * across + start + at - left;
                    let mut pixel = [_mm512_setzero_si512(); GROUPS];
                    for (group, pixel) in pixel.iter_mut().enumerate() {
                        if group < groups {
                            *pixel = pairs(&pixels, (first + group) * area, area, from, count, mask);
                        }
                    }
                    spread(pixel, line.add(at * VECTOR));
                    at += VECTOR;
                }
                zeros(line, 0, begin);
                zeros(line, end, used);
            }
        }
        // SAFETY: as above; vectors of transformed tiles lie where `to` says, by the assertions.
        unsafe {
            for x in 0..used {
                let mut column = [_mm512_setzero_ps(); EDGE];
                for (i, y) in column.iter_mut().enumerate() {
                    *y = _mm512_loadu_ps(lines.add((i * width + x) * VECTOR));
                }
                for (i, y) in transform(column).into_iter().enumerate() {
                    _mm512_storeu_ps(lines.add((i * width + x) * VECTOR), y);
                }
            }
            let out = out.as_mut_ptr().add((vector * to.tiles + segment.before) * VECTOR);
            for t in 0..tiles {
                for i in 0..EDGE {
                    let mut row = [_mm512_setzero_ps(); EDGE];
                    for (j, x) in row.iter_mut().enumerate() {
                        *x = _mm512_loadu_ps(lines.add((i * width + SIDE * t + j) * VECTOR));
                    }
                    for (j, x) in transform(row).into_iter().enumerate() {
                        _mm512_storeu_ps(out.add((i * EDGE + j) * to.step() + t * VECTOR), x);
                    }
                }
            }
        }
    }
}

/// Writes zeros for some pixels.
///
/// # Safety
/// Only inside `DotGroup::run`. `line` has so many pixels.
#[inline(always)]
unsafe fn zeros(line: *mut f32, start: usize, end: usize) {
    for x in start..end {
        // SAFETY: as the caller promises.
        unsafe { _mm512_storeu_ps(line.add(x * VECTOR), _mm512_setzero_ps()) };
    }
}

/// The dot groups of up to a vector of pixels, of the dot group of channels whose plane begins so many pixels on.
///
/// # Safety
/// Only inside `DotGroup::run`. The mask has so many lanes.
#[inline(always)]
unsafe fn pairs(
    pixels: &Pixels<'_, bf16>,
    plane: usize,
    area: usize,
    from: usize,
    count: usize,
    mask: u16,
) -> __m512i {
    // SAFETY: as the caller promises, of checked slices.
    unsafe {
        match *pixels {
            Pixels::ChannelBlocked(image) => {
                let from = &image[plane + from..][..count];
                _mm512_maskz_loadu_epi32(mask, from.as_ptr().cast())
            }
            Pixels::Nchw(image) => {
                let low = &image[PAIR * plane + from..][..count];
                let high = &image[PAIR * plane + area + from..][..count];
                let low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, low.as_ptr().cast()));
                let high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, high.as_ptr().cast()));
                _mm512_or_si512(low, _mm512_slli_epi32::<16>(high))
            }
        }
    }
}

/// Writes a vector of floats of neighbouring channels for each pixel.
///
/// # Safety
/// Only inside `DotGroup::run`. There is room for a vector of pixels.
#[inline(always)]
unsafe fn spread(x: [__m512i; GROUPS], to: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        // Of each four dot groups of channels, the vector `k` has those of pixel `k` of each four.
        let mut fours = [[_mm512_setzero_si512(); 4]; 2];
        for (four, &x) in fours.iter_mut().zip(x.as_chunks().0) {
            *four = transposed_fours(x);
        }
        let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        let [low, high] = fours;
        for (k, (low, high)) in low.into_iter().zip(high).enumerate() {
            let halves =
                [_mm512_permutex2var_epi64(low, first, high), _mm512_permutex2var_epi64(low, second, high)];
            for (half, pixels) in halves.into_iter().enumerate() {
                let two = [_mm512_castsi512_si256(pixels), _mm512_extracti64x4_epi64::<1>(pixels)];
                for (i, pixel) in two.into_iter().enumerate() {
                    let wide = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(pixel));
                    let at = (8 * half + 4 * i + k) * VECTOR;
                    _mm512_storeu_ps(to.add(at), _mm512_castsi512_ps(wide));
                }
            }
        }
    }
}

/// In each 128 bits the transposition of 4 × 4 numbers: the vector `k` has the number `k` of all four.
///
/// # Safety
/// Only inside `DotGroup::run`.
#[inline(always)]
pub(super) unsafe fn transposed_fours(x: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: as the caller promises.
    unsafe {
        let (a, b) = (_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[0], x[1]));
        let (c, d) = (_mm512_unpacklo_epi32(x[2], x[3]), _mm512_unpackhi_epi32(x[2], x[3]));
        [
            _mm512_unpacklo_epi64(a, c),
            _mm512_unpackhi_epi64(a, c),
            _mm512_unpacklo_epi64(b, d),
            _mm512_unpackhi_epi64(b, d),
        ]
    }
}

/// `Bᵀ` times a column, as `input_transform::transform`.
///
/// # Safety
/// Only inside `DotGroup::run`.
#[inline(always)]
unsafe fn transform(x: [__m512; EDGE]) -> [__m512; EDGE] {
    // SAFETY: as the caller promises.
    unsafe {
        let (d, e) = (_mm512_sub_ps(x[3], x[1]), _mm512_sub_ps(x[4], x[2]));
        [
            times(1.5, d, times(-2.0, x[2], _mm512_add_ps(x[0], x[4]))),
            times(2.5, x[3], times(0.5, x[2], _mm512_sub_ps(x[4], x[1]))),
            times(0.5, x[3], times(-2.5, x[2], _mm512_add_ps(x[4], x[1]))),
            times(2.0, d, e),
            times(-0.5, d, e),
            times(1.5, e, times(-2.0, x[3], _mm512_add_ps(x[1], x[5]))),
        ]
    }
}

/// A factor times `x`, added to `sum`.
///
/// # Safety
/// Only inside `DotGroup::run`.
#[inline(always)]
pub(super) unsafe fn times(factor: f32, x: __m512, sum: __m512) -> __m512 {
    // SAFETY: as the caller promises.
    unsafe { _mm512_fmadd_ps(_mm512_set1_ps(factor), x, sum) }
}
