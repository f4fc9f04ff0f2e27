//! Constant operands, packed once: cut into the blocks that tiles of the product use.

use super::{Compute, Matrix, Store};

/// Left operands, one or more matrices of equal size.
pub(in crate::providers::cpu) struct PackedA<C: Compute> {
    /// Rows of a block; the last one may have fewer.
    pub(super) rows: usize,
    row_blocks: usize,
    depth_blocks: usize,
    /// By matrix, block of rows, block of depth.
    blocks: Vec<C::PackedA>,
}

/// Right operands, one or more matrices of equal size.
pub(in crate::providers::cpu) struct PackedB<C: Compute> {
    /// Columns of a block; the last one may have fewer.
    pub(super) columns: usize,
    column_blocks: usize,
    depth_blocks: usize,
    /// By matrix, block of columns, block of depth.
    blocks: Vec<C::PackedB>,
}

impl<C: Compute> PackedA<C> {
    /// Packs `m × k` matrices for products that `threads` threads share. `brain`: they and what they will be
    /// multiplied with hold bfloat16 numbers.
    pub(in crate::providers::cpu) fn new(
        matrices: &[Matrix<'_, C>],
        m: usize,
        k: usize,
        threads: usize,
        brain: bool,
    ) -> Self {
        // Multiples of 12 fill the register tiles of the kernels (6 rows, 12 on some).
        let rows = m.div_ceil(threads).next_multiple_of(12).max(96);
        let (row_blocks, depth_blocks) = (m.div_ceil(rows), k.div_ceil(C::DEPTH));
        let mut blocks = Vec::with_capacity(matrices.len() * row_blocks * depth_blocks);
        for matrix in matrices {
            for i in (0..m).step_by(rows) {
                for p in (0..k).step_by(C::DEPTH) {
                    blocks.push(C::pack_a(matrix.at(i, p), rows.min(m - i), C::DEPTH.min(k - p), brain));
                }
            }
        }
        PackedA { rows, row_blocks, depth_blocks, blocks }
    }

    /// Packs `count` matrices that lie one after the other, row-major or each transposed, converting
    /// them. `same`: the other operand of their products holds numbers of the same type, no more exact ones.
    pub(in crate::providers::cpu) fn of<T: Store<Compute = C>>(
        data: &[T],
        transposed: bool,
        count: usize,
        m: usize,
        k: usize,
        threads: usize,
        same: bool,
    ) -> Self {
        with_converted(data, |data| {
            let matrix = |i: usize| {
                let data = &data[i * m * k..];
                if transposed { Matrix::transposed(data, m) } else { Matrix::new(data, k) }
            };
            Self::new(&(0..count).map(matrix).collect::<Vec<_>>(), m, k, threads, same && T::BRAIN)
        })
    }

    pub(super) fn block(&self, matrix: usize, row_block: usize, depth_block: usize) -> &C::PackedA {
        &self.blocks[(matrix * self.row_blocks + row_block) * self.depth_blocks + depth_block]
    }
}

impl<C: Compute> PackedB<C> {
    /// Packs `k × n` matrices for products that `threads` threads share. `brain`: as for left operands.
    pub(in crate::providers::cpu) fn new(
        matrices: &[Matrix<'_, C>],
        k: usize,
        n: usize,
        threads: usize,
        brain: bool,
    ) -> Self {
        // Two blocks a thread, so that an uneven start evens out.
        let columns = n.div_ceil(2 * threads).next_multiple_of(64).clamp(128, 512);
        let (column_blocks, depth_blocks) = (n.div_ceil(columns), k.div_ceil(C::DEPTH));
        let mut blocks = Vec::with_capacity(matrices.len() * column_blocks * depth_blocks);
        for matrix in matrices {
            for j in (0..n).step_by(columns) {
                for p in (0..k).step_by(C::DEPTH) {
                    blocks.push(C::pack_b(matrix.at(p, j), C::DEPTH.min(k - p), columns.min(n - j), brain));
                }
            }
        }
        PackedB { columns, column_blocks, depth_blocks, blocks }
    }

    /// Packs `count` matrices that lie one after the other, row-major or each transposed, converting
    /// them. `same`: the other operand of their products holds numbers of the same type, no more exact ones.
    pub(in crate::providers::cpu) fn of<T: Store<Compute = C>>(
        data: &[T],
        transposed: bool,
        count: usize,
        k: usize,
        n: usize,
        threads: usize,
        same: bool,
    ) -> Self {
        with_converted(data, |data| {
            let matrix = |i: usize| {
                let data = &data[i * k * n..];
                if transposed { Matrix::transposed(data, k) } else { Matrix::new(data, n) }
            };
            Self::new(&(0..count).map(matrix).collect::<Vec<_>>(), k, n, threads, same && T::BRAIN)
        })
    }

    pub(super) fn block(&self, matrix: usize, column_block: usize, depth_block: usize) -> &C::PackedB {
        &self.blocks[(matrix * self.column_blocks + column_block) * self.depth_blocks + depth_block]
    }
}

fn with_converted<T: Store, R>(data: &[T], body: impl FnOnce(&[T::Compute]) -> R) -> R {
    match T::same(data) {
        Some(data) => body(data),
        None => body(&data.iter().map(|x| x.load()).collect::<Vec<_>>()),
    }
}
