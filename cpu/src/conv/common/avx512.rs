//! Activations of vectors of AVX-512. Those of most models are compiled in, with one instruction where there is one; the
//! others are called.

use std::arch::x86_64::*;

use rten_simd::isa::Avx512Isa;

use super::activation::{HardSwish, Identity, Relu, activate_rest, activate_vectors};
use crate::gemm::VECTOR;
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

/// Runs an expression with `$f` the [`Function`] of an activation.
macro_rules! with_function {
    ($activation:expr, $f:ident => $body:expr) => {
        $crate::conv::common::activation::with_activation!(
            $activation, [Identity, Relu, HardSwish],
            $f => $body,
            other => { let $f = $crate::conv::common::avx512::Called(other); $body }
        )
    };
}
pub(crate) use with_function;
