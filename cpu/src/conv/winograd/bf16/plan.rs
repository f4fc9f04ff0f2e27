//! How the tiles of all images are divided among threads.

use std::ops::Range;

use crate::gemm::VECTOR;
use crate::ops::window::Geometry;

use super::{ELEMENTS, SIDE};

/// Elements of transformed tiles that stay in a processor's own cache.
const OWN: usize = 160 * 1024;
/// Tiles whose sums with vectors of weights registers hold.
pub(super) const TILES: usize = 14;

/// What depends on shapes.
pub(super) struct Plan {
    /// Rows and columns of tiles, of outputs, and of the image, and how many of zeros are before these.
    tiles: [usize; 2],
    pub(super) output: [usize; 2],
    pub(super) image: [usize; 2],
    pub(super) pads: [usize; 2],
    /// Tiles of all images, which are numbered line by line.
    pub(super) parts: Vec<Range<usize>>,
    /// No segment of a part has more tiles.
    pub(super) longest: usize,
}

/// Neighbouring tiles of one row.
pub(super) struct Segment {
    pub(super) image: usize,
    pub(super) y: usize,
    pub(super) x: Range<usize>,
    /// How many tiles of the part come before.
    pub(super) before: usize,
}

impl Plan {
    pub(super) fn new(g: &Geometry, images: usize, channels: usize, threads: usize) -> Self {
        let two = |list: &[usize]| [list[0], list[1]];
        let (output, image, pads) = (two(&g.output), two(&g.input), two(&g.pads_begin));
        let tiles = output.map(|n| n.div_ceil(SIDE));
        let all = images * tiles[0] * tiles[1];
        let most = OWN / (ELEMENTS * channels.next_multiple_of(VECTOR)) / TILES * TILES;
        let count = all.div_ceil(most.max(TILES)).next_multiple_of(threads).min(all);
        let parts: Vec<_> = (0..count).map(|i| all * i / count..all * (i + 1) / count).collect();
        let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0).min(tiles[1]);
        Plan { tiles, output, image, pads, parts, longest }
    }

    /// Tiles of a row.
    pub(super) fn across(&self) -> usize {
        self.tiles[1]
    }

    /// The segments of some tiles.
    pub(super) fn segments(&self, tiles: Range<usize>) -> impl Iterator<Item = Segment> {
        let [rows, across] = self.tiles;
        let mut at = tiles.start;
        std::iter::from_fn(move || {
            let (row, x) = (at / across, at % across);
            let len = (across - x).min(tiles.end - at);
            let before = at - tiles.start;
            at += len;
            (len > 0).then(|| Segment { image: row / rows, y: row % rows, x: x..x + len, before })
        })
    }
}
