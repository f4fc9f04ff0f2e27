//! Products of bfloat16 numbers, summed in `f32`, with the processor's dot products of pairs (see `isa`):
//! twice the multiplications of an instruction on `f32`, and half the memory.
//!
//! A left operand in memory is read as it is, row by row (`multiply`). Blocks of other operands that are not packed
//! come as `f32`; they hold bfloat16 numbers, so that rounding them changes nothing (`product`).

use std::ops::Range;

use super::amx::{self, Tiles};
use super::isa::{Bf16Pair, COLUMNS, DotGroup, STRIP};
use super::micro_kernel::{Fetch, RowsByPanel, Sums};
use crate::gemm::compute::{BlockA, BlockB, Compute};
use crate::gemm::epilogue::Epilogue;
use crate::gemm::operand::{Left, Product, Right};
use crate::gemm::pack::PackedB as PackedBlocks;
use crate::gemm::shape::{Extent, Matrix};
use crate::gemm::tile::split;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Piece;
use crate::loops::scratch::with_scratch;
use crate::tensor::bf16;
use crate::threads::Pool;

/// The depth that a packed row has room for.
const DEPTH: usize = <f32 as Compute>::DEPTH;
/// Pairs of elements in a packed row; always that many, so that the rows of a tile are at fixed distances.
const ROW: usize = DEPTH / 2;

/// A left operand: rows of pairs.
pub(crate) struct PackedA(Weights<u32>);

/// A right operand: panels of `COLUMNS` columns, in which the pairs of one depth follow one another.
pub(crate) struct PackedB(Weights<u32>);

pub(crate) fn pack_a(a: Matrix<'_, f32>, rows: usize, depth: usize, to: Piece<'_>) -> PackedA {
    PackedA(to.filled(rows * ROW, |packed| fill_a(a, rows, depth, packed)))
}

pub(crate) fn pack_b(b: Matrix<'_, f32>, depth: usize, columns: usize, to: Piece<'_>) -> PackedB {
    let len = columns.div_ceil(COLUMNS) * depth.div_ceil(2) * COLUMNS;
    PackedB(to.filled(len, |scratch| fill_b(b, depth, columns, scratch)))
}

/// Writes the product of one block to `out` (row-major without gaps), or adds it. Asks for `Bf16Pair::available()`.
pub(crate) fn product(out: &mut [f32], extent: Extent, a: BlockA<'_, f32>, b: BlockB<'_, f32>, add: bool) {
    assert!(Bf16Pair::available(), "a product of bfloat16 numbers on a processor without them");
    let Extent { rows, columns, depth } = extent;
    let (pairs, panels) = (depth.div_ceil(2), columns.div_ceil(COLUMNS));
    let mut tiles = Tiles::new();
    let strip_rows = strip_rows(tiles.serve(rows)).min(rows);
    let scratch = |plain: bool, len: usize| if plain { len } else { 0 };
    let lengths = [
        scratch(matches!(a, BlockA::Plain(_)), strip_rows * ROW),
        scratch(matches!(b, BlockB::Plain(_)), panels * pairs * COLUMNS),
    ];
    with_scratch(lengths, |[a_block, b_block]: [&mut [u32]; 2]| {
        let b: &[u32] = match b {
            BlockB::Packed(b) => &b.halves().0,
            BlockB::Plain(b) => {
                fill_b(b, depth, columns, b_block);
                b_block
            }
        };
        for start in (0..rows).step_by(strip_rows.max(1)) {
            let count = strip_rows.min(rows - start);
            let strip: &[u32] = match &a {
                BlockA::Packed(a) => &a.halves().0[start * ROW..][..count * ROW],
                BlockA::Plain(a) => {
                    fill_a(a.at(start, 0), count, depth, a_block);
                    &a_block[..count * ROW]
                }
            };
            let out = &mut out[start * columns..][..count * columns];
            for (panel, b) in b.chunks_exact((pairs * COLUMNS).max(1)).take(panels).enumerate() {
                let place = (count, columns, panel * COLUMNS);
                panel_product(&mut tiles, out, place, (strip, ROW), b, &[], add);
            }
        }
    });
}

