//! Constant operands, packed once: cut into the blocks that tiles of the product use.

use std::sync::OnceLock;

use super::compute::Compute;
use super::epilogue::Store;
use super::halves::{HalfWeight, keeps_halves};
use super::sgemm::block;
use super::shape::Matrix;
use crate::loops::packing::{Packing, Piece};

/// Left operands, one or more matrices of equal size.
pub(crate) struct PackedA<C: Compute> {
    /// Rows of a block; the last one may have fewer.
    pub(crate) rows: usize,
    row_blocks: usize,
    depth_blocks: usize,
    /// By matrix, block of rows, block of depth.
    blocks: Vec<C::PackedA>,
}

/// Right operands, one or more matrices of equal size.
pub(crate) struct PackedB<C: Compute> {
    /// Columns of a block; the last one may have fewer.
    pub(crate) columns: usize,
    /// Columns of the parts that tiles may take of a block: all, or those of a few panels.
    pub(crate) unit: usize,
    /// Rows of the product that it is multiplied with at a time.
    pub(crate) rows: usize,
    column_blocks: usize,
    depth_blocks: usize,
    /// By matrix, block of columns, block of depth.
    blocks: Vec<C::PackedB>,
    /// Instead of blocks: one matrix, whose numbers are kept in their half type.
    kept: Option<HalfWeight>,
}

