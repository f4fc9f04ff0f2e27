//! Products of 8-bit integers with the processor's dot products of four bytes, a strip of rows against panels of columns.
//! A constant right operand is packed once. A processor with AVX2 but without such products multiplies
//! pairs (`pairs`) instead.
//!
//! The instruction takes unsigned bytes `a` on the left and signed bytes `b` on the right, as they lie in memory; zero
//! points come off the sums afterwards. Over the depth `k` of a row with zero point `z` and a column with `w`:
//!
//! ```text
//! Σ (a − z)·(b − w)  =  Σ a·b  −  z · Σ b  −  w · (Σ a − k·z)
//! ```
//!
//! `Σ b` of a column is found when it is packed, `Σ a` of a row when it is read, and only where a `w` is not 0. Bytes of
//! the other signedness have their sign bit flipped, which moves them and their zero point by 128: differences stay.

use std::ops::Range;

use super::amx::{self, Tiles};
use super::isa::{COLUMNS, DotGroup, Int8x4, STRIP};
use super::micro_kernel::{Fetch, RowsByPanel, Sums};
use super::pack_bytes::pack;
use super::pairs::{self, PanelRests, Panels};
use crate::gemm::epilogue::Epilogue;
use crate::gemm::operand::ByteMatrix;
use crate::gemm::shape::GemmShape;
use crate::isa::prefetches_single_row;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{Parts, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::threads::Pool;

/// Sums of this many products of two differences of bytes fit into 32 bits.
pub(crate) const LONGEST: usize = 1 << 15;
/// Bytes of a right operand that stay in a processor's own cache while strips go by.
const CACHED: usize = 384 * 1024;
/// Columns of a tile of products of pairs at most.
const PAIR_COLUMNS: usize = 512;
/// Rows that a panel meets one after the other there.
const PAIR_ROWS: usize = 128;
/// Dot groups of such rows at most: they lie in a processor's second cache.
const PAIR_GROUPS: usize = 1 << 17;
/// Multiplications worth handing to another thread: about 10 µs of work.
const GRAIN: usize = 1 << 21;

/// A constant right operand: signed bytes, in panels of `COLUMNS` columns in which the dot groups of one depth follow one
/// another, and the sums of the columns.
pub(crate) struct PackedBytes {
    dot_groups: Weights<u32>,
    sums: Weights<i32>,
    /// For products of pairs: where they may not fit into 16 bits.
    rests: Option<PanelRests>,
    k: usize,
    n: usize,
}

/// Whether products of this depth can be computed here: the processor has what they ask for, and sums fit.
pub(crate) fn byte_products(k: usize) -> bool {
    k <= LONGEST && (Int8x4::available() || pairs::available())
}

/// Rows that a panel meets one after the other: by tiles two strips, while it is in the first cache.
fn strip_rows(depth: usize) -> usize {
    match Int8x4::available() {
        true if Tiles::available() => 2 * amx::STRIP,
        true => STRIP,
        false => (PAIR_GROUPS / depth.max(1) / pairs::WIDTH * pairs::WIDTH).clamp(pairs::WIDTH, PAIR_ROWS),
    }
}

/// Dot groups of a depth: by tiles whole steps, so that tiles have other extents less often; for products of pairs an even number.
/// What is missing is 0.
fn padded_depth(k: usize) -> usize {
    let count = k.div_ceil(4);
    match Int8x4::available() {
        true if Tiles::available() && count > amx::SIDE => count.next_multiple_of(amx::SIDE),
        true => count,
        false => count.next_multiple_of(2),
    }
}

impl PackedBytes {
    /// Packs the first `count` matrices of a batch, `k × n` each, on the threads of the pool. `None` where products
    /// are not computed in this way.
    pub(crate) fn new(
        matrix: &dyn ByteMatrix,
        count: usize,
        k: usize,
        n: usize,
        packing: Packing<'_>,
    ) -> Option<Self> {
        if !byte_products(k) {
            return None;
        }
        let (panels, size) = (n.div_ceil(COLUMNS), padded_depth(k) * COLUMNS);
        let by_pairs = !Int8x4::available();
        let (mut sums, mut rests) = (vec![0; count * panels * COLUMNS], vec![None; count * panels]);
        let (all, all_rests) = (Parts::new(&mut sums), Parts::new(&mut rests));
        let dot_groups = packing.filled(count * panels * size, |dot_groups| {
            split_mut(packing.pool, dot_groups, size, (1 << 16) / size.max(1) + 1, |range, out| {
                for (i, out) in range.zip(out.chunks_exact_mut(size)) {
                    let first = i % panels * COLUMNS;
                    // SAFETY: each panel is packed once.
                    let sums = unsafe { all.get(i * COLUMNS..(i + 1) * COLUMNS) };
                    pack(matrix, i / panels, k, first..(first + COLUMNS).min(n), out, sums);
                    if by_pairs {
                        // SAFETY: as above.
                        unsafe { all_rests.get(i..i + 1).fill(pairs::find(out, COLUMNS, pairs::FEW_RESTS)) };
                    }
                }
            });
        });
        let sums = packing.filled(sums.len(), |kept| kept.copy_from_slice(&sums));
        let rests = by_pairs.then(|| PanelRests::new(&rests, [size / COLUMNS, COLUMNS], packing));
        Some(PackedBytes { dot_groups, sums, rests, k, n })
    }

    /// The panels and sums of some columns of a matrix, from the start of a panel on.
    fn columns(&self, matrix: usize, columns: Range<usize>) -> (Panels<'_>, &[i32]) {
        let (panels, size) = (self.n.div_ceil(COLUMNS), padded_depth(self.k) * COLUMNS);
        let first = matrix * panels + columns.start / COLUMNS;
        let count = columns.len().div_ceil(COLUMNS);
        let dot_groups = &self.dot_groups[first * size..][..count * size];
        let rests = self.rests.as_ref().map(|rests| (rests, first));
        (Panels { dot_groups, rests }, &self.sums[first * COLUMNS..][..columns.len()])
    }
}

/// The right operand of a product.
pub(crate) struct Int8Right<'a> {
    /// Its bytes where they are not packed, and its zero points.
    pub(crate) matrix: &'a dyn ByteMatrix,
    /// With the index of each of the batch's matrices.
    pub(crate) packed: Option<(&'a PackedBytes, &'a [usize])>,
    /// What is added to the sums of each column; empty: nothing.
    pub(crate) bias: &'a [i32],
}

