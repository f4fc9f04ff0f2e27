//! Rows of A rounded to signed bytes, block by block: `a ≈ scale · byte`.

use crate::gemm::Store;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::ops::weight_only::MatMulNBits;
use crate::threads::Pool;

/// The largest byte.
const MOST: f32 = 127.0;

/// Rows of A as bytes. Of what a row is filled up with all is 0.
#[derive(Clone, Copy)]
pub(super) struct ByteRows<'a> {
    /// By row, each filled up to whole blocks.
    pub(super) bytes: &'a [i8],
    /// By row and block.
    pub(super) scales: &'a [f32],
    /// The sum of each block's bytes.
    pub(super) sums: &'a [f32],
    pub(super) size: usize,
    pub(super) blocks: usize,
}

impl<'a> ByteRows<'a> {
    /// From a row on.
    pub(super) fn from(&self, row: usize) -> Self {
        ByteRows {
            bytes: &self.bytes[row * self.size..],
            scales: &self.scales[row * self.blocks..],
            sums: &self.sums[row * self.blocks..],
            ..*self
        }
    }

    /// Bytes of memory for so many rows.
    pub(super) fn memory(op: &MatMulNBits, rows: usize) -> usize {
        rows * op.blocks() * (2 * size_of::<f32>() + op.block)
    }

    /// Rounds rows, on all threads of the pool. `memory` has as many bytes as `memory` says.
    pub(super) fn new<T: Store<Compute = f32>>(
        pool: &Pool,
        op: &MatMulNBits,
        a: &[T],
        memory: &'a mut [f32],
    ) -> Self {
        let (blocks, size, rows) = (op.blocks(), op.blocks() * op.block, a.len() / op.k);
        let (scales, rest) = memory.split_at_mut(rows * blocks);
        let (sums, rest) = rest.split_at_mut(rows * blocks);
        let bytes: &mut [i8] = &mut bytemuck::cast_slice_mut(rest)[..rows * size];
        let (all_bytes, all_scales, all_sums) = (Parts::new(bytes), Parts::new(scales), Parts::new(sums));
        pool.split(rows, GRAIN.div_ceil(op.k.max(1)), |range| {
            with_scratch([if T::SAME { 0 } else { op.k }], |[wide]: [&mut [f32]; 1]| {
                for row in range {
                    let a = &a[row * op.k..][..op.k];
                    let numbers = T::same(a).unwrap_or_else(|| {
                        T::load_all(a, wide);
                        &*wide
                    });
                    // SAFETY: each row is rounded once.
                    let (bytes, scales, sums) = unsafe {
                        (
                            all_bytes.get(row * size..(row + 1) * size),
                            all_scales.get(row * blocks..(row + 1) * blocks),
                            all_sums.get(row * blocks..(row + 1) * blocks),
                        )
                    };
                    widest(Round { numbers, block: op.block, bytes, scales, sums });
                }
            });
        });
        ByteRows { bytes, scales, sums, size, blocks }
    }
}

/// Rounds a row.
struct Round<'a> {
    numbers: &'a [f32],
    block: usize,
    bytes: &'a mut [i8],
    scales: &'a mut [f32],
    sums: &'a mut [f32],
}

impl Loop for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let blocks = self.numbers.chunks(self.block).zip(self.bytes.chunks_exact_mut(self.block));
        for (at, (numbers, bytes)) in blocks.enumerate() {
            let scale = largest(numbers) / MOST;
            // A scale that is infinite or not a number makes the result so too.
            let factor = 1.0 / scale;
            let factor = if factor.is_finite() { factor } else { 0.0 };
            let (own, rest) = bytes.split_at_mut(numbers.len());
            rest.fill(0);
            self.scales[at] = scale;
            self.sums[at] = round(numbers, factor, own) as f32;
        }
    }
}

/// The largest magnitude; not a number where one is.
#[inline(always)]
fn largest(numbers: &[f32]) -> f32 {
    let mut lanes = [0u32; 16];
    let (chunks, rest) = numbers.as_chunks::<16>();
    // The bits of magnitudes are ordered as their numbers are, with those that are none above.
    for chunk in chunks {
        for i in 0..16 {
            lanes[i] = lanes[i].max(chunk[i].to_bits() & 0x7fff_ffff);
        }
    }
    let mut most = 0;
    for lane in lanes {
        most = most.max(lane);
    }
    for x in rest {
        most = most.max(x.to_bits() & 0x7fff_ffff);
    }
    f32::from_bits(most)
}

/// Rounds to nearest even; the sum of the bytes.
#[inline(always)]
fn round(numbers: &[f32], factor: f32, bytes: &mut [i8]) -> i32 {
    // Adding it leaves no room for a fraction, and the number in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    let mut sum = 0;
    for (y, x) in bytes.iter_mut().zip(numbers) {
        let number = (x * factor + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i8;
        *y = number;
        sum += i32::from(number);
    }
    sum
}
