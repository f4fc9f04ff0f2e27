//! The product of a block of bfloat16 numbers, summed in `f32`, with the processor's scalar products of pairs
//! (AVX512_BF16's `vdpbf16ps`): twice the multiplications of an instruction on `f32`, and half the memory.
//!
//! Operands that are not packed come as `f32`; they hold bfloat16 numbers, so that rounding them changes
//! nothing. Sums of pairs are rounded to nearest even, and what is smaller than the smallest normal number
//! counts as zero (Intel's manual, VDPBF16PS).

use super::super::scratch::with_scratch;
use super::compute::{BlockA, BlockB, Extent};
use super::{Compute, Matrix};

/// The depth that a packed row has room for.
const DEPTH: usize = <f32 as Compute>::DEPTH;
/// Pairs of elements in a packed row; always that many, so that the rows of a tile are at fixed distances.
const ROW: usize = DEPTH / 2;
/// Rows and columns of a tile of sums in registers: 24 of the 32, two for the right operand.
const ROWS: usize = 12;
const COLUMNS: usize = 32;

/// A left operand: rows of pairs.
pub(in crate::providers::cpu) struct PackedA(Vec<u32>);

/// A right operand: panels of `COLUMNS` columns, in which the pairs of one depth follow one another.
pub(in crate::providers::cpu) struct PackedB(Vec<u32>);

/// Whether the processor multiplies bfloat16 numbers.
pub(super) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

pub(super) fn pack_a(a: Matrix<'_, f32>, rows: usize, depth: usize) -> PackedA {
    let mut packed = vec![0; rows * ROW];
    fill_a(a, rows, depth, &mut packed);
    PackedA(packed)
}

pub(super) fn pack_b(b: Matrix<'_, f32>, depth: usize, columns: usize) -> PackedB {
    let mut packed = vec![0; columns.div_ceil(COLUMNS) * depth.div_ceil(2) * COLUMNS];
    fill_b(b, depth, columns, &mut packed);
    PackedB(packed)
}

/// Writes the product of one block to `out` (row-major without gaps), or adds it. Asks for `available()`.
pub(super) fn product(out: &mut [f32], extent: Extent, a: BlockA<'_, f32>, b: BlockB<'_, f32>, add: bool) {
    assert!(available(), "a product of bfloat16 numbers on a processor without them");
    let Extent { rows, columns, depth } = extent;
    let (pairs, panels) = (depth.div_ceil(2), columns.div_ceil(COLUMNS));
    let room = |plain: bool, len: usize| if plain { len } else { 0 };
    let lengths = [
        room(matches!(a, BlockA::Plain(_)), ROWS.min(rows) * ROW),
        room(matches!(b, BlockB::Plain(_)), panels * pairs * COLUMNS),
    ];
    with_scratch(lengths, |[a_block, b_block]: [&mut [u32]; 2]| {
        let b: &[u32] = match b {
            BlockB::Packed(b) => &b.halves().0,
            BlockB::Plain(b) => {
                fill_b(b, depth, columns, b_block);
                b_block
            }
        };
        for start in (0..rows).step_by(ROWS) {
            let count = ROWS.min(rows - start);
            let strip: &[u32] = match &a {
                BlockA::Packed(a) => &a.halves().0[start * ROW..][..count * ROW],
                BlockA::Plain(a) => {
                    fill_a(a.at(start, 0), count, depth, a_block);
                    &a_block[..count * ROW]
                }
            };
            let out = &mut out[start * columns..][..count * columns];
            for (panel, b) in b.chunks_exact((pairs * COLUMNS).max(1)).take(panels).enumerate() {
                tiles(out, (count, columns, panel * COLUMNS), strip, b, add);
            }
        }
    });
}

