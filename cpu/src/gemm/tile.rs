//! The split of a product into tiles, and the work of one tile.

use std::ops::Range;

use super::compute::{BlockA, BlockB, Compute};
use super::dot::TILE_STRIP;
use super::epilogue::Epilogue;
use super::operand::{Left, Product, Right};
use super::plain;
use super::sgemm::{block, panels};
use super::shape::{Extent, GemmShape};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::vector_len;
use crate::threads::Pool;

/// Columns of a tile at most: with a block's depth of 256, its part of `b` stays in the L2 cache.
const COLUMNS: usize = 512;
/// Bytes of a single row of a tile, which needs none of `b` twice: the row stays in the L1 cache.
const ROW_BYTES: usize = 16 << 10;
/// Elements of a tile at most.
const TILE: usize = 256 * 1024;
/// That if the right operand is packed: nothing is packed anew then, and the tile stays in the L2 cache beside it.
const PACKED_TILE: usize = 64 * 1024;
/// Multiplications worth handing to another thread: about 20 µs of work.
const GRAIN: usize = 1 << 19;

/// Computes the product on the pool's threads and hands every row of the result to `epilogue`.
pub(crate) fn multiply<C: Compute>(pool: &Pool, product: &Product<'_, C>, epilogue: &dyn Epilogue<C>) {
    if C::multiply_as_stored(pool, product, epilogue) {
        return;
    }
    split(pool, product, |batch, rows, columns| compute_tile(product, batch, rows, columns, epilogue));
}

/// Calls `body` for each tile of the result: with the index in the batch, the rows and the columns.
pub(crate) fn split<C: Compute>(
    pool: &Pool,
    product: &Product<'_, C>,
    body: impl Fn(usize, Range<usize>, Range<usize>) + Sync,
) {
    let shape = product.shape();
    if shape.is_empty() {
        return;
    }
    let (rows, columns) = tile_size(product, pool.threads());
    let work = rows.min(shape.m) * columns.min(shape.n) * shape.k.max(1);
    pool.split(shape.tiles(rows, columns), GRAIN.div_ceil(work), |range| {
        for tile in range.take_while(|_| !pool.cancelled()) {
            let (batch, rows, columns) = shape.tile((rows, columns), tile);
            body(batch, rows, columns);
        }
    });
}

/// Computes one product on this thread: `out = a · b` or `out += a · b`, `m × n`. The rows of `b` must
/// be contiguous unless the type takes any strides.
pub(crate) fn multiply_block<C: Compute>(
    out: &mut [C],
    (m, n, k): (usize, usize, usize),
    a: super::shape::Matrix<'_, C>,
    b: super::shape::Matrix<'_, C>,
    add: bool,
) {
    let extent = Extent { rows: m, columns: n, depth: k };
    C::product(&mut out[..m * n], extent, BlockA::Plain(a), BlockB::Plain(b), add);
}

/// A right operand that several products on one thread share, `depth × columns`.
pub(crate) struct Shared<'a, C> {
    scratch: &'a [C],
    depth: usize,
    columns: usize,
}

impl<'a, C: Compute> Shared<'a, C> {
    /// Elements of its scratch.
    pub(crate) fn scratch_len(depth: usize, columns: usize) -> usize {
        C::shared_scratch(depth, columns)
    }

    pub(crate) fn new(
        b: super::shape::Matrix<'_, C>,
        depth: usize,
        columns: usize,
        scratch: &'a mut [C],
    ) -> Self {
        C::pack_shared(b, depth, columns, scratch);
        Shared { scratch, depth, columns }
    }

    /// One whose scratch `new` wrote before.
    pub(crate) fn written(scratch: &'a [C], depth: usize, columns: usize) -> Self {
        Shared { scratch, depth, columns }
    }

    /// As `multiply_block`, with `rows` rows.
    pub(crate) fn multiply(&self, out: &mut [C], rows: usize, a: super::shape::Matrix<'_, C>, add: bool) {
        let extent = Extent { rows, columns: self.columns, depth: self.depth };
        C::shared_product(&mut out[..rows * self.columns], extent, a, self.scratch, add, false);
    }