/// Computes a product whose left operand lies in memory as bfloat16 numbers and whose right one is packed as such;
/// tells whether it is one.
pub(crate) fn multiply(pool: &Pool, product: &Product<'_, f32>, epilogue: &dyn Epilogue<f32>) -> bool {
    let (Left::Source(source), Right::Packed(b, b_offsets)) = (product.a, product.b) else { return false };
    let Some((a, a_offsets)) = source.halves().filter(|_| b.is_of_halves()) else { return false };
    split(pool, product, |batch, rows, columns| {
        let start = a_offsets.at(batch);
        let a = Matrix { data: &a.data[start.min(a.data.len())..], ..a };
        tile(a, (b, b_offsets.at(batch)), product.k, batch, rows, columns, epilogue);
    });
    true
}

/// A tile of the result: panel by panel, all rows with one.
fn tile(
    a: Matrix<'_, bf16>,
    (b, matrix): (&PackedBlocks<f32>, usize),
    k: usize,
    batch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    epilogue: &dyn Epilogue<f32>,
) {
    let (count, width) = (rows.len(), columns.len());
    let in_place = pairs_in_place(a, rows.start, k);
    let stride = if in_place.is_some() { a.row_stride / 2 } else { k.div_ceil(2) };
    let copied = if in_place.is_some() { 0 } else { count * stride };
    with_scratch([copied, count * width], |[copy, sums]: [&mut [u32]; 2]| {
        let left = in_place.unwrap_or_else(|| {
            copy_pairs(a, rows.clone(), k, copy);
            copy
        });
        let sums: &mut [f32] = bytemuck::cast_slice_mut(sums);
        if k == 0 {
            sums.fill(0.0);
        }
        // The panels of a block of depth, each of so many dot groups.
        let panels = |start: usize| {
            let size = DEPTH.min(k - start).div_ceil(2) * COLUMNS;
            let all = &*b.block(matrix, columns.start / b.columns, start / DEPTH).halves().0;
            let first = columns.start % b.columns / COLUMNS;
            (&all[first * size..(first + width.div_ceil(COLUMNS)) * size], size)
        };
        let mut tiles = Tiles::new();
        for part in parts(count, tiles.serve(count)) {
            let (left, sums) = (&left[part.start * stride..], &mut sums[part.start * width..]);
            for start in (0..k).step_by(DEPTH) {
                let (here, size) = panels(start);
                for (panel, b) in here.chunks_exact(size).enumerate() {
                    let rest = &here[(panel + 1) * size..];
                    let next =
                        if rest.is_empty() && start + DEPTH < k { panels(start + DEPTH).0 } else { rest };
                    let place = (part.len(), width, panel * COLUMNS);
                    let next = &next[..size.min(next.len())];
                    panel_product(&mut tiles, sums, place, (&left[start / 2..], stride), b, next, start > 0);
                }
            }
        }
        drop(tiles);
        for (row, sums) in rows.zip(sums.chunks_exact_mut(width)) {
            epilogue.write(batch, row, columns.start, sums);
        }
    });
}

/// Rows of a strip.
pub(crate) fn strip_rows(by_tiles: bool) -> usize {
    if by_tiles { amx::STRIP } else { STRIP }
}

/// Rows that panels meet at a time: all, but by tiles whole strips before others, so that tiles have other extents once.
fn parts(rows: usize, by_tiles: bool) -> impl Iterator<Item = Range<usize>> {
    let whole = if by_tiles { rows / amx::STRIP * amx::STRIP } else { rows };
    [0..whole, whole..rows].into_iter().filter(|part| !part.is_empty())
}

/// The matrix from a row on as pairs, where no pair crosses the end of a row.
fn pairs_in_place(a: Matrix<'_, bf16>, row: usize, k: usize) -> Option<&[u32]> {
    let whole = k.is_multiple_of(2) && a.row_stride.is_multiple_of(2);
    let data = &bf16_bits(a.data)[(row * a.row_stride).min(a.data.len())..];
    bytemuck::try_cast_slice(&data[..data.len() / 2 * 2]).ok().filter(|_| whole)
}