/// Rounds rows into pairs; an odd depth ends with a zero.
fn fill_a(a: Matrix<'_, f32>, rows: usize, depth: usize, packed: &mut [u32]) {
    for (i, row) in packed.chunks_exact_mut(ROW).enumerate().take(rows) {
        let from = &a.data[i * a.row_stride..];
        if a.column_stride == 1 {
            pairs_of(&from[..depth], row);
        } else {
            let mut line = [0.0; DEPTH];
            line.iter_mut().enumerate().take(depth).for_each(|(k, x)| *x = from[k * a.column_stride]);
            pairs_of(&line[..depth], row);
        }
    }
}

/// Rounds columns into pairs; missing columns and an odd last row are zeros.
fn fill_b(b: Matrix<'_, f32>, depth: usize, columns: usize, packed: &mut [u32]) {
    let pairs = depth.div_ceil(2);
    for (panel, out) in packed.chunks_exact_mut((pairs * COLUMNS).max(1)).enumerate() {
        let first = panel * COLUMNS;
        let width = COLUMNS.min(columns.saturating_sub(first));
        for (p, line) in out.chunks_exact_mut(COLUMNS).enumerate() {
            let at = |k: usize, j: usize| b.data[k * b.row_stride + (first + j) * b.column_stride];
            let mut two = [[0.0f32; COLUMNS]; 2];
            for (k, row) in (2 * p..depth).zip(&mut two) {
                if b.column_stride == 1 {
                    row[..width].copy_from_slice(&b.data[k * b.row_stride + first..][..width]);
                } else {
                    row.iter_mut().take(width).enumerate().for_each(|(j, x)| *x = at(k, j));
                }
            }
            for ((pair, &even), &odd) in line.iter_mut().zip(&two[0]).zip(&two[1]) {
                *pair = pair_of(even, odd);
            }
        }
    }
}

fn pairs_of(line: &[f32], pairs: &mut [u32]) {
    let (twos, rest) = line.as_chunks::<2>();
    for (pair, &[even, odd]) in pairs.iter_mut().zip(twos) {
        *pair = pair_of(even, odd);
    }
    if let [last] = *rest {
        pairs[twos.len()] = pair_of(last, 0.0);
    }
}

/// Two numbers that bfloat16 has, the first in the lower half.
#[inline(always)]
fn pair_of(even: f32, odd: f32) -> u32 {
    (even.to_bits() >> 16) | (odd.to_bits() & 0xffff_0000)
}

/// `rows` rows of pairs times one panel, to columns from `first` on.
fn tiles(out: &mut [f32], (rows, columns, first): (usize, usize, usize), a: &[u32], b: &[u32], add: bool) {
    let mut row = 0;
    while row < rows {
        let tile = Tile { out: &mut out[row * columns + first..], columns, a: &a[row * ROW..], b, add };
        row += match rows - row {
            12.. => tile.sum::<12>(),
            8.. => tile.sum::<8>(),
            4.. => tile.sum::<4>(),
            2.. => tile.sum::<2>(),
            _ => tile.sum::<1>(),
        };
    }
}

/// A few rows times one panel.
struct Tile<'a> {
    /// From the first element on; a row is `columns` from the next.
    out: &'a mut [f32],
    columns: usize,
    a: &'a [u32],
    b: &'a [u32],
    add: bool,
}

