//! Operands that are written block by block when they are needed.

use std::ops::Range;

use super::super::number::Float;
use super::{Compute, Matrix, Offsets};

/// A virtual matrix.
pub(in crate::providers::cpu) trait Source<C>: Sync {
    /// Writes the block `rows × columns` of the batch's matrix to `out`, row-major without gaps.
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [C]);
}

/// A matrix of another float type, converted on the way.
pub(in crate::providers::cpu) struct Converted<'a, T> {
    pub(in crate::providers::cpu) matrix: Matrix<'a, T>,
    pub(in crate::providers::cpu) offsets: Offsets<'a>,
}

impl<T: Float> Source<T::Compute> for Converted<'_, T>
where
    T::Compute: Compute,
{
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [T::Compute]) {
        if columns.is_empty() {
            return;
        }
        let m = &self.matrix;
        let start = self.offsets.at(batch);
        for (row, line) in rows.zip(out.chunks_exact_mut(columns.len())) {
            let from = start + row * m.row_stride + columns.start * m.column_stride;
            if m.column_stride == 1 {
                line.iter_mut().zip(&m.data[from..][..columns.len()]).for_each(|(y, &x)| *y = x.up());
            } else {
                line.iter_mut().enumerate().for_each(|(j, y)| *y = m.data[from + j * m.column_stride].up());
            }
        }
    }
}
