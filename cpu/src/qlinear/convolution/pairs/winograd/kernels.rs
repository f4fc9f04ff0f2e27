//! The transform of weights: `L · kernel · Lᵀ`, of 16 kernels at a time, which are a strip's rows and four channels.

use super::super::ROWS;
use super::MOST;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::split_mut;
use crate::loops::simd::{Loop, widest};

/// Numbers of a kernel.
const TAPS: usize = 9;
/// Kernels that are transformed together: of two pairs, and of each row of a strip the two channels of a pair.
const LANES: usize = 4 * ROWS;
/// Elements of a line of a transformed kernel at most.
const SIDE: usize = 6;

/// A number of each kernel.
type Lanes = [i16; LANES];

/// Strips of `[elements, pairs, ROWS]` pairs of 16 bits: a weight `[m, channels, 3, 3]` of signed bytes with the sign bit flipped by
/// `flip`, for tiles of `size` × `size` outputs.
pub(super) fn transformed(
    weight: &[u8],
    flip: u8,
    [m, channels]: [usize; 2],
    size: usize,
    packing: Packing<'_>,
) -> Weights<u32> {
    let len = (size + 2) * (size + 2) * 2 * channels.div_ceil(4) * ROWS;
    packing.filled(m.div_ceil(ROWS) * len, |words| {
        split_mut(packing.pool, words, len, (1 << 14) / len + 1, |range, out| {
            for (strip, out) in range.zip(out.chunks_exact_mut(len)) {
                let rows = strip * ROWS..((strip + 1) * ROWS).min(m);
                let weight = &weight[rows.start * channels * TAPS..rows.end * channels * TAPS];
                match size {
                    4 => widest(Strip::<6> { weight, flip, channels, out }),
                    _ => widest(Strip::<4> { weight, flip, channels, out }),
                }
            }
        });
    })
}

/// The rows of a strip; `N` elements are a line of a transformed kernel.
struct Strip<'a, const N: usize> {
    weight: &'a [u8],
    flip: u8,
    channels: usize,
    out: &'a mut [u32],
}

impl<const N: usize> Loop for Strip<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let quads = self.channels.div_ceil(4);
        for quad in 0..quads {
            let numbers = self.numbers(quad);
            let mut columns = [[[0; LANES]; SIDE]; 3];
            for (j, column) in columns.iter_mut().enumerate() {
                line::<N>([&numbers[j], &numbers[3 + j], &numbers[6 + j]], column);
            }
            let mut all = [[0; LANES]; MOST];
            for (i, elements) in all.as_chunks_mut::<N>().0.iter_mut().enumerate().take(N) {
                let mut elements_of_line = [[0; LANES]; SIDE];
                line::<N>([&columns[0][i], &columns[1][i], &columns[2][i]], &mut elements_of_line);
                elements.copy_from_slice(&elements_of_line[..N]);
            }
            for (element, lanes) in all.iter().enumerate().take(N * N) {
                let at = (element * quads + quad) * 2 * ROWS;
                for (word, pair) in self.out[at..at + 2 * ROWS].iter_mut().zip(lanes.as_chunks::<2>().0) {
                    *word = u32::from(pair[0] as u16) | u32::from(pair[1] as u16) << 16;
                }
            }
        }
    }
}

impl<const N: usize> Strip<'_, N> {
    /// The numbers of the kernels of four channels; missing rows and channels are 0.
    #[inline(always)]
    fn numbers(&self, quad: usize) -> [Lanes; TAPS] {
        let mut numbers = [[0; LANES]; TAPS];
        for (r, row) in self.weight.chunks_exact(self.channels * TAPS).enumerate().take(ROWS) {
            let kernels = row[quad * 4 * TAPS..].as_chunks::<TAPS>().0;
            for (channel, kernel) in kernels.iter().enumerate().take(4) {
                // Pairs are channels 0 and 2, and 1 and 3.
                let lane = channel % 2 * 2 * ROWS + 2 * r + channel / 2;
                for (numbers, &byte) in numbers.iter_mut().zip(kernel) {
                    numbers[lane] = i16::from((byte ^ self.flip) as i8);
                }
            }
        }
        numbers
    }
}

/// Twice `G` of 2 × 2 outputs, or `G` of 4 × 4 outputs without its factors, which `larger::outputs` makes up for.
#[inline(always)]
fn line<const N: usize>([a, b, c]: [&Lanes; 3], out: &mut [Lanes; SIDE]) {
    for i in 0..LANES {
        let (a, b, c) = (a[i], b[i], c[i]);
        if N == 4 {
            (out[0][i], out[3][i]) = (2 * a, 2 * c);
            (out[1][i], out[2][i]) = (a + b + c, a - b + c);
        } else {
            (out[0][i], out[5][i]) = (a, c);
            (out[1][i], out[2][i]) = (a + b + c, a - b + c);
            (out[3][i], out[4][i]) = (a + 2 * b + 4 * c, a - 2 * b + 4 * c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Pool;

    /// As the definition has it, kernel by kernel.
    #[test]
    fn kernels_are_transformed() {
        let small = [[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]];
        let large = [[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]];
        for (size, lines) in [(2, &small[..]), (4, &large[..])] {
            for (flip, [m, channels]) in [(0, [4, 8]), (128, [7, 5]), (0, [9, 3])] {
                let weight: Vec<u8> = (0..m * channels * TAPS).map(|i| (i * 7919 % 251) as u8).collect();
                let words = transformed(&weight, flip, [m, channels], size, (&Pool::new(2)).into());
                let (side, pairs) = (size + 2, 2 * channels.div_ceil(4));
                assert_eq!(words.len(), m.div_ceil(ROWS) * side * side * pairs * ROWS);
                for (at, &word) in words.iter().enumerate() {
                    let (row, rest) = (at / (side * side * pairs * ROWS) * ROWS + at % ROWS, at / ROWS);
                    let (pair, element) = (rest % pairs, rest / pairs % (side * side));
                    for half in 0..2 {
                        let channel = pair / 2 * 4 + half * 2 + pair % 2;
                        let number = |i: usize, j: usize| match row < m && channel < channels {
                            true => {
                                let byte = weight[(row * channels + channel) * TAPS + 3 * i + j];
                                i32::from((byte ^ flip) as i8)
                            }
                            false => 0,
                        };
                        let (left, right) = (lines[element / side], lines[element % side]);
                        let sum = |i: usize| (0..3).map(|j| right[j] * number(i, j)).sum::<i32>();
                        let want: i32 = (0..3).map(|i| left[i] * sum(i)).sum();
                        assert_eq!(
                            i32::from((word >> (16 * half)) as i16),
                            want,
                            "{size}: {at} of {m} × {channels}"
                        );
                    }
                }
            }
        }
    }
}
