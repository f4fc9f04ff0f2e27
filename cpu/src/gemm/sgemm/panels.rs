//! The product of a block in `f32` with a right operand packed in panels of columns, in registers.
//!
//! A tile is up to 8 rows (4 with 16 registers) times 3 vectors of columns. The left operand is read where it
//! lies, one element for a whole vector; a panel is read from its begin to its end. While the rows go by, the next
//! panel is fetched: the first rows would else wait for memory.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

#[cfg(target_arch = "x86_64")]
use super::avx2;
use crate::gemm::shape::{Extent, Matrix};
use crate::isa::Dispatch;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Piece;
use crate::loops::parallel::Parts;
use crate::loops::simd::vector_len;
use crate::loops::store::store_first;
use crate::loops::transpose;

/// Vectors of a panel. The last panel may have fewer, and the last two have two each rather than three and one: tiles of one
/// vector wait for what they read.
const VECTORS: usize = 3;
/// Elements of the longest vector.
const LONGEST: usize = 16;
/// Columns that are whole panels with every instruction set.
pub(crate) const COLUMNS: usize = VECTORS * LONGEST;
/// Bytes of a line of a cache.
const LINE: usize = 64;
/// How far ahead a single row fetches its panel, in elements.
const AHEAD: usize = 1024;

/// A packed `depth × columns` matrix.
pub(crate) struct Panels {
    data: Weights<f32>,
    depth: usize,
    columns: usize,
}

impl Panels {
    pub(crate) fn new(b: Matrix<'_, f32>, depth: usize, columns: usize, to: Piece<'_>) -> Self {
        let data = to.filled(scratch_len(depth, columns), |scratch| pack(b, depth, columns, scratch));
        Panels { data, depth, columns }
    }

    /// The panels; asserts that the matrix has this extent.
    pub(crate) fn data(&self, depth: usize, columns: usize) -> &[f32] {
        let own = (self.depth, self.columns);
        assert_eq!(own, (depth, columns), "the extent of a packed matrix in a product");
        &self.data
    }
}

/// Elements of a packed `depth × columns` matrix.
pub(crate) fn scratch_len(depth: usize, columns: usize) -> usize {
    columns.next_multiple_of(vector_len()) * depth
}

/// Writes for each panel of columns its rows one after the other. Missing columns of the last vector are 0.
pub(crate) fn pack(b: Matrix<'_, f32>, depth: usize, columns: usize, scratch: &mut [f32]) {
    if depth > 0 {
        Pack { b, depth, columns, scratch }.widest();
    }
}

/// Writes a packed operand row by row.
pub(crate) fn unpack(b: &[f32], depth: usize, columns: usize, out: &mut [f32]) {
    for (start, width) in panels(columns, vector_len()) {
        let count = width.min(columns - start);
        let rows = b[start * depth..][..width * depth].chunks_exact(width);
        for (row, out) in rows.zip(out.chunks_exact_mut(columns)) {
            out[start..][..count].copy_from_slice(&row[..count]);
        }
    }
}

struct Pack<'a> {
    b: Matrix<'a, f32>,
    depth: usize,
    columns: usize,
    scratch: &'a mut [f32],
}

impl SimdOp for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Pack { b, depth, columns, scratch } = self;
        for (start, width) in panels(columns, isa.f32().len()) {
            let count = width.min(columns - start);
            let panel = &mut scratch[start * depth..][..width * depth];
            if b.column_stride == 1 {
                copy(isa, &b, start, count, width, panel);
            } else if b.row_stride == 1 {
                transposed(&b, start, count, width, panel);
            } else {
                for (k, row) in panel.chunks_exact_mut(width).enumerate() {
                    let from = b.data[k * b.row_stride + start * b.column_stride..].iter();
                    row[..count]
                        .iter_mut()
                        .zip(from.step_by(b.column_stride.max(1)))
                        .for_each(|(y, &x)| *y = x);
                    row[count..].fill(0.0);
                }
            }
        }
    }
}

/// Packs rows that are contiguous. Vector by vector: a call that copies a row took as long as a fifth of its products.
#[inline(always)]
fn copy<I: Isa>(isa: I, b: &Matrix<'_, f32>, start: usize, count: usize, width: usize, panel: &mut [f32]) {
    let ops = isa.f32();
    let last = width - ops.len();
    let mask = ops.first_n_mask(count - last);
    for (k, to) in panel.chunks_exact_mut(width).enumerate() {
        let (from, to) = (b.data[k * b.row_stride + start..][..count].as_ptr(), to.as_mut_ptr());
        // SAFETY: a row has `count` elements, all vectors but the last of them and what the mask has of that; there is room
        // for whole vectors.
        unsafe {
            for at in (0..last).step_by(ops.len()) {
                ops.store_ptr(ops.load_ptr(from.add(at)), to.add(at));
            }
            ops.store_ptr(ops.load_ptr_mask(from.add(last), mask), to.add(last));
        }
    }
}

