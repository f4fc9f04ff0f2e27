//! Products of some rows of bytes with a panel, by dot products of bytes. A few are bound by reading the panel.

use super::kind::Kind;
use super::left::Rounded;
use super::vectors::Vectors;
#[cfg(target_arch = "x86_64")]
use super::vectors::{Avx2, Avx512Vnni, AvxVnni};
use super::{Panel, ROWS, Row};

/// How far ahead of what is multiplied the panel is fetched, in words.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
const AHEAD: usize = 1024;

/// The dot products of the panel's rows with the first `M` rows of A. `kind` is one that this machine has, and not
/// `Missing`.
pub(super) fn products<const M: usize>(kind: Kind, panel: Panel<'_>, a: Rounded<'_, i8>) -> [Row<f32>; M] {
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
    a: Rounded<'_, i8>,
) -> [Row<f32>; M] {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn avx512_vnni<const M: usize, const BITS: usize>(panel: Panel<'_>, a: Rounded<'_, i8>) -> [Row<f32>; M] {
        // SAFETY: this function is compiled for the instructions.
        unsafe { sums::<Avx512Vnni, M, BITS>(panel, a) }
    }
    #[target_feature(enable = "avx,avx2,fma,f16c,avxvnni")]
    fn avx_vnni<const M: usize, const BITS: usize>(panel: Panel<'_>, a: Rounded<'_, i8>) -> [Row<f32>; M] {
        // SAFETY: as above.
        unsafe { sums::<AvxVnni, M, BITS>(panel, a) }
    }
    #[target_feature(enable = "avx,avx2,fma,f16c")]
    fn avx2<const M: usize, const BITS: usize>(panel: Panel<'_>, a: Rounded<'_, i8>) -> [Row<f32>; M] {
        // SAFETY: as above.
        unsafe { sums::<Avx2, M, BITS>(panel, a) }
    }
    // SAFETY: the machine has the instructions of this kind, by the caller's promise.
    unsafe {
        match kind {
            Kind::Avx512Vnni => avx512_vnni::<M, BITS>(panel, a),
            Kind::AvxVnni => avx_vnni::<M, BITS>(panel, a),
            Kind::Avx2 => avx2::<M, BITS>(panel, a),
            Kind::Missing => unreachable!("products of bytes on a processor without them"),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn with_bits<const M: usize, const BITS: usize>(_: Kind, _: Panel<'_>, _: Rounded<'_, i8>) -> [Row<f32>; M] {
    unreachable!("products of bytes on a processor without them")
}

/// # Safety
/// Only inside a function that is compiled for the vectors' instructions.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
#[inline(always)]
unsafe fn sums<V: Vectors, const M: usize, const BITS: usize>(
    panel: Panel<'_>,
    a: Rounded<'_, i8>,
) -> [Row<f32>; M] {
    let (block, blocks) = (panel.op.block, panel.op.blocks());
    // Whether numbers were taken less by some.
    let less = BITS == 8 && V::OFFSET != 0.0;
    let words_of_block = block * BITS / 32;
    let mut room = [0.0; ROWS];
    let (zeros, step) = panel.zeros(&mut room);
    assert!(
        panel.words.len() >= blocks * words_of_block * ROWS
            && panel.scales.len().max(panel.halves.len()) >= blocks * ROWS
            && zeros.len() >= (blocks - 1) * step + ROWS
            && a.size == blocks * block
            && a.integers.len() >= M * a.size
            && a.blocks == blocks
            && a.scales.len().min(a.sums.len()) >= M * blocks,
        "operands have their extent"
    );
    let mut result = [[0.0; ROWS]; M];
    // SAFETY: the caller's promise, and all offsets are inside by what was asserted.
    unsafe {
        // All sixteen rows are two vectors where these have eight lanes.
        let mut totals = [[V::splat(0.0); 2]; M];
        let mut words = panel.words.as_ptr();
        let mut bytes = a.integers.as_ptr();
        for at in 0..blocks {
            let mut sums = [[[V::zero(); 2]; 2]; M];
            for i in 0..words_of_block {
                V::fetch(words.wrapping_add(AHEAD));
                for half in 0..ROWS / V::LANES {
                    let word = V::load(words.add(half * V::LANES));
                    for p in 0..8 / BITS {
                        let weight = V::plane::<BITS>(word, p);
                        for (m, sums) in sums.iter_mut().enumerate() {
                            let a = V::four(bytes.add(m * a.size + p * 4));
                            // Neighbours are added to sums of their own: an addition waits for the one before.
                            let sum = &mut sums[half][if BITS == 4 { p } else { i % 2 }];
                            *sum = V::dot::<BITS>(*sum, weight, a);
                        }
                    }
                }
                words = words.add(ROWS);
                bytes = bytes.add(32 / BITS);
            }
            for half in 0..ROWS / V::LANES {
                let lane = at * ROWS + half * V::LANES;
                let scale = match panel.scales.is_empty() {
                    true => V::load_halves(panel.halves.as_ptr().add(lane)),
                    false => V::load_floats(panel.scales.as_ptr().add(lane)),
                };
                let zero = V::load_floats(zeros.as_ptr().add(at * step + half * V::LANES));
                for m in 0..M {
                    let (a_scale, a_sum) = (a.scales[m * blocks + at], a.sums[m * blocks + at]);
                    let mut sum = V::to_floats(V::add(sums[m][half][0], sums[m][half][1]));
                    if less {
                        sum = V::multiply_add(V::splat(V::OFFSET), V::splat(a_sum), sum);
                    }
                    let sum = V::multiply_subtract(zero, V::splat(a_sum), sum);
                    totals[m][half] =
                        V::multiply_add(sum, V::multiply(scale, V::splat(a_scale)), totals[m][half]);
                }
            }
        }
        for (result, totals) in result.iter_mut().zip(totals) {
            for half in 0..ROWS / V::LANES {
                V::store_floats(totals[half], result[half * V::LANES..].as_mut_ptr());
            }
        }
    }
    result
}
