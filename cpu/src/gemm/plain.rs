//! The product of a block by plain loops, for the types without a tuned kernel.

use super::compute::Compute;
use super::shape::{Extent, Matrix};
use crate::tensor::Element;

/// `out = a · b` or `out += a · b`; the rows of `b` must be contiguous.
pub(crate) fn product<C: Compute>(
    out: &mut [C],
    extent: Extent,
    a: Matrix<'_, C>,
    b: Matrix<'_, C>,
    add: bool,
) {
    let Extent { rows, columns, depth } = extent;
    if !add {
        out.fill(C::default());
    }
    if columns == 0 {
        return;
    }
    debug_assert!(b.column_stride == 1 || columns == 1);
    for (i, row) in out.chunks_exact_mut(columns).enumerate().take(rows) {
        let at = |k: usize| a.data[i * a.row_stride + k * a.column_stride];
        let line = |k: usize| &b.data[k * b.row_stride..][..columns];
        let mut k = 0;
        // Four rows of `b` at a time: one read and write of `row` for four products.
        while k + 4 <= depth {
            let (a0, a1, a2, a3) = (at(k), at(k + 1), at(k + 2), at(k + 3));
            let lines = line(k).iter().zip(line(k + 1)).zip(line(k + 2)).zip(line(k + 3));
            for (y, (((&b0, &b1), &b2), &b3)) in row.iter_mut().zip(lines) {
                *y = y.multiply_add(a0, b0).multiply_add(a1, b1).multiply_add(a2, b2).multiply_add(a3, b3);
            }
            k += 4;
        }
        for k in k..depth {
            let a0 = at(k);
            row.iter_mut().zip(line(k)).for_each(|(y, &b0)| *y = y.multiply_add(a0, b0));
        }
    }
}

/// A row-major copy.
/// Copies a matrix to row-major memory without gaps.
pub(crate) fn copy_into<C: Element>(matrix: Matrix<'_, C>, rows: usize, columns: usize, out: &mut [C]) {
    if columns == 0 {
        return;
    }
    for (i, row) in out.chunks_exact_mut(columns).enumerate().take(rows) {
        let from = &matrix.data[i * matrix.row_stride..];
        if matrix.column_stride == 1 {
            row.copy_from_slice(&from[..columns]);
        } else {
            row.iter_mut().enumerate().for_each(|(j, x)| *x = from[j * matrix.column_stride]);
        }
    }
}
