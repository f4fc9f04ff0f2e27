//! Sixteen channels as vectors: from planes and back, and the products.

use std::arch::x86_64::*;

use super::{Nchw16c, Nchw16cElement, Place, TRANSPOSED};
use crate::conv::common::avx512::{Function, with_function};
use crate::gemm::{Bf16Pair, DotGroup, VECTOR};
use crate::isa::has_avx512;
use crate::ops::activation::Activation;
use crate::tensor::bf16;

impl Nchw16c {
    /// As `multiply`.
    ///
    /// # Safety
    /// The processor has AVX512F; `multiply` asserts the extents.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn multiply_avx512<const S: usize>(
        &self,
        lines: usize,
        image: &[f32],
        kernel: &[f32],
        bias: &[f32; VECTOR],
        sums: &mut [f32],
    ) {
        let line = self.window.output[1];
        for y in 0..lines {
            let mut x = 0;
            while x < line {
                let (from, to) = (y * S * self.pitch + x * S, y * line + x);
                // SAFETY: extents are asserted.
                unsafe {
                    let (from, to) = (image.as_ptr().add(from * VECTOR), sums.as_mut_ptr().add(to * VECTOR));
                    let kernel = kernel.as_ptr();
                    x += match line - x {
                        8.. => self.run::<S, 8>(from, kernel, bias, to),
                        7 => self.run::<S, 7>(from, kernel, bias, to),
                        4.. => self.run::<S, 4>(from, kernel, bias, to),
                        2.. => self.run::<S, 2>(from, kernel, bias, to),
                        _ => self.run::<S, 1>(from, kernel, bias, to),
                    };
                }
            }
        }
    }

    /// The sums of `N` outputs; tells their number.
    ///
    /// # Safety
    /// The processor has AVX512F; what is read and written must be valid.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn run<const S: usize, const N: usize>(
        &self,
        from: *const f32,
        mut kernel: *const f32,
        bias: &[f32; VECTOR],
        to: *mut f32,
    ) -> usize {
        let ([height, width], [down, across]) = (self.window.kernel, self.window.dilations);
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = [_mm512_loadu_ps(bias.as_ptr()); N];
            for y in 0..height {
                for x in 0..width {
                    let from = from.add((y * down * self.pitch + x * across) * VECTOR);
                    let weight = _mm512_loadu_ps(kernel);
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_fmadd_ps(weight, _mm512_loadu_ps(from.add(i * S * VECTOR)), *sum);
                    }
                    kernel = kernel.add(VECTOR);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                _mm512_storeu_ps(to.add(i * VECTOR), sum);
            }
        }
        N
    }
}

impl Nchw16cElement for f32 {
    const BLOCKS: bool = false;

    fn available() -> bool {
        has_avx512()
    }

    fn pays_off(lanes: &Nchw16c) -> bool {
        let ([_, width], taps) = (lanes.window.output, lanes.window.kernel[0] * lanes.window.kernel[1]);
        // With 7 × 7 on lines of 56, and dilated, 2.9 and 1.7 times as fast as a channel at a time, which copies there; on
        // short lines 0.95 to 2.7 times, with 3 × 3 and 5 × 5 on others 0.5 to 0.9.
        width <= 16 || taps > 25 || lanes.window.dilations != [1, 1]
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_transposed(from: &[&[f32]; VECTOR], to: Place<'_>) {
        let mut positions = Positions::new(from, to);
        for start in (0..from[0].len()).step_by(VECTOR) {
            let part = (from[0].len() - start).min(VECTOR);
            let mask = (!0u32 >> (32 - part)) as u16;
            let mut vectors = [_mm512_setzero_si512(); VECTOR];
            for (vectors, line) in vectors.iter_mut().zip(from) {
                let mask = if line.is_empty() { 0 } else { mask };
                // SAFETY: the mask leaves out what follows the line.
                *vectors =
                    unsafe { _mm512_maskz_loadu_epi32(mask, line.as_ptr().wrapping_add(start).cast()) };
            }
            for vectors in transposed(vectors).into_iter().take(part) {
                // SAFETY: as many as the lines have positions.
                unsafe { positions.put(vectors) };
            }
        }
    }

    unsafe fn store_transposed(activation: Activation, sums: &[f32], count: usize, to: [*mut f32; VECTOR]) {
        // SAFETY: as above.
        unsafe { with_function!(activation, f => store(f, sums, count, to)) };
    }

    unsafe fn store_blocked(_: Activation, _: &[f32], _: usize, _: [*mut f32; VECTOR]) {
        unreachable!("floats are not channel-blocked")
    }
}

/// As `Nchw16cElement::store_transposed`.
///
/// # Safety
/// As there; the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn store<F: Function>(f: F, sums: &[f32], count: usize, to: [*mut f32; VECTOR]) {
    assert!(sums.len() >= count.next_multiple_of(VECTOR) * VECTOR);
    for start in (0..count).step_by(VECTOR) {
        let mut vectors = [_mm512_setzero_si512(); VECTOR];
        for (j, vectors) in vectors.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
            // SAFETY: inside by the assertion; the processor has what this function was compiled for.
            let x = unsafe { f.eval(load(sums, start + j * STEP)) };
            vectors.iter_mut().zip(x).for_each(|(vector, x)| *vector = _mm512_castps_si512(x));
        }
        let mask = (!0u32 >> (32 - (count - start).min(VECTOR))) as u16;
        for (vectors, to) in transposed(vectors).into_iter().zip(to).filter(|(_, to)| !to.is_null()) {
            // SAFETY: the mask leaves out what follows the last output.
            unsafe { _mm512_mask_storeu_epi32(to.add(start).cast(), mask, vectors) };
        }
    }
}