/// Writes rows of pairs; an odd depth ends with a zero.
fn copy_pairs(a: Matrix<'_, bf16>, rows: Range<usize>, k: usize, copy: &mut [u32]) {
    for (row, dot_groups) in rows.zip(copy.chunks_exact_mut(k.div_ceil(2).max(1))) {
        if let Some(last) = dot_groups.last_mut() {
            *last = 0;
        }
        let line = &a.data[row * a.row_stride..][..k];
        bytemuck::cast_slice_mut::<u32, u16>(dot_groups)[..k].copy_from_slice(bf16_bits(line));
    }
}

fn bf16_bits(line: &[bf16]) -> &[u16] {
    half::slice::HalfFloatSliceExt::reinterpret_cast(line)
}

/// Rounds rows into pairs; an odd depth ends with a zero.
fn fill_a(a: Matrix<'_, f32>, rows: usize, depth: usize, packed: &mut [u32]) {
    for (i, row) in packed.chunks_exact_mut(ROW).enumerate().take(rows) {
        let from = &a.data[i * a.row_stride..];
        if a.column_stride == 1 {
            pairs_of(&from[..depth], row);
        } else {
            let mut line = [0.0; DEPTH];
            line.iter_mut().enumerate().take(depth).for_each(|(k, x)| *x = from[k * a.column_stride]);
            pairs_of(&line[..depth], row);
        }
    }
}

/// Rounds columns into pairs; missing columns and an odd last row are zeros.
fn fill_b(b: Matrix<'_, f32>, depth: usize, columns: usize, packed: &mut [u32]) {
    let pairs = depth.div_ceil(2);
    for (panel, out) in packed.chunks_exact_mut((pairs * COLUMNS).max(1)).enumerate() {
        let first = panel * COLUMNS;
        let width = COLUMNS.min(columns.saturating_sub(first));
        for (p, line) in out.chunks_exact_mut(COLUMNS).enumerate() {
            let at = |k: usize, j: usize| b.data[k * b.row_stride + (first + j) * b.column_stride];
            let mut two = [[0.0f32; COLUMNS]; 2];
            for (k, row) in (2 * p..depth).zip(&mut two) {
                if b.column_stride == 1 {
                    row[..width].copy_from_slice(&b.data[k * b.row_stride + first..][..width]);
                } else {
                    row.iter_mut().take(width).enumerate().for_each(|(j, x)| *x = at(k, j));
                }
            }
            for ((pair, &even), &odd) in line.iter_mut().zip(&two[0]).zip(&two[1]) {
                *pair = pair_of(even, odd);
            }
        }
    }
}

fn pairs_of(line: &[f32], pairs: &mut [u32]) {
    let (twos, rest) = line.as_chunks::<2>();
    for (pair, &[even, odd]) in pairs.iter_mut().zip(twos) {
        *pair = pair_of(even, odd);
    }
    if let [last] = *rest {
        pairs[twos.len()] = pair_of(last, 0.0);
    }
}

/// Two numbers that bfloat16 has, the first in the lower half.
#[inline(always)]
fn pair_of(even: f32, odd: f32) -> u32 {
    (even.to_bits() >> 16) | (odd.to_bits() & 0xffff_0000)
}

/// `rows` rows of pairs, `stride` apart, times one panel, to columns from `first` on of rows of `columns`; `next`, if
/// not empty, is fetched into the cache meanwhile. Asks for `Bf16Pair::available()`.
pub(crate) fn panel_product(
    tiles: &mut Tiles,
    out: &mut [f32],
    (rows, columns, first): (usize, usize, usize),
    (a, stride): (&[u32], usize),
    b: &[u32],
    next: &[u32],
    add: bool,
) {
    let strip = strip_rows(tiles.serve(rows));
    let (depth, strips) = (b.len() / COLUMNS, rows.div_ceil(strip));
    // What is there already costs least.
    let next = if next.is_empty() { b } else { next };
    let mut row = 0;
    while row < rows {
        let out = &mut out[row * columns + first..];
        let fetch = Fetch::part(next, row / strip, strips, depth);
        let tile = Tile { out, columns, a: &a[row * stride..], row: stride, b, fetch, add };
        row += match rows - row {
            rest if strip == amx::STRIP => tile.by_tiles(tiles, rest.min(strip)),
            STRIP.. => tile.sum::<STRIP>(),
            8.. => tile.sum::<8>(),
            4.. => tile.sum::<4>(),
            2.. => tile.sum::<2>(),
            _ => tile.sum::<1>(),
        };
    }
}