impl<C: Compute> PackedA<C> {
    /// Packs `m × k` matrices for products that the threads share, which pack them as well. `bfloat16`: they
    /// and what they will be multiplied with hold bfloat16 numbers.
    pub(crate) fn new(
        matrices: &[Matrix<'_, C>],
        m: usize,
        k: usize,
        packing: Packing<'_>,
        bfloat16: bool,
    ) -> Self {
        // Multiples of 12 fill the register tiles of the kernels (6 rows, 12 on some).
        let rows = m.div_ceil(packing.threads()).next_multiple_of(12).max(96);
        let (row_blocks, depth_blocks) = (m.div_ceil(rows), k.div_ceil(C::DEPTH));
        let count = matrices.len() * row_blocks * depth_blocks;
        let blocks = in_parallel(packing, count, rows * C::DEPTH, |at, to| {
            let (block, p) = (at / depth_blocks, at % depth_blocks * C::DEPTH);
            let i = block % row_blocks * rows;
            let matrix = &matrices[block / row_blocks];
            C::pack_a(matrix.at(i, p), rows.min(m - i), C::DEPTH.min(k - p), bfloat16, to)
        });
        PackedA { rows, row_blocks, depth_blocks, blocks }
    }

    /// Packs `count` matrices that lie one after the other, row-major or each transposed, converting
    /// them. `same`: the other operand of their products holds numbers of the same type, no more exact ones.
    pub(crate) fn of<T: Store<Compute = C>>(
        data: &[T],
        transposed: bool,
        count: usize,
        m: usize,
        k: usize,
        packing: Packing<'_>,
        same: bool,
    ) -> Self {
        with_converted(data, |data| {
            let matrix = |i: usize| {
                let data = &data[i * m * k..];
                if transposed { Matrix::transposed(data, m) } else { Matrix::new(data, k) }
            };
            Self::new(&(0..count).map(matrix).collect::<Vec<_>>(), m, k, packing, same && T::BFLOAT16)
        })
    }

    pub(crate) fn block(&self, matrix: usize, row_block: usize, depth_block: usize) -> &C::PackedA {
        &self.blocks[(matrix * self.row_blocks + row_block) * self.depth_blocks + depth_block]
    }
}

impl<C: Compute> PackedB<C> {
    /// Packs `k × n` matrices for products that the threads share, which pack them as well. `bfloat16`: as for
    /// left operands.
    pub(crate) fn new(
        matrices: &[Matrix<'_, C>],
        k: usize,
        n: usize,
        packing: Packing<'_>,
        bfloat16: bool,
    ) -> Self {
        let cut = if bfloat16 { C::cut() } else { 0 };
        let unit = if cut > 0 { cut } else { C::COLUMNS };
        let most = 512 / unit * unit;
        let columns = match cut > 0 {
            true => n.div_ceil(n.div_ceil(most).max(1)).next_multiple_of(unit).max(unit),
            // Four blocks a thread, so that threads of uneven speed end at the same time.
            false => n.div_ceil(4 * packing.threads()).next_multiple_of(unit).clamp(128 / unit * unit, most),
        };
        let (column_blocks, depth_blocks) = (n.div_ceil(columns), k.div_ceil(C::DEPTH));
        let count = matrices.len() * column_blocks * depth_blocks;
        let blocks = in_parallel(packing, count, columns * C::DEPTH, |at, to| {
            let (block, p) = (at / depth_blocks, at % depth_blocks * C::DEPTH);
            let j = block % column_blocks * columns;
            let matrix = &matrices[block / column_blocks];
            C::pack_b(matrix.at(p, j), C::DEPTH.min(k - p), columns.min(n - j), bfloat16, to)
        });
        PackedB {
            columns,
            unit: if cut > 0 { unit } else { columns },
            rows: if cut > 0 { C::strip() } else { 12 },
            column_blocks,
            depth_blocks,
            blocks,
            kept: None,
        }
    }

    /// Packs `count` matrices that lie one after the other, row-major or each transposed, converting
    /// them. `same`: the other operand of their products holds numbers of the same type, no more exact ones.
    pub(crate) fn of<T: Store<Compute = C>>(
        data: &[T],
        transposed: bool,
        count: usize,
        k: usize,
        n: usize,
        packing: Packing<'_>,
        same: bool,
    ) -> Self {
        if let Some(bits) = T::half_bits(data)
            && same
            && count == 1
            && keeps_halves(T::TYPE)
        {
            let kept = Some(HalfWeight::new(bits, T::BFLOAT16, transposed, (k, n), packing));
            let columns = n.next_multiple_of(C::COLUMNS).max(1);
            return PackedB {
                columns,
                unit: columns,
                rows: 12,
                column_blocks: 1,
                depth_blocks: 1,
                blocks: Vec::new(),
                kept,
            };
        }
        with_converted(data, |data| {
            let matrix = |i: usize| {
                let data = &data[i * k * n..];
                if transposed { Matrix::transposed(data, k) } else { Matrix::new(data, n) }
            };
            Self::new(&(0..count).map(matrix).collect::<Vec<_>>(), k, n, packing, same && T::BFLOAT16)
        })
    }

    pub(crate) fn block(&self, matrix: usize, column_block: usize, depth_block: usize) -> &C::PackedB {
        &self.blocks[(matrix * self.column_blocks + column_block) * self.depth_blocks + depth_block]
    }
}

impl PackedB<f32> {
    /// The matrix, where it is kept in its half type.
    pub(crate) fn kept(&self) -> Option<&HalfWeight> {
        self.kept.as_ref()
    }

    /// Whether it is packed as bfloat16 numbers.
    pub(crate) fn is_of_halves(&self) -> bool {
        matches!(self.blocks.first(), Some(block::PackedB::Halves(_)))
    }
}

/// Makes blocks of about `size` elements on the threads of the pool.
fn in_parallel<P: Send + Sync>(
    packing: Packing<'_>,
    count: usize,
    size: usize,
    make: impl Fn(usize, Piece<'_>) -> P + Sync,
) -> Vec<P> {
    /// Elements worth handing to another thread: about 20 µs of work.
    const GRAIN: usize = 1 << 16;
    let made: Vec<OnceLock<P>> = (0..count).map(|_| OnceLock::new()).collect();
    let pieces = packing.pieces(count);
    packing.pool.split(count, GRAIN.div_ceil(size), |range| {
        for i in range {
            made[i].get_or_init(|| make(i, pieces.at(i)));
        }
    });
    made.into_iter().filter_map(OnceLock::into_inner).collect()
}

fn with_converted<T: Store, R>(data: &[T], body: impl FnOnce(&[T::Compute]) -> R) -> R {
    match T::same(data) {
        Some(data) => body(data),
        None => body(&data.iter().map(|x| x.load()).collect::<Vec<_>>()),
    }
}
