//! The product of a block in `f32` with a right operand packed in panels of columns, in registers.
//!
//! A tile is up to 8 rows (4 with 16 registers) times 3 vectors of columns. The left operand is read where it
//! lies, one element for a whole vector; a panel is read from its begin to its end. While the rows go by, the next
//! panel is fetched: the first rows would else wait for memory.

mod row;

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::panels::{VECTORS, panel, scratch_len};
use crate::gemm::shape::{Extent, Matrix};
use crate::isa::Dispatch;
use crate::loops::store::store_first;
use row::Row;

/// Bytes of a line of a cache.
const LINE: usize = 64;
/// How far ahead a single row fetches its panel, in elements.
const AHEAD: usize = 1024;

/// How the panels are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// From wherever they lie, maybe from memory: one after the other, as processors fetch a single stream ahead best.
    Once,
    /// From a cache, since they are read again and again.
    Forwards,
    /// The same, the last panel first.
    Backwards,
}

impl Order {
    /// Of what is read again and again.
    pub(crate) fn again(backwards: bool) -> Self {
        if backwards { Order::Backwards } else { Order::Forwards }
    }
}

/// Writes the product to `out` (row-major without gaps), or adds it.
pub(crate) fn product(
    out: &mut [f32],
    extent: Extent,
    a: Matrix<'_, f32>,
    b: &[f32],
    add: bool,
    order: Order,
) {
    let rows = Rows { out, stride: extent.columns };
    product_to(rows, extent, a, b, add, order);
}

/// Where rows of a product are written: so many elements from one another.
pub(super) struct Rows<'a> {
    pub(super) out: &'a mut [f32],
    pub(super) stride: usize,
}

/// As `product`, to rows that may have more columns before and behind those of the product.
pub(super) fn product_to(
    Rows { out, stride }: Rows<'_>,
    extent: Extent,
    a: Matrix<'_, f32>,
    b: &[f32],
    add: bool,
    order: Order,
) {
    let Extent { rows, columns, depth } = extent;
    assert!(b.len() >= scratch_len(depth, columns) && stride >= columns, "operands have their extent");
    if rows == 0 || columns == 0 {
        return;
    }
    let end = (rows - 1) * stride + columns;
    assert!(out.len() >= end, "there is room for all rows");
    if depth == 0 {
        if !add {
            out[..end].chunks_mut(stride).for_each(|row| row[..columns].fill(0.0));
        }
        return;
    }
    let last = (rows - 1) * a.row_stride + (depth - 1) * a.column_stride;
    assert!(last < a.data.len(), "the left operand has {rows} × {depth} elements");
    let blocks = Blocks { out, stride, extent, a, b, add, order };
    if rows == 1 && order != Order::Once { Row(blocks).widest() } else { blocks.widest() }
}

struct Blocks<'a> {
    out: &'a mut [f32],
    /// Elements from a row of it to the next.
    stride: usize,
    extent: Extent,
    /// The last element of the extent lies inside.
    a: Matrix<'a, f32>,
    b: &'a [f32],
    add: bool,
    order: Order,
}

impl SimdOp for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        // Vectors of 8 are those of AVX2, which has 16 registers.
        if isa.f32().len() == 8 { self.run::<I, 4>(isa) } else { self.run::<I, 8>(isa) }
    }
}

