//! Convolution with kernels of 3 × 3 and stride 1 by Winograd's minimal filtering: 16 multiplications for
//! 2 × 2 outputs of a channel instead of 36. Source: Lavin and Gray, "Fast Algorithms for Convolutional
//! Neural Networks", F(2×2, 3×3).
//!
//! Every tile of 4 × 4 inputs, two apart, becomes 16 numbers, as every kernel does. For each of the 16 the
//! sum over channels is a matrix product with a column for each tile. 16 sums become 2 × 2 outputs.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use crate::ops::window::Geometry;
use crate::threads::Pool;

use super::super::super::parallel::{GRAIN, Parts};
use super::finish::{Finish, LONGEST, Masks};
use super::panels::Panels;
use super::planes::Planes;

/// The numbers of a tile.
pub(super) const NUMBERS: usize = 16;

/// Whether there are fewer multiplications in the end: transforming tiles takes time for each channel, which
/// products over many channels win back.
pub(super) fn pays_off(channels: usize, outputs: usize) -> bool {
    channels >= 32 && outputs >= 32
}

/// The transformed weight `outputs × channels × 3 × 3`: for each number a matrix `outputs × channels`, in
/// panels of `rows`. On all threads of the pool.
pub(super) fn panels(weight: &[f32], rows: usize, outputs: usize, channels: usize, pool: &Pool) -> Panels {
    Panels::filled(rows, NUMBERS, outputs, channels, |data| {
        let number = outputs.next_multiple_of(rows) * channels;
        let (kernels, parts) = (weight.as_chunks::<9>().0, Parts::new(data));
        let grain = GRAIN.div_ceil(NUMBERS * rows * channels);
        pool.split(outputs.div_ceil(rows), grain, |range| {
            for first in range.map(|panel| panel * rows) {
                for channel in 0..channels {
                    let mut numbers = [[0.0; LONGEST]; NUMBERS];
                    for row in 0..rows.min(outputs - first) {
                        let kernel = transformed(&kernels[(first + row) * channels + channel]);
                        numbers.iter_mut().zip(kernel).for_each(|(numbers, x)| numbers[row] = x);
                    }
                    for (i, numbers) in numbers.iter().enumerate() {
                        let at = i * number + first * channels + channel * rows;
                        // SAFETY: rows of different panels, channels and numbers do not overlap.
                        unsafe { parts.get(at..at + rows) }.copy_from_slice(&numbers[..rows]);
                    }
                }
            }
        });
    })
}

/// G · kernel · Gᵀ
fn transformed(kernel: &[f32; 9]) -> [f32; NUMBERS] {
    let column = |j: usize| filter([kernel[j], kernel[j + 3], kernel[j + 6]]);
    let columns = [column(0), column(1), column(2)];
    let mut numbers = [0.0; NUMBERS];
    for (i, row) in numbers.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *row = filter([columns[0][i], columns[1][i], columns[2][i]]);
    }
    numbers
}

fn filter([a, b, c]: [f32; 3]) -> [f32; 4] {
    [a, (a + b + c) * 0.5, (a - b + c) * 0.5, c]
}

/// The tiles of an image; depends on shapes only.
pub(super) struct Tiling {
    pub(super) planes: Planes,
    /// Rows and columns of tiles, and of outputs.
    tiles: [usize; 2],
    output: [usize; 2],
}

impl Tiling {
    /// `None` for an image without elements, or an output without.
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        let output = [g.output[0], g.output[1]];
        let tiles = output.map(|n| n.div_ceil(2));
        let window =
            Geometry { kernel: vec![4, 4], strides: vec![2, 2], output: tiles.to_vec(), ..g.clone() };
        Some(Tiling { planes: Planes::unlimited(&window)?, tiles, output })
    }

    /// Elements from a number's matrix of so many rows to the next: all of them at once are in different sets of a
    /// cache, which an address's last twelve bits tell.
    pub(super) fn step(&self, rows: usize) -> usize {
        (rows * self.count()).next_multiple_of(1024) + 2 * LONGEST
    }

    /// The number of tiles.
    pub(super) fn count(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }
}

/// Turns the tiles of channels into numbers.
pub(super) struct Transform<'a> {
    pub(super) tiling: &'a Tiling,
    /// The planes of all channels, and a vector more.
    pub(super) planes: &'a [f32],
    /// The channels to transform.
    pub(super) channels: Range<usize>,
    /// For each number, a matrix of a row for each channel.
    pub(super) numbers: &'a Parts<'a, f32>,
}

impl SimdOp for Transform<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let masks = Masks::new(isa);
        let (size, count) = (self.tiling.planes.size(), self.tiling.count());
        let of_number = self.numbers.len() / NUMBERS;
        for channel in self.channels.clone() {
            // SAFETY: rows of different channels and numbers do not overlap.
            let row = |i: usize| unsafe {
                let start = i * of_number + channel * count;
                self.numbers.get(start..start + count)
            };
            self.channel(isa, &masks, &self.planes[channel * size..], std::array::from_fn(row));
        }
    }
}

