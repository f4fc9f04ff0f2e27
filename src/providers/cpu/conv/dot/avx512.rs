//! What stores do with vectors of sums, where these are.

use std::arch::x86_64::*;

use rten_simd::isa::Avx512Isa;

use super::block::VECTORS;
use super::epilogue::{
    ANY, LessZeros, Requantized, Rounded, RoundedToHalf, Row, Runs, Summed, Totals, WholeSums,
};
use crate::ops::activation::Activation;
use crate::providers::cpu::conv::common::activation::{activate_rest, activate_vectors};
use crate::providers::cpu::gemm::{SumVector, TileSink, VECTOR};

/// Runs a block for each vector of sums that is the output's: with its number, that of outputs before it, a mask of
/// as many lanes as are outputs, and the sums in these. A block, as a closure may be compiled for other processors.
macro_rules! each {
    ($all:ident, $runs:ident, $lanes:ident, |$v:pat_param, $before:pat_param, $mask:pat_param, $sums:pat_param| $block:block) => {
        for (v, &sums) in $all.iter().enumerate() {
            let (before, mask) = $runs.place::<$lanes>(v);
            let sums = if $lanes == ANY { _mm512_maskz_compress_epi32($runs.lanes(v), sums) } else { sums };
            let ($v, $before, $mask, $sums) = (v, before, mask, sums);
            $block
        }
    };
}

impl TileSink for Totals<'_> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn rows<const R: usize, const V: usize>(&self, sums: [[SumVector; V]; R]) {
        for (v, sums) in sums.into_iter().flatten().enumerate().take(VECTORS) {
            // SAFETY: the instructions as the caller promises; a tile has no more vectors than there is room for.
            unsafe { _mm512_storeu_si512(self.0.as_ptr().cast::<i32>().add(v * VECTOR).cast(), sums) };
        }
    }
}

impl<S: TileSink> TileSink for LessZeros<'_, S> {
    const SHORT: bool = S::SHORT;

    #[inline(always)]
    unsafe fn rows<const R: usize, const V: usize>(&self, sums: [[SumVector; V]; R]) {
        let mut less = sums;
        // SAFETY: as for `Totals`.
        unsafe {
            for (row, less) in less.iter_mut().enumerate() {
                let zero = _mm512_set1_epi32(self.zeros[row]);
                for (v, sums) in less.iter_mut().enumerate() {
                    let totals = _mm512_loadu_si512(self.totals.as_ptr().add(v * VECTOR).cast());
                    *sums = _mm512_sub_epi32(*sums, _mm512_mullo_epi32(zero, totals));
                }
            }
            self.sink.rows(less);
        }
    }
}

impl Row for WholeSums<'_> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn row<const V: usize, const LANES: u8>(&self, row: usize, runs: &Runs, sums: [SumVector; V]) {
        // SAFETY: the instructions as the caller promises, who gives each output once; masks leave out what is not
        // the output's.
        unsafe {
            let out = self.0.out.get(self.0.range(row, runs)).as_mut_ptr();
            each!(sums, runs, LANES, |_, before, mask, sums| {
                _mm512_mask_storeu_epi32(out.add(before).cast(), mask, sums);
            });
        }
    }
}

impl Row for Requantized<'_> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn row<const V: usize, const LANES: u8>(&self, row: usize, runs: &Runs, sums: [SumVector; V]) {
        // SAFETY: as in `WholeSums`.
        unsafe {
            let out = self.place.out.get(self.place.range(row, runs)).as_mut_ptr();
            let (limits, factor) = (limits(self.zero, self.signed), _mm512_set1_ps(self.factors[row]));
            each!(sums, runs, LANES, |_, before, mask, sums| {
                let x = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), factor);
                store_bytes(out.add(before), mask, limited(x, limits), self.zero);
            });
        }
    }
}

impl Row for Summed<'_> {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn row<const V: usize, const LANES: u8>(&self, row: usize, runs: &Runs, sums: [SumVector; V]) {
        let Summed { sums: Requantized { place, factors, zero, signed }, residual, .. } = self;
        let range = place.range(row, runs);
        let residual = residual[range.clone()].as_ptr();
        // SAFETY: as in `WholeSums`; the residual has the outputs' shape.
        unsafe {
            let out = place.out.get(range).as_mut_ptr();
            let (first, then) = (limits(*zero, *signed), limits(self.zero, *signed));
            let (factor, less) = (_mm512_set1_ps(factors[row]), _mm512_set1_ps(self.residual_zero));
            let [a, b] = self.factors;
            each!(sums, runs, LANES, |_, before, mask, sums| {
                let x = limited(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), factor), first);
                let x = _mm512_mul_ps(_mm512_roundscale_ps::<0>(x), _mm512_set1_ps(a));
                let bytes = _mm_maskz_loadu_epi8(mask, residual.add(before).cast());
                let whole = if *signed { _mm512_cvtepi8_epi32(bytes) } else { _mm512_cvtepu8_epi32(bytes) };
                let z = _mm512_sub_ps(_mm512_cvtepi32_ps(whole), less);
                let y = _mm512_add_ps(x, _mm512_mul_ps(z, _mm512_set1_ps(b)));
                store_bytes(out.add(before), mask, limited(y, then), self.zero);
            });
        }
    }
}

/// Least and greatest number that a byte with a zero point stands for.
///
/// # Safety
/// As of `TileSink::rows`.
#[inline(always)]
pub(crate) unsafe fn limits(zero: i32, signed: bool) -> [__m512; 2] {
    let least = if signed { -128 } else { 0 } - zero;
    // SAFETY: as the caller promises.
    unsafe { [_mm512_set1_ps(least as f32), _mm512_set1_ps((least + 255) as f32)] }
}