impl Blocks<'_> {
    #[inline(always)]
    fn run<I: Isa, const R: usize>(mut self, isa: I) {
        let (len, Extent { rows: all, columns, depth }) = (isa.f32().len(), self.extent);
        let count = columns.div_ceil(VECTORS * len);
        let backwards = self.order == Order::Backwards;
        for i in 0..count {
            let (start, width) = panel(if backwards { count - 1 - i } else { i }, columns, len);
            let panel = &self.b[start * depth..][..width * depth];
            // Narrow panels have more rows where the wide ones have few: sums wait for those of the step before.
            let most = match width / len {
                1 if R < 8 => 8,
                2 if R < 6 => 6,
                _ => R,
            };
            let tiles = all.div_ceil(most);
            // The part of the next panel that a tile fetches, a step at a time.
            let step = (width * size_of::<f32>()).div_ceil(tiles);
            let done = self.whole_tiles(len, panel, start, step);
            for row in (done..all).step_by(most) {
                let rows = row..(row + most).min(all);
                let fetch = panel.as_ptr_range().end.wrapping_byte_add(row / most * depth * step);
                let tile = Tile { panel, start, rows, fetch, step };
                match (tile.rows.len(), width / len) {
                    (1, 1) => self.tile::<I, 1, 1>(isa, tile),
                    (1, 2) => self.tile::<I, 1, 2>(isa, tile),
                    (1, _) => self.tile::<I, 1, 3>(isa, tile),
                    (2..=4, 1) => self.tile::<I, 4, 1>(isa, tile),
                    (2..=4, 2) => self.tile::<I, 4, 2>(isa, tile),
                    (2..=4, _) => self.tile::<I, 4, 3>(isa, tile),
                    (_, 1) => self.tile::<I, 8, 1>(isa, tile),
                    (5 | 6, 2) if R < 8 => self.tile::<I, 6, 2>(isa, tile),
                    (_, 2) => self.tile::<I, 8, 2>(isa, tile),
                    _ => self.tile::<I, R, 3>(isa, tile),
                }
            }
        }
    }

    /// Computes all whole tiles of a panel with AVX2, where it has all columns, and tells how many rows these are.
    #[cfg(target_arch = "x86_64")]
    fn whole_tiles(&mut self, len: usize, panel: &[f32], start: usize, step: usize) -> usize {
        let Extent { rows: all, columns, depth } = self.extent;
        let (tiles, stride) = (all / avx2::ROWS, self.a.row_stride);
        let rows = tiles * avx2::ROWS;
        let lies = self.a.column_stride == 1 && start + avx2::WIDTH <= columns;
        if len != avx2::LEN
            || !lies
            || panel.len() != avx2::WIDTH * depth
            || tiles == 0
            || step * avx2::STEPS > LINE
        {
            return 0;
        }
        assert!((rows - 1) * stride + depth <= self.a.data.len(), "rows lie inside");
        let to = &mut self.out[start..(rows - 1) * self.stride + start + avx2::WIDTH];
        let (rows_of_a, fetch) = (self.a.data.as_ptr(), panel.as_ptr_range().end);
        let operands = avx2::Operands { panel: panel.as_ptr(), rows: rows_of_a, stride, depth, fetch, step };
        // SAFETY: vectors of 8 are those of AVX2 with FMA; the panel has `depth` rows, of each row `depth` elements lie
        // inside, and as many columns as are written lie in the rows.
        unsafe { avx2::product(operands, tiles, to.as_mut_ptr(), self.stride, self.add) };
        rows
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn whole_tiles(&mut self, _len: usize, _panel: &[f32], _start: usize, _step: usize) -> usize {
        0
    }

    #[inline(always)]
    fn tile<I: Isa, const R: usize, const V: usize>(&mut self, isa: I, tile: Tile<'_>) {
        let ops = isa.f32();
        let len = ops.len();
        let Extent { rows: all, columns, depth } = self.extent;
        let Tile { panel, start, rows, mut fetch, step } = tile;
        assert!(panel.len() >= V * len * depth && rows.end <= all && rows.len() <= R);
        let mut sums = [[ops.zero(); V]; R];
        // Rows that are missing are computed like the last one.
        let row: [*const f32; R] = std::array::from_fn(|r| {
            self.a.data[(rows.start + r).min(rows.end - 1) * self.a.row_stride..].as_ptr()
        });
        let mut at = panel.as_ptr();
        let mut offset = 0;
        let ahead = R == 1 && all == 1 && crate::isa::prefetches_single_row();
        for _ in 0..depth {
            if R == 1 {
                if ahead {
                    for line in (0..V * len).step_by(LINE / size_of::<f32>()) {
                        ops.prefetch(at.wrapping_add(AHEAD + line));
                    }
                }
            } else {
                ops.prefetch(fetch);
                fetch = fetch.wrapping_byte_add(step);
            }
            // SAFETY: a panel has `depth` times `V` vectors, and of each row `depth` elements lie inside the
            // operand (asserted by `product`).
            unsafe {
                let b: [I::F32; V] = std::array::from_fn(|v| ops.load_ptr(at.add(v * len)));
                for (sums, row) in sums.iter_mut().zip(row) {
                    let a = ops.splat(*row.add(offset));
                    for (sum, b) in sums.iter_mut().zip(b) {
                        *sum = ops.mul_add(a, b, *sum);
                    }
                }
                at = at.add(V * len);
            }
            offset += self.a.column_stride;
        }
        let last = (columns - start - (V - 1) * len).min(len);
        let mask = ops.first_n_mask(last);
        for (sums, row) in sums.into_iter().zip(rows) {
            let out = &mut self.out[row * self.stride + start..][..(V * len).min(columns - start)];
            for (v, sum) in sums.into_iter().enumerate() {
                let to = out[v * len..].as_mut_ptr();
                // SAFETY: all vectors but the last are whole, and of that the mask has as many elements as the
                // slice.
                unsafe {
                    if v < V - 1 {
                        let sum = if self.add { ops.add(sum, ops.load_ptr(to)) } else { sum };
                        ops.store_ptr(sum, to);
                    } else {
                        let sum = if self.add { ops.add(sum, ops.load_ptr_mask(to, mask)) } else { sum };
                        store_first(isa, sum, to, last, mask);
                    }
                }
            }
        }
    }
}