/// A few rows times one panel.
struct Tile<'a> {
    /// From the first element on; a row is `columns` from the next.
    out: &'a mut [f32],
    columns: usize,
    a: &'a [u32],
    /// Dot groups from a row of `a` to the next.
    row: usize,
    b: &'a [u32],
    fetch: Fetch,
    add: bool,
}

impl Tile<'_> {
    /// Where the sums of so many rows go.
    fn sums(&mut self, rows: usize) -> Sums {
        let Tile { columns, add, .. } = *self;
        // The last row may end before the next would begin.
        let width = COLUMNS.min(columns - (columns - self.out.len() % columns) % columns);
        assert!(self.a.len() >= (rows - 1) * self.row + self.b.len() / COLUMNS);
        assert!(self.out.len() >= (rows - 1) * columns + width);
        Sums { at: self.out.as_mut_ptr().cast(), columns, width, add }
    }

    /// Computes so many rows, which is what it tells.
    fn by_tiles(mut self, tiles: &mut Tiles, rows: usize) -> usize {
        let sums = self.sums(rows);
        let Tile { a, row, b, fetch, .. } = self;
        // SAFETY: those who come here made sure that the processor has tiles; `sums` checked the lengths.
        unsafe { tiles.rows_by_panel::<Bf16Pair>(sums, (a.as_ptr(), row), rows, b, fetch) };
        rows
    }

    /// Computes `R` rows, and tells their number.
    #[inline]
    fn sum<const R: usize>(mut self) -> usize {
        let sums = self.sums(R);
        let Tile { a, row, b, fetch, .. } = self;
        // SAFETY: those who come here made sure that the processor has the instructions; `sums` checked the lengths.
        unsafe { Bf16Pair::run(RowsByPanel::<R> { out: sums, a: a.as_ptr(), row, panel: b, fetch }) };
        R
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::sgemm::block;
    use crate::loops::packing::Packing;
    use crate::tensor::bf16;

    /// Against sums in f64 of the same numbers, which bfloat16 has.
    #[test]
    fn blocks_of_every_size_are_right() {
        if !Bf16Pair::available() {
            println!("skipped: this processor does not multiply bfloat16 numbers");
            return;
        }
        let number = |i: usize, seed: usize| {
            let x = ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0;
            bf16::from_f32(x).to_f32()
        };
        let pool = Pool::new(1);
        let packing = Packing::from(&pool);
        for m in [1, 2, 3, 7, 8, 11, 12, 13, 25] {
            for n in [1, 15, 16, 17, 31, 32, 33, 70] {
                for k in [1, 2, 3, 64, 255, 256] {
                    let a: Vec<f32> = (0..m * k).map(|i| number(i, 1)).collect();
                    let b: Vec<f32> = (0..k * n).map(|i| number(i, 2)).collect();
                    let b_columns: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
                    let a_columns: Vec<f32> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
                    let extent = Extent { rows: m, columns: n, depth: k };
                    let lefts = [Matrix::new(&a, k), Matrix::transposed(&a_columns, m)];
                    let rights = [Matrix::new(&b, n), Matrix::transposed(&b_columns, k)];
                    for (left, right) in lefts.into_iter().zip(rights) {
                        let piece = packing.pieces(1).at(0);
                        let (packed_a, packed_b) = (
                            block::PackedA::Halves(pack_a(left, m, k, piece)),
                            block::PackedB::Halves(pack_b(right, k, n, piece)),
                        );
                        let mut out = vec![f32::NAN; m * n];
                        product(&mut out, extent, BlockA::Plain(left), BlockB::Packed(&packed_b), false);
                        product(&mut out, extent, BlockA::Packed(&packed_a), BlockB::Plain(right), true);
                        for (i, &got) in out.iter().enumerate() {
                            let terms =
                                (0..k).map(|p| f64::from(a[i / n * k + p]) * f64::from(b[p * n + i % n]));
                            let (want, size) = terms.fold((0.0, 0.0), |(s, t), x| (s + 2.0 * x, t + x.abs()));
                            assert!(
                                (f64::from(got) - want).abs() <= 1e-5 * size,
                                "{m} {n} {k} at {i}: {got} {want}"
                            );
                        }
                    }
                }
            }
        }
    }
}
