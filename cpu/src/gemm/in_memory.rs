//! Operands that are written block by block when they are needed.

use std::ops::Range;

use super::epilogue::Store;
use super::operand::{Left, Right, Source};
use super::shape::{Matrix, Offsets};
use crate::tensor::bf16;

/// An operand in memory, of any type that products take: used as it is, or converted on the way.
pub(crate) struct InMemory<'a, T> {
    pub(crate) matrix: Matrix<'a, T>,
    pub(crate) offsets: Offsets<'a>,
}

impl<T: Store> InMemory<'_, T> {
    pub(crate) fn left(&self) -> Left<'_, T::Compute> {
        match self.same() {
            Some(matrix) => Left::Plain(matrix, self.offsets),
            None => Left::Source(self),
        }
    }

    pub(crate) fn right(&self) -> Right<'_, T::Compute> {
        match self.same() {
            Some(matrix) => Right::Plain(matrix, self.offsets),
            None => Right::Source(self),
        }
    }

    fn same(&self) -> Option<Matrix<'_, T::Compute>> {
        let Matrix { data, row_stride, column_stride } = self.matrix;
        Some(Matrix { data: T::same(data)?, row_stride, column_stride })
    }
}

impl<T: Store> Source<T::Compute> for InMemory<'_, T> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [T::Compute]) {
        if columns.is_empty() {
            return;
        }
        let m = &self.matrix;
        let start = self.offsets.at(batch);
        for (row, line) in rows.zip(out.chunks_exact_mut(columns.len())) {
            let from = start + row * m.row_stride + columns.start * m.column_stride;
            if m.column_stride == 1 {
                T::load_all(&m.data[from..][..columns.len()], line);
            } else {
                line.iter_mut().enumerate().for_each(|(j, y)| *y = m.data[from + j * m.column_stride].load());
            }
        }
    }

    fn halves(&self) -> Option<(Matrix<'_, bf16>, Offsets<'_>)> {
        let Matrix { data, row_stride, column_stride } = self.matrix;
        let data = T::halves(data).filter(|_| column_stride == 1)?;
        Some((Matrix { data, row_stride, column_stride }, self.offsets))
    }
}
