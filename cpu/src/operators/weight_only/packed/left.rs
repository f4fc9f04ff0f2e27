//! Rows of A rounded to signed integers, block by block: `a ≈ scale · integer`.

use crate::gemm::Store;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::ops::weight_only::MatMulNBits;
use crate::threads::Pool;

/// What A is rounded to.
pub(super) trait Integer: bytemuck::Pod + Default + Send + Sync {
    /// The largest one.
    const MOST: f32;

    /// The lowest bits of a number.
    fn lowest(number: u32) -> Self;
    fn value(self) -> i32;
    /// Brings a row from the order of depths into that in which it meets words of a weight of so many bits.
    fn arrange(row: &mut [Self], bits: usize);
}

impl Integer for i8 {
    const MOST: f32 = 127.0;

    #[inline(always)]
    fn lowest(number: u32) -> i8 {
        number as i8
    }

    #[inline(always)]
    fn value(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn arrange(_: &mut [i8], _: usize) {}
}

impl Integer for i16 {
    const MOST: f32 = 32767.0;

    #[inline(always)]
    fn lowest(number: u32) -> i16 {
        number as i16
    }

    #[inline(always)]
    fn value(self) -> i32 {
        self.into()
    }

    /// A pair of a word's fields has depths that are two apart: of a word's depths the even ones are first.
    #[inline(always)]
    fn arrange(row: &mut [i16], bits: usize) {
        match bits {
            2 => even_first::<16>(row),
            4 => even_first::<8>(row),
            _ => even_first::<4>(row),
        }
    }
}

#[inline(always)]
fn even_first<const N: usize>(row: &mut [i16]) {
    for word in row.as_chunks_mut::<N>().0 {
        let depths = *word;
        for i in 0..N / 2 {
            word[i] = depths[2 * i];
            word[N / 2 + i] = depths[2 * i + 1];
        }
    }
}

/// Rows of A as integers. Of what a row is filled up with all is 0.
#[derive(Clone, Copy)]
pub(super) struct Rounded<'a, E> {
    /// By row, each filled up to whole blocks.
    pub(super) integers: &'a [E],
    /// By row and block.
    pub(super) scales: &'a [f32],
    /// The sum of each block's integers.
    pub(super) sums: &'a [f32],
    pub(super) size: usize,
    pub(super) blocks: usize,
}

impl<'a, E: Integer> Rounded<'a, E> {
    /// From a row on.
    pub(super) fn from(&self, row: usize) -> Self {
        Rounded {
            integers: &self.integers[row * self.size..],
            scales: &self.scales[row * self.blocks..],
            sums: &self.sums[row * self.blocks..],
            ..*self
        }
    }

    /// Bytes of memory for so many rows.
    pub(super) fn memory(op: &MatMulNBits, rows: usize) -> usize {
        rows * op.blocks() * (2 * size_of::<f32>() + op.block * size_of::<E>())
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
        let integers: &mut [E] = &mut bytemuck::cast_slice_mut(rest)[..rows * size];
        let (all, all_scales, all_sums) = (Parts::new(integers), Parts::new(scales), Parts::new(sums));
        pool.split(rows, GRAIN.div_ceil(op.k.max(1)), |range| {
            with_scratch([if T::SAME { 0 } else { op.k }], |[wide]: [&mut [f32]; 1]| {
                for row in range {
                    let a = &a[row * op.k..][..op.k];
                    let numbers = T::same(a).unwrap_or_else(|| {
                        T::load_all(a, wide);
                        &*wide
                    });
                    // SAFETY: each row is rounded once.
                    let (integers, scales, sums) = unsafe {
                        (
                            all.get(row * size..(row + 1) * size),
                            all_scales.get(row * blocks..(row + 1) * blocks),
                            all_sums.get(row * blocks..(row + 1) * blocks),
                        )
                    };
                    widest(Round { op, numbers, integers, scales, sums });
                }
            });
        });
        Rounded { integers, scales, sums, size, blocks }
    }
}

/// Rounds a row.
struct Round<'a, E> {
    op: &'a MatMulNBits,
    numbers: &'a [f32],
    integers: &'a mut [E],
    scales: &'a mut [f32],
    sums: &'a mut [f32],
}

impl<E: Integer> Loop for Round<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let block = self.op.block;
        let blocks = self.numbers.chunks(block).zip(self.integers.chunks_exact_mut(block));
        for (at, (numbers, integers)) in blocks.enumerate() {
            let scale = largest(numbers) / E::MOST;
            // A scale that is infinite or not a number makes the result so too.
            let factor = 1.0 / scale;
            let factor = if factor.is_finite() { factor } else { 0.0 };
            let (own, rest) = integers.split_at_mut(numbers.len());
            rest.fill(E::default());
            self.scales[at] = scale;
            self.sums[at] = round(numbers, factor, own) as f32;
            E::arrange(integers, self.op.bits);
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

/// Rounds to nearest even; the sum of the integers.
#[inline(always)]
fn round<E: Integer>(numbers: &[f32], factor: f32, integers: &mut [E]) -> i32 {
    // Adding it leaves no room for a fraction, and the number in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    let mut sum = 0;
    for (y, x) in integers.iter_mut().zip(numbers) {
        let number = E::lowest((x * factor + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()));
        *y = number;
        sum += number.value();
    }
    sum
}
