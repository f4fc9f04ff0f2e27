//! Products of some rows of integers with a panel, by the instructions that a processor has for them.

use super::kind::Kind;
use super::left::{Integer, Rounded};
use super::vectors::Vectors;
#[cfg(target_arch = "x86_64")]
use super::vectors::{Avx2, Avx512Vnni, AvxVnni};
use super::{Panel, ROWS, Row};

/// Rows of A, as integers of one size.
pub(super) trait IntegerRows: Copy {
    /// The dot products of the panel's rows with the first `M` rows of A.
    ///
    /// # Safety
    /// Only inside a function that is compiled for the vectors' instructions.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
    unsafe fn sums<V: Vectors, const M: usize, const BITS: usize>(self, panel: Panel<'_>) -> [Row<f32>; M];
}

/// The dot products of the panel's rows with the first `M` rows of A. `kind` is one that this machine has, and not
/// `Missing`; sums of the weight's blocks fit 32 bits.
pub(super) fn products<const M: usize>(kind: Kind, panel: Panel<'_>, a: impl IntegerRows) -> [Row<f32>; M] {
    match panel.op.bits {
        2 => with_bits::<M, 2>(kind, panel, a),
        4 => with_bits::<M, 4>(kind, panel, a),
        _ => with_bits::<M, 8>(kind, panel, a),
    }
}

#[cfg(target_arch = "x86_64")]
fn with_bits<const M: usize, const BITS: usize>(
    kind: Kind,
    panel: Panel<'_>,
    a: impl IntegerRows,
) -> [Row<f32>; M] {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn avx512_vnni<const M: usize, const BITS: usize>(
        panel: Panel<'_>,
        a: impl IntegerRows,
    ) -> [Row<f32>; M] {
        // SAFETY: this function is compiled for the instructions.
        unsafe { a.sums::<Avx512Vnni, M, BITS>(panel) }
    }
    #[target_feature(enable = "avx,avx2,fma,f16c,avxvnni")]
    fn avx_vnni<const M: usize, const BITS: usize>(panel: Panel<'_>, a: impl IntegerRows) -> [Row<f32>; M] {
        // SAFETY: as above.
        unsafe { a.sums::<AvxVnni, M, BITS>(panel) }
    }
    #[target_feature(enable = "avx,avx2,fma,f16c")]
    fn avx2<const M: usize, const BITS: usize>(panel: Panel<'_>, a: impl IntegerRows) -> [Row<f32>; M] {
        // SAFETY: as above.
        unsafe { a.sums::<Avx2, M, BITS>(panel) }
    }
    // SAFETY: the machine has the instructions of this kind, by the caller's promise.
    unsafe {
        match kind {
            Kind::Avx512Vnni => avx512_vnni::<M, BITS>(panel, a),
            Kind::AvxVnni => avx_vnni::<M, BITS>(panel, a),
            Kind::Avx2 => avx2::<M, BITS>(panel, a),
            Kind::Missing => unreachable!("products of integers on a processor without them"),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn with_bits<const M: usize, const BITS: usize>(_: Kind, _: Panel<'_>, _: impl IntegerRows) -> [Row<f32>; M] {
    unreachable!("products of integers on a processor without them")
}

/// # Panics
/// Where slices have less than `rows` rows and the panel need; `zeros`: of a block, with this step from one to the next.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
#[inline(always)]
pub(super) fn check_extent<E: Integer>(
    panel: Panel<'_>,
    a: Rounded<'_, E>,
    rows: usize,
    (zeros, step): (&[f32], usize),
) {
    let (block, blocks) = (panel.op.block, panel.op.blocks());
    assert!(
        panel.words.len() >= blocks * (block * panel.op.bits / 32) * ROWS
            && panel.scales.len().max(panel.halves.len()) >= blocks * ROWS
            && zeros.len() >= (blocks - 1) * step + ROWS
            && a.size == blocks * block
            && a.integers.len() >= rows * a.size
            && a.blocks == blocks
            && a.scales.len().min(a.sums.len()) >= rows * blocks,
        "operands have their extent"
    );
}
