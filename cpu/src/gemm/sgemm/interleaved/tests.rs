use super::*;
use crate::gemm::sgemm::panels::pack;
use crate::loops::packing::Packing;
use crate::threads::Pool;

fn number(i: usize, seed: usize) -> f32 {
    ((i * 7 + seed * 13 + i / 11) % 9) as f32 - 4.0
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| number(i, seed)).collect()
}

/// All sums are whole numbers, which are exact in any order.
fn product(a: &[f32], b: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let depth = a.len() / rows;
    let sum = |i: usize| (0..depth).map(|k| a[i / columns * depth + k] * b[k * columns + i % columns]).sum();
    (0..rows * columns).map(sum).collect()
}

#[test]
fn both_products_are_complete() {
    let pool = Pool::new(1);
    // The product's rows, columns and depth; rows that are begun at a time; the row's columns and depth.
    for (rows, columns, depth, some, [row_columns, row_depth]) in [
        (20, 144, 50, 8, [96, 64]),
        (35, 1024, 300, 16, [1024, 256]),
        (16, 100, 520, 16, [160, 30]),
        (33, 48, 7, 11, [48, 3]),
        (9, 200, 31, 4, [37, 40]),
        (40, 1030, 256, 16, [530, 101]),
    ] {
        let (a, b) = (numbers(rows * depth, 1), numbers(depth * columns, 2));
        let packed = PackedB::of(&b, false, 1, depth, columns, Packing::from(&pool), false);
        let tiles = Interleaved::new(Matrix::new(&a, depth), &packed, columns, depth);
        let Some(mut tiles) = tiles else { return assert_ne!(vector_len(), LEN) };
        let right = numbers(row_depth * row_columns, 4);
        let mut right_packed = vec![0.0; scratch_len(row_depth, row_columns)];
        pack(Matrix::new(&right, row_columns), row_depth, row_columns, &mut right_packed);
        let mut out = vec![5.0; rows * columns];
        for first in (0..rows).step_by(some) {
            let now = first..rows.min(first + some);
            // Twice as many rows are multiplied as were told, or none.
            let calls = if first / some % 3 == 2 { 0 } else { 4 };
            tiles.begin(now.clone(), 2 * (row_columns / WIDTH));
            for call in 0..calls {
                let row = numbers(row_depth, 5 + call);
                let mut sums = vec![7.0; row_columns];
                let row_product =
                    RowProduct { out: &mut sums, row: &row, b: &right_packed, backwards: call % 2 == 1 };
                tiles.multiply(row_product, &mut out);
                assert_eq!(
                    sums,
                    product(&row, &right, 1, row_columns),
                    "a row × {row_columns} × {row_depth}"
                );
            }
            tiles.finish(&mut out);
            let want = product(&a[now.start * depth..now.end * depth], &b, now.len(), columns);
            assert_eq!(
                out[now.start * columns..now.end * columns],
                want,
                "rows {now:?} × {columns} × {depth}"
            );
            assert!(out[now.end * columns..].iter().all(|&x| x == 5.0), "later rows are as they were");
        }
    }
}
