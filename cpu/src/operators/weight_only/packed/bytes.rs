//! Products of some rows of bytes with a panel, by dot products of bytes. A few are bound by reading the panel.

use super::integers::{IntegerRows, check_extent};
use super::left::Rounded;
use super::vectors::Vectors;
use super::{Panel, ROWS, Row};

/// How far ahead of what is multiplied the panel is fetched, in words.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
const AHEAD: usize = 1024;

impl IntegerRows for Rounded<'_, i8> {
    #[inline(always)]
    unsafe fn sums<V: Vectors, const M: usize, const BITS: usize>(self, panel: Panel<'_>) -> [Row<f32>; M] {
        let a = self;
        let (block, blocks) = (panel.op.block, panel.op.blocks());
        // Whether numbers were taken less by some.
        let less = BITS == 8 && V::OFFSET != 0.0;
        let words_of_block = block * BITS / 32;
        let mut room = [0.0; ROWS];
        let (zeros, step) = panel.zeros(&mut room);
        check_extent(panel, a, M, (zeros, step));
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
}
