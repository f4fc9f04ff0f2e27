//! A row vector times a matrix, in `f32`. Bound by reading the matrix once.

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
    if !add {
        out.fill(0.0);
    }
    if depth > 0 {
        widest(TimesMatrix { out, x, stride, b, depth });
    }
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
        } else if b.row_stride == 1 && stride == 1 {
            by_columns(out, &x[..depth], b);
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

/// Columns of the matrix are contiguous: one dot product for each.
#[inline(always)]
fn by_columns(out: &mut [f32], x: &[f32], b: Matrix<'_, f32>) {
    for (j, y) in out.iter_mut().enumerate() {
        *y += dot(x, &b.data[j * b.column_stride..][..x.len()]);
    }
}

/// The dot product, summed in sixteen lanes.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<16>();
    let (b_chunks, b_rest) = b.as_chunks::<16>();
    let mut lanes = [0.0f32; 16];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for i in 0..16 {
            lanes[i] += a[i] * b[i];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(&a, &b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}