/// Computes the batch of products `a · b`, `m × n` each, on the threads of the pool. Asks for
/// `byte_products(k)`.
pub(crate) fn multiply_dots(
    pool: &Pool,
    shape: GemmShape,
    a: &dyn ByteMatrix,
    b: &Int8Right<'_>,
    epilogue: &dyn Epilogue<i32>,
) {
    let GemmShape { m, n, k, .. } = shape;
    assert!(byte_products(k), "a product of {m} × {k} × {n} bytes");
    if shape.is_empty() {
        return;
    }
    let (rows, columns) = tile_size(shape, pool.threads(), b.packed.is_some());
    let work = rows * columns * k.max(1);
    pool.split(shape.tiles(rows, columns), GRAIN.div_ceil(work), |range| {
        for tile in range.take_while(|_| !pool.cancelled()) {
            let (batch, rows, columns) = shape.tile((rows, columns), tile);
            Tile { batch, rows, columns, k }.compute(a, b, epilogue);
        }
    });
}

/// Rows and columns of a tile: large, but enough tiles for all threads.
fn tile_size(shape: GemmShape, threads: usize, is_packed: bool) -> (usize, usize) {
    let GemmShape { m, n, k, .. } = shape;
    let wanted = (shape.work() / GRAIN).clamp(1, threads * 2);
    let cached = (CACHED / k.max(1)).next_multiple_of(COLUMNS);
    let widest = match (Int8x4::available(), is_packed) {
        (true, _) => cached,
        // So many rows meet a panel that it may come from the last cache.
        (false, true) => PAIR_COLUMNS,
        // Each thread packs the columns of its tile.
        (false, false) => cached.min(PAIR_COLUMNS),
    };
    let mut columns = n.div_ceil(n.div_ceil(widest)).next_multiple_of(COLUMNS);
    let unit = match Int8x4::available() {
        true if Tiles::available() => amx::STRIP,
        true => STRIP,
        false => pairs::WIDTH,
    };
    let mut rows = m.next_multiple_of(unit);
    while shape.tiles(rows, columns) < wanted {
        if rows > 4 * unit && rows >= columns {
            rows = (rows / 2).next_multiple_of(unit);
        } else if columns > COLUMNS {
            columns = (columns / 2).next_multiple_of(COLUMNS);
        } else if rows > unit {
            rows = (rows / 2).next_multiple_of(unit);
        } else {
            break;
        }
    }
    (rows, columns)
}

