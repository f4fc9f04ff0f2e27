//! Sums of a convolution as bytes: times a factor, rounded to nearest even, shifted and limited, with a residual added if there
//! is one.

use crate::conv::Residual;
use crate::loops::quantization::whole;
use crate::loops::simd::{Loop, widest};

/// How sums become bytes.
#[derive(Clone, Copy)]
pub(super) struct ToBytes<'a> {
    /// What is added to sums of integers first.
    pub(super) first: i32,
    /// For all sums, or for each.
    pub(super) factors: Factors<'a>,
    /// The zero point of the bytes, which are those of signed ones if `signed`.
    pub(super) zero: i32,
    pub(super) signed: bool,
    /// Its data has as many bytes as there are sums.
    pub(super) residual: Option<Residual<'a>>,
}

#[derive(Clone, Copy)]
pub(super) enum Factors<'a> {
    One(f32),
    Each(&'a [f32]),
}

/// A number that products were summed up in.
pub(super) trait Sum: Copy {
    fn float(self, first: i32) -> f32;

    /// # Safety
    /// Only where the processor has AVX2; there are eight sums.
    #[cfg(target_arch = "x86_64")]
    unsafe fn floats(sums: *const Self, first: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256;
}

impl Sum for i32 {
    #[inline(always)]
    fn float(self, first: i32) -> f32 {
        self.wrapping_add(first) as f32
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn floats(sums: *const i32, first: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256 {
        use std::arch::x86_64::*;
        // SAFETY: as the caller promises.
        unsafe { _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_loadu_si256(sums.cast()), first)) }
    }
}

impl Sum for f32 {
    #[inline(always)]
    fn float(self, _first: i32) -> f32 {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn floats(sums: *const f32, _first: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256 {
        // SAFETY: as the caller promises.
        unsafe { std::arch::x86_64::_mm256_loadu_ps(sums) }
    }
}

impl ToBytes<'_> {
    /// Writes a byte for each sum.
    pub(super) fn store<S: Sum>(&self, sums: &[S], y: &mut [u8]) {
        let count = sums.len();
        assert!(y.len() == count && self.residual.is_none_or(|residual| residual.data.len() == count));
        if let Factors::Each(factors) = self.factors {
            assert!(factors.len() >= count);
        }
        #[cfg(target_arch = "x86_64")]
        if crate::isa::has_avx2() && count >= x86::LANES {
            // SAFETY: the processor has the instructions; the assertions are what is asked for.
            unsafe {
                match (self.residual, self.factors) {
                    (None, Factors::One(_)) => x86::store::<S, false, false>(self, sums, y),
                    (None, Factors::Each(_)) => x86::store::<S, false, true>(self, sums, y),
                    (Some(_), Factors::One(_)) => x86::store::<S, true, false>(self, sums, y),
                    (Some(_), Factors::Each(_)) => x86::store::<S, true, true>(self, sums, y),
                }
            }
            return;
        }
        self.store_portably(sums, y);
    }

    /// What `store` does where it has no instructions of its own, or too few sums for a vector.
    fn store_portably<S: Sum>(&self, sums: &[S], y: &mut [u8]) {
        if let (None, Factors::One(factor)) = (self.residual, self.factors) {
            let (least, zero) = (self.least(self.zero), self.zero);
            return widest(Scaled { sums, first: self.first, factor, least, zero, y });
        }
        for (i, (y, &sum)) in y.iter_mut().zip(sums).enumerate() {
            *y = self.one(i, sum);
        }
    }

    /// The least number that a byte stands for with some zero point.
    #[inline(always)]
    fn least(&self, zero: i32) -> f32 {
        (if self.signed { -128 } else { 0 } - zero) as f32
    }

    fn one<S: Sum>(&self, i: usize, sum: S) -> u8 {
        let factor = match self.factors {
            Factors::One(factor) => factor,
            Factors::Each(factors) => factors[i],
        };
        let x = limited(sum.float(self.first) * factor, self.least(self.zero));
        let Some(residual) = self.residual else { return (x + self.zero) as u8 };
        let byte = residual.data[i];
        let byte = if self.signed { f32::from(byte as i8) } else { f32::from(byte) };
        let [a, b] = residual.factors;
        let sum = x as f32 * a + (byte - residual.zero) * b;
        (limited(sum, self.least(residual.result_zero)) + residual.result_zero) as u8
    }
}

/// The nearest integer within 255 from the least one on.
#[inline(always)]
fn limited(x: f32, least: f32) -> i32 {
    // What is no number becomes the least one.
    let x = if x > least { x } else { least };
    let x = whole(if x < least + 255.0 { x } else { least + 255.0 });
    // Above the 22 bits of the number lie those of a float.
    x << 10 >> 10
}

/// Bytes of sums that have one factor and no residual.
struct Scaled<'a, S> {
    sums: &'a [S],
    first: i32,
    factor: f32,
    least: f32,
    zero: i32,
    y: &'a mut [u8],
}

impl<S: Sum> Loop for Scaled<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Scaled { sums, first, factor, least, zero, y } = self;
        for (y, &sum) in y.iter_mut().zip(sums) {
            *y = (limited(sum.float(first) * factor, least) + zero) as u8;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Factors, Sum, ToBytes};

