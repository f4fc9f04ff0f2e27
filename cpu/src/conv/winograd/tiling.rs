//! The tiles of an image.

use rten_simd::Isa;
use rten_simd::ops::{BitOps, NumOps};

use crate::conv::common::masks::LONGEST;
use crate::ops::window::Geometry;

/// Elements of a weight up to which large tiles take its memory four times.
const LARGEST_FOR_LARGE: usize = 1 << 15;

/// OutputTransform that are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileSize {
    /// 2 × 2
    Small,
    /// 4 × 4
    Large,
}

impl TileSize {
    /// `None` where there are not fewer multiplications in the end: transforming tiles takes time for each channel,
    /// which products over many channels win back.
    pub(crate) fn of(channels: usize, outputs: usize) -> Option<Self> {
        if channels < 32 || outputs < 32 {
            return None;
        }
        Some(if channels * outputs <= LARGEST_FOR_LARGE { TileSize::Large } else { TileSize::Small })
    }

    /// Along each axis.
    pub(crate) fn outputs(self) -> usize {
        match self {
            TileSize::Small => 2,
            TileSize::Large => 4,
        }
    }

    /// Elements of a transformed tile.
    pub(crate) fn elements(self) -> usize {
        (self.outputs() + 2).pow(2)
    }
}

/// The tiles of an image; depends on shapes only.
pub(crate) struct Tiling {
    pub(crate) size: TileSize,
    /// Rows and columns of tiles, of outputs, and of the image, and how many of zeros are before these.
    pub(crate) tiles: [usize; 2],
    pub(crate) output: [usize; 2],
    pub(crate) image: [usize; 2],
    pub(crate) pads: [usize; 2],
}

impl Tiling {
    /// For two axes.
    pub(crate) fn new(size: TileSize, g: &Geometry) -> Self {
        let two = |list: &[usize]| [list[0], list[1]];
        let output = two(&g.output);
        let tiles = output.map(|n| n.div_ceil(size.outputs()));
        Tiling { size, tiles, output, image: two(&g.input), pads: two(&g.pads_begin) }
    }

    /// The number of tiles.
    pub(crate) fn count(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Elements from one element's matrix of so many rows to the next: all of them at once are in different sets of a
    /// cache, which an address's last twelve bits tell.
    pub(crate) fn step(&self, rows: usize) -> usize {
        (rows * self.count()).next_multiple_of(1024) + 2 * LONGEST
    }
}

/// A factor times `x`, added to `sum`.
#[inline(always)]
pub(crate) fn times<I: Isa>(isa: I, factor: f32, x: I::F32, sum: I::F32) -> I::F32 {
    let ops = isa.f32();
    ops.mul_add(ops.splat(factor), x, sum)
}