    /// Writes the product. Where an operand is used again and again and is about as large as a cache, its end is
    /// still there after it was read: every second time it should be read `backwards`.
    pub(crate) fn multiply_again(
        &self,
        out: &mut [C],
        rows: usize,
        a: super::shape::Matrix<'_, C>,
        backwards: bool,
    ) {
        let extent = Extent { rows, columns: self.columns, depth: self.depth };
        C::shared_product(&mut out[..rows * self.columns], extent, a, self.scratch, false, backwards);
    }
}

impl<'a> Shared<'a, f32> {
    /// One that `fill` writes: each panel by its columns, some of which may not be there; of each depth as many
    /// numbers.
    pub(crate) fn of_panels(
        depth: usize,
        columns: usize,
        scratch: &'a mut [f32],
        mut fill: impl FnMut(Range<usize>, &mut [f32]),
    ) -> Self {
        for panel in panels::columns(columns) {
            fill(panel.clone(), &mut scratch[panel.start * depth..panel.end * depth]);
        }
        Shared { scratch, depth, columns }
    }
}

/// Rows and columns of a tile: large, since an operand's block is packed anew for each tile that
/// uses it, but enough tiles for all threads. Packed operands fix multiples.
fn tile_size<C: Compute>(product: &Product<'_, C>, threads: usize) -> (usize, usize) {
    let shape = product.shape();
    let GemmShape { m, n, .. } = shape;
    let wanted = (shape.work() / GRAIN).clamp(1, threads * 2);
    let row_unit = match (product.a, product.b) {
        (Left::Packed(a, _), _) => a.rows,
        (_, Right::Packed(b, _)) => b.rows,
        _ => 12,
    };
    // Of a packed operand a tile takes whole units of one block.
    let (packed, unit, mut columns) = match product.b {
        Right::Packed(b, _) => (true, b.unit, b.columns),
        Right::Plain(b, _) if m == 1 && (C::ANY_STRIDES || b.column_stride == 1) => {
            (false, 64, n.div_ceil(n.div_ceil(ROW_BYTES / size_of::<C>())).next_multiple_of(64))
        }
        _ => (false, 64, n.div_ceil(n.div_ceil(COLUMNS)).next_multiple_of(64)),
    };
    let narrower = |columns: usize| match product.b {
        Right::Packed(b, _) => even_part(b.columns, columns, unit),
        _ => (columns / 2).next_multiple_of(unit),
    };
    let mut rows = m.next_multiple_of(row_unit);
    while shape.tiles(rows, columns) < wanted {
        // What is packed anew for each tile asks for many rows.
        let wide = if packed { columns > unit && columns >= rows } else { columns > 2 * unit };
        if wide {
            columns = narrower(columns);
        } else if rows > row_unit && rows > 48 {
            rows = (rows / 2).next_multiple_of(row_unit);
        } else if columns > unit && packed {
            columns = narrower(columns);
        } else {
            break;
        }
    }
    let most = if packed { PACKED_TILE } else { TILE };
    // Products by AMX wait for memory: what is packed should come from there once, for all rows.
    while packed && row_unit == TILE_STRIP && rows * columns > most && columns > unit.max(128) {
        columns = narrower(columns);
    }
    while rows * columns > most && rows > row_unit {
        rows = (rows / 2).next_multiple_of(row_unit);
    }
    (rows, columns)
}

/// The most columns below so many that a packed block can be cut into, all parts having as many of its units.
fn even_part(block: usize, columns: usize, unit: usize) -> usize {
    let below = (unit..columns).step_by(unit).rev();
    below.into_iter().find(|&part| block.is_multiple_of(part)).unwrap_or(unit)
}

fn compute_tile<C: Compute>(
    product: &Product<'_, C>,
    batch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    epilogue: &dyn Epilogue<C>,
) {
    let depth = C::DEPTH.min(product.k);
    let b_copied = match product.b {
        Right::Plain(b, _) => !C::ANY_STRIDES && b.column_stride != 1,
        Right::Packed(..) => false,
        Right::Source(_) => true,
    };
    let whole = columns.len() == product.n;
    // SAFETY: tiles do not overlap, and each is computed once.
    let direct = if whole { unsafe { epilogue.rows(batch, rows.clone()) } } else { None };
    let lengths = [
        if direct.is_some() { 0 } else { rows.len() * columns.len() },
        if matches!(product.a, Left::Source(_)) { rows.len() * depth } else { 0 },
        if b_copied { depth * columns.len() } else { 0 },
    ];
    with_scratch(lengths, |[tile, a_block, b_block]: [&mut [C]; 3]| match direct {
        Some(out) => {
            accumulate(product, batch, rows.clone(), columns, out, a_block, b_block);
            if epilogue.applies_in_place() {
                for (row, values) in rows.zip(out.chunks_exact_mut(product.n)) {
                    epilogue.apply_in_place(batch, row, values);
                }
            }
        }
        None => {
            accumulate(product, batch, rows.clone(), columns.clone(), tile, a_block, b_block);
            epilogue.write_rows(batch, rows.start, (columns.start, columns.len()), tile);
        }
    });
}