impl Tile<'_> {
    /// Computes `R` rows, and tells their number.
    #[inline]
    fn sum<const R: usize>(self) -> usize {
        let Tile { out, columns, a, b, add } = self;
        // The last row may end before the next would begin.
        let width = COLUMNS.min(columns - (columns - out.len() % columns) % columns);
        assert!(a.len() >= R * ROW && b.len() <= ROW * COLUMNS && out.len() >= (R - 1) * columns + width);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `product` made sure that the processor has the instructions; the lengths were just checked.
        unsafe {
            avx512::sum::<R>(out.as_mut_ptr(), columns, width, a.as_ptr(), b, add)
        };
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("{add}: not available");
        R
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{COLUMNS, ROW};

    /// `R` rows of `a`, at distances of `ROW`, times the panel `b`; writes or adds `width` columns.
    ///
    /// # Safety
    /// The processor must have AVX512_BF16; `a` must have `R` rows of as many pairs as `b` has lines, `out` the
    /// rows at distances of `columns`, each of `width` (at most `COLUMNS`) elements.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn sum<const R: usize>(
        out: *mut f32,
        columns: usize,
        width: usize,
        a: *const u32,
        b: &[u32],
        add: bool,
    ) {
        let mut sums = [[_mm512_setzero_ps(); 2]; R];
        for (p, line) in b.chunks_exact(COLUMNS).enumerate() {
            // SAFETY: a line has 32 pairs; each row of `a` has a pair for it.
            unsafe {
                let right = [0, 16].map(|j| _mm512_loadu_si512(line.as_ptr().add(j).cast()));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let left = _mm512_set1_epi32(*a.add(r * ROW + p) as i32);
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = _mm512_dpbf16_ps(*sum, pairs(left), pairs(right));
                    }
                }
            }
        }
        for (half, from) in [0, 16].into_iter().enumerate().filter(|&(_, from)| from < width) {
            let mask = match width - from {
                16.. => !0,
                rest => (1u16 << rest) - 1,
            };
            for (r, sums) in sums.iter().enumerate() {
                // SAFETY: the mask leaves out what lies beyond the row.
                unsafe {
                    let at = out.add(r * columns + from);
                    let before = if add { _mm512_maskz_loadu_ps(mask, at) } else { _mm512_setzero_ps() };
                    _mm512_mask_storeu_ps(at, mask, _mm512_add_ps(sums[half], before));
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    fn pairs(bits: __m512i) -> __m512bh {
        // SAFETY: both are 512 bits without meaning of their own.
        unsafe { std::mem::transmute(bits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::cpu::gemm::single;
    use crate::tensor::bf16;

    /// Against sums in f64 of the same numbers, which bfloat16 has.
    #[test]
    fn blocks_of_every_size_are_right() {
        if !available() {
            println!("skipped: this processor does not multiply bfloat16 numbers");
            return;
        }
        let number = |i: usize, seed: usize| {
            let x = ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0;
            bf16::from_f32(x).to_f32()
        };
        for m in [1, 2, 3, 7, 8, 11, 12, 13, 25] {
            for n in [1, 15, 16, 17, 31, 32, 33, 70] {
                for k in [1, 2, 3, 64, 255, 256] {
                    let a: Vec<f32> = (0..m * k).map(|i| number(i, 1)).collect();
                    let b: Vec<f32> = (0..k * n).map(|i| number(i, 2)).collect();
                    let b_columns: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
                    let a_columns: Vec<f32> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
                    let extent = Extent { rows: m, columns: n, depth: k };
                    let lefts = [Matrix::new(&a, k), Matrix::transposed(&a_columns, m)];
                    let rights = [Matrix::new(&b, n), Matrix::transposed(&b_columns, k)];
                    for (left, right) in lefts.into_iter().zip(rights) {
                        let (packed_a, packed_b) = (
                            single::PackedA::Halves(pack_a(left, m, k)),
                            single::PackedB::Halves(pack_b(right, k, n)),
                        );
                        let mut out = vec![f32::NAN; m * n];
                        product(&mut out, extent, BlockA::Plain(left), BlockB::Packed(&packed_b), false);
                        product(&mut out, extent, BlockA::Packed(&packed_a), BlockB::Plain(right), true);
                        for (i, &got) in out.iter().enumerate() {
                            let terms =
                                (0..k).map(|p| f64::from(a[i / n * k + p]) * f64::from(b[p * n + i % n]));
                            let (want, size) = terms.fold((0.0, 0.0), |(s, t), x| (s + 2.0 * x, t + x.abs()));
                            assert!(
                                (f64::from(got) - want).abs() <= 1e-5 * size,
                                "{m} {n} {k} at {i}: {got} {want}"
                            );
                        }
                    }
                }
            }
        }
    }
}
