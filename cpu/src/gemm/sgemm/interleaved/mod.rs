//! A single row times a matrix that lies in the second cache, and meanwhile tiles of another product.
//!
//! A row multiplies each number of the matrix once, and the second cache delivers half of what a processor with vectors of 16
//! could multiply. A tile of 8 rows in registers reads little. One loop takes a step of the tile's depth and `STEPS` of the
//! row's, so that the tile's multiplications take place while the row's wait.

mod steps;

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::panel_product::{self, Order, Rows};
use super::panels::{VECTORS, panel, scratch_len};
use crate::gemm::compute::Compute;
use crate::gemm::pack::PackedB;
use crate::gemm::shape::{Extent, Matrix};
use crate::isa::Dispatch;
use crate::loops::simd::{LONGEST, vector_len};
use steps::{multiply, rest};

/// Rows of a tile.
const ROWS: usize = 8;
/// Floats of a vector: with shorter ones there are not enough registers.
const LEN: usize = LONGEST;
/// Columns of a tile.
const WIDTH: usize = VECTORS * LEN;
/// Steps of the row's depth to each of a tile's.
const STEPS: usize = 4;
/// Depth of a packed block.
const DEPTH: usize = <f32 as Compute>::DEPTH;

/// A product `a · b` that is computed part by part, some rows at a time.
pub(crate) struct Interleaved<'a> {
    /// Its rows are contiguous.
    a: Matrix<'a, f32>,
    b: &'a PackedB<f32>,
    columns: usize,
    depth: usize,
    /// The rows that are being computed.
    rows: Range<usize>,
    place: Place,
    /// Steps of tiles that are computed for each panel of the row's matrix.
    rate: usize,
    /// The sums of a tile that is not complete.
    sums: [[f32; WIDTH]; ROWS],
}

/// A tile, in the order in which they are computed: rows are in the inner loop, so that a panel is read for all of them.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The packed block of columns, and its panel.
    block: usize,
    panel: usize,
    depth_block: usize,
    row: usize,
    /// Steps of the depth that are summed.
    done: usize,
}

/// The operands of a tile.
struct Tile<'a> {
    /// Panel of `depth` rows.
    panel: &'a [f32],
    /// The first of the product's columns, and how many.
    columns: Range<usize>,
    /// The part of the product's depth.
    depths: Range<usize>,
}

/// The row's product: `out = row · b`, `b` packed in panels.
pub(crate) struct RowProduct<'a> {
    pub(crate) out: &'a mut [f32],
    pub(crate) row: &'a [f32],
    pub(crate) b: &'a [f32],
    /// Whether the last panel comes first.
    pub(crate) backwards: bool,
}

impl<'a> Interleaved<'a> {
    /// Part of a product with a packed operand; `None` where this processor does not gain, or for operands that are packed
    /// otherwise.
    pub(crate) fn new(a: Matrix<'a, f32>, b: &'a PackedB<f32>, columns: usize, depth: usize) -> Option<Self> {
        let fits = vector_len() == LEN && a.column_stride == 1 && columns > 0 && depth > 0;
        (fits && b.kept().is_none() && !b.is_of_halves()).then_some(Interleaved {
            a,
            b,
            columns,
            depth,
            rows: 0..0,
            place: Place::default(),
            rate: 0,
            sums: [[0.0; WIDTH]; ROWS],
        })
    }

    /// Columns of a panel.
    pub(crate) const COLUMNS: usize = WIDTH;

    /// Begins with some rows, which shall be complete after rows were multiplied with so many panels.
    pub(crate) fn begin(&mut self, rows: Range<usize>, panels: usize) {
        if !rows.is_empty() {
            let last = (rows.end - 1) * self.a.row_stride + self.depth;
            assert!(last <= self.a.data.len(), "the left operand has the rows");
        }
        let steps = rows.len().div_ceil(ROWS) * (self.columns / WIDTH) * self.depth;
        self.rate = steps.div_ceil(panels.max(1));
        self.place = Place { row: rows.start, ..Place::default() };
        self.rows = rows;
    }

    /// Computes what is left of the rows. `to`: all rows of the product.
    pub(crate) fn finish(&mut self, to: &mut [f32]) {
        self.check(to);
        Finish { tiles: self, to }.widest();
    }

    /// Computes the row's product, and some of the tiles.
    pub(crate) fn multiply(&mut self, row: RowProduct<'_>, to: &mut [f32]) {
        self.check(to);
        let (columns, depth) = (row.out.len(), row.row.len());
        assert!(row.b.len() >= scratch_len(depth, columns), "a packed operand has its extent");
        if columns == 0 || depth == 0 {
            return row.out.fill(0.0);
        }
        Both { tiles: self, row, to }.widest();
    }

