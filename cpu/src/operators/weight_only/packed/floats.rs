//! Products of some rows of floats with a panel. Numbers are unpacked in registers, a word of each row at a time.

use rten_simd::ops::{BitOps, IntOps, NumOps, ToFloat};
use rten_simd::{Isa, SimdOp};

use super::{Panel, ROWS, Row, field};
use crate::isa::Dispatch;

/// The dot products of the panel's rows with `M` rows of A, each of `size` floats and filled up with zeros to whole
/// blocks.
pub(super) fn products<const M: usize>(panel: Panel<'_>, a: &[f32], size: usize) -> [Row<f32>; M] {
    match panel.op.bits {
        2 => Floats::<M, 2> { panel, a, size }.widest(),
        4 => Floats::<M, 4> { panel, a, size }.widest(),
        _ => Floats::<M, 8> { panel, a, size }.widest(),
    }
}

struct Floats<'a, const M: usize, const BITS: i32> {
    panel: Panel<'a>,
    a: &'a [f32],
    size: usize,
}

impl<const M: usize, const BITS: i32> SimdOp for Floats<'_, M, BITS> {
    type Output = [Row<f32>; M];

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> [Row<f32>; M] {
        let (ops, ints) = (isa.f32(), isa.i32());
        let Floats { panel, a, size } = self;
        let (len, each) = (ops.len(), (32 / BITS) as usize);
        let block = panel.op.block;
        let words: &[i32] = bytemuck::cast_slice(panel.words);
        let mask = ints.splat(((1i64 << BITS) - 1) as i32);
        let mut room = [0.0; ROWS];
        let (zeros, step) = panel.zeros(&mut room);
        let mut totals = [[0.0; ROWS]; M];
        for at in 0..panel.op.blocks() {
            let words = &words[at * block / each * ROWS..][..block / each * ROWS];
            let (scales, zeros) = (&panel.scales[at * ROWS..][..ROWS], &zeros[at * step..][..ROWS]);
            for lane in (0..ROWS).step_by(len) {
                let zero = ops.load(&zeros[lane..][..len]);
                let mut sums = [ops.zero(); M];
                for (i, words) in words.chunks_exact(ROWS).enumerate() {
                    let mut word = ints.load(&words[lane..][..len]);
                    for j in 0..each {
                        let w = ops.sub(ints.to_float(ints.and(word, mask)), zero);
                        word = ints.shift_right::<BITS>(word);
                        let depth = at * block + i * each + depth_of(j, BITS as usize);
                        for m in 0..M {
                            sums[m] = ops.mul_add(w, ops.splat(a[m * size + depth]), sums[m]);
                        }
                    }
                }
                let scale = ops.load(&scales[lane..][..len]);
                for m in 0..M {
                    let total = &mut totals[m][lane..][..len];
                    ops.store(ops.mul_add(sums[m], scale, ops.load(total)), total);
                }
            }
        }
        totals
    }
}

/// The depth of a word's field.
#[inline(always)]
const fn depth_of(field: usize, bits: usize) -> usize {
    let planes = 8 / bits;
    field % planes * 4 + field / planes
}

const _: () = {
    let mut depth = 0;
    while depth < 16 {
        assert!(depth_of(field(depth, 2), 2) == depth);
        depth += 1;
    }
};
