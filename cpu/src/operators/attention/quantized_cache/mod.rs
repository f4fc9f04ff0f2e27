//! Caches of keys and values in 8 or 4 bits: what is kept times a scale. See the operator for the formats.

#[cfg(test)]
mod tests;

use num_traits::AsPrimitive;

use crate::tensor::{ElementType, F8E4M3FN};
use crate::threads::Pool;

use super::heads::Heads;
use crate::gemm::{Activate, Store};
use crate::loops::parallel::split_mut;
use crate::loops::simd::{Loop, widest};

/// How a number is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    I8,
    /// Two in a byte, the first one in its low half; 8 stands for zero.
    U4,
    F8,
}

impl Format {
    /// Of caches of this type.
    pub(super) fn of(ty: ElementType) -> Self {
        match ty {
            ElementType::U8 => Format::U4,
            ElementType::F8E4M3FN => Format::F8,
            _ => Format::I8,
        }
    }

    fn bytes(self, size: usize) -> usize {
        if self == Format::U4 { size / 2 } else { size }
    }
}

/// Keys or values that a cache keeps, `[batch, kv_heads, capacity, size]`.
pub(super) struct QuantizedHeads<'a> {
    bytes: &'a [u8],
    quantizer: Quantizer<'a>,
    capacity: usize,
}

impl QuantizedHeads<'_> {
    /// As many rows of a head, from `row` on, as `out` has room for.
    pub(super) fn load<C: Activate>(&self, [batch, head, row]: [usize; 3], out: &mut [C]) {
        if out.is_empty() {
            return;
        }
        let Quantizer { format, kv_heads, size, .. } = self.quantizer;
        let width = format.bytes(size);
        let first = ((batch * kv_heads + head) * self.capacity + row) * width;
        let bytes = &self.bytes[first..][..out.len() / size * width];
        let scales = self.quantizer.scales_of(head);
        match format {
            Format::I8 => widest(Load { bytes, scales, size, out, value: |x| f32::from(x as i8) }),
            Format::U4 => widest(LoadNibbles { bytes, scales, size, out }),
            Format::F8 => {
                let table: [f32; 256] = std::array::from_fn(|x| F8E4M3FN(x as u8).to_f32());
                widest(Load { bytes, scales, size, out, value: |x| table[usize::from(x)] });
            }
        }
    }
}

struct Load<'a, C, F> {
    bytes: &'a [u8],
    /// One, or one for each column.
    scales: &'a [f32],
    size: usize,
    out: &'a mut [C],
    value: F,
}

impl<C: Activate, F: Fn(u8) -> f32> Loop for Load<'_, C, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Load { bytes, scales, size, out, value } = self;
        if let [scale] = *scales {
            out.iter_mut().zip(bytes).for_each(|(y, &x)| *y = C::of(value(x) * scale));
            return;
        }
        for (out, bytes) in out.chunks_exact_mut(size).zip(bytes.chunks_exact(size)) {
            out.iter_mut().zip(bytes).zip(scales).for_each(|((y, &x), s)| *y = C::of(value(x) * s));
        }
    }
}

struct LoadNibbles<'a, C> {
    bytes: &'a [u8],
    scales: &'a [f32],
    size: usize,
    out: &'a mut [C],
}

impl<C: Activate> Loop for LoadNibbles<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let LoadNibbles { bytes, scales, size, out } = self;
        let number = |half: u8| f32::from(half as i8 - 8);
        for (out, bytes) in out.chunks_exact_mut(size).zip(bytes.chunks_exact(size / 2)) {
            let pairs = out.as_chunks_mut::<2>().0.iter_mut().zip(bytes);
            if let [scale] = *scales {
                pairs.for_each(|(y, &x)| *y = [C::of(number(x & 15) * scale), C::of(number(x >> 4) * scale)]);
            } else {
                let scaled = pairs.zip(scales.as_chunks::<2>().0);
                scaled.for_each(|((y, &x), s)| {
                    *y = [C::of(number(x & 15) * s[0]), C::of(number(x >> 4) * s[1])];
                });
            }
        }
    }
}