    fn check(&self, to: &[f32]) {
        assert!(to.len() >= self.rows.end * self.columns, "there is room for the rows");
    }

    /// The current tile.
    fn tile(&self) -> Option<Tile<'a>> {
        let Place { block, panel: i, depth_block, .. } = self.place;
        let first = block * self.b.columns;
        if self.rows.is_empty() || first >= self.columns {
            return None;
        }
        let in_block = self.b.columns.min(self.columns - first);
        let depths = depth_block * DEPTH..((depth_block + 1) * DEPTH).min(self.depth);
        let (start, width) = panel(i, in_block, LEN);
        let packed = self.b.block(0, block, depth_block).panels(depths.len(), in_block);
        Some(Tile {
            panel: &packed[start * depths.len()..][..width * depths.len()],
            columns: first + start..first + (start + width).min(in_block),
            depths,
        })
    }

    /// Goes on to the next tile.
    fn advance(&mut self) {
        let place = &mut self.place;
        place.done = 0;
        place.row += ROWS;
        if place.row < self.rows.end {
            return;
        }
        place.row = self.rows.start;
        place.depth_block += 1;
        if place.depth_block * DEPTH < self.depth {
            return;
        }
        place.depth_block = 0;
        place.panel += 1;
        let in_block = self.b.columns.min(self.columns - place.block * self.b.columns);
        if place.panel == in_block.div_ceil(WIDTH) {
            place.panel = 0;
            place.block += 1;
        }
    }

    /// The current tile, if it has all columns; narrower ones before it are computed.
    fn whole_tile(&mut self, to: &mut [f32]) -> Option<Tile<'a>> {
        loop {
            let tile = self.tile()?;
            if tile.columns.len() == WIDTH {
                return Some(tile);
            }
            let (row, add) = (self.place.row, tile.depths.start > 0);
            let rows = (self.rows.end - row).min(ROWS);
            let extent = Extent { rows, columns: tile.columns.len(), depth: tile.depths.len() };
            let out = &mut to[row * self.columns + tile.columns.start..];
            let a = self.a.at(row, tile.depths.start);
            panel_product::product_to(
                Rows { out, stride: self.columns },
                extent,
                a,
                tile.panel,
                add,
                Order::Once,
            );
            self.advance();
        }
    }

    /// The sums of the current tile so far.
    #[inline(always)]
    fn sums<I: Isa>(&self, isa: I) -> [[I::F32; VECTORS]; ROWS] {
        let ops = isa.f32();
        assert!(ops.len() == LEN);
        if self.place.done == 0 {
            return [[ops.zero(); VECTORS]; ROWS];
        }
        let kept = |r: usize, v: usize| {
            // SAFETY: as many floats as the vectors have.
            unsafe { ops.load_ptr(self.sums[r][v * LEN..][..LEN].as_ptr()) }
        };
        std::array::from_fn(|r| std::array::from_fn(|v| kept(r, v)))
    }

    /// Where the tile's rows go on. Rows that are missing are computed like the last one.
    #[inline(always)]
    fn lines(&self, tile: &Tile<'_>) -> [&'a [f32]; ROWS] {
        std::array::from_fn(|r| {
            let row = (self.place.row + r).min(self.rows.end - 1);
            &self.a.data[row * self.a.row_stride..][tile.depths.clone()][self.place.done..]
        })
    }

    /// Keeps the sums of the tile after `count` more steps, or writes them when they are complete.
    #[inline(always)]
    fn keep<I: Isa>(
        &mut self,
        isa: I,
        tile: &Tile<'_>,
        sums: &[[I::F32; VECTORS]; ROWS],
        count: usize,
        to: &mut [f32],
    ) {
        let ops = isa.f32();
        assert!(ops.len() == LEN);
        self.place.done += count;
        if self.place.done < tile.depths.len() {
            for (sums, kept) in sums.iter().zip(&mut self.sums) {
                for (&sum, kept) in sums.iter().zip(kept.chunks_exact_mut(LEN)) {
                    // SAFETY: as many floats as the vectors have.
                    unsafe { ops.store_ptr(sum, kept.as_mut_ptr()) };
                }
            }
            return;
        }
        for (sums, row) in sums.iter().zip(self.place.row..self.rows.end) {
            let out = &mut to[row * self.columns..][tile.columns.clone()];
            for (&sum, out) in sums.iter().zip(out.chunks_exact_mut(LEN)) {
                // SAFETY: as many floats as the vectors have.
                unsafe {
                    let sum =
                        if tile.depths.start > 0 { ops.add(sum, ops.load_ptr(out.as_ptr())) } else { sum };
                    ops.store_ptr(sum, out.as_mut_ptr());
                }
            }
        }
        self.advance();
    }
}

