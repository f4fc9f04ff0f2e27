//! How an image is cut into rows of tiles, for threads to have some each or to share.

use std::ops::Range;
use std::sync::Arc;

use super::tiling::{TileSize, Tiling};
use crate::conv::common::blocks::{Blocks, VECTORS};
use crate::conv::common::partition::{self, Part, vectors};
use crate::conv::direct::panels::Panels;
use crate::loops::parallel::threads_of_image;
use crate::loops::simd::vector_len;
use crate::ops::window::Geometry;

/// Elements of the transformed tiles, and of the weight, that stay in a processor's own cache; of sums half as many.
pub(super) const OWN: usize = 128 * 1024;
/// Tiles for which it pays to read a larger weight.
const FEW: usize = 64;
/// Tiles that all threads work on at a time.
const TILES: usize = 256;
/// What a call of a product's loop takes beside its multiplications with vectors of eight, as so many channels of a vector. Without
/// it 40 × 40 with 32 channels was cut into ten rows of a vector and two tiles alone each, which took 1.7 times as long.
const CALL: usize = 32;

/// Tiles in the lanes of vectors.
pub(super) struct Rows {
    pub(super) parts: Vec<TileRows>,
    /// How all threads divide the products of a part, one part after the other; `None` where each part is one
    /// thread's.
    pub(super) together: Option<Blocks>,
}

/// Some rows of tiles.
pub(super) struct TileRows {
    pub(super) tiling: Tiling,
    /// Where rows of transformed tiles begin.
    pub(super) taps: Arc<[usize]>,
    /// As of `partition::Part`.
    pub(super) skipped: usize,
    pub(super) before: usize,
}

/// What the rows of a convolution follow from besides its images.
pub(super) struct RowsOf<'a> {
    pub(super) tile: TileSize,
    pub(super) panels: &'a Panels,
    pub(super) outputs: usize,
    pub(super) channels: usize,
    pub(super) threads: usize,
}

impl RowsOf<'_> {
    /// Tiles in the lanes of vectors, of images with outputs.
    pub(super) fn rows(&self, g: &Geometry, images: usize) -> Option<Rows> {
        let tile = self.tile.outputs();
        let (lines, across) = (g.output[0].div_ceil(tile), g.output[1].div_ceil(tile));
        let partitions = threads_of_image(images, self.threads);
        let (cuts, together) = match self.lines_alone(g, partitions) {
            Some(rows) => (cut(lines, partitions, rows), None),
            None => {
                let rows = (TILES / across).clamp(1, lines);
                let positions = rows * across;
                let blocks =
                    Blocks::new(self.panels.rows(), self.panels.shape(), positions, self.threads, false);
                (cut(lines, 1, rows), Some(blocks))
            }
        };
        let mut parts: Vec<TileRows> = Vec::new();
        for lines in cuts {
            let lines = tile * lines.start..(tile * lines.end).min(g.output[0]);
            let Part { geometry, skipped, before } = Part::new(g, lines)?;
            let tiling = Tiling::new(self.tile, &geometry);
            let count = tiling.count();
            // Most parts are alike.
            let like = parts.iter().find(|part| part.tiling.count() == count);
            let taps = match like {
                Some(part) => part.taps.clone(),
                None => (0..self.channels).map(|c| c * count).collect(),
            };
            parts.push(TileRows { tiling, taps, skipped, before });
        }
        Some(Rows { parts, together })
    }

    /// Rows of tiles of a part, where each is one of so many threads'; `None` where all threads had better do each.
    fn lines_alone(&self, g: &Geometry, threads: usize) -> Option<usize> {
        let (tile, transformed) = (self.tile.outputs(), self.tile.elements());
        let (lines, across) = (g.output[0].div_ceil(tile), g.output[1].div_ceil(tile));
        let of_row = transformed * self.channels * across;
        let weight = transformed * self.channels * self.outputs;
        let most = match weight <= OWN {
            true => OWN / of_row,
            // Every part reads all of the weight.
            false if threads == 1 || weight <= 4 * OWN => (OWN / of_row).max(FEW / across),
            false => return None,
        };
        let cost = |lines: Range<usize>| product_time(lines.len() * across, self.channels, vector_len());
        let total = |rows: usize| cut(lines, threads, rows).map(cost).sum::<usize>();
        let rows = (1..=most.clamp(1, lines)).rev().min_by_key(|&rows| total(rows))?;
        let pays_off =
            lines >= threads && rows * of_row <= partition::KEPT && total(rows) <= cost(0..lines) * 9 / 8;
        pays_off.then_some(rows)
    }
}

/// What the products of an element of so many tiles take: with vectors of eight in multiplications of a vector for each of a panel's
/// rows, with others in vectors alone, as what their calls take was not measured.
fn product_time(tiles: usize, channels: usize, vector: usize) -> usize {
    if vector != 8 {
        return vectors(tiles, vector);
    }
    let whole = vectors(tiles, vector).max(1);
    let alone = tiles.saturating_sub(whole * vector);
    channels * whole + CALL * (whole.div_ceil(VECTORS) + alone)
}

/// Cuts so many lines into a partition for each thread, and these into parts of so many.
fn cut(lines: usize, partitions: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
    let partition = move |i: usize| lines * i / partitions..lines * (i + 1) / partitions;
    (0..partitions).map(partition).flat_map(move |partition| {
        partition.clone().step_by(part).map(move |start| start..(start + part).min(partition.end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_products_are_not_preferred() {
        // 100 tiles at a time, not ten times ten; 98, which have two alone, not seven times fourteen.
        for (rows, across, channels) in [(10, 10, 32), (7, 14, 32), (5, 10, 64)] {
            let whole = product_time(rows * across, channels, 8);
            assert!(whole < rows * product_time(across, channels, 8), "{rows} rows of {across}");
        }
        // What fills vectors takes less than what does not.
        assert!(product_time(48, 64, 8) < product_time(51, 64, 8));
        assert_eq!(product_time(1, 32, 8), 32 + CALL);
        // Other vectors are counted alone.
        for (tiles, vector) in [(1, 16), (2, 16), (50, 16), (1, 4), (14, 4)] {
            assert_eq!(
                product_time(tiles, 32, vector),
                vectors(tiles, vector),
                "{tiles} tiles in vectors of {vector}"
            );
        }
    }
}