/// Some rows of a panel's columns.
struct Tile<'a> {
    panel: &'a [f32],
    /// The panel's first column.
    start: usize,
    rows: Range<usize>,
    /// What to fetch at the first depth, and how many bytes farther at the next one.
    fetch: *const f32,
    step: usize,
}

#[cfg(test)]
mod tests {
    use super::super::panels::Pack;
    use super::*;

    /// Packs for and multiplies with one instruction set.
    fn check<I: Isa>(isa: I) {
        let number = |i: usize, seed: usize| ((i * 7 + seed * 13 + i / 11) % 9) as f32 - 4.0;
        for (rows, columns, depth) in [
            (1, 1, 1),
            (1, 100, 30),
            (1, 112, 11),
            (1, 160, 7),
            (1, 28, 5),
            (1, 56, 6),
            (1, 210, 5),
            (1, 288, 3),
            (3, 33, 9),
            (5, 47, 16),
            (8, 48, 17),
            (11, 40, 9),
            (13, 50, 7),
            (21, 130, 40),
            (100, 50, 23),
        ] {
            let extent = Extent { rows, columns, depth };
            let a: Vec<f32> = (0..rows * depth).map(|i| number(i, 1)).collect();
            let b: Vec<f32> = (0..columns * depth).map(|i| number(i, 2)).collect();
            let by_columns: Vec<f32> =
                (0..columns * depth).map(|i| b[i % depth * columns + i / depth]).collect();
            let want = |row: usize, column: usize| -> f32 {
                (0..depth).map(|k| a[row * depth + k] * b[k * columns + column]).sum()
            };
            for (b, order) in [
                (Matrix::new(&b, columns), Order::Once),
                (Matrix::new(&b, columns), Order::Forwards),
                (Matrix::transposed(&by_columns, depth), Order::Backwards),
            ] {
                let len = isa.f32().len();
                let mut scratch = vec![9.0; columns.next_multiple_of(len) * depth];
                Pack { b, depth, columns, scratch: &mut scratch }.eval(isa);
                let mut out = vec![1.0; rows * columns];
                for (add, before) in [(true, 1.0), (false, 0.0)] {
                    let a = Matrix::new(&a, depth);
                    let stride = columns;
                    let blocks = Blocks { out: &mut out, stride, extent, a, b: &scratch, add, order };
                    if rows == 1 && order != Order::Once {
                        Row(blocks).eval(isa)
                    } else {
                        blocks.eval(isa)
                    }
                    for (i, &x) in out.iter().enumerate() {
                        let want = want(i / columns, i % columns) + before;
                        assert_eq!(x, want, "{rows} × {columns} × {depth}, element {i}, add {add}");
                    }
                }
            }
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }
}
