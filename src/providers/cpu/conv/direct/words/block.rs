//! A part of a convolution of words for one thread: panels of weights times runs of output positions.

use std::ops::Range;

use super::super::tile::Lines;
use super::ROWS;
use super::store::{Rows, Runs, Tile};
use crate::providers::cpu::gemm::{TileSink, VECTOR, Word};

/// Vectors of a tile's columns.
pub(super) const VECTORS: usize = 3;
/// Words of the right operand that all panels meet before others, and tiles of them at most.
const CACHED: usize = 4 * 1024;
const TILES: usize = 8;

pub(in crate::providers::cpu) struct Block<'a> {
    /// Whole panels.
    pub(super) panels: &'a [u32],
    /// What sums begin with, for whole panels.
    pub(super) first: &'a [u32],
    /// Where each row of the right operand begins in `planes`.
    pub(super) taps: &'a [usize],
    pub(super) planes: &'a [u32],
    /// Positions, gaps included.
    pub(super) columns: Range<usize>,
    pub(super) lines: Lines,
    /// Output channels; the last panel may have fewer than others.
    pub(super) rows: Range<usize>,
    /// For one column, each word repeated for the rows of a panel.
    pub(super) room: &'a mut [u32],
}

impl Block<'_> {
    /// Computes the sums, which go to `store`.
    pub(super) fn compute<W: Word, S: Rows>(self, store: &S) {
        let (depth, Range { start, end }) = (self.taps.len(), self.columns.clone());
        let panels = self.rows.len().div_ceil(ROWS);
        let farthest = self.taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(W::available() && self.panels.len() >= panels * ROWS * depth);
        assert!(self.first.len() >= panels * ROWS && farthest + end <= self.planes.len());
        // One or two positions more than whole vectors are cheaper as vectors of rows.
        let alone = match (end - start) % VECTOR {
            rest @ 1..=2 => rest,
            _ => 0,
        };
        // So many positions of all taps stay in the first cache while panels go by.
        let width = VECTORS * VECTOR;
        let strip = (CACHED / (depth * width).max(1)).clamp(1, TILES) * width;
        let whole = end - alone;
        for strip in (start..whole).step_by(strip).map(|start| start..(start + strip).min(whole)) {
            let tiles = strip.clone().step_by(width).map(|start| (start, width.min(strip.end - start)));
            let mut runs = [const { Runs::NONE }; TILES];
            for (runs, (start, count)) in runs.iter_mut().zip(tiles.clone()) {
                *runs = Runs::new(self.lines, start, count);
            }
            for (i, row) in self.rows.clone().step_by(ROWS).enumerate() {
                let rows = row..(row + ROWS).min(self.rows.end);
                for (t, ((start, count), runs)) in tiles.clone().zip(&runs).enumerate() {
                    // The first tile fetches the next panel, which may lie in memory.
                    let ahead = if t == 0 { ROWS * depth } else { 0 };
                    let tile = Tile::<_, true> { store, rows: rows.clone(), runs };
                    if runs.gaps() {
                        self.tile::<W, _>((i, ahead), start, count, &tile);
                    } else {
                        self.tile::<W, _>((i, ahead), start, count, &tile.without_gaps());
                    }
                }
            }
        }
        for position in whole..end {
            let room = &mut self.room[..ROWS * depth];
            for (to, &tap) in room.as_chunks_mut::<ROWS>().0.iter_mut().zip(self.taps) {
                *to = [self.planes[tap + position]; ROWS];
            }
            let runs = Runs::new(self.lines, position, 1);
            for (i, row) in self.rows.clone().step_by(ROWS).enumerate() {
                let rows = row..(row + ROWS).min(self.rows.end);
                let tile = Tile::<_, true> { store, rows, runs: &runs };
                let (first, panel) = (&self.first[i * ROWS..], &self.panels[i * ROWS * depth..]);
                // SAFETY: the instructions were asserted above; both have `depth` words for each row.
                unsafe { W::column(&tile, first.as_ptr(), room.as_ptr(), panel.as_ptr(), depth) };
            }
        }
    }

    /// The sums of the panel `i` at `count` positions.
    fn tile<W: Word, S: TileSink>(&self, (i, ahead): (usize, usize), start: usize, count: usize, sink: &S) {
        let depth = self.taps.len();
        // SAFETY: all panels, and what sums begin with, were asserted in `compute`.
        let (first, panel) =
            unsafe { (self.first.as_ptr().add(i * ROWS), self.panels.as_ptr().add(i * ROWS * depth)) };
        let vectors = count.div_ceil(VECTOR);
        let mask = !0 >> (vectors * VECTOR - count);
        // SAFETY: the instructions, and the farthest position of all taps, were asserted in `compute`; the mask
        // leaves out what follows the last position.
        unsafe {
            let planes = self.planes.as_ptr().add(start);
            match vectors {
                1 => W::tile::<S, ROWS, 1>(sink, first, panel, ahead, self.taps, planes, mask),
                2 => W::tile::<S, ROWS, 2>(sink, first, panel, ahead, self.taps, planes, mask),
                _ => W::tile::<S, ROWS, VECTORS>(sink, first, panel, ahead, self.taps, planes, mask),
            }
        }
    }
}
