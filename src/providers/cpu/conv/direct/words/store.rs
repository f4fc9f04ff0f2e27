//! What becomes of the sums of words on their way to memory.

use std::ops::Range;

use crate::ops::activation::Activation;
use crate::tensor::{Element, bf16};

use super::super::finish::{Segment, Segments};
use super::block::VECTORS;
use crate::providers::cpu::gemm::{VECTOR, activate};
use crate::providers::cpu::halves::bfloat16_bits;
use crate::providers::cpu::parallel::Parts;
use crate::providers::cpu::simd::{Loop, widest};

/// Takes the sums of a tile. Each is given once, from any thread.
pub(in crate::providers::cpu) trait Store: Sync {
    /// Rows of sums that are `width` apart, of which the segments are the output's; they may be changed, and a
    /// vector may be read from each.
    fn rows(&self, sums: &mut [u32], width: usize, rows: Range<usize>, segments: &Segments);
}

/// Where the sums of an image go: a row-major matrix of a row for each output channel.
pub(in crate::providers::cpu) struct Place<'a, T> {
    /// The outputs of all images.
    pub(in crate::providers::cpu) out: &'a Parts<'a, T>,
    /// Where this matrix begins there.
    pub(in crate::providers::cpu) start: usize,
    /// Columns of the matrix.
    pub(in crate::providers::cpu) columns: usize,
}

/// Elements of a tile's row, and a vector beyond them.
const ROW: usize = VECTORS * VECTOR + VECTOR;

impl<T: Element> Place<'_, T> {
    /// Writes the segments of rows, whose elements `of` makes of all sums of a row: a run of a length that the compiler
    /// does not know, which it makes vector code of.
    #[inline(always)]
    fn write(
        &self,
        sums: &[u32],
        width: usize,
        rows: Range<usize>,
        segments: &Segments,
        of: impl Fn(usize, &[u32], &mut [T]),
    ) {
        let list = segments.list();
        let (Some(first), Some(last)) = (list.first(), list.last()) else { return };
        let (begin, end) = (first.to, last.to + last.len);
        let gaps = end - begin != last.from + last.len;
        let mut elements = [T::default(); ROW];
        for (i, row) in rows.enumerate() {
            let at = self.start + row * self.columns;
            // SAFETY: tiles do not overlap, and each is given once.
            let out = unsafe { self.out.get(at + begin..at + end) };
            let sums = &sums[i * width..][..width];
            if !gaps {
                of(row, &sums[..out.len()], out);
                continue;
            }
            of(row, sums, &mut elements[..width]);
            for &Segment { from, to, len } in list {
                let (from, out) = (&elements[from..], &mut out[to - begin..]);
                match (from.first_chunk::<VECTOR>(), out.first_chunk_mut::<VECTOR>()) {
                    // What is written too much belongs to the next segments.
                    (Some(from), Some(out)) => *out = *from,
                    _ => out[..len].copy_from_slice(&from[..len]),
                }
            }
        }
    }
}

/// Sums of bytes as they are.
pub(in crate::providers::cpu) struct WholeSums<'a>(pub(in crate::providers::cpu) Place<'a, i32>);

impl Store for WholeSums<'_> {
    fn rows(&self, sums: &mut [u32], width: usize, rows: Range<usize>, segments: &Segments) {
        self.0.write(sums, width, rows, segments, |_, sums, out| {
            out.iter_mut().zip(sums).for_each(|(y, &sum)| *y = sum as i32);
        });
    }
}

/// Sums of bytes times a factor for each row, as bytes: rounded to nearest even, shifted and limited.
pub(in crate::providers::cpu) struct Requantized<'a> {
    /// Bytes, whose bits are those of signed ones if `signed`.
    pub(in crate::providers::cpu) place: Place<'a, u8>,
    pub(in crate::providers::cpu) factors: &'a [f32],
    pub(in crate::providers::cpu) zero: i32,
    pub(in crate::providers::cpu) signed: bool,
}

