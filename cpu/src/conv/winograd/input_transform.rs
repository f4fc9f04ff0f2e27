//! The input transform `Bᵀ · tile · B`: first the columns, as vectors of neighbours, then the rows, as vectors of tiles.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::tiling::{TileSize, Tiling, times};
use crate::conv::common::masks::{LONGEST, Masks};
use crate::loops::parallel::Parts;
use crate::loops::store::store_first;

/// Transforms the tiles of some channels.
pub(crate) struct InputTransform<'a> {
    pub(crate) tiling: &'a Tiling,
    pub(crate) image: &'a [f32],
    /// Elements of the image from a channel to the next.
    pub(crate) channel: usize,
    /// The channels to transform.
    pub(crate) channels: Range<usize>,
    /// For each element of a tile, a matrix of a row for each channel and a column for each tile.
    pub(crate) transformed: &'a Parts<'a, f32>,
    /// Elements from one of these matrices to the next.
    pub(crate) step: usize,
    /// As `scratch_lens` says.
    pub(crate) scratch: &'a mut [f32],
}

pub(crate) fn scratch_len(tiling: &Tiling) -> usize {
    let (m, n) = (tiling.size.outputs(), tiling.size.outputs() + 2);
    m / 2 * n * width(tiling) + n * n * place(tiling)
}

/// Elements of a line with its padding, of one before, and of what vectors of tiles read after.
fn width(tiling: &Tiling) -> usize {
    let read = tiling.size.outputs() * (tiling.tiles[1] + LONGEST + 1);
    read.max(1 + tiling.pads[1] + tiling.image[1] + LONGEST).next_multiple_of(4 * LONGEST)
}

/// Elements of what all tiles read at one place, and of a vector from the last of these on.
fn place(tiling: &Tiling) -> usize {
    tiling.count() + LONGEST
}

impl SimdOp for InputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        match self.tiling.size {
            TileSize::Small => self.run::<I, 2, 4>(isa),
            TileSize::Large => self.run::<I, 4, 6>(isa),
        }
    }
}

impl InputTransform<'_> {
    /// For tiles of `M` outputs and `N` inputs along each axis.
    #[inline(always)]
    fn run<I: Isa, const M: usize, const N: usize>(self, isa: I) {
        let InputTransform { tiling, image, channel: from, channels, transformed, step, scratch } = self;
        let ops = isa.f32();
        let masks = Masks::new(isa);
        let [height, across] = tiling.image;
        let (count, width, place) = (tiling.count(), width(tiling), place(tiling));
        let (lines, scratch) = scratch.split_at_mut(N * width);
        let (halves, places) = scratch.split_at_mut((M / 2 - 1) * N * width);
        // What no image is written over is padding.
        lines.fill(0.0);
        for channel in channels {
            let image = &image[channel * from..][..height * across];
            for y in 0..tiling.tiles[0] {
                columns::<I, M, N>(isa, &masks, tiling, image, y, lines);
                spread::<M, N>(tiling, y, lines, halves, places);
            }
            for i in 0..N {
                let places = &places[i * N * place..][..N * place];
                for t in (0..count).step_by(ops.len()) {
                    let mut row = [ops.zero(); N];
                    for (j, x) in row.iter_mut().enumerate() {
                        *x = ops.load(&places[j * place + t..]);
                    }
                    let row = transform(isa, row);
                    let len = ops.len().min(count - t);
                    for (j, number) in row.into_iter().enumerate() {
                        let at = (i * N + j) * step + channel * count + t;
                        // SAFETY: rows of different channels and numbers do not overlap; the mask has as many
                        // elements as the slice.
                        unsafe {
                            let out = transformed.get(at..at + len);
                            store_first(isa, number, out.as_mut_ptr(), len, masks.first(len));
                        }
                    }
                }
            }
        }
    }
}

