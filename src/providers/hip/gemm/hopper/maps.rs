//! How the engine for copies of tiles finds operands, residual and result.

use crate::hip::{Numbers, Part, TensorMap};
use crate::tensor::ElementType;

use super::super::product::{Axis, Matrix, Product};
use super::{Copies, PACK, STEP, Windows, copied};

/// Neighbouring rows of a tile that a wave makes.
const ROWS_OF_WAVE: u32 = 16;

/// Bytes of the engine's packs, and of the lines within which packs can change places.
const PACK_BYTES: usize = 16;
const LINE_BYTES: usize = 128;

/// How the operands of a plain product are copied for tiles of so many rows and columns; `None` where a map cannot say it.
pub(in super::super::super) fn plain_copies(
    product: &Product,
    ty: ElementType,
    [rows, columns]: [usize; 2],
) -> Option<Copies> {
    let Product { m, n, k, b, .. } = *product;
    let rows = copied(rows, m);
    let (of_b, columns) = match b.strides {
        [1, column] => {
            let columns = copied(columns, n);
            (operand(product, ty, 1, &[k, n], &[column], &[STEP, columns])?, columns)
        }
        // Those of rows come 64 at a time.
        [row, 1] => (operand(product, ty, 1, &[n, k], &[row], &[STEP, STEP])?, columns),
        _ => return None,
    };
    let of_a = of_a(product, ty, [STEP, rows])?;
    Some(Copies {
        maps: [of_a, of_b],
        next: next(product),
        steps: k.div_ceil(STEP),
        stage_bytes: (rows + columns) * STEP * ty.size(),
        windows: Windows::default(),
    })
}

/// How A is copied, whose k is contiguous: so many of k, and rows.
pub(super) fn of_a(product: &Product, ty: ElementType, part: [usize; 2]) -> Option<TensorMap> {
    let Product { m, k, a, .. } = *product;
    (a.strides[1] == 1).then(|| operand(product, ty, 0, &[k, m], &[a.strides[0]], &part))?
}

/// How A (0) or B (1) is copied: dimensions from the innermost on but for the matrices of a batch, how far all but the first
/// move, and the part that one copy takes.
pub(super) fn operand(
    product: &Product,
    ty: ElementType,
    i: usize,
    sizes: &[usize],
    strides: &[i64],
    part: &[usize],
) -> Option<TensorMap> {
    let axis = axis(product)?;
    let (pack, size) = (PACK_BYTES / ty.size(), ty.size() as u64);
    let step = axis.map_or(0, |axis| axis.strides[i]);
    let packs = |stride: i64| stride >= 0 && stride % pack as i64 == 0;
    let whole = strides.iter().all(|&stride| stride > 0 && packs(stride)) && packs(step);
    let offset = [product.a, product.b][i].offset;
    let matrices = if step == 0 { 1 } else { product.batch_count() };
    // Of one matrix the last stride means nothing; it must be allowed all the same.
    let step = if step == 0 { strides.last()? * *sizes.last()? as i64 } else { step };
    (whole && offset.is_multiple_of(pack)).then(|| TensorMap {
        numbers: match ty {
            ElementType::F32 => Numbers::F32,
            _ => Numbers::half(ty == ElementType::BF16),
        },
        swizzled: part[0] * ty.size() == LINE_BYTES,
        sizes: sizes.iter().map(|&n| n as u64).chain([matrices as u64]).collect(),
        strides: strides.iter().chain([&step]).map(|&stride| stride as u64 * size).collect(),
        part: Part::Box(part.iter().map(|&n| n as u32).chain([1]).collect()),
    })
}

/// How far the maps' last dimension moves from matrix to matrix.
pub(super) fn next(product: &Product) -> [u32; 2] {
    let axis = axis(product).flatten();
    [0, 1].map(|i| u32::from(axis.is_some_and(|axis| axis.strides[i] != 0)))
}

/// The dimension of the batch, if there is one; `None` where there are more.
fn axis(product: &Product) -> Option<Option<Axis>> {
    match product.batch[..] {
        [] => Some(None),
        [axis] => Some(Some(axis)),
        _ => None,
    }
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
