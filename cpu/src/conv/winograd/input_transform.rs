//! The input transform `Bᵀ · tile · B`: first the columns, as vectors of neighbours, then the rows, as vectors of tiles.

use std::ops::Range;
use std::slice;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::tiling::{TileSize, Tiling, times};
use crate::conv::common::masks::{LONGEST, Masks};
use crate::loops::parallel::Parts;
use crate::loops::simd::last_of_each;
use crate::loops::store::store_first;

/// Rows of tiles whose columns are transformed before their elements are spread: a load waits for a store just before it that
/// it overlaps in part. So many keep all lines in the first cache.
const ROWS: usize = 4;

/// Transforms the tiles of some channels.
pub(crate) struct InputTransform<'a> {
    pub(crate) tiling: &'a Tiling,
    pub(crate) image: &'a [f32],
    /// Elements of the image from a channel to the next.
    pub(crate) channel: usize,
    /// The channels to transform.
    pub(crate) channels: Range<usize>,
    /// Rows of transformed tiles before those of the image's first channel.
    pub(crate) first: usize,
    /// For each element of a tile, a matrix of a row for each channel and a column for each tile.
    pub(crate) transformed: &'a Parts<'a, f32>,
    /// Elements from one of these matrices to the next.
    pub(crate) step: usize,
    /// As `scratch_lens` says.
    pub(crate) scratch: &'a mut [f32],
}

pub(crate) fn scratch_len(tiling: &Tiling) -> usize {
    let n = tiling.size.outputs() + 2;
    tiling.tiles[0].min(ROWS) * n * width(tiling) + n * n * place(tiling)
}

