//! The loops: steps of a tile and of a row, with all sums in registers.

use rten_simd::Isa;
use rten_simd::ops::{BitOps, NumOps};

use super::{LEN, ROWS, VECTORS, WIDTH};

/// `count` steps of a tile, with `S` of a row each.
///
/// # Safety
/// Each of the tile's rows has `count` elements, its panel `WIDTH` for each; the row has `S` elements and its panel `S · WIDTH`
/// for each. Vectors have `LEN` floats.
#[inline(always)]
pub(super) unsafe fn multiply<I: Isa, const S: usize>(
    isa: I,
    count: usize,
    (tile, rows, mut panel): (&mut [[I::F32; VECTORS]; ROWS], [*const f32; ROWS], *const f32),
    (single, mut row, mut row_panel): (&mut [I::F32; VECTORS], *const f32, *const f32),
) {
    let ops = isa.f32();
    for i in 0..count {
        // SAFETY: as the caller promises.
        unsafe {
            let b: [I::F32; VECTORS] = std::array::from_fn(|v| ops.load_ptr(panel.add(v * LEN)));
            // Loops of rows are not unrolled here, and sums would lie in memory.
            macro_rules! rows {
                ($($r:literal)*) => {$(
                    let a = ops.splat(*rows[$r].add(i));
                    tile[$r] = std::array::from_fn(|v| ops.mul_add(a, b[v], tile[$r][v]));
                    // Between the rows, so that neither waits for the other.
                    if $r * S % ROWS == 0 && S > 0 {
                        let step = $r * S / ROWS;
                        let (a, from) = (ops.splat(*row.add(step)), row_panel.add(step * WIDTH));
                        *single = std::array::from_fn(|v| ops.mul_add(a, ops.load_ptr(from.add(v * LEN)), single[v]));
                    }
                )*};
            }
            rows!(0 1 2 3 4 5 6 7);
            panel = panel.add(WIDTH);
            row = row.add(S);
            row_panel = row_panel.add(S * WIDTH);
        }
    }
}

/// The last steps of a row's panel; writes the sums.
#[inline(always)]
pub(super) fn rest<I: Isa>(
    isa: I,
    sums: &mut [I::F32; VECTORS],
    row: &[f32],
    packed: &[f32],
    out: &mut [f32],
) {
    let ops = isa.f32();
    assert!(ops.len() == LEN && out.len() == WIDTH);
    for (packed, &a) in packed.chunks_exact(WIDTH).zip(row) {
        let a = ops.splat(a);
        // SAFETY: as many floats as the vectors have.
        *sums = std::array::from_fn(|v| unsafe {
            ops.mul_add(a, ops.load_ptr(packed[v * LEN..].as_ptr()), sums[v])
        });
    }
    for (&sum, out) in sums.iter().zip(out.chunks_exact_mut(LEN)) {
        // SAFETY: as many floats as the vectors have.
        unsafe { ops.store_ptr(sum, out.as_mut_ptr()) };
    }
}
