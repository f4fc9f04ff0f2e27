//! Convolution with kernels of 3 × 3 and stride 1 by Winograd's minimal filtering: for 2 × 2 outputs of a channel 16
//! multiplications instead of 36, for 4 × 4 outputs 36 instead of 144. Source: Lavin and Gray, "Fast Algorithms for
//! Convolutional Neural Networks", F(2×2, 3×3) and F(4×4, 3×3).
//!
//! Every tile of inputs becomes numbers, as every kernel does. For each of the numbers the sum over channels is a
//! matrix product with a column for each tile. The sums become outputs.
//!
//! F(2×2) evaluates polynomials at 0, 1, -1 and ∞, F(4×4) at ½ and -2 as well: summed over 128 channels in NumPy, its
//! largest error was 2.5 times that of sums in order, with 2 and -2 instead 7 times. On the choice of points: Barabasz,
//! Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
//! Networks".

mod inputs;
mod outputs;

use rten_simd::Isa;
use rten_simd::ops::{BitOps, NumOps};

use crate::ops::window::Geometry;
use crate::threads::Pool;

use super::super::super::parallel::{GRAIN, Parts};
use super::finish::LONGEST;
use super::panels::Panels;

pub(super) use inputs::Inputs;
pub(super) use outputs::Outputs;

/// Elements of a weight up to which large tiles take its memory four times.
const LARGEST_FOR_LARGE: usize = 1 << 15;
/// Points but for the one at infinity; small tiles have the first three.
const POINTS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, -2.0];

/// Outputs that are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileSize {
    /// 2 × 2
    Small,
    /// 4 × 4
    Large,
}

impl TileSize {
    /// `None` where there are not fewer multiplications in the end: transforming tiles takes time for each channel,
    /// which products over many channels win back.
    pub(super) fn of(channels: usize, outputs: usize) -> Option<Self> {
        if channels < 32 || outputs < 32 {
            return None;
        }
        Some(if channels * outputs <= LARGEST_FOR_LARGE { TileSize::Large } else { TileSize::Small })
    }

    /// Along each axis.
    pub(super) fn outputs(self) -> usize {
        match self {
            TileSize::Small => 2,
            TileSize::Large => 4,
        }
    }

    /// Numbers of a tile.
    pub(super) fn numbers(self) -> usize {
        (self.outputs() + 2).pow(2)
    }
}

/// The transformed weight `outputs × channels × 3 × 3`: for each number a matrix `outputs × channels`, in panels of
/// `rows`. On all threads of the pool.
pub(super) fn panels(
    size: TileSize,
    weight: &[f32],
    rows: usize,
    [outputs, channels]: [usize; 2],
    pool: &Pool,
) -> Panels {
    match size {
        TileSize::Small => transformed::<4, 16>(weight, rows, [outputs, channels], pool),
        TileSize::Large => transformed::<6, 36>(weight, rows, [outputs, channels], pool),
    }
}

/// `G` · kernel · `Gᵀ` for `N` points.
fn transformed<const N: usize, const NUMBERS: usize>(
    weight: &[f32],
    rows: usize,
    [outputs, channels]: [usize; 2],
    pool: &Pool,
) -> Panels {
    Panels::filled(rows, NUMBERS, outputs, channels, |data| {
        let number = outputs.next_multiple_of(rows) * channels;
        let (kernels, parts) = (weight.as_chunks::<9>().0, Parts::new(data));
        let grain = GRAIN.div_ceil(NUMBERS * rows * channels);
        pool.split(outputs.div_ceil(rows), grain, |range| {
            for first in range.map(|panel| panel * rows) {
                for channel in 0..channels {
                    let mut numbers = [[0.0; LONGEST]; NUMBERS];
                    for row in 0..rows.min(outputs - first) {
                        let kernel = kernels[(first + row) * channels + channel].map(f64::from);
                        let columns =
                            [0, 1, 2].map(|j| filter::<N>([kernel[j], kernel[j + 3], kernel[j + 6]]));
                        for (i, numbers) in numbers.chunks_exact_mut(N).enumerate() {
                            let line = filter::<N>([columns[0][i], columns[1][i], columns[2][i]]);
                            numbers.iter_mut().zip(line).for_each(|(numbers, x)| numbers[row] = x as f32);
                        }
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

/// `G` times a column of a kernel: its polynomial at each point, over the product of the differences between that and
/// the others; last its highest coefficient.
fn filter<const N: usize>([a, b, c]: [f64; 3]) -> [f64; N] {
    let points = &POINTS[..N - 1];
    let mut out = [c; N];
    for (out, &p) in out.iter_mut().zip(points) {
        let differences: f64 = points.iter().filter(|&&q| q != p).map(|q| p - q).product();
        *out = (a + p * (b + p * c)) / differences;
    }
    out
}

/// The tiles of an image; depends on shapes only.
pub(super) struct Tiling {
    pub(super) size: TileSize,
    /// Rows and columns of tiles, of outputs, and of the image, and how many of zeros are before these.
    tiles: [usize; 2],
    output: [usize; 2],
    image: [usize; 2],
    pads: [usize; 2],
}

impl Tiling {
    /// For two axes.
    pub(super) fn new(size: TileSize, g: &Geometry) -> Self {
        let two = |list: &[usize]| [list[0], list[1]];
        let output = two(&g.output);
        let tiles = output.map(|n| n.div_ceil(size.outputs()));
        Tiling { size, tiles, output, image: two(&g.input), pads: two(&g.pads_begin) }
    }

    /// The number of tiles.
    pub(super) fn count(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Elements from a number's matrix of so many rows to the next: all of them at once are in different sets of a
    /// cache, which an address's last twelve bits tell.
    pub(super) fn step(&self, rows: usize) -> usize {
        (rows * self.count()).next_multiple_of(1024) + 2 * LONGEST
    }

    /// Elements of room for a thread that transforms inputs, and one that transforms outputs.
    pub(super) fn rooms(&self) -> [usize; 2] {
        [inputs::room(self), outputs::room(self)]
    }
}

/// A factor times `x`, added to `sum`.
#[inline(always)]
fn times<I: Isa>(isa: I, factor: f32, x: I::F32, sum: I::F32) -> I::F32 {
    let ops = isa.f32();
    ops.mul_add(ops.splat(factor), x, sum)
}