struct Finish<'t, 'a, 'o> {
    tiles: &'t mut Interleaved<'a>,
    to: &'o mut [f32],
}

impl SimdOp for Finish<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Finish { tiles, to } = self;
        while let Some(tile) = tiles.whole_tile(to) {
            let (mut sums, lines) = (tiles.sums(isa), tiles.lines(&tile));
            let (rows, panel) = (lines.map(<[f32]>::as_ptr), tile.panel[tiles.place.done * WIDTH..].as_ptr());
            let count = tile.depths.len() - tiles.place.done;
            let mut none = [isa.f32().zero(); VECTORS];
            // SAFETY: lines and panel have as many steps as are left.
            unsafe { multiply::<I, 0>(isa, count, (&mut sums, rows, panel), (&mut none, panel, panel)) };
            tiles.keep(isa, &tile, &sums, count, to);
        }
    }
}

struct Both<'t, 'a, 'o> {
    tiles: &'t mut Interleaved<'a>,
    row: RowProduct<'o>,
    to: &'o mut [f32],
}

impl SimdOp for Both<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Both { tiles, row: RowProduct { out, row, b, backwards }, to } = self;
        let ops = isa.f32();
        let (columns, depth) = (out.len(), row.len());
        // Narrow panels are the last ones.
        let whole = (0..columns / WIDTH).take_while(|&i| panel(i, columns, LEN).1 == WIDTH).count();
        let plain = |columns: Range<usize>, out: &mut [f32]| {
            let extent = Extent { rows: 1, columns: columns.len(), depth };
            let (stride, b) = (columns.len().max(1), &b[columns.start * depth..]);
            let rows = Rows { out: &mut out[columns], stride };
            panel_product::product_to(
                rows,
                extent,
                Matrix::new(row, depth),
                b,
                false,
                Order::again(backwards),
            );
        };
        if backwards {
            plain(whole * WIDTH..columns, out);
        }
        let mut left = tiles.rate * (columns / WIDTH);
        // Panels that are complete, and of the next one the steps that are summed.
        let (mut complete, mut done, mut single) = (0, 0, [ops.zero(); VECTORS]);
        let start = |complete: usize| (if backwards { whole - 1 - complete } else { complete }) * WIDTH;
        while left > 0 && complete < whole {
            let Some(tile) = tiles.whole_tile(to) else { break };
            let (mut sums, lines) = (tiles.sums(isa), tiles.lines(&tile));
            let (lines, tile_panel) = (lines.map(<[f32]>::as_ptr), &tile.panel[tiles.place.done * WIDTH..]);
            let steps = left.min(tile.depths.len() - tiles.place.done);
            assert!(tile_panel.len() >= steps * WIDTH);
            let mut at = 0;
            while at < steps && complete < whole {
                let start = start(complete);
                let packed = &b[start * depth..][..WIDTH * depth];
                let count = (steps - at).min((depth - done) / STEPS);
                let rows = lines.map(|line| line.wrapping_add(at));
                let (tile_panel, row_at) = (tile_panel[at * WIDTH..].as_ptr(), row[done..].as_ptr());
                let row_panel = packed[done * WIDTH..].as_ptr();
                // SAFETY: the tile has `count` more steps, and the row `STEPS` times as many.
                unsafe {
                    let of = (&mut sums, rows, tile_panel);
                    multiply::<I, STEPS>(isa, count, of, (&mut single, row_at, row_panel));
                }
                at += count;
                done += count * STEPS;
                if done + STEPS > depth {
                    rest(isa, &mut single, &row[done..], &packed[done * WIDTH..], &mut out[start..][..WIDTH]);
                    (complete, done, single) = (complete + 1, 0, [ops.zero(); VECTORS]);
                }
            }
            left -= at;
            tiles.keep(isa, &tile, &sums, at, to);
        }
        if done > 0 {
            let start = start(complete);
            let packed = &b[start * depth..][done * WIDTH..WIDTH * depth];
            rest(isa, &mut single, &row[done..], packed, &mut out[start..][..WIDTH]);
            complete += 1;
        }
        plain(if backwards { 0..(whole - complete) * WIDTH } else { complete * WIDTH..columns }, out);
    }
}

#[cfg(test)]
mod tests;