/// A part of the product for one thread.
struct Tile {
    batch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    k: usize,
}

impl Tile {
    fn compute(&self, a: &dyn ByteMatrix, b: &Int8Right<'_>, epilogue: &dyn Epilogue<i32>) {
        let (depth, width) = (padded_depth(self.k), self.columns.len().next_multiple_of(COLUMNS));
        let strip_rows = strip_rows(depth).min(self.rows.len()).max(STRIP);
        let stride = width + if Int8x4::available() { 0 } else { pairs::WIDTH };
        let lengths = [
            strip_rows * depth,
            if Int8x4::available() { 0 } else { pairs::scratch_len(strip_rows, depth) },
            strip_rows * stride,
            width,
            width,
            if b.packed.is_some() { 0 } else { depth * width },
            if b.packed.is_some() { 0 } else { width },
        ];
        with_scratch(
            lengths,
            |[strip, scratch, sums, zeros, start, dot_groups, column_sums]: [&mut [u32]; 7]| {
                let (panels, column_sums): (Panels<'_>, &[i32]) = match b.packed {
                    Some((packed, index)) => packed.columns(index[self.batch], self.columns.clone()),
                    None => {
                        self.pack(b.matrix, dot_groups, bytemuck::cast_slice_mut(column_sums));
                        (Panels { dot_groups, rests: None }, bytemuck::cast_slice(column_sums))
                    }
                };
                let zeros: &mut [i32] = bytemuck::cast_slice_mut(zeros);
                let zeros = &mut zeros[..self.columns.len()];
                let zero = |j: usize| i32::from(b.matrix.zero(self.batch, j, true) as i8);
                match b.matrix.shares_zero() {
                    true => zeros.fill(zero(self.columns.start)),
                    false => zeros.iter_mut().zip(self.columns.clone()).for_each(|(y, j)| *y = zero(j)),
                }
                let shifted = zeros.iter().any(|&zero| zero != 0);
                // What all rows share is what their sums begin with.
                let begins = !Int8x4::available() && a.shares_zero() && !shifted;
                let start: &mut [i32] = bytemuck::cast_slice_mut(start);
                start.fill(0);
                if begins {
                    let own = i32::from(a.zero(self.batch, self.rows.start, false));
                    let sums = &mut start[..self.columns.len()];
                    b.bias.get(self.columns.clone()).into_iter().for_each(|bias| sums.copy_from_slice(bias));
                    widest(Shift { sums, first: (own, column_sums), second: (0, column_sums) });
                }
                let mut tiles = Tiles::new();
                for row in self.rows.clone().step_by(strip_rows) {
                    let count = strip_rows.min(self.rows.end - row);
                    self.load(a, row, strip, count);
                    match Int8x4::available() {
                        true => products(&mut tiles, sums, width, strip, count, panels.dot_groups, depth),
                        false => {
                            pairs::products(
                                sums,
                                (width, stride),
                                (strip, start),
                                scratch,
                                count,
                                panels,
                                depth,
                            );
                        }
                    }
                    for r in 0..count {
                        let sums: &mut [i32] = bytemuck::cast_slice_mut(&mut sums[r * stride..]);
                        let sums = &mut sums[..self.columns.len()];
                        if begins {
                            epilogue.write(self.batch, row + r, self.columns.start, sums);
                            continue;
                        }
                        let own = i32::from(a.zero(self.batch, row + r, false));
                        if shifted {
                            let total = widest(Total(bytemuck::cast_slice(&strip[r * depth..][..depth])));
                            let rest = total - self.k as i32 * own;
                            widest(Shift { sums, first: (own, column_sums), second: (rest, zeros) });
                        } else if own != 0 {
                            widest(Shift { sums, first: (own, column_sums), second: (0, column_sums) });
                        }
                        if !b.bias.is_empty() {
                            let bias = &b.bias[self.columns.clone()];
                            sums.iter_mut().zip(bias).for_each(|(sum, &x)| *sum = sum.wrapping_add(x));
                        }
                        epilogue.write(self.batch, row + r, self.columns.start, sums);
                    }
                }
            },
        );
    }

