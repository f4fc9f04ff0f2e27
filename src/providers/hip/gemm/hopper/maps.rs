//! How the engine for copies of tiles finds operands, residual and result.

use crate::hip::{Numbers, Part, TensorMap};
use crate::tensor::ElementType;

use super::super::product::{Matrix, Product};
use super::{Copies, PACK, STEP, Windows};

/// Neighbouring rows of a tile that a wave makes.
const ROWS_OF_WAVE: u32 = 16;

/// How the operands of a plain product are copied for tiles of so many rows and columns; `None` where a map cannot say it.
pub(in super::super::super) fn plain_copies(
    product: &Product,
    ty: ElementType,
    [rows, columns]: [usize; 2],
) -> Option<Copies> {
    let axis = match product.batch[..] {
        [] => None,
        [axis] => Some(axis),
        _ => return None,
    };
    let count = product.batch_count();
    // Dimensions from the innermost on, how far the second one moves, and what is copied of both.
    let map = |i: usize, inner: usize, outer: usize, stride: i64, offset: usize, part: [usize; 2]| {
        let step = axis.map_or(0, |axis| axis.strides[i]);
        let pack = PACK as i64;
        let packs =
            stride > 0 && stride % pack == 0 && step >= 0 && step % pack == 0 && offset.is_multiple_of(PACK);
        let matrices = if step == 0 { 1 } else { count };
        // Of one matrix the last stride means nothing; it must be allowed all the same.
        let step = if step == 0 { stride * outer as i64 } else { step };
        packs.then(|| TensorMap {
            numbers: Numbers::half(ty == ElementType::BF16),
            swizzled: true,
            sizes: vec![inner as u64, outer as u64, matrices as u64],
            strides: vec![stride as u64 * 2, step as u64 * 2],
            part: Part::Box(vec![part[0] as u32, part[1] as u32, 1]),
        })
    };
    let Product { m, n, k, a, b, .. } = *product;
    let of_a = (a.strides[1] == 1).then(|| map(0, k, m, a.strides[0], a.offset, [STEP, rows]))??;
    let of_b = match b.strides {
        [1, column] => map(1, k, n, column, b.offset, [STEP, columns])?,
        [row, 1] => map(1, n, k, row, b.offset, [STEP, STEP])?,
        _ => return None,
    };
    let next = [0, 1].map(|i| u32::from(axis.is_some_and(|axis| axis.strides[i] != 0)));
    let steps = k.div_ceil(STEP);
    Some(Copies { maps: [of_a, of_b], next, steps, windows: Windows::default() })
}

/// How the engine takes the results, and brings the residual; `None` where it cannot.
pub(super) fn row_copies(product: &Product, ty: ElementType) -> Option<(TensorMap, Option<TensorMap>)> {
    let Product { m, n, .. } = *product;
    let map = |i: usize, matrix: Matrix| {
        let (matrices, step) = match product.batch[..] {
            [] => (1, 0),
            [axis] if axis.strides[i] == 0 => (1, 0),
            [axis] => (axis.size, axis.strides[i]),
            _ => return None,
        };
        let row = matrix.strides[0];
        // Of one matrix the last stride means nothing; it must be allowed all the same.
        let step = if step == 0 { row * m as i64 } else { step };
        (row > 0).then(|| TensorMap {
            numbers: Numbers::half(ty == ElementType::BF16),
            swizzled: true,
            sizes: vec![n as u64, m as u64, matrices as u64],
            strides: vec![row as u64 * 2, step as u64 * 2],
            part: Part::Box(vec![STEP as u32, ROWS_OF_WAVE, 1]),
        })
    };
    if !n.is_multiple_of(PACK) {
        return None;
    }
    let residual = match product.residual {
        Some(residual) => Some(map(4, residual)?),
        None => None,
    };
    Some((map(2, product.out)?, residual))
}
