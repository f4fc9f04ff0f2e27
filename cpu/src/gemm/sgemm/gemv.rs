//! A row vector, or a few, times a matrix, in `f32`. Bound by reading the matrix once.

use crate::gemm::few_rows::{Rows, add_dots, dots};
use crate::gemm::shape::Matrix;
use crate::loops::simd::{Loop, widest};

/// `out = x · b` or `out += x · b`, where `x` has `depth` elements at a stride and `b` has
/// `out.len()` columns.
pub(crate) fn times_matrix(
    out: &mut [f32],
    x: &[f32],
    stride: usize,
    b: Matrix<'_, f32>,
    depth: usize,
    add: bool,
) {
    if depth > 0 && b.row_stride == 1 && b.column_stride != 1 && stride == 1 {
        return times_columns(out, &x[..depth], b, depth, add);
    }
    if !add {
        out.fill(0.0);
    }
    if depth > 0 {
        widest(TimesMatrix { out, x, stride, b, depth });
    }
}

/// `out = x · b` or `out += x · b`, where `x` has few rows without gaps and the columns of `b` are contiguous: dot products.
pub(crate) fn times_columns(out: &mut [f32], x: &[f32], b: Matrix<'_, f32>, depth: usize, add: bool) {
    let count = out.len() / (x.len() / depth);
    // What the first cache holds need not be fetched ahead.
    let fetch = count * depth > 8192;
    let many = Rows { data: b.data, stride: b.column_stride, count, size: depth, fetch };
    if add { add_dots(x, many, out) } else { dots(x, many, out) }
}

struct TimesMatrix<'a> {
    out: &'a mut [f32],
    x: &'a [f32],
    stride: usize,
    b: Matrix<'a, f32>,
    depth: usize,
}

impl Loop for TimesMatrix<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let TimesMatrix { out, x, stride, b, depth } = self;
        if b.column_stride == 1 {
            by_rows(out, x, stride, b, depth);
        } else {
            for (j, y) in out.iter_mut().enumerate() {
                let term = |k: usize| x[k * stride] * b.data[k * b.row_stride + j * b.column_stride];
                *y += (0..depth).map(term).sum::<f32>();
            }
        }
    }
}

/// Rows of the matrix are contiguous: add multiples of rows, four at a time.
#[inline(always)]
fn by_rows(out: &mut [f32], x: &[f32], stride: usize, b: Matrix<'_, f32>, depth: usize) {
    let n = out.len();
    let row = |k: usize| &b.data[k * b.row_stride..][..n];
    let mut k = 0;
    while k + 4 <= depth {
        let (x0, x1, x2, x3) = (x[k * stride], x[(k + 1) * stride], x[(k + 2) * stride], x[(k + 3) * stride]);
        let rows = row(k).iter().zip(row(k + 1)).zip(row(k + 2)).zip(row(k + 3));
        for (y, (((&b0, &b1), &b2), &b3)) in out.iter_mut().zip(rows) {
            *y += (x0 * b0 + x1 * b1) + (x2 * b2 + x3 * b3);
        }
        k += 4;
    }
    for k in k..depth {
        let x0 = x[k * stride];
        out.iter_mut().zip(row(k)).for_each(|(y, &b0)| *y += x0 * b0);
    }
}