/// # Safety
/// As of `TileSink::rows`.
#[inline(always)]
pub(crate) unsafe fn limited(x: __m512, [low, high]: [__m512; 2]) -> __m512 {
    // SAFETY: as the caller promises.
    unsafe { _mm512_min_ps(_mm512_max_ps(x, low), high) }
}

/// Rounds to nearest even, and adds the zero point.
///
/// # Safety
/// As of `TileSink::rows`; `out` must be valid for what is in the mask.
#[inline(always)]
unsafe fn store_bytes(out: *mut u8, mask: u16, x: __m512, zero: i32) {
    // SAFETY: as the caller promises.
    unsafe {
        let bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(zero)));
        match mask {
            0xffff => _mm_storeu_si128(out.cast(), bytes),
            _ => _mm_mask_storeu_epi8(out.cast(), mask, bytes),
        }
    }
}

impl<F: Function> Row for Rounded<'_, F> {
    const SHORT: bool = F::SHORT;

    #[inline(always)]
    unsafe fn row<const V: usize, const LANES: u8>(&self, row: usize, runs: &Runs, sums: [SumVector; V]) {
        let RoundedToHalf { place, residual, .. } = self.0;
        let range = place.range(row, runs);
        let residual = residual.map(|residual| residual[range.clone()].as_ptr());
        // SAFETY: as in `WholeSums`; the residual has the outputs' shape.
        unsafe {
            let out = place.out.get(range).as_mut_ptr();
            let mut floats = [_mm512_setzero_ps(); V];
            each!(sums, runs, LANES, |v, before, mask, sums| {
                floats[v] = _mm512_castsi512_ps(sums);
                if let Some(residual) = residual {
                    let from = residual.add(before).cast();
                    let halves = match mask {
                        0xffff => _mm256_loadu_si256(from),
                        _ => _mm256_maskz_loadu_epi16(mask, from.cast()),
                    };
                    let x = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves));
                    floats[v] = _mm512_add_ps(floats[v], _mm512_castsi512_ps(x));
                }
            });
            let floats = self.1.eval(floats);
            for (v, x) in floats.into_iter().enumerate() {
                let (before, mask) = runs.place::<LANES>(v);
                let halves = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x));
                let to = out.add(before).cast();
                match mask {
                    0xffff => _mm256_storeu_si256(to, halves),
                    _ => _mm256_mask_storeu_epi16(to.cast(), mask, halves),
                }
            }
        }
    }
}

/// A function of sums. Its methods are to be `#[inline(always)]`.
pub(crate) trait Function: Sync {
    /// See `TileSink`.
    const SHORT: bool;

    /// # Safety
    /// As of `TileSink::rows`.
    unsafe fn eval<const V: usize>(&self, sums: [__m512; V]) -> [__m512; V];
}

pub(crate) struct Identity;

pub(crate) struct Relu;

pub(crate) struct HardSwish;

pub(crate) struct Other(pub(crate) Activation);

/// Runs an expression with `$f` the function of an activation. Those of most models are compiled in.
macro_rules! with_function {
    ($activation:expr, $f:ident => $body:expr) => {
        match $activation {
            Activation::Identity => {
                let $f = $crate::providers::cpu::conv::dot::avx512::Identity;
                $body
            }
            Activation::Relu => {
                let $f = $crate::providers::cpu::conv::dot::avx512::Relu;
                $body
            }
            Activation::HardSwish => {
                let $f = $crate::providers::cpu::conv::dot::avx512::HardSwish;
                $body
            }
            other => {
                let $f = $crate::providers::cpu::conv::dot::avx512::Other(other);
                $body
            }
        }
    };
}
pub(crate) use with_function;

impl Function for Identity {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, sums: [__m512; V]) -> [__m512; V] {
        sums
    }
}

impl Function for Relu {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, sums: [__m512; V]) -> [__m512; V] {
        let mut out = sums;
        for x in &mut out {
            // SAFETY: as the caller promises. The operands in this order let NaN through.
            *x = unsafe { _mm512_max_ps(_mm512_setzero_ps(), *x) };
        }
        out
    }
}

impl Function for HardSwish {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, sums: [__m512; V]) -> [__m512; V] {
        let mut out = sums;
        for x in &mut out {
            // SAFETY: as the caller promises.
            unsafe {
                let gate = _mm512_fmadd_ps(*x, _mm512_set1_ps(1.0 / 6.0), _mm512_set1_ps(0.5));
                let gate = _mm512_min_ps(_mm512_set1_ps(1.0), _mm512_max_ps(_mm512_setzero_ps(), gate));
                *x = _mm512_mul_ps(*x, gate);
            }
        }
        out
    }
}

impl Function for Other {
    const SHORT: bool = false;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, sums: [__m512; V]) -> [__m512; V] {
        // SAFETY: as the caller promises.
        unsafe { activated(self.0, sums) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline(never)]
unsafe fn activated<const V: usize>(activation: Activation, sums: [__m512; V]) -> [__m512; V] {
    let Some(isa) = Avx512Isa::new() else { return sums };
    let sums = activate_vectors(isa, activation, sums.map(|x| x.into()));
    let mut floats = [[0.0; VECTOR]; V];
    for (to, x) in floats.iter_mut().zip(sums) {
        // SAFETY: a vector of floats.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x.0) };
    }
    activate_rest(activation, floats.as_flattened_mut());
    // SAFETY: as above.
    floats.map(|from| unsafe { _mm512_loadu_ps(from.as_ptr()) })
}
