//! Activations of vectors of AVX-512. Those of most models are compiled in, with one instruction where there is one; the
//! others are called.

use std::arch::x86_64::*;
use std::f32::consts::LOG2_E;

use rten_simd::isa::Avx512Isa;

use super::activation::{HardSwish, Identity, Relu, RoughSilu, Silu, activate_rest, activate_vectors};
use crate::gemm::VECTOR;
use crate::loops::exponential::POWER;
use crate::loops::vector::ROUGH_POWER;
use crate::ops::activation::Activation;

/// A function of vectors of sums. `eval` is to be `#[inline(always)]`.
pub(crate) trait Function: Sync {
    /// Whether it takes few instructions, so that it can be compiled for each row of a tile.
    const SHORT: bool;

    /// # Safety
    /// The processor has AVX-512 F, BW, DQ and VL, and the caller is compiled for them.
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V];
}

impl Function for Identity {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V] {
        x
    }
}

impl Function for Relu {
    const SHORT: bool = true;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V] {
        let mut out = x;
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
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V] {
        let mut out = x;
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

/// Without a division, which takes longer than all the rest.
impl Function for Silu {
    const SHORT: bool = false;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V] {
        let mut out = x;
        for x in &mut out {
            // SAFETY: as the caller promises.
            unsafe {
                // Larger numbers are their own result. The operands in this order let NaN through.
                let least = _mm512_min_ps(_mm512_set1_ps(87.0), *x);
                let whole = _mm512_roundscale_ps::<NEAREST>(_mm512_mul_ps(least, _mm512_set1_ps(-LOG2_E)));
                let rest = _mm512_fmsub_ps(least, _mm512_set1_ps(-LOG2_E), whole);
                let rest = _mm512_fmadd_ps(least, _mm512_set1_ps(-LOG2_E_REST), rest);
                let mut y = _mm512_set1_ps(POWER[5]);
                for i in (0..5).rev() {
                    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(POWER[i]));
                }
                let exp = _mm512_scalef_ps(_mm512_fmadd_ps(y, rest, _mm512_set1_ps(1.0)), whole);
                let below = _mm512_add_ps(exp, _mm512_set1_ps(1.0));
                // Its 14 bits become 28.
                let inverse = _mm512_rcp14_ps(below);
                let error = _mm512_fnmadd_ps(below, inverse, _mm512_set1_ps(1.0));
                let inverse = _mm512_fmadd_ps(inverse, error, inverse);
                // From there on the inverse may be no normal number.
                let some = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(*x, _mm512_set1_ps(-87.0));
                *x = _mm512_mask_mul_ps(_mm512_set1_ps(-0.0), some, *x, inverse);
            }
        }
        out
    }
}

impl Function for RoughSilu {
    const SHORT: bool = false;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V] {
        let mut out = x;
        for x in &mut out {
            // SAFETY: as the caller promises.
            unsafe {
                // As above, with what is enough.
                let least = _mm512_min_ps(_mm512_set1_ps(87.0), *x);
                let power = _mm512_mul_ps(least, _mm512_set1_ps(-LOG2_E));
                let whole = _mm512_roundscale_ps::<NEAREST>(power);
                let rest = _mm512_sub_ps(power, whole);
                let mut y = _mm512_set1_ps(ROUGH_POWER[3]);
                for i in (0..3).rev() {
                    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(ROUGH_POWER[i]));
                }
                let below = _mm512_add_ps(_mm512_scalef_ps(y, whole), _mm512_set1_ps(1.0));
                let some = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(*x, _mm512_set1_ps(-87.0));
                *x = _mm512_mask_mul_ps(_mm512_set1_ps(-0.0), some, *x, _mm512_rcp14_ps(below));
            }
        }
        out
    }
}

/// What `LOG2_E` lacks.
const LOG2_E_REST: f32 = 1.925_963e-8;
/// To the nearest whole number, without an exception.
const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Any activation.
pub(crate) struct Called(pub(crate) Activation);

impl Function for Called {
    const SHORT: bool = false;

    #[inline(always)]
    unsafe fn eval<const V: usize>(&self, x: [__m512; V]) -> [__m512; V] {
        // SAFETY: as the caller promises.
        unsafe { called(self.0, x) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline(never)]
unsafe fn called<const V: usize>(activation: Activation, x: [__m512; V]) -> [__m512; V] {
    let Some(isa) = Avx512Isa::new() else { return x };
    let x = activate_vectors(isa, activation, x.map(|x| x.into()));
    let mut floats = [[0.0; VECTOR]; V];
    for (to, x) in floats.iter_mut().zip(x) {
        // SAFETY: a vector of floats.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x.0) };
    }
    activate_rest(activation, floats.as_flattened_mut());
    // SAFETY: as above.
    floats.map(|from| unsafe { _mm512_loadu_ps(from.as_ptr()) })
}

/// Runs an expression with `$f` the [`Function`] of an activation; `rounded`: of one whose results become bfloat16 numbers.
macro_rules! with_function {
    ($activation:expr, $f:ident => $body:expr) => {
        $crate::conv::common::avx512::with_function!($activation, Silu, $f => $body)
    };
    (rounded $activation:expr, $f:ident => $body:expr) => {
        $crate::conv::common::avx512::with_function!($activation, RoughSilu, $f => $body)
    };
    ($activation:expr, $silu:ident, $f:ident => $body:expr) => {
        $crate::conv::common::activation::with_activation!(
            $activation, [Identity, Relu, HardSwish, $silu],
            $f => $body,
            other => { let $f = $crate::conv::common::avx512::Called(other); $body }
        )
    };
}
pub(crate) use with_function;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::has_avx512;

    #[test]
    fn silu_is_close() {
        if !has_avx512() {
            return;
        }
        for i in -30_000..=30_000i32 {
            let x = i as f32 * 0.003_7;
            // SAFETY: the processor has AVX-512.
            let [y, rough] = unsafe { [one(Silu, x), one(RoughSilu, x)] }.map(f64::from);
            let want = x as f64 / (1.0 + (-x as f64).exp());
            assert!((y - want).abs() <= 4e-7 * want.abs() + 1e-34, "{x}: {y} {want}");
            assert!((rough - want).abs() <= 2e-4 * want.abs() + 1e-34, "{x}: {rough} {want}");
        }
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        // SAFETY: as above.
        for all in unsafe { [special.map(|x| one(Silu, x)), special.map(|x| one(RoughSilu, x))] } {
            assert!(all[0].is_nan() && all[1] == f32::INFINITY && all[2] == 0.0, "{all:?}");
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn one(f: impl Function, x: f32) -> f32 {
        // SAFETY: as the caller promises.
        unsafe { _mm512_cvtss_f32(f.eval([_mm512_set1_ps(x)])[0]) }
    }
}
