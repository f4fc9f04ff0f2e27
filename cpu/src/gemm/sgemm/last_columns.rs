//! The last columns of a product, where they are so few that they would leave most of a vector empty: dot products of each
//! row with them. A vector of one column takes as long as one of eight or sixteen: of 49 columns, as windows of 7 × 7
//! have, that is a quarter of the time.

use std::arch::x86_64::*;

use super::panel_product::Rows;
use crate::gemm::shape::{Extent, Matrix};
use crate::isa::has_avx2;
use crate::loops::avx2::{LEN, first};

/// Of the columns the last ones that are faster as dot products than as a vector of `len`; none without AVX2.
///
/// A vector takes an instruction for each element of a row, or half a cycle if it is one of eight. A dot product takes one
/// for eight elements, and about ten for the sum of the vector and the store.
pub(super) fn count(Extent { columns, depth, .. }: Extent, len: usize) -> usize {
    let last = columns % len;
    let (dots, vector) = (last * (depth.div_ceil(LEN) + 10), depth * len / LEN);
    if last < columns && dots < vector && has_avx2() { last } else { 0 }
}

/// Writes the product with some columns to the columns from `start` on, or adds it. Rows of `a` are contiguous, and so are
/// the columns, one after `distance` elements of another.
pub(super) fn product(
    Rows { out, stride }: Rows<'_>,
    start: usize,
    Extent { rows, columns, depth }: Extent,
    a: Matrix<'_, f32>,
    (b, distance): (&[f32], usize),
    add: bool,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(a.column_stride == 1 && (rows - 1) * a.row_stride + depth <= a.data.len(), "rows lie inside");
    assert!((columns - 1) * distance + depth <= b.len(), "columns lie inside");
    assert!(start + columns <= stride && rows * stride <= out.len(), "sums lie inside");
    assert!(has_avx2(), "a processor with AVX2");
    for j in 0..columns {
        let column = &b[j * distance..][..depth];
        for row in (0..rows).step_by(LEN) {
            // Rows that are missing are computed like the last one.
            let at = |r: usize| a.data[(row + r).min(rows - 1) * a.row_stride..].as_ptr();
            // SAFETY: the processor has AVX2; rows and the column have `depth` elements, as was asserted.
            let sums = unsafe { dots(std::array::from_fn(at), column) };
            let to = out[row * stride + start + j..].iter_mut().step_by(stride);
            for (to, sum) in to.zip(sums).take(rows - row) {
                *to = if add { *to + sum } else { sum };
            }
        }
    }
}

/// # Safety
/// The processor has AVX2 and FMA; each row has as many elements as the column.
#[target_feature(enable = "avx2,fma")]
unsafe fn dots(rows: [*const f32; LEN], column: &[f32]) -> [f32; LEN] {
    let (whole, left) = (column.len() / LEN * LEN, column.len() % LEN);
    let mut sums = [_mm256_setzero_ps(); LEN];
    // SAFETY: what is read lies in the rows and in the column, as the caller promises; masks leave out what does not.
    unsafe {
        for k in (0..whole).step_by(LEN) {
            let x = _mm256_loadu_ps(column.as_ptr().add(k));
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = _mm256_fmadd_ps(_mm256_loadu_ps(row.add(k)), x, *sum);
            }
        }
        if left > 0 {
            let mask = first(left);
            let x = _mm256_maskload_ps(column.as_ptr().add(whole), mask);
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = _mm256_fmadd_ps(_mm256_maskload_ps(row.add(whole), mask), x, *sum);
            }
        }
    }
    // Each half of a vector has a part of the sums of four rows.
    let fours = |i: usize| {
        let [a, b] = [i, i + 2].map(|i| _mm256_hadd_ps(sums[i], sums[i + 1]));
        _mm256_hadd_ps(a, b)
    };
    let (low, high) = (fours(0), fours(4));
    let halves = [_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high)];
    let mut all = [0.0; LEN];
    // SAFETY: the array has room for a vector.
    unsafe { _mm256_storeu_ps(all.as_mut_ptr(), _mm256_add_ps(halves[0], halves[1])) };
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_rows_times_columns() {
        if !has_avx2() {
            return;
        }
        let number = |i: usize, seed: usize| ((i * 7 + seed * 13 + i / 11) % 9) as f32 - 4.0;
        for (rows, columns, depth) in [(1, 1, 1), (8, 1, 8), (9, 2, 15), (49, 1, 32), (23, 4, 64), (7, 3, 9)]
        {
            let (row_stride, distance, stride, start) = (depth + 2, depth + 1, columns + 5, 4);
            let a: Vec<f32> = (0..rows * row_stride).map(|i| number(i, 1)).collect();
            let b: Vec<f32> = (0..columns * distance).map(|i| number(i, 2)).collect();
            let mut out = vec![1.0; rows * stride];
            for (add, before) in [(true, 1.0), (false, 0.0)] {
                let extent = Extent { rows, columns, depth };
                let a = Matrix { data: &a, row_stride, column_stride: 1 };
                let to = Rows { out: &mut out, stride };
                product(to, start, extent, a, (&b, distance), add);
                for (i, &x) in out.iter().enumerate() {
                    let (row, column) = (i / stride, i % stride);
                    let term = |k: usize| a.data[row * row_stride + k] * b[(column - start) * distance + k];
                    let inside = (start..start + columns).contains(&column);
                    let want = if inside { (0..depth).map(term).sum::<f32>() + before } else { 1.0 };
                    assert_eq!(x, want, "{rows} × {columns} × {depth}, element {i}, add {add}");
                }
            }
        }
    }

    #[test]
    fn few_columns_of_long_vectors() {
        if !has_avx2() {
            return;
        }
        for (columns, depth, len, want) in [
            (49, 32, 16, 1),
            (49, 32, 8, 1),
            (100, 64, 16, 4),
            (100, 64, 8, 0),
            (48, 32, 16, 0),
            (1, 32, 16, 0),
        ] {
            let extent = Extent { rows: 8, columns, depth };
            assert_eq!(count(extent, len), want, "{columns} columns of depth {depth}, vectors of {len}");
        }
    }
}