/// Packs columns that are contiguous.
fn transposed(b: &Matrix<'_, f32>, start: usize, count: usize, width: usize, panel: &mut [f32]) {
    let rows = panel.len() / width;
    let out = Parts::<[u8; 4]>::new(bytemuck::cast_slice_mut(panel));
    let (input, stride) = (bytemuck::cast_slice(&b.data[start * b.column_stride..]), b.column_stride);
    let block =
        transpose::Block { input, stride, output: &out, at: 0, row_size: width, rows, columns: count };
    // SAFETY: nobody else has this memory.
    unsafe { block.transpose() };
    if count < width {
        panel.chunks_exact_mut(width).for_each(|row| row[count..].fill(0.0));
    }
}

/// The columns of each panel; of the last some may not be there.
pub(crate) fn columns(columns: usize) -> impl Iterator<Item = Range<usize>> {
    panels(columns, vector_len()).map(|(start, width)| start..start + width)
}

/// Where panels begin, and how many columns they have room for.
#[inline(always)]
fn panels(columns: usize, len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns.div_ceil(VECTORS * len)).map(move |i| panel(i, columns, len))
}

#[inline(always)]
fn panel(i: usize, columns: usize, len: usize) -> (usize, usize) {
    let vectors = columns.div_ceil(len);
    // One vector less before all panels from here on.
    let narrow = |i: usize| vectors > 1 && vectors % VECTORS == 1 && i == vectors / VECTORS;
    let start = i * VECTORS - usize::from(narrow(i));
    let end = vectors.min((i + 1) * VECTORS - usize::from(narrow(i + 1)));
    (start * len, (end - start) * len)
}

/// Writes the product to `out` (row-major without gaps), or adds it. `backwards`: the last panel comes first.
pub(crate) fn product(
    out: &mut [f32],
    extent: Extent,
    a: Matrix<'_, f32>,
    b: &[f32],
    add: bool,
    backwards: bool,
) {
    let Extent { rows, columns, depth } = extent;
    assert!(
        b.len() >= scratch_len(depth, columns) && out.len() >= rows * columns,
        "operands have their extent"
    );
    if rows == 0 || columns == 0 {
        return;
    }
    if depth == 0 {
        if !add {
            out[..rows * columns].fill(0.0);
        }
        return;
    }
    let last = (rows - 1) * a.row_stride + (depth - 1) * a.column_stride;
    assert!(last < a.data.len(), "the left operand has {rows} × {depth} elements");
    Blocks { out, extent, a, b, add, backwards }.widest();
}

struct Blocks<'a> {
    out: &'a mut [f32],
    extent: Extent,
    /// The last element of the extent lies inside.
    a: Matrix<'a, f32>,
    b: &'a [f32],
    add: bool,
    backwards: bool,
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
        for i in 0..count {
            let (start, width) = panel(if self.backwards { count - 1 - i } else { i }, columns, len);
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
        let to = &mut self.out[start..rows * columns];
        let (rows_of_a, fetch) = (self.a.data.as_ptr(), panel.as_ptr_range().end);
        let operands = avx2::Operands { panel: panel.as_ptr(), rows: rows_of_a, stride, depth, fetch, step };
        // SAFETY: vectors of 8 are those of AVX2 with FMA; the panel has `depth` rows, of each row `depth` elements lie
        // inside, and as many columns as are written lie in the rows.
        unsafe { avx2::product(operands, tiles, to.as_mut_ptr(), columns, self.add) };
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
        for _ in 0..depth {
            if R == 1 {
                for line in (0..V * len).step_by(LINE / size_of::<f32>()) {
                    ops.prefetch(at.wrapping_add(AHEAD + line));
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
            let out = &mut self.out[row * columns + start..][..(V * len).min(columns - start)];
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
    use super::*;

    /// Packs for and multiplies with one instruction set.
    fn check<I: Isa>(isa: I) {
        let number = |i: usize, seed: usize| ((i * 7 + seed * 13 + i / 11) % 9) as f32 - 4.0;
        for (rows, columns, depth) in [
            (1, 1, 1),
            (1, 100, 30),
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
            for (b, backwards) in
                [(Matrix::new(&b, columns), false), (Matrix::transposed(&by_columns, depth), true)]
            {
                let len = isa.f32().len();
                let mut scratch = vec![9.0; columns.next_multiple_of(len) * depth];
                Pack { b, depth, columns, scratch: &mut scratch }.eval(isa);
                let mut out = vec![1.0; rows * columns];
                for (add, before) in [(true, 1.0), (false, 0.0)] {
                    let a = Matrix::new(&a, depth);
                    Blocks { out: &mut out, extent, a, b: &scratch, add, backwards }.eval(isa);
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