    /// Sums of a vector.
    pub(super) const LANES: usize = 8;

    /// What vectors of sums are computed with.
    struct Constants<'a> {
        first: __m256i,
        factor: __m256,
        /// Where each sum has its own.
        factors: &'a [f32],
        least: __m256,
        greatest: __m256,
        residual: &'a [u8],
        residual_zero: __m256,
        residual_factors: [__m256; 2],
        residual_greatest: __m256,
        /// 128 for each byte if they are signed.
        flip: __m256i,
        /// What makes the least number 0, in 16 bits.
        shift: __m256i,
    }

    impl Constants<'_> {
        /// The integers of eight sums. Below the lower limit the result is any integer below it, which saturation in
        /// `halves` lifts.
        ///
        /// # Safety
        /// Only inside a function with AVX2; there are eight sums and bytes of the residual from `at` on.
        #[inline(always)]
        unsafe fn integers<S: Sum, const RESIDUAL: bool, const EACH: bool>(
            &self,
            sums: &[S],
            at: usize,
        ) -> __m256i {
            // SAFETY: as the caller promises.
            unsafe {
                let factor = match EACH {
                    true => _mm256_loadu_ps(self.factors.as_ptr().add(at)),
                    false => self.factor,
                };
                let x = _mm256_mul_ps(S::floats(sums.as_ptr().add(at), self.first), factor);
                if !RESIDUAL {
                    // What is no number stays so, and becomes the least integer.
                    return _mm256_cvtps_epi32(_mm256_min_ps(self.greatest, x));
                }
                let x = _mm256_min_ps(_mm256_max_ps(x, self.least), self.greatest);
                let x = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
                let z = _mm_loadl_epi64(self.residual.as_ptr().add(at).cast());
                let z = _mm256_cvtepu8_epi32(_mm_xor_si128(z, _mm256_castsi256_si128(self.flip)));
                let z = _mm256_sub_ps(_mm256_cvtepi32_ps(z), self.residual_zero);
                let [a, b] = self.residual_factors;
                let sum = _mm256_add_ps(_mm256_mul_ps(x, a), _mm256_mul_ps(z, b));
                _mm256_cvtps_epi32(_mm256_min_ps(self.residual_greatest, sum))
            }
        }

        /// Those of sixteen as integers of 16 bits of which the least is 0: 0 to 3, 8 to 11, 4 to 7, 12 to 15.
        ///
        /// # Safety
        /// Only inside a function with AVX2.
        #[inline(always)]
        unsafe fn halves(&self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: as the caller promises.
            unsafe { _mm256_adds_epi16(_mm256_packs_epi32(a, b), self.shift) }
        }
    }

    /// # Safety
    /// The processor has AVX2; there are as many bytes, of the residual and factors too, as sums, of which there are eight.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn store<S: Sum, const RESIDUAL: bool, const EACH: bool>(
        to: &ToBytes<'_>,
        sums: &[S],
        y: &mut [u8],
    ) {
        let (factor, factors) = match to.factors {
            Factors::One(factor) => (factor, &[][..]),
            Factors::Each(factors) => (0.0, factors),
        };
        let none = (&[][..], 0.0, [0.0; 2], to.zero);
        // No closures: what calls them is compiled for other instructions, so that they would be calls.
        let (data, residual_zero, [a, b], zero) = match &to.residual {
            Some(added) if RESIDUAL => (added.data, added.zero, added.factors, added.result_zero),
            _ => none,
        };
        let (least, sign) = (to.least(to.zero), if to.signed { 128 } else { 0 });
        let constants = Constants {
            first: _mm256_set1_epi32(to.first),
            factor: _mm256_set1_ps(factor),
            factors,
            least: _mm256_set1_ps(least),
            greatest: _mm256_set1_ps(least + 255.0),
            residual: data,
            residual_zero: _mm256_set1_ps(residual_zero + sign as f32),
            residual_factors: [_mm256_set1_ps(a), _mm256_set1_ps(b)],
            residual_greatest: _mm256_set1_ps(to.least(zero) + 255.0),
            flip: _mm256_set1_epi8(sign as u8 as i8),
            shift: _mm256_set1_epi16((zero + sign) as i16),
        };
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let (count, c) = (sums.len(), &constants);
        let mut at = 0;
        // SAFETY: the caller promises what there is from `at` on; the last vectors may begin before it, as what they write
        // again is the same.
        unsafe {
            while count >= 4 * LANES && at < count {
                let begin = at.min(count - 4 * LANES);
                let a = c.integers::<S, RESIDUAL, EACH>(sums, begin);
                let b = c.integers::<S, RESIDUAL, EACH>(sums, begin + LANES);
                let low = c.halves(a, b);
                let a = c.integers::<S, RESIDUAL, EACH>(sums, begin + 2 * LANES);
                let b = c.integers::<S, RESIDUAL, EACH>(sums, begin + 3 * LANES);
                let bytes = _mm256_packus_epi16(low, c.halves(a, b));
                let bytes = _mm256_xor_si256(_mm256_permutevar8x32_epi32(bytes, order), c.flip);
                _mm256_storeu_si256(y.as_mut_ptr().add(begin).cast(), bytes);
                at = begin + 4 * LANES;
            }
            while at < count {
                let begin = at.min(count - LANES);
                let a = c.integers::<S, RESIDUAL, EACH>(sums, begin);
                let halves = c.halves(a, a);
                let bytes = _mm256_packus_epi16(halves, halves);
                let bytes = _mm256_xor_si256(_mm256_permutevar8x32_epi32(bytes, order), c.flip);
                // The first and the fifth word, which lie side by side now.
                _mm_storel_epi64(y.as_mut_ptr().add(begin).cast(), _mm256_castsi256_si128(bytes));
                at = begin + LANES;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of either sign, and the largest that `sum_factors` gives.
    const RESIDUAL_FACTORS: [[f32; 2]; 5] = [
        [0.75, 1.25],
        [-0.5, 0.25],
        [1.5, -0.75],
        [f32::MAX / 1024.0, f32::MAX / 1024.0],
        [f32::MAX / 1024.0, -f32::MAX / 1024.0],
    ];

    /// Against each sum by itself: any number of them, limits on both sides, numbers that no integer can hold.
    #[test]
    fn vectors_are_what_single_sums_are() {
        let numbers: Vec<i32> = (0..200).map(|i: i32| (i * 7919) % 4001 - 2000).collect();
        let floats: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
        let residual: Vec<u8> = (0..200).map(|i: usize| (i * 37) as u8).collect();
        let each: Vec<f32> = (0..200).map(|i| 0.01 + 0.003 * i as f32).collect();
        for count in [1, 7, 8, 9, 16, 31, 32, 33, 63, 100, 200] {
            for factor in [0.125, 0.031_25, 1e30, f32::NAN, f32::INFINITY, -0.5] {
                for (zero, result_zero, signed) in [(0, 3, false), (255, 0, false), (-7, 128 - 256, true)] {
                    let added = RESIDUAL_FACTORS.map(|factors| {
                        Some(Residual { data: &residual[..count], zero: 5.0, factors, result_zero })
                    });
                    for residual in added.into_iter().chain([None]) {
                        for factors in [Factors::One(factor), Factors::Each(&each)] {
                            let to = ToBytes { first: 13, factors, zero, signed, residual };
                            check(&to, &numbers[..count]);
                            check(&to, &floats[..count]);
                        }
                    }
                }
            }
        }
    }

    fn check<S: Sum>(to: &ToBytes<'_>, sums: &[S]) {
        let want: Vec<u8> = sums.iter().enumerate().map(|(i, &sum)| to.one(i, sum)).collect();
        let [mut y, mut z] = [vec![0; sums.len()], vec![0; sums.len()]];
        to.store(sums, &mut y);
        to.store_portably(sums, &mut z);
        let factors = to.residual.map(|residual| residual.factors);
        assert!(y == want && z == want, "{} {} {factors:?}: {y:?} {z:?} {want:?}", sums.len(), to.zero);
    }
}
