//! A part of a convolution of dot groups for one thread: panels of weights times runs of output positions.

use std::cell::Cell;
use std::ops::Range;

use super::epilogue::{ALL, ANY, FIRST, LessZeros, Rows, Runs, Tile, Totals};
use super::panels::ROWS;
use crate::providers::cpu::conv::common::lines::Lines;
use crate::providers::cpu::gemm::{DotGroup, TileSink, VECTOR};

/// Vectors of a tile's columns.
pub(crate) const VECTORS: usize = 3;
pub(crate) const WIDTH: usize = VECTORS * VECTOR;
/// Dot groups of the right operand that all panels meet before others, and tiles of them at most.
const CACHED: usize = 4 * 1024;
const TILES: usize = 8;
/// So many positions beyond whole vectors are computed each by itself, see `DotGroup::column`.
const ALONE: usize = 2;
/// Dot groups of scratch for each dot group of depth: ones, and those at single positions.
pub(crate) const BLOCK_SCRATCH: usize = 1 + ALONE;

pub(crate) struct Block<'a> {
    /// Whole panels.
    pub(crate) panels: &'a [u32],
    /// What sums begin with, for whole panels.
    pub(crate) first: &'a [u32],
    /// Zero points of the rows, for whole panels; none where all are 0.
    pub(crate) zeros: &'a [i32],
    /// Where each row of the right operand begins in `planes`.
    pub(crate) taps: &'a [usize],
    pub(crate) planes: &'a [u32],
    /// Positions, gaps included.
    pub(crate) columns: Range<usize>,
    pub(crate) lines: Lines,
    /// Outputs of a channel before the first of these.
    pub(crate) before: usize,
    /// Output channels; the last panel may have fewer than others.
    pub(crate) rows: Range<usize>,
    /// `BLOCK_SCRATCH` times the depth.
    pub(crate) scratch: &'a mut [u32],
}

/// A dot group whose products with others sum these.
const ONES: u32 = 0x0101_0101;