/// `Bᵀ` times the columns of what a row of tiles reads: for each of `N` lines the elements of the image, after its
/// padding and one element more.
#[inline(always)]
fn columns<I: Isa, const M: usize, const N: usize>(
    isa: I,
    masks: &Masks<I>,
    tiling: &Tiling,
    image: &[f32],
    y: usize,
    out: &mut [f32],
) {
    let ops = isa.f32();
    let ([height, across], [above, before]) = (tiling.image, tiling.pads);
    let width = out.len() / N;
    let mut lines: [&[f32]; N] = [&[]; N];
    for (i, line) in lines.iter_mut().enumerate() {
        if let Some(row) = (y * M + i).checked_sub(above).filter(|&row| row < height) {
            *line = &image[row * across..][..across];
        }
    }
    for x in (0..across).step_by(ops.len()) {
        let mask = masks.first(ops.len().min(across - x));
        let mut column = [ops.zero(); N];
        for i in 0..N {
            if !lines[i].is_empty() {
                // SAFETY: the line has `across` elements, of which the mask has no more than are left.
                column[i] = unsafe { ops.load_ptr_mask(lines[i].as_ptr().add(x), mask) };
            }
        }
        let column = transform(isa, column);
        for i in 0..N {
            ops.store(column[i], &mut out[i * width + 1 + before + x..]);
        }
    }
}

/// Of `N` lines, what the tiles of a row read at each place, in turn. Tiles are two elements of a line apart, or four:
/// two of every second, in halves of their own.
#[inline(always)]
fn spread<const M: usize, const N: usize>(
    tiling: &Tiling,
    y: usize,
    lines: &[f32],
    halves: &mut [f32],
    places: &mut [f32],
) {
    let (tiles, width, place) = (tiling.tiles[1], width(tiling), place(tiling));
    if M == 4 {
        for i in 0..N {
            let (line, out) = (&lines[i * width..][..width], &mut halves[i * width..][..width]);
            for x in (0..M * tiles + 2).step_by(2 * LONGEST) {
                every_second(&line[x..], &mut out[x / 2 + 1..]);
                every_second(&line[x + 1..], &mut out[width / 2 + x / 2 + 1..]);
            }
        }
    }
    let from = if M == 4 { &*halves } else { lines };
    for i in 0..N {
        for j in 0..N {
            let at = if M == 4 { j % 2 * width / 2 + j / 2 } else { j };
            let line = &from[i * width + at..];
            // What does not belong to the row of tiles is written over.
            let out = &mut places[(i * N + j) * place + y * tiles..];
            for x in (0..tiles).step_by(LONGEST) {
                every_second(&line[2 * x..], &mut out[x..]);
            }
        }
    }
}

/// Every second element of a line but the first, which is what compiles to shuffles of vectors: nothing may follow the
/// last one.
#[inline(always)]
fn every_second(line: &[f32], out: &mut [f32]) {
    let line = &line[..2 * LONGEST];
    let mut elements = [0.0; LONGEST];
    for i in 0..LONGEST {
        elements[i] = line[2 * i + 1];
    }
    out[..LONGEST].copy_from_slice(&elements);
}

/// `Bᵀ` times a column.
#[inline(always)]
pub(super) fn transform<I: Isa, const N: usize>(isa: I, x: [I::F32; N]) -> [I::F32; N] {
    let ops = isa.f32();
    let mut y = x;
    if N == 4 {
        y[0] = ops.sub(x[2], x[0]);
        y[1] = ops.add(x[1], x[2]);
        y[2] = ops.sub(x[2], x[1]);
        y[3] = ops.sub(x[3], x[1]);
        return y;
    }
    let (d, e) = (ops.sub(x[3], x[1]), ops.sub(x[4], x[2]));
    y[0] = times(isa, 1.5, d, times(isa, -2.0, x[2], ops.add(x[0], x[4])));
    y[1] = times(isa, 2.5, x[3], times(isa, 0.5, x[2], ops.sub(x[4], x[1])));
    y[2] = times(isa, 0.5, x[3], times(isa, -2.5, x[2], ops.add(x[4], x[1])));
    y[3] = times(isa, 2.0, d, e);
    y[4] = times(isa, -0.5, d, e);
    y[5] = times(isa, 1.5, e, times(isa, -2.0, x[3], ops.add(x[1], x[5])));
    y
}