/// Elements of a line with its padding, of those before it, and of what vectors read and write after.
fn width(tiling: &Tiling) -> usize {
    let outputs = tiling.size.outputs();
    let read = outputs * (tiling.tiles[1] + LONGEST) + 2;
    read.max(outputs + tiling.pads[1] + tiling.image[1] + LONGEST)
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
        let InputTransform {
            tiling,
            image,
            channel: from,
            channels,
            first: before,
            transformed,
            step,
            scratch,
        } = self;
        let ops = isa.f32();
        let masks = Masks::new(isa);
        let [height, across] = tiling.image;
        let (count, width, place) = (tiling.count(), width(tiling), place(tiling));
        let (lines, places) = scratch.split_at_mut(tiling.tiles[0].min(ROWS) * N * width);
        assert!(
            places.len() >= N * N * place && place >= count + LONGEST,
            "there is room for vectors of tiles"
        );
        // What no image is written over is padding.
        lines.fill(0.0);
        for channel in channels {
            let image = &image[channel * from..][..height * across];
            for first in (0..tiling.tiles[0]).step_by(ROWS) {
                let rows = first..(first + ROWS).min(tiling.tiles[0]);
                for (y, lines) in rows.clone().zip(lines.chunks_exact_mut(N * width)) {
                    columns::<I, M, N>(isa, &masks, tiling, image, y, lines);
                }
                for (y, lines) in rows.zip(lines.chunks_exact(N * width)) {
                    spread::<M, N>(tiling, y, lines, places);
                }
            }
            for i in 0..N {
                for t in (0..count).step_by(ops.len()) {
                    let mut row = [ops.zero(); N];
                    for (j, x) in row.iter_mut().enumerate() {
                        // SAFETY: a vector from a tile on lies inside its place by the assertion.
                        *x = unsafe { ops.load_ptr(places.as_ptr().add((i * N + j) * place + t)) };
                    }
                    let row = transform(isa, row);
                    let len = ops.len().min(count - t);
                    for (j, number) in row.into_iter().enumerate() {
                        let at = (i * N + j) * step + (before + channel) * count + t;
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
/// padding and `M - 1` elements more, which the last of each `M` needs.
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
    let (width, first) = (out.len() / N, M - 1 + before);
    assert!(width >= first + across + LONGEST, "vectors fit into lines");
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
        for (i, column) in column.into_iter().enumerate() {
            // SAFETY: a vector from an element of the image on lies inside the line by the assertion.
            unsafe { ops.store_ptr(column, out.as_mut_ptr().add(i * width + first + x)) };
        }
    }
}

/// Of `N` lines, what the tiles of a row read at each place, in turn: every second element, or every fourth.
#[inline(always)]
fn spread<const M: usize, const N: usize>(tiling: &Tiling, y: usize, lines: &[f32], places: &mut [f32]) {
    let (tiles, width, place) = (tiling.tiles[1], width(tiling), place(tiling));
    // So many tiles at a time.
    let lanes = if tiles <= LONGEST / 2 { LONGEST / 2 } else { LONGEST };
    assert!(lines.len() >= N * width && width >= M * (tiles + LONGEST) + 2, "lines hold what is read");
    assert!(places.len() >= N * N * place && place >= (y + 1) * tiles + LONGEST, "places have room");
    for i in 0..N {
        for j in 0..N {
            for x in (0..tiles).step_by(lanes) {
                // SAFETY: by the assertions. What is written after a row's last tile, the next row writes over, or it
                // lies in the vector that a place has more than tiles.
                unsafe {
                    let from = lines.as_ptr().add(i * width + M * x + j);
                    let to = places.as_mut_ptr().add((i * N + j) * place + y * tiles + x);
                    match (M, lanes) {
                        (4, LONGEST) => pick::<4, LONGEST>(from, to),
                        (4, _) => pick::<4, { LONGEST / 2 }>(from, to),
                        (_, LONGEST) => pick::<2, LONGEST>(from, to),
                        _ => pick::<2, { LONGEST / 2 }>(from, to),
                    }
                }
            }
        }
    }
}

/// `last_of_each` without checks.
///
/// # Safety
/// `S * N` elements can be read, and `N` written.
#[inline(always)]
unsafe fn pick<const S: usize, const N: usize>(from: *const f32, to: *mut f32) {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (slice::from_raw_parts(from, S * N), slice::from_raw_parts_mut(to, N)) };
    last_of_each::<S, N>(from, to);
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

#[cfg(test)]
mod tests {
    use std::array::from_fn;

    use super::*;
    use crate::ops::window::{Padding, Window};
    use crate::testing::{each_instruction_set, ramp};

    const CHANNELS: usize = 2;

    /// Tile by tile, one element at a time.
    fn expected<I: Isa, const M: usize, const N: usize>(isa: I, tiling: &Tiling, image: &[f32]) -> Vec<f32> {
        let (ops, count, [height, across]) = (isa.f32(), tiling.count(), tiling.image);
        let mut all = vec![0.0; N * N * CHANNELS * count];
        for (channel, image) in image.chunks_exact(height * across).enumerate() {
            for t in 0..count {
                let start = [t / tiling.tiles[1] * M, t % tiling.tiles[1] * M];
                let at = |place: [usize; 2]| {
                    let inside = |axis: usize| {
                        let at = (start[axis] + place[axis]).checked_sub(tiling.pads[axis]);
                        at.filter(|&at| at < tiling.image[axis])
                    };
                    inside(0).zip(inside(1)).map_or(0.0, |(y, x)| image[y * across + x])
                };
                let columns: [[I::F32; N]; N] =
                    from_fn(|j| transform(isa, from_fn(|i| ops.splat(at([i, j])))));
                for i in 0..N {
                    let row: [I::F32; N] = transform(isa, from_fn(|j| columns[j][i]));
                    for (j, number) in row.into_iter().enumerate() {
                        let mut lanes = [0.0; LONGEST];
                        ops.store(number, &mut lanes);
                        all[((i * N + j) * CHANNELS + channel) * count + t] = lanes[0];
                    }
                }
            }
        }
        all
    }

    /// Widths around whole vectors of tiles, in images of fewer and of more rows of tiles than are transformed together.
    #[test]
    fn tiles_of_every_width() {
        for (size, pads, height) in [TileSize::Small, TileSize::Large]
            .iter()
            .flat_map(|&size| [(size, 0, 4), (size, 1, 9), (size, 2, 19)])
        {
            for across in 3..=70 {
                let window = Window {
                    kernel: vec![],
                    strides: vec![],
                    dilations: vec![],
                    padding: Padding::Explicit(vec![pads; 4]),
                    ceil: false,
                };
                let tiling = &Tiling::new(size, &window.geometry(&[height, across], &[3, 3]).unwrap());
                let (channel, step) = (height * across, CHANNELS * tiling.count());
                let image = &ramp::<f32>(CHANNELS * channel);
                each_instruction_set!(isa => {
                    let mut transformed = vec![99.0; size.elements() * step];
                    let (out, scratch) = (Parts::new(&mut transformed), &mut vec![f32::NAN; scratch_len(tiling)]);
                    let channels = 0..CHANNELS;
                    InputTransform { tiling, image, channel, channels, first: 0, transformed: &out, step, scratch }.eval(isa);
                    let want = match size {
                        TileSize::Small => expected::<_, 2, 4>(isa, tiling, image),
                        TileSize::Large => expected::<_, 4, 6>(isa, tiling, image),
                    };
                    assert!(transformed == want, "{size:?} {height} x {across} {pads} {} lanes", isa.f32().len());
                });
            }
        }
    }
}