impl Block<'_> {
    /// Computes the sums, which go to `store`.
    pub(crate) fn compute<W: DotGroup, S: Rows>(self, store: &S) {
        let (depth, Range { start, end }) = (self.taps.len(), self.columns.clone());
        let panels = self.rows.len().div_ceil(ROWS);
        let farthest = self.taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(W::available() && self.panels.len() >= panels * ROWS * depth);
        assert!(self.first.len() >= panels * ROWS && farthest + end <= self.planes.len());
        assert!(self.zeros.is_empty() || self.zeros.len() >= panels * ROWS);
        // One or two positions more than whole vectors are cheaper as vectors of rows.
        let alone = match (end - start) % VECTOR {
            rest @ ..=ALONE => rest,
            _ => 0,
        };
        assert!(self.scratch.len() >= BLOCK_SCRATCH * depth);
        if has_zeros::<W>(self.zeros) {
            self.scratch[..depth].fill(ONES);
        }
        // So many positions of all taps stay in the first cache while panels go by.
        let strip = (CACHED / (depth * WIDTH).max(1)).clamp(1, TILES) * WIDTH;
        let whole = end - alone;
        let columns = self.scratch[depth..].chunks_exact_mut(depth.max(1));
        for (column, position) in columns.zip(whole..end) {
            column
                .iter_mut()
                .zip(self.taps)
                .for_each(|(dot_group, tap)| *dot_group = self.planes[tap + position]);
        }
        let mut at = start;
        loop {
            let next = (at + strip).min(whole);
            self.strip::<W, S>(store, at..next, if next == whole { whole..end } else { next..next });
            at = next;
            if at == whole {
                break;
            }
        }
    }

    /// The sums of all panels at a strip of positions, and at some single ones.
    fn strip<W: DotGroup, S: Rows>(&self, store: &S, strip: Range<usize>, alone: Range<usize>) {
        let depth = self.taps.len();
        let tiles = strip.clone().step_by(WIDTH).map(|start| (start, WIDTH.min(strip.end - start)));
        let mut runs = [const { Runs::NONE }; TILES];
        for (runs, at) in runs.iter_mut().zip(tiles.clone()) {
            *runs = Runs::new(self.lines, self.before, at);
        }
        let mut alone_runs = [const { Runs::NONE }; ALONE];
        for (runs, position) in alone_runs.iter_mut().zip(alone.clone()) {
            *runs = Runs::new(self.lines, self.before, (position, 1));
        }
        let (ones, columns) = self.scratch.split_at(depth);
        let totals = has_zeros::<W>(self.zeros).then(|| {
            let mut all = [[0; WIDTH]; TILES];
            for (totals, at) in all.iter_mut().zip(tiles.clone()) {
                self.tile::<W, _, 1>((&[0], ones), 0, at, &Totals(Cell::from_mut(totals)));
            }
            all
        });
        let mut column_totals = [[0; WIDTH]; ALONE];
        if has_zeros::<W>(self.zeros) {
            for (totals, column) in column_totals.iter_mut().zip(columns.chunks_exact(depth.max(1))) {
                let bytes = column.iter().flat_map(|dot_group| dot_group.to_le_bytes());
                *totals = [bytes.map(i32::from).fold(0, i32::wrapping_add); WIDTH];
            }
        }
        for (i, row) in self.rows.clone().step_by(ROWS).enumerate() {
            let rows = row..(row + ROWS).min(self.rows.end);
            let (first, panel) =
                (&self.first[i * ROWS..][..ROWS], &self.panels[i * ROWS * depth..][..ROWS * depth]);
            for (t, (at, runs)) in tiles.clone().zip(&runs).enumerate() {
                // The first tile fetches the next panel, which may lie in memory.
                let ahead = if t == 0 { ROWS * depth } else { 0 };
                let tile = Tile::<_, ANY> { store, rows: rows.clone(), runs };
                match &totals {
                    Some(totals) if has_zeros::<W>(self.zeros) => {
                        let (zeros, totals) = (&self.zeros[i * ROWS..], &totals[t]);
                        let sink = LessZeros { sink: &tile, zeros, totals };
                        self.tile::<W, _, ROWS>((first, panel), ahead, at, &sink);
                    }
                    _ => match runs.lanes_are() {
                        ALL => self.tile::<W, _, ROWS>((first, panel), ahead, at, &tile.with::<ALL>()),
                        FIRST => self.tile::<W, _, ROWS>((first, panel), ahead, at, &tile.with::<FIRST>()),
                        _ => self.tile::<W, _, ROWS>((first, panel), ahead, at, &tile),
                    },
                }
            }
            for ((column, runs), totals) in
                columns.chunks_exact(depth.max(1)).zip(&alone_runs[..alone.len()]).zip(&column_totals)
            {
                let tile = Tile::<_, ANY> { store, rows: rows.clone(), runs };
                let (first, panel, column) = (first.as_ptr(), panel.as_ptr(), column.as_ptr());
                // SAFETY: the instructions were asserted in `compute`; panel and column have `depth` dot groups a row.
                unsafe {
                    if has_zeros::<W>(self.zeros) {
                        let sink = LessZeros { sink: &tile, zeros: &self.zeros[i * ROWS..], totals };
                        W::column(&sink, first, panel, column, depth);
                    } else {
                        W::column(&tile, first, panel, column, depth);
                    }
                }
            }
        }
    }

    /// The sums of a panel of `R` rows, and what they begin with, at so many positions from one on. What lies
    /// `ahead` of each dot group of the panel is fetched.
    fn tile<W: DotGroup, S: TileSink, const R: usize>(
        &self,
        (first, panel): (&[u32], &[u32]),
        ahead: usize,
        (start, count): (usize, usize),
        sink: &S,
    ) {
        assert!(first.len() == R && panel.len() == R * self.taps.len());
        let (first, panel) = (first.as_ptr(), panel.as_ptr());
        let vectors = count.div_ceil(VECTOR);
        let mask = !0 >> (vectors * VECTOR - count);
        // SAFETY: the instructions, and the farthest position of all taps, were asserted in `compute`; the mask
        // leaves out what follows the last position.
        unsafe {
            let planes = self.planes.as_ptr().add(start);
            match vectors {
                1 => W::tile::<S, R, 1>(sink, first, panel, ahead, self.taps, planes, mask),
                2 => W::tile::<S, R, 2>(sink, first, panel, ahead, self.taps, planes, mask),
                _ => W::tile::<S, R, VECTORS>(sink, first, panel, ahead, self.taps, planes, mask),
            }
        }
    }
}

/// Whether there are zero points. Only bytes have them: for other dot groups, what follows is not compiled.
#[inline(always)]
fn has_zeros<W: DotGroup>(zeros: &[i32]) -> bool {
    W::COUNT == 4 && !zeros.is_empty()
}