/// Depth that dot products sum at a time: each element of a vector has at most 256 terms then, as sums of tiles have.
fn dots_depth() -> usize {
    (256 * vector_len()).min(2048)
}

/// Whether parts of the depth may be long: few rows times columns that are contiguous are dot products, of which nothing is
/// packed, and what is contiguous is read fastest from its begin to its end.
fn of_dots<C: Compute>(product: &Product<'_, C>, rows: usize) -> bool {
    match (product.a, product.b) {
        (Left::Plain(a, _), Right::Plain(b, _)) => {
            C::ANY_STRIDES
                && a.column_stride == 1
                && b.row_stride == 1
                && (rows == 1 || product.k <= dots_depth() && block::takes_dots(rows, product.k, &a, &b))
        }
        _ => false,
    }
}

/// Sums over blocks of the depth.
fn accumulate<C: Compute>(
    product: &Product<'_, C>,
    batch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    out: &mut [C],
    a_block: &mut [C],
    b_block: &mut [C],
) {
    if product.k == 0 {
        return out.fill(C::default());
    }
    let depth = if of_dots(product, rows.len()) { dots_depth() } else { C::DEPTH };
    for (depth_block, start) in (0..product.k).step_by(depth).enumerate() {
        let depths = start..(start + depth).min(product.k);
        let extent = Extent { rows: rows.len(), columns: columns.len(), depth: depths.len() };
        fill_b(product, batch, depths.clone(), columns.clone(), b_block);
        let b = || match product.b {
            Right::Plain(b, _) if !C::ANY_STRIDES && b.column_stride != 1 => {
                BlockB::Plain(super::shape::Matrix::new(b_block, columns.len()))
            }
            Right::Plain(mut b, offsets) => {
                b.data = &b.data[offsets.at(batch)..];
                BlockB::Plain(b.at(start, columns.start))
            }
            Right::Source(_) => BlockB::Plain(super::shape::Matrix::new(b_block, columns.len())),
            Right::Packed(b, offsets) => {
                BlockB::Packed(b.block(offsets.at(batch), columns.start / b.columns, depth_block))
            }
        };
        let add = start > 0;
        match product.a {
            Left::Plain(mut a, offsets) => {
                a.data = &a.data[offsets.at(batch)..];
                C::product(out, extent, BlockA::Plain(a.at(rows.start, start)), b(), add);
            }
            Left::Source(source) => {
                let len = rows.len() * depths.len();
                source.fill(batch, rows.clone(), depths.clone(), &mut a_block[..len]);
                let a = super::shape::Matrix::new(&a_block[..len], depths.len());
                C::product(out, extent, BlockA::Plain(a), b(), add);
            }
            Left::Packed(a, offsets) => {
                let matrix = offsets.at(batch);
                for (block, out) in (rows.start / a.rows..).zip(out.chunks_mut(a.rows * columns.len())) {
                    let extent = Extent { rows: out.len() / columns.len(), ..extent };
                    C::product(out, extent, BlockA::Packed(a.block(matrix, block, depth_block)), b(), add);
                }
            }
        }
    }
}

/// Writes the block of `b` that has to be written before it can be used.
fn fill_b<C: Compute>(
    product: &Product<'_, C>,
    batch: usize,
    depths: Range<usize>,
    columns: Range<usize>,
    block: &mut [C],
) {
    let len = depths.len() * columns.len();
    match product.b {
        Right::Source(source) => source.fill(batch, depths, columns, &mut block[..len]),
        Right::Plain(mut b, offsets) if !C::ANY_STRIDES && b.column_stride != 1 => {
            b.data = &b.data[offsets.at(batch)..];
            plain::copy_into(b.at(depths.start, columns.start), depths.len(), columns.len(), block);
        }
        _ => {}
    }
}
