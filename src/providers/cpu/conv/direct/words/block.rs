//! A part of a convolution of words for one thread: panels of weights times runs of output positions.

use std::ops::Range;

use super::super::finish::Segments;
use super::super::tile::Lines;
use super::ROWS;
use super::store::Store;
use crate::providers::cpu::gemm::{VECTOR, Word};

/// Vectors of a tile's columns.
pub(super) const VECTORS: usize = 3;
/// Words of the right operand that all panels meet before others, and tiles of them at most.
const CACHED: usize = 4 * 1024;
const TILES: usize = 8;

/// The sums of a tile, and room for a vector that begins at its last.
#[repr(align(64))]
struct Sums([u32; ROWS * VECTORS * VECTOR + VECTOR]);

pub(super) struct Block<'a> {
    /// Whole panels.
    pub(super) panels: &'a [u32],
    /// What sums begin with, for whole panels.
    pub(super) first: &'a [u32],
    /// Where each row of the right operand begins in `planes`, for the position `base`.
    pub(super) taps: &'a [usize],
    pub(super) base: usize,
    pub(super) planes: &'a [u32],
    /// Positions from `base` on, gaps included.
    pub(super) columns: Range<usize>,
    pub(super) lines: Lines,
    /// Output channels; the last panel may have fewer than others.
    pub(super) rows: Range<usize>,
    pub(super) store: &'a dyn Store,
    /// For one column, each word repeated for the rows of a panel.
    pub(super) room: &'a mut [u32],
}

impl Block<'_> {
    pub(super) fn compute<W: Word>(self) {
        let (depth, Range { start, end }) = (self.taps.len(), self.columns.clone());
        let panels = self.rows.len().div_ceil(ROWS);
        let farthest = self.taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(W::available() && self.panels.len() >= panels * ROWS * depth);
        assert!(
            start >= self.base
                && self.first.len() >= panels * ROWS
                && farthest + end <= self.planes.len() + self.base
        );
        // One or two positions more than whole vectors are cheaper as vectors of rows.
        let alone = match (end - start) % VECTOR {
            rest @ 1..=2 => rest,
            _ => 0,
        };
        let mut sums = Sums([0; ROWS * VECTORS * VECTOR + VECTOR]);
        // So many positions of all taps stay in the first cache while panels go by.
        let width = VECTORS * VECTOR;
        let strip = (CACHED / (depth * width).max(1)).clamp(1, TILES) * width;
        let whole = end - alone;
        for strip in (start..whole).step_by(strip).map(|start| start..(start + strip).min(whole)) {
            let tiles = strip.clone().step_by(width).map(|start| (start, width.min(strip.end - start)));
            let mut segments = [const { Segments::NONE }; TILES];
            for (segments, (start, count)) in segments.iter_mut().zip(tiles.clone()) {
                *segments = Segments::new(self.lines, start, count, VECTOR);
            }
            for (i, row) in self.rows.clone().step_by(ROWS).enumerate() {
                let rows = row..(row + ROWS).min(self.rows.end);
                for ((start, count), segments) in tiles.clone().zip(&segments) {
                    match count.div_ceil(VECTOR) {
                        1 => self.tile::<W, 1>(i, start, count, &mut sums),
                        2 => self.tile::<W, 2>(i, start, count, &mut sums),
                        _ => self.tile::<W, VECTORS>(i, start, count, &mut sums),
                    }
                    self.store.rows(&mut sums.0, count.next_multiple_of(VECTOR), rows.clone(), segments);
                }
            }
        }
        for position in whole..end {
            let room = &mut self.room[..ROWS * depth];
            for (to, &tap) in room.as_chunks_mut::<ROWS>().0.iter_mut().zip(self.taps) {
                *to = [self.planes[tap + position - self.base]; ROWS];
            }
            let segments = Segments::new(self.lines, position, 1, VECTOR);
            for (i, row) in self.rows.clone().step_by(ROWS).enumerate() {
                let mut column = [0; ROWS];
                column.copy_from_slice(&self.first[i * ROWS..][..ROWS]);
                let panel = &self.panels[i * ROWS * depth..][..ROWS * depth];
                // SAFETY: the instructions were asserted above; both have `depth` words for each row.
                unsafe { W::column(&mut column, room.as_ptr(), panel.as_ptr(), depth) };
                sums.0[..ROWS].copy_from_slice(&column);
                self.store.rows(&mut sums.0, 1, row..(row + ROWS).min(self.rows.end), &segments);
            }
        }
    }

    /// The sums of the panel `i` at `count` positions, of `V` vectors.
    fn tile<W: Word, const V: usize>(&self, i: usize, start: usize, count: usize, sums: &mut Sums) {
        let depth = self.taps.len();
        let mask = !0 >> (V * VECTOR - count);
        // SAFETY: the instructions, all panels, what sums begin with and the farthest position of all taps were
        // asserted in `compute`; the mask leaves out what follows the last position; sums have room for all rows.
        unsafe {
            W::tile::<ROWS, V>(
                sums.0.as_mut_ptr(),
                self.first.as_ptr().add(i * ROWS),
                self.panels.as_ptr().add(i * ROWS * depth),
                self.taps,
                self.planes.as_ptr().add(start - self.base),
                mask,
            );
        }
    }
}