    /// Writes rows of unsigned bytes; zeros fill the last dot groups.
    fn load(&self, a: &dyn ByteMatrix, row: usize, strip: &mut [u32], count: usize) {
        let depth = padded_depth(self.k);
        for (i, dot_groups) in strip.chunks_exact_mut(depth.max(1)).enumerate().take(count) {
            dot_groups[self.k / 4..].fill(0);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(dot_groups);
            a.fill(self.batch, row + i..row + i + 1, 0..self.k, false, &mut bytes[..self.k]);
        }
    }

    fn pack(&self, b: &dyn ByteMatrix, dot_groups: &mut [u32], sums: &mut [i32]) {
        let size = padded_depth(self.k) * COLUMNS;
        sums.fill(0);
        for (i, sums) in sums.chunks_exact_mut(COLUMNS).enumerate() {
            let first = self.columns.start + i * COLUMNS;
            let columns = first..(first + COLUMNS).min(self.columns.end);
            pack(b, self.batch, self.k, columns, &mut dot_groups[i * size..][..size], sums);
        }
    }
}

/// `count` rows of `depth` dot groups times all panels; rows of sums are `width` apart.
fn products(
    tiles: &mut Tiles,
    sums: &mut [u32],
    width: usize,
    strip: &[u32],
    count: usize,
    panels: &[u32],
    depth: usize,
) {
    if depth == 0 {
        return sums.fill(0);
    }
    assert!(strip.len() >= count * depth && sums.len() >= count * width && panels.len() >= depth * width);
    for (i, panel) in panels.chunks_exact(depth * COLUMNS).enumerate().take(width / COLUMNS) {
        let next = panels.chunks_exact(depth * COLUMNS).nth(i + 1).unwrap_or(panel);
        let fetch = match count > 1 || prefetches_single_row() {
            true => Fetch::part(next, 0, 1, depth),
            false => Fetch::same(panel),
        };
        let mut row = 0;
        while row < count {
            let at = sums[row * width + i * COLUMNS..].as_mut_ptr();
            let out = Sums { at, columns: width, width: COLUMNS, add: false };
            let a = strip[row * depth..].as_ptr();
            if tiles.serve(count) {
                let rows = amx::STRIP.min(count - row);
                // SAFETY: tiles serve; rows and columns lie inside by the assertion.
                unsafe { tiles.rows_by_panel::<Int8x4>(out, (a, depth), rows, panel, fetch) };
                row += rows;
                continue;
            }
            // SAFETY: `multiply_dots` made sure of the instructions; rows and columns lie inside by the assertion.
            unsafe {
                row += match count - row {
                    STRIP.. => rows::<STRIP>(out, a, depth, panel, fetch),
                    8.. => rows::<8>(out, a, depth, panel, fetch),
                    4.. => rows::<4>(out, a, depth, panel, fetch),
                    2.. => rows::<2>(out, a, depth, panel, fetch),
                    _ => rows::<1>(out, a, depth, panel, fetch),
                }
            }
        }
    }
}

/// Computes `R` rows, and tells their number.
///
/// # Safety
/// As of `RowsByPanel`, of whole panels.
unsafe fn rows<const R: usize>(out: Sums, a: *const u32, depth: usize, panel: &[u32], fetch: Fetch) -> usize {
    // SAFETY: as the caller promises.
    unsafe { Int8x4::run(RowsByPanel::<R> { out, a, row: depth, panel, fetch }) };
    R
}

/// The sum of unsigned bytes.
pub(crate) struct Total<'a>(pub(crate) &'a [u8]);

impl Loop for Total<'_> {
    type Output = i32;

    #[inline(always)]
    fn run(self) -> i32 {
        self.0.iter().map(|&x| i32::from(x)).sum()
    }
}

/// Takes off two multiples of rows.
struct Shift<'a> {
    sums: &'a mut [i32],
    first: (i32, &'a [i32]),
    second: (i32, &'a [i32]),
}

impl Loop for Shift<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Shift { sums, first: (a, x), second: (b, y) } = self;
        for ((sum, &x), &y) in sums.iter_mut().zip(x).zip(y) {
            *sum = sum.wrapping_sub(a.wrapping_mul(x)).wrapping_sub(b.wrapping_mul(y));
        }
    }
}
