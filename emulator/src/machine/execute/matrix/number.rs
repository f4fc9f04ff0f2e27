//! The numbers that matrices are multiplied in, and the multiplication.

use crate::isa::Source;

use crate::machine::fault::Fault;
use crate::machine::native;
use crate::machine::wave::Wave;

use super::element::{Reading, floats, integers};

/// `f32`, `f64` or `i32`.
pub trait Number: Copy + Default + Send + Sync + 'static {
    /// Registers of a number.
    const WORDS: usize;

    /// All lanes' element number `index` of A or B.
    fn elements<const LANES: usize>(reading: Reading, rows: &[[u32; LANES]], index: usize) -> [Self; LANES];

    /// From its word, or its lower and its upper word, and back.
    fn from_words(low: u32, high: u32) -> Self;
    fn words(self) -> (u32, u32);

    /// Numbers of neighbouring lanes, from `lane` on, in the registers at the beginning of `rows`.
    #[inline(always)]
    fn load<const LANES: usize, const COUNT: usize>(rows: &[[u32; LANES]], lane: usize) -> [Self; COUNT] {
        let (low, high) = (&rows[0][lane..lane + COUNT], &rows[Self::WORDS - 1][lane..lane + COUNT]);
        let mut numbers = [Self::default(); COUNT];
        for (number, (&low, &high)) in numbers.iter_mut().zip(low.iter().zip(high)) {
            *number = Self::from_words(low, high);
        }
        numbers
    }

    #[inline(always)]
    fn store<const LANES: usize, const COUNT: usize>(
        rows: &mut [[u32; LANES]],
        lane: usize,
        numbers: [Self; COUNT],
    ) {
        for (word, number) in rows[0][lane..lane + COUNT].iter_mut().zip(numbers) {
            *word = number.words().0;
        }
        if Self::WORDS == 2 {
            for (word, number) in rows[1][lane..lane + COUNT].iter_mut().zip(numbers) {
                *word = number.words().1;
            }
        }
    }

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
    fn from_words(low: u32, _: u32) -> f32 {
        f32::from_bits(low)
    }

    #[inline(always)]
    fn words(self) -> (u32, u32) {
        (self.to_bits(), 0)
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
    fn from_words(low: u32, high: u32) -> f64 {
        f64::from_bits(u64::from(low) | u64::from(high) << 32)
    }

    #[inline(always)]
    fn words(self) -> (u32, u32) {
        (self.to_bits() as u32, (self.to_bits() >> 32) as u32)
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
    fn from_words(low: u32, _: u32) -> i32 {
        low as i32
    }

    #[inline(always)]
    fn words(self) -> (u32, u32) {
        (self as u32, 0)
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

/// Adds products to some rows of the result: `a` and `b` hold, for each k, a column of A and a row of B.
///
/// # Safety
/// The processor has what the function is compiled for, which is so of what [`multiply`] gives.
pub type Multiply<T, const COLUMNS: usize, const ROWS: usize> =
    unsafe fn(sums: &mut [[T; COLUMNS]; ROWS], a: &[[T; COLUMNS]], b: &[[T; COLUMNS]], places: Places);

/// Where the result's rows are in A's columns.
#[derive(Clone, Copy)]
pub struct Places {
    pub first: usize,
    pub step: usize,
}

/// The best multiplication for this processor. It is a function of its own, which is never compiled into its caller:
/// where the compiler knows how many k there are, it makes vectors of them and not of columns, which is slow.
pub fn multiply<T: Number, const COLUMNS: usize, const ROWS: usize>() -> Multiply<T, COLUMNS, ROWS> {
    #[cfg(target_arch = "x86_64")]
    {
        if native::has_avx512() {
            return multiply_avx512;
        }
        if native::has_avx2() {
            return multiply_avx2;
        }
    }
    multiply_portable
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn multiply_avx512<T: Number, const COLUMNS: usize, const ROWS: usize>(
    sums: &mut [[T; COLUMNS]; ROWS],
    a: &[[T; COLUMNS]],
    b: &[[T; COLUMNS]],
    places: Places,
) {
    add_products(sums, a, b, places);
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn multiply_avx2<T: Number, const COLUMNS: usize, const ROWS: usize>(
    sums: &mut [[T; COLUMNS]; ROWS],
    a: &[[T; COLUMNS]],
    b: &[[T; COLUMNS]],
    places: Places,
) {
    add_products(sums, a, b, places);
}

#[inline(never)]
fn multiply_portable<T: Number, const COLUMNS: usize, const ROWS: usize>(
    sums: &mut [[T; COLUMNS]; ROWS],
    a: &[[T; COLUMNS]],
    b: &[[T; COLUMNS]],
    places: Places,
) {
    add_products(sums, a, b, places);
}

#[inline(always)]
fn add_products<T: Number, const COLUMNS: usize, const ROWS: usize>(
    sums: &mut [[T; COLUMNS]; ROWS],
    a: &[[T; COLUMNS]],
    b: &[[T; COLUMNS]],
    places: Places,
) {
    let mut result = *sums;
    for (column, row) in a.iter().zip(b) {
        for (index, sum) in result.iter_mut().enumerate() {
            // The places are columns; the remainder says so to the compiler.
            let factor = column[(places.first + index * places.step) % COLUMNS];
            let mut added = [T::default(); COLUMNS];
            for (i, added) in added.iter_mut().enumerate() {
                *added = sum[i].multiply_add(factor, row[i]);
            }
            *sum = added;
        }
    }
    *sums = result;
}