impl Transform<'_> {
    #[inline(always)]
    fn channel<I: Isa>(&self, isa: I, masks: &Masks<I>, planes: &[f32], out: [&mut [f32]; NUMBERS]) {
        let ops = isa.f32();
        let Planes { taps, pitch, .. } = &self.tiling.planes;
        let [lines, width] = self.tiling.tiles;
        let mut done = 0;
        for y in 0..lines {
            for x in (0..width).step_by(ops.len()) {
                let from = &planes[y * pitch + x..];
                let len = ops.len().min(width - x);
                let mut rows = [[ops.zero(); 4]; 4];
                for j in 0..4 {
                    let at = |i: usize| ops.load(&from[taps[i * 4 + j]..]);
                    let column = self::tile(isa, [at(0), at(1), at(2), at(3)]);
                    for i in 0..4 {
                        rows[i][j] = column[i];
                    }
                }
                for (i, row) in rows.into_iter().enumerate() {
                    for (j, number) in self::tile(isa, row).into_iter().enumerate() {
                        let out = &mut out[i * 4 + j][done..done + len];
                        // SAFETY: the mask has as many elements as the slice.
                        unsafe { ops.store_ptr_mask(number, out.as_mut_ptr(), masks.first(len)) };
                    }
                }
                done += len;
            }
        }
    }
}

/// `Bᵀ` times a column.
#[inline(always)]
fn tile<I: Isa>(isa: I, [a, b, c, d]: [I::F32; 4]) -> [I::F32; 4] {
    let ops = isa.f32();
    [ops.sub(a, c), ops.add(b, c), ops.sub(c, b), ops.sub(b, d)]
}

/// Turns the sums of output channels into outputs.
pub(super) struct Outputs<'a> {
    pub(super) tiling: &'a Tiling,
    /// For each number, a matrix of a row for each channel from the `first` on; and a vector more.
    pub(super) sums: &'a [f32],
    /// Elements from a number's matrix to the next.
    pub(super) step: usize,
    pub(super) first: usize,
    /// The channels to write.
    pub(super) rows: Range<usize>,
    pub(super) finish: Finish<'a>,
}

impl SimdOp for Outputs<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let masks = Masks::new(isa);
        for row in self.rows.clone() {
            self.row(isa, &masks, row);
        }
    }
}

impl Outputs<'_> {
    #[inline(always)]
    fn row<I: Isa>(&self, isa: I, masks: &Masks<I>, row: usize) {
        let ops = isa.f32();
        let len = ops.len();
        let [height, width] = self.tiling.output;
        let count = self.tiling.count();
        let first = (row - self.first) * count;
        let sums: [&[f32]; NUMBERS] = std::array::from_fn(|i| &self.sums[i * self.step + first..]);
        let bias = ops.splat(self.finish.bias.map_or(0.0, |bias| bias[row]));
        let at = self.finish.start + row * self.finish.columns;
        // SAFETY: every part of an output channel is computed once.
        let out = unsafe { self.finish.out.get(at..at + height * width) };
        let [lines, tiles] = self.tiling.tiles;
        let mut done = 0;
        for y in 0..lines {
            for x in (0..tiles).step_by(len) {
                let mut columns = [[ops.zero(); 2]; 4];
                for (j, column) in columns.iter_mut().enumerate() {
                    let at = |i: usize| ops.load(&sums[i * 4 + j][done..]);
                    *column = self::outputs(isa, [at(0), at(1), at(2), at(3)]);
                }
                for i in 0..2.min(height - 2 * y) {
                    let row = [columns[0][i], columns[1][i], columns[2][i], columns[3][i]];
                    let [even, odd] = self::outputs(isa, row);
                    let (mut evens, mut odds) = ([0.0; LONGEST], [0.0; LONGEST]);
                    ops.store(ops.add(even, bias), &mut evens);
                    ops.store(ops.add(odd, bias), &mut odds);
                    let mut both = [0.0; 2 * LONGEST];
                    for k in 0..LONGEST {
                        (both[2 * k], both[2 * k + 1]) = (evens[k], odds[k]);
                    }
                    let line = &mut out[(2 * y + i) * width..][..width];
                    for start in [2 * x, 2 * x + len].into_iter().filter(|&start| start < width) {
                        let part = &mut line[start..(start + len).min(width)];
                        let mask = masks.first(part.len());
                        // SAFETY: the mask has as many elements as the slice.
                        unsafe {
                            ops.store_ptr_mask(ops.load(&both[start - 2 * x..]), part.as_mut_ptr(), mask);
                        }
                    }
                }
                done += len.min(tiles - x);
            }
        }
        self.finish.plane(isa, masks, at, out);
    }
}

/// `Aᵀ` times a column.
#[inline(always)]
fn outputs<I: Isa>(isa: I, [a, b, c, d]: [I::F32; 4]) -> [I::F32; 2] {
    let ops = isa.f32();
    [ops.add(ops.add(a, b), c), ops.sub(ops.sub(b, c), d)]
}