impl Store for Requantized<'_> {
    fn rows(&self, sums: &mut [u32], width: usize, rows: Range<usize>, segments: &Segments) {
        widest(Requantize { store: self, sums, width, rows, segments });
    }
}

struct Requantize<'a> {
    store: &'a Requantized<'a>,
    sums: &'a [u32],
    width: usize,
    rows: Range<usize>,
    segments: &'a Segments,
}

impl Loop for Requantize<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let &Requantized { ref place, factors, zero, signed } = self.store;
        let low = (if signed { -128 } else { 0 } - zero) as f32;
        let (high, shift) = (low + 255.0, zero);
        place.write(self.sums, self.width, self.rows, self.segments, |row, sums, out| {
            let factor = factors[row];
            for (y, &sum) in out.iter_mut().zip(sums) {
                let x = sum as i32 as f32 * factor;
                // One instruction each, which `f32::max` is not.
                let x = if x > low { x } else { low };
                let x = if x < high { x } else { high };
                // Beside 1.5·2²³ a float has no room for fractions: the number lies in its last bits.
                *y = ((x + 12_582_912.0).to_bits() as i32 + shift) as u8;
            }
        });
    }
}

/// Sums of bfloat16 numbers, with residual and activation, rounded to bfloat16.
pub(in crate::providers::cpu) struct RoundedToHalf<'a> {
    pub(in crate::providers::cpu) place: Place<'a, bf16>,
    /// Of the outputs' shape.
    pub(in crate::providers::cpu) residual: Option<&'a [bf16]>,
    pub(in crate::providers::cpu) activation: Activation,
}

impl Store for RoundedToHalf<'_> {
    fn rows(&self, sums: &mut [u32], width: usize, rows: Range<usize>, segments: &Segments) {
        let &RoundedToHalf { ref place, residual, activation } = self;
        if let Some(residual) = residual {
            widest(Add { place, residual, sums: &mut *sums, width, rows: rows.clone(), segments });
        }
        match activation {
            Activation::Identity => widest(Round { place, sums, width, rows, segments, f: |x| x }),
            Activation::Relu => {
                // NaN stays NaN.
                let f = |x| if x < 0.0 { 0.0 } else { x };
                widest(Round { place, sums, width, rows, segments, f });
            }
            _ => {
                activate(activation, bytemuck::cast_slice_mut::<u32, f32>(&mut sums[..rows.len() * width]));
                widest(Round { place, sums, width, rows, segments, f: |x| x });
            }
        }
    }
}

/// Adds the residual to sums.
struct Add<'a> {
    place: &'a Place<'a, bf16>,
    residual: &'a [bf16],
    sums: &'a mut [u32],
    width: usize,
    rows: Range<usize>,
    segments: &'a Segments,
}

impl Loop for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, row) in self.rows.enumerate() {
            let row = &self.residual[self.place.start + row * self.place.columns..][..self.place.columns];
            for &Segment { from, to, len } in self.segments.list() {
                let sums = &mut self.sums[i * self.width + from..][..len];
                for (sum, x) in sums.iter_mut().zip(&row[to..to + len]) {
                    let x = f32::from_bits(u32::from(x.to_bits()) << 16);
                    *sum = (f32::from_bits(*sum) + x).to_bits();
                }
            }
        }
    }
}

/// Stores a function of sums.
struct Round<'a, F> {
    place: &'a Place<'a, bf16>,
    sums: &'a [u32],
    width: usize,
    rows: Range<usize>,
    segments: &'a Segments,
    f: F,
}

impl<F: Fn(f32) -> f32> Loop for Round<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Round { place, sums, width, rows, segments, f } = self;
        place.write(sums, width, rows, segments, |_, sums, out| {
            for (y, &bits) in out.iter_mut().zip(sums) {
                *y = bf16::from_bits(bfloat16_bits(f(f32::from_bits(bits)).to_bits()));
            }
        });
    }
}