impl Nchw16cElement for bf16 {
    const BLOCKS: bool = true;

    fn available() -> bool {
        f32::available() && Bf16Pair::available()
    }

    /// One channel at a time becomes floats and back as well: on lines of 28 and more that takes half to nine tenths of
    /// the time, on 14 and fewer up to twice.
    fn pays_off(lanes: &Nchw16c) -> bool {
        lanes.window.output[1] <= 20
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_transposed(from: &[&[bf16]; VECTOR], to: Place<'_>) {
        let mut positions = Positions::new(from, to);
        for start in (0..from[0].len()).step_by(TRANSPOSED) {
            let part = (from[0].len() - start).min(TRANSPOSED);
            let mask = (!0u64 >> (64 - part)) as u32;
            let mut vectors = [_mm512_setzero_si512(); VECTOR];
            for (vectors, line) in vectors.iter_mut().zip(from) {
                let mask = if line.is_empty() { 0 } else { mask };
                // SAFETY: the mask leaves out what follows the line.
                *vectors =
                    unsafe { _mm512_maskz_loadu_epi16(mask, line.as_ptr().wrapping_add(start).cast()) };
            }
            for (j, vectors) in transposed(vectors).into_iter().enumerate() {
                let high = _mm512_and_si512(vectors, _mm512_set1_epi32(0xffff_0000_u32 as i32));
                for (j, vectors) in [(2 * j, _mm512_slli_epi32::<16>(vectors)), (2 * j + 1, high)] {
                    if j < part {
                        // SAFETY: as many as the lines have positions.
                        unsafe { positions.put(vectors) };
                    }
                }
            }
        }
    }

    unsafe fn store_transposed(activation: Activation, sums: &[f32], count: usize, to: [*mut bf16; VECTOR]) {
        // SAFETY: as the caller promises.
        unsafe { with_function!(rounded activation, f => narrow(f, sums, count, to)) }
    }

    unsafe fn store_blocked(activation: Activation, sums: &[f32], count: usize, to: [*mut bf16; VECTOR]) {
        // SAFETY: as the caller promises.
        unsafe { with_function!(rounded activation, f => narrow_pairs(f, sums, count, to)) }
    }
}

/// Where the positions of lines go in an image of floats: one after the other, but for the margins.
struct Positions {
    to: *mut f32,
    x: usize,
    width: usize,
    /// Floats from the end of a line to the next.
    gap: usize,
}

impl Positions {
    /// Asserts that there is room for all positions of `from`.
    fn new<T>(from: &[&[T]; VECTOR], place: Place<'_>) -> Self {
        let (width, count) = (place.width, from[0].len());
        assert!(from.iter().all(|line| line.len() == count || line.is_empty()));
        let (to, pitch) = place.of(count / width, width);
        Positions { to, x: 0, width, gap: pitch - width * VECTOR }
    }

    /// Writes the next position.
    ///
    /// # Safety
    /// There is one. The processor has AVX512F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn put(&mut self, lanes: __m512i) {
        // SAFETY: as the caller promises.
        unsafe { _mm512_storeu_si512(self.to.cast(), lanes) };
        self.x += 1;
        self.to = self.to.wrapping_add(VECTOR);
        if self.x == self.width {
            (self.x, self.to) = (0, self.to.wrapping_add(self.gap));
        }
    }
}

/// Vectors that a function is called for.
const STEP: usize = 8;

/// The sums of positions from `start` on.
///
/// # Safety
/// There are so many. The processor has AVX512F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(sums: &[f32], start: usize) -> [__m512; STEP] {
    let mut x = [_mm512_setzero_ps(); STEP];
    for (i, x) in x.iter_mut().enumerate() {
        // SAFETY: as the caller promises.
        *x = unsafe { _mm512_loadu_ps(sums.as_ptr().add((start + i) * VECTOR)) };
    }
    x
}