/// What makes keys or values what a cache keeps.
#[derive(Clone, Copy)]
pub(super) struct Quantizer<'a> {
    pub(super) format: Format,
    /// One, or one for each column of each head.
    pub(super) scales: &'a [f32],
    pub(super) kv_heads: usize,
    pub(super) size: usize,
}

/// What a cache keeps of the past, before the new rows.
#[derive(Clone, Copy)]
pub(super) enum Kept<'a> {
    /// It is there, and so is whatever lies behind the new rows.
    InPlace,
    /// It comes from here, of this capacity; what is left of the cache becomes zero.
    From(&'a [u8], usize),
}

impl<'a> Quantizer<'a> {
    fn scales_of(&self, head: usize) -> &'a [f32] {
        match self.scales {
            [_] => self.scales,
            all => &all[head * self.size..][..self.size],
        }
    }

    /// Writes `rows` new rows of each head, `[batch, kv_heads, rows, size]` without gaps, into a cache behind the first
    /// `past(sample)`.
    pub(super) fn put<T: Store<Compute: Activate + AsPrimitive<f64>>>(
        self,
        pool: &Pool,
        (new, rows): (Heads<'_, T>, usize),
        kept: Kept<'_>,
        past: &(dyn Fn(usize) -> usize + Sync),
        capacity: usize,
        cache: &'a mut [u8],
    ) -> QuantizedHeads<'a> {
        let width = self.format.bytes(self.size);
        let plane = capacity * width;
        split_mut(pool, cache, plane, (1 << 15) / plane.max(1) + 1, |range, cache| {
            for (i, plane) in range.zip(cache.chunks_exact_mut(plane.max(1))) {
                let (sample, head) = (i / self.kv_heads, i % self.kv_heads);
                let start = past(sample) * width;
                let (before, own) = plane.split_at_mut(start);
                let (own, after) = own.split_at_mut(rows * width);
                if let Kept::From(bytes, capacity) = kept {
                    before.copy_from_slice(&bytes[i * capacity * width..][..start]);
                    after.fill(0);
                }
                self.rows((new, rows), sample, head, own);
            }
        });
        self.heads(cache, capacity)
    }

    /// A cache of so many rows, `[batch, kv_heads, capacity]`.
    pub(super) fn heads(self, bytes: &'a [u8], capacity: usize) -> QuantizedHeads<'a> {
        QuantizedHeads { bytes, quantizer: self, capacity }
    }

    /// The rows of a head of a sample, one behind the other.
    pub(super) fn rows<T: Store<Compute: Activate + AsPrimitive<f64>>>(
        &self,
        (new, rows): (Heads<'_, T>, usize),
        sample: usize,
        head: usize,
        out: &mut [u8],
    ) {
        let scales = self.scales_of(head);
        let lines = out.chunks_exact_mut(self.format.bytes(self.size).max(1)).take(rows).enumerate();
        lines.for_each(|(row, out)| self.row(&new.from(sample, head, row)[..self.size], scales, out));
    }

    /// One row. What is not a number becomes the largest one of integers.
    fn row<T: Store<Compute: Activate + AsPrimitive<f64>>>(&self, row: &[T], scales: &[f32], out: &mut [u8]) {
        let scaled = |i: usize| {
            let x: f64 = row[i].load().as_();
            x as f32 / if let [scale] = *scales { scale } else { scales[i] }
        };
        let whole = |i: usize, least: f32, most: f32| scaled(i).round_ties_even().min(most).max(least);
        let half = |i: usize| (whole(i, -8.0, 7.0) as i8 + 8) as u8;
        for (i, y) in out.iter_mut().enumerate() {
            *y = match self.format {
                Format::I8 => whole(i, -128.0, 127.0) as i8 as u8,
                Format::U4 => half(2 * i) | half(2 * i + 1) << 4,
                Format::F8 => F8E4M3FN::from_f32(scaled(i), true).0,
            };
        }
    }
}
