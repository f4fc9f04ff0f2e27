//! Products of some rows of 16-bit integers with a panel, by sums of two products. Bound by multiplications: half as many
//! as of floats.
//!
//! A's integers have an error of 2⁻¹⁶ of their block's largest number, and a block's sums of integers do not overflow.

use super::integers::{IntegerRows, check_extent};
use super::left::Rounded;
use super::vectors::Vectors;
use super::{Panel, ROWS, Row};
use crate::ops::weight_only::MatMulNBits;

/// Whether a block's sums fit 32 bits.
pub(super) fn fit(op: &MatMulNBits) -> bool {
    let largest = ((1u64 << op.bits) - 1) * i16::MAX as u64;
    largest * op.block as u64 <= i32::MAX as u64
}

impl IntegerRows for Rounded<'_, i16> {
    #[inline(always)]
    unsafe fn sums<V: Vectors, const M: usize, const BITS: usize>(self, panel: Panel<'_>) -> [Row<f32>; M] {
        let a = self;
        let (block, blocks) = (panel.op.block, panel.op.blocks());
        let words_of_block = block * BITS / 32;
        // Sums of neighbouring pairs: an addition waits for the one before, where few rows have others in between.
        let apart = if M < 8 { 2 } else { 1 };
        let mut room = [0.0; ROWS];
        let (zeros, step) = panel.zeros(&mut room);
        check_extent(panel, a, M, (zeros, step));
        let mut result = [[0.0; ROWS]; M];
        // Vectors of eight lanes take one half of the rows after the other: registers hold no more sums.
        for first in (0..ROWS).step_by(V::LANES) {
            // SAFETY: the caller's promise, and all offsets are inside by what was asserted.
            unsafe {
                let mut totals = [V::splat(0.0); M];
                let mut words = panel.words.as_ptr().add(first);
                let mut integers = a.integers.as_ptr();
                for at in 0..blocks {
                    let mut sums = [[V::zero(); 2]; M];
                    for _ in 0..words_of_block {
                        let word = V::load(words);
                        for p in 0..16 / BITS {
                            let weight = V::pair::<BITS>(word, p);
                            for (m, sums) in sums.iter_mut().enumerate() {
                                let a = integers.add(m * a.size + p * 2);
                                sums[p % apart] = V::dot_pair(sums[p % apart], weight, a);
                            }
                        }
                        words = words.wrapping_add(ROWS);
                        integers = integers.add(32 / BITS);
                    }
                    let lane = at * ROWS + first;
                    let scale = match panel.scales.is_empty() {
                        true => V::load_halves(panel.halves.as_ptr().add(lane)),
                        false => V::load_floats(panel.scales.as_ptr().add(lane)),
                    };
                    let zero = V::load_floats(zeros.as_ptr().add(at * step + first));
                    for m in 0..M {
                        let a_scale = *a.scales.as_ptr().add(m * blocks + at);
                        let a_sum = *a.sums.as_ptr().add(m * blocks + at);
                        let sum = match apart {
                            1 => sums[m][0],
                            _ => V::add(sums[m][0], sums[m][1]),
                        };
                        let sum = V::multiply_subtract(zero, V::splat(a_sum), V::to_floats(sum));
                        totals[m] = V::multiply_add(sum, V::multiply(scale, V::splat(a_scale)), totals[m]);
                    }
                }
                for (result, total) in result.iter_mut().zip(totals) {
                    V::store_floats(total, result[first..].as_mut_ptr());
                }
            }
        }
        result
    }
}
