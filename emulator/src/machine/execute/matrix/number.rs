//! The numbers that matrices are multiplied in, and the multiplication.

use crate::isa::Source;

use crate::machine::fault::Fault;
use crate::machine::wave::Wave;

use super::element::{Reading, floats, integers};

/// `f32`, `f64` or `i32`.
pub trait Number: Copy + Default + Send + Sync + 'static {
    /// Registers of a number.
    const WORDS: usize;

    /// All lanes' element number `index` of A or B.
    fn elements<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [Self; LANES];

    /// Numbers of neighbouring lanes, from `lane` on, in the registers at the beginning of `rows`.
    fn load<const LANES: usize, const COUNT: usize>(rows: &[[u32; LANES]], lane: usize) -> [Self; COUNT];
    fn store<const LANES: usize, const COUNT: usize>(
        rows: &mut [[u32; LANES]],
        lane: usize,
        numbers: [Self; COUNT],
    );

    /// What a constant in place of C is.
    fn constant(wave: &Wave, source: Source) -> Result<Self, Box<Fault>>;

    /// `a` times `b` plus this, rounded once.
    fn multiply_add(self, a: Self, b: Self) -> Self;
    fn negate(self) -> Self;
    /// Zero in place of a subnormal number.
    fn flush(self) -> Self;
}

impl Number for f32 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn elements<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [f32; LANES] {
        floats(reading, rows, index)
    }

    #[inline(always)]
    fn load<const LANES: usize, const COUNT: usize>(rows: &[[u32; LANES]], lane: usize) -> [f32; COUNT] {
        let words = &rows[0][lane..lane + COUNT];
        std::array::from_fn(|i| f32::from_bits(words[i]))
    }

    #[inline(always)]
    fn store<const LANES: usize, const COUNT: usize>(
        rows: &mut [[u32; LANES]],
        lane: usize,
        numbers: [f32; COUNT],
    ) {
        rows[0][lane..lane + COUNT].copy_from_slice(&numbers.map(f32::to_bits));
    }

    fn constant(wave: &Wave, source: Source) -> Result<f32, Box<Fault>> {
        Ok(f32::from_bits(wave.read32(source)?))
    }

    #[inline(always)]
    fn multiply_add(self, a: f32, b: f32) -> f32 {
        a.mul_add(b, self)
    }

    #[inline(always)]
    fn negate(self) -> f32 {
        -self
    }

    #[inline(always)]
    fn flush(self) -> f32 {
        super::element::flush(self)
    }
}

impl Number for f64 {
    const WORDS: usize = 2;

    #[inline(always)]
    fn elements<const LANES: usize>(_: Reading, rows: &[[u32; LANES]], index: usize) -> [f64; LANES] {
        f64::load(&rows[2 * index..], 0)
    }

    #[inline(always)]
    fn load<const LANES: usize, const COUNT: usize>(rows: &[[u32; LANES]], lane: usize) -> [f64; COUNT] {
        let (low, high) = (&rows[0][lane..lane + COUNT], &rows[1][lane..lane + COUNT]);
        std::array::from_fn(|i| f64::from_bits(u64::from(low[i]) | u64::from(high[i]) << 32))
    }

    #[inline(always)]
    fn store<const LANES: usize, const COUNT: usize>(
        rows: &mut [[u32; LANES]],
        lane: usize,
        numbers: [f64; COUNT],
    ) {
        for (i, number) in numbers.into_iter().enumerate() {
            rows[0][lane + i] = number.to_bits() as u32;
            rows[1][lane + i] = (number.to_bits() >> 32) as u32;
        }
    }

    fn constant(wave: &Wave, source: Source) -> Result<f64, Box<Fault>> {
        Ok(f64::from_bits(wave.read64(source)?))
    }

    #[inline(always)]
    fn multiply_add(self, a: f64, b: f64) -> f64 {
        a.mul_add(b, self)
    }

    #[inline(always)]
    fn negate(self) -> f64 {
        -self
    }

    #[inline(always)]
    fn flush(self) -> f64 {
        self
    }
}

impl Number for i32 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn elements<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [i32; LANES] {
        integers(reading, rows, index)
    }

    #[inline(always)]
    fn load<const LANES: usize, const COUNT: usize>(rows: &[[u32; LANES]], lane: usize) -> [i32; COUNT] {
        let words = &rows[0][lane..lane + COUNT];
        std::array::from_fn(|i| words[i] as i32)
    }

    #[inline(always)]
    fn store<const LANES: usize, const COUNT: usize>(
        rows: &mut [[u32; LANES]],
        lane: usize,
        numbers: [i32; COUNT],
    ) {
        rows[0][lane..lane + COUNT].copy_from_slice(&numbers.map(|number| number as u32));
    }

    fn constant(wave: &Wave, source: Source) -> Result<i32, Box<Fault>> {
        Ok(wave.read32(source)? as i32)
    }

    #[inline(always)]
    fn multiply_add(self, a: i32, b: i32) -> i32 {
        self.wrapping_add(a.wrapping_mul(b))
    }

    #[inline(always)]
    fn negate(self) -> i32 {
        self.wrapping_neg()
    }

    #[inline(always)]
    fn flush(self) -> i32 {
        self
    }
}

/// Adds products to some rows of the result: `a` and `b` hold, for each k, a column of A and a row of B. `rows` are the
/// places of the result's rows in A's columns.
#[inline(always)]
pub fn multiply<T: Number, const COLUMNS: usize, const ROWS: usize>(
    sums: &mut [[T; COLUMNS]; ROWS],
    a: &[[T; COLUMNS]],
    b: &[[T; COLUMNS]],
    rows: [usize; ROWS],
) {
    let mut result = *sums;
    for (column, row) in a.iter().zip(b) {
        for (sum, &place) in result.iter_mut().zip(&rows) {
            let factor = column[place];
            for (sum, &other) in sum.iter_mut().zip(row) {
                *sum = sum.multiply_add(factor, other);
            }
        }
    }
    *sums = result;
}
