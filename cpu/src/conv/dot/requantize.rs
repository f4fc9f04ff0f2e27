//! Steps of requantization that outputs of either layout take.

use std::arch::x86_64::*;

use super::epilogue::Residual;

/// Least and greatest number that a byte with a zero point stands for.
pub(crate) struct Limits([__m512; 2]);

impl Limits {
    /// # Safety
    /// As of `TileEpilogue::tile`.
    #[inline(always)]
    pub(crate) unsafe fn new(zero: i32, signed: bool) -> Self {
        let least = if signed { -128 } else { 0 } - zero;
        // SAFETY: as the caller promises.
        Limits(unsafe { [_mm512_set1_ps(least as f32), _mm512_set1_ps((least + 255) as f32)] })
    }

    /// # Safety
    /// As of `TileEpilogue::tile`.
    #[inline(always)]
    pub(crate) unsafe fn apply(&self, x: __m512) -> __m512 {
        let [low, high] = self.0;
        // SAFETY: as the caller promises.
        unsafe { _mm512_min_ps(_mm512_max_ps(x, low), high) }
    }
}

/// The sum of limited numbers, which are rounded first, and of a residual less its zero point, in the result's units.
///
/// # Safety
/// As of `TileEpilogue::tile`.
#[inline(always)]
pub(crate) unsafe fn residual_part(residual: &Residual<'_>, zero: f32, x: __m512, data: __m512i) -> __m512 {
    let [a, b] = residual.factors;
    // SAFETY: as the caller promises.
    unsafe {
        let x = _mm512_mul_ps(_mm512_roundscale_ps::<0>(x), _mm512_set1_ps(a));
        let z = _mm512_sub_ps(_mm512_cvtepi32_ps(data), _mm512_set1_ps(zero));
        _mm512_add_ps(x, _mm512_mul_ps(z, _mm512_set1_ps(b)))
    }
}
