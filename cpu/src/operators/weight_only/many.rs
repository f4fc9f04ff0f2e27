//! Products of many rows with a weight of a few bits. Bound by multiplications.
//!
//! A piece of work has some columns of the result, which are rows of the weight. It unpacks these, for some depths at
//! a time, to where a product reads its right operand, and multiplies its rows of A with them.

use super::columns::DEPTHS;
use super::weights::Weights;
use crate::gemm::{Matrix, Shared, Store};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::threads::Pool;

/// Columns of a piece: whole panels of the product with every instruction set.
const COLUMNS: usize = 96;
/// Rows of A that meet columns which were unpacked once.
const ROWS: usize = 256;
/// Multiplications worth handing to another thread: about 20 µs of work.
const GRAIN: usize = 1 << 19;

/// `y = a · weights' + bias`, at least one row of `k` and of `n` numbers.
pub(super) fn many<T: Store<Compute = f32>>(
    pool: &Pool,
    (n, k): (usize, usize),
    a: &[f32],
    weights: &impl Weights,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    let m = y.len() / n;
    let (row_blocks, columns) = (m.div_ceil(ROWS), COLUMNS.min(n));
    let (rows, column_blocks) = (m.div_ceil(row_blocks), n.div_ceil(columns));
    let y = Parts::new(y);
    pool.split(row_blocks * column_blocks, GRAIN.div_ceil(rows * columns * k), |range| {
        let room = Shared::<f32>::scratch_len(DEPTHS.min(k), columns);
        with_scratch([room, rows * columns, columns], |[room, tile, added]: [&mut [f32]; 3]| {
            for i in range {
                // Neighbouring pieces have the same columns.
                let (first, row) = (i / row_blocks * columns, i % row_blocks * rows);
                let (columns, rows) = (first..(first + columns).min(n), row..(row + rows).min(m));
                for start in (0..k).step_by(DEPTHS) {
                    let depths = start..(start + DEPTHS).min(k);
                    let b = Shared::of_panels(depths.len(), columns.len(), room, |panel, out| {
                        let rows = columns.start + panel.start..columns.start + panel.end.min(columns.len());
                        weights.panel(rows, depths.clone(), panel.len(), out);
                    });
                    let a = Matrix::new(&a[rows.start * k + start..], k);
                    b.multiply(tile, rows.len(), a, start > 0);
                }
                let added = bias.map(|bias| {
                    T::load_all(&bias[columns.clone()], &mut added[..columns.len()]);
                    &added[..columns.len()]
                });
                for (row, sums) in rows.zip(tile.chunks_exact_mut(columns.len())) {
                    if let Some(added) = added {
                        sums.iter_mut().zip(added).for_each(|(sum, x)| *sum += x);
                    }
                    // SAFETY: each piece has outputs of its own.
                    let y = unsafe { y.get(row * n + columns.start..row * n + columns.end) };
                    T::store_all(sums, y);
                }
            }
        });
    });
}