/// # Safety
/// As of `Nchw16cElement::store_transposed`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn narrow<F: Function>(f: F, sums: &[f32], count: usize, to: [*mut bf16; VECTOR]) {
    assert!(sums.len() >= count.next_multiple_of(TRANSPOSED) * VECTOR);
    for start in (0..count).step_by(TRANSPOSED) {
        let mut vectors = [_mm512_setzero_si512(); VECTOR];
        for (j, vectors) in vectors.as_chunks_mut::<{ STEP / 2 }>().0.iter_mut().enumerate() {
            // SAFETY: inside by the assertion; the processor has what this function was compiled for.
            let x = unsafe { f.eval(load(sums, start + j * STEP)) };
            for (vector, [low, high]) in vectors.iter_mut().zip(x.as_chunks::<2>().0) {
                let [low, high] = [rounded(*low), rounded(*high)];
                *vector = _mm512_or_si512(low, _mm512_slli_epi32::<16>(high));
            }
        }
        let mask = (!0u64 >> (64 - (count - start).min(TRANSPOSED))) as u32;
        for (vectors, to) in transposed(vectors).into_iter().zip(to).filter(|(_, to)| !to.is_null()) {
            // SAFETY: the mask leaves out what follows the last output.
            unsafe { _mm512_mask_storeu_epi16(to.add(start).cast(), mask, vectors) };
        }
    }
}

/// # Safety
/// As of `Nchw16cElement::store_blocked`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn narrow_pairs<F: Function>(f: F, sums: &[f32], count: usize, to: [*mut bf16; VECTOR]) {
    assert!(sums.len() >= count.next_multiple_of(TRANSPOSED) * VECTOR);
    for start in (0..count).step_by(TRANSPOSED) {
        // The pairs of a position, and beside them those of the position sixteen later.
        let mut vectors = [_mm512_setzero_si512(); VECTOR];
        for (j, vectors) in vectors.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
            let at = start + j * STEP;
            // SAFETY: inside by the assertion; the processor has what this function was compiled for.
            let (near, far) = unsafe { (f.eval(load(sums, at)), f.eval(load(sums, at + VECTOR))) };
            for (vector, (near, far)) in vectors.iter_mut().zip(near.into_iter().zip(far)) {
                let pair = _mm512_cvtne2ps_pbh(far, near);
                // SAFETY: both are 32 halves.
                *vector = unsafe { std::mem::transmute::<__m512bh, __m512i>(pair) };
            }
        }
        let columns = transposed(vectors);
        for (i, to) in to.into_iter().step_by(2).enumerate().filter(|(_, to)| !to.is_null()) {
            for (half, column) in [columns[i], columns[i + VECTOR / 2]].into_iter().enumerate() {
                let at = start + half * VECTOR;
                if at < count {
                    let mask = (!0u32 >> (32 - (count - at).min(VECTOR))) as u16;
                    // SAFETY: the mask leaves out what follows the last output.
                    unsafe { _mm512_mask_storeu_epi32(to.cast::<i32>().add(at), mask, column) };
                }
            }
        }
    }
}

/// The bits of bfloat16 numbers, as vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16,avx512vl")]
fn rounded(x: __m512) -> __m512i {
    // SAFETY: both are sixteen halves.
    _mm512_cvtepu16_epi32(unsafe { std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x)) })
}

/// A square of 16 × 16 elements, transposed.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(rows: [__m512i; VECTOR]) -> [__m512i; VECTOR] {
    let (mut pairs, mut fours) = (rows, rows);
    for i in 0..8 {
        let (a, b) = (rows[2 * i], rows[2 * i + 1]);
        (pairs[2 * i], pairs[2 * i + 1]) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    }
    for i in 0..4 {
        for k in 0..2 {
            let (a, b) = (pairs[4 * i + k], pairs[4 * i + k + 2]);
            (fours[4 * i + 2 * k], fours[4 * i + 2 * k + 1]) =
                (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        }
    }
    // Quarters of a vector are of columns four apart.
    let mut columns = rows;
    for k in 0..4 {
        let [a, b, c, d] = [fours[k], fours[4 + k], fours[8 + k], fours[12 + k]];
        let (even, odd) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
        let (even2, odd2) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d));
        columns[k] = _mm512_shuffle_i32x4::<0x88>(even, even2);
        columns[4 + k] = _mm512_shuffle_i32x4::<0x88>(odd, odd2);
        columns[8 + k] = _mm512_shuffle_i32x4::<0xdd>(even, even2);
        columns[12 + k] = _mm512_shuffle_i32x4::<0xdd>(odd, odd2);
    }
    columns
}
