//! Functions over several vectors of f32 at a time, step by step: a step of one vector waits for the one before it, and a
//! processor looks only so far ahead for steps that need not wait. With 16 registers (AVX2, Zen 4) four vectors take 0.75
//! (Erf) to 0.83 (Tanh) of the time of four that follow one another.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp, SimdUnaryOp};

use crate::isa::Dispatch;
use crate::loops::store::store_first;

use super::map::Function;

/// Vectors at a time.
const COUNT: usize = 4;

/// A function of several vectors, each of whose steps is written for all of them.
pub(crate) trait Together: SimdUnaryOp<f32> {
    fn together<I: Isa, const N: usize>(&self, isa: I, x: [I::F32; N]) -> [I::F32; N];
}

/// What an expression has for each of `N` vectors.
macro_rules! each {
    ($isa:ident, $i:ident => $value:expr) => {{
        let mut all = [$isa.f32().zero(); N];
        for $i in 0..N {
            all[$i] = $value;
        }
        all
    }};
}
pub(crate) use each;

/// Four vectors of AVX2, as they are: what computes one of them is not put behind what follows of another. Compilers prefer few
/// registers in use, and undo what this file is for.
#[inline(always)]
pub(crate) fn in_step<I: Isa, const N: usize>(isa: I, x: [I::F32; N]) -> [I::F32; N] {
    #[cfg(target_arch = "x86_64")]
    if N == COUNT && isa.f32().len() == 8 {
        use std::arch::x86_64::__m256;
        use std::mem::transmute_copy;
        assert!(size_of::<[I::F32; N]>() == size_of::<[__m256; COUNT]>(), "vectors of eight floats");
        // SAFETY: vectors of eight floats are those of AVX2, which the processor has: there is an `Isa` of it. Both types are
        // as many bytes of floats, by the assertion.
        return unsafe { transmute_copy(&barrier(transmute_copy(&x))) };
    }
    let _ = isa;
    x
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
fn barrier(
    [mut a, mut b, mut c, mut d]: [std::arch::x86_64::__m256; COUNT],
) -> [std::arch::x86_64::__m256; COUNT] {
    // SAFETY: no instructions, only registers that hold what they held.
    unsafe {
        std::arch::asm!(
            "/* {a} {b} {c} {d} */",
            a = inout(ymm_reg) a,
            b = inout(ymm_reg) b,
            c = inout(ymm_reg) c,
            d = inout(ymm_reg) d,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    [a, b, c, d]
}

/// A polynomial of each vector by Horner's rule, the constant term first.
#[inline(always)]
pub(crate) fn polynomial<I: Isa, const N: usize, const C: usize>(
    isa: I,
    x: [I::F32; N],
    coefficients: [f32; C],
) -> [I::F32; N] {
    let ops = isa.f32();
    let mut y = [ops.splat(coefficients[C - 1]); N];
    for k in (0..C - 1).rev() {
        y = in_step(isa, each!(isa, i => ops.mul_add(y[i], x[i], ops.splat(coefficients[k]))));
    }
    y
}

/// Applied to each element.
pub(crate) struct ManyVectors<Op>(pub(crate) Op);

impl<Op: Together + Send + Sync> Function<f32> for ManyVectors<Op> {
    fn map(&self, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), y.len(), "an element for each element");
        Elements { f: &self.0, x: x.as_ptr(), y: y.as_mut_ptr(), len: y.len() }.widest();
    }

    fn map_mut(&self, x: &mut [f32]) {
        apply_together(&self.0, x);
    }
}

/// Applies a function to each element.
pub(crate) fn apply_together<Op: Together>(f: &Op, x: &mut [f32]) {
    Elements { f, x: x.as_ptr(), y: x.as_mut_ptr(), len: x.len() }.widest();
}

/// `y[i] = f(x[i])` for `len` elements; what is read and what is written may be the same.
struct Elements<'a, Op> {
    f: &'a Op,
    x: *const f32,
    y: *mut f32,
    len: usize,
}

impl<Op: Together> SimdOp for Elements<'_, Op> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let ops = isa.f32();
        let Elements { f, x, y, len } = self;
        let vector = ops.len();
        let mut at = 0;
        // SAFETY: those who made it give `len` elements that are read, and as many that nothing else reads or writes.
        // Vectors are read before they are written. The mask has the elements that are left.
        unsafe {
            while len - at >= COUNT * vector {
                let mut from = [ops.load_ptr(x.add(at)); COUNT];
                for (i, from) in from.iter_mut().enumerate().skip(1) {
                    *from = ops.load_ptr(x.add(at + i * vector));
                }
                for (i, to) in f.together(isa, from).into_iter().enumerate() {
                    ops.store_ptr(to, y.add(at + i * vector));
                }
                at += COUNT * vector;
            }
            while len - at >= vector {
                let [to] = f.together(isa, [ops.load_ptr(x.add(at))]);
                ops.store_ptr(to, y.add(at));
                at += vector;
            }
            if at < len {
                let mask = ops.first_n_mask(len - at);
                let [to] = f.together(isa, [ops.load_ptr_mask(x.add(at), mask)]);
                store_first(isa, to, y.add(at), len - at, mask);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rten_simd::Simd;

    use crate::loops::exponential::{Sigmoid, Tanh};
    use crate::loops::vector::{Erf, Gelu};

    /// The same as one vector at a time, whatever is left at the end, and nothing behind it.
    fn check<I: Isa, Op: Together>(isa: I, f: Op) {
        let ops = isa.f32();
        for len in [0, 1, 3, 4, 7, 8, 15, 16, 31, 33, 63, 64, 65, 130] {
            let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 100.0, -100.0, f32::MIN_POSITIVE];
            let number =
                |i: usize| if i % 5 == 3 { odd[i / 5 % odd.len()] } else { (i as f32 - 60.0) * 0.11 };
            let x: Vec<f32> = (0..len).map(number).collect();
            let mut y = vec![9.0; len + 1];
            Elements { f: &f, x: x.as_ptr(), y: y.as_mut_ptr(), len }.eval(isa);
            for (&x, &y) in x.iter().zip(&y) {
                let want = f.eval(isa, ops.splat(x)).to_array();
                let want = want.as_ref()[0];
                assert!(
                    y.to_bits() == want.to_bits() || y.is_nan() && want.is_nan(),
                    "{x} of {len}: {y} and {want}"
                );
            }
            assert_eq!(y[len], 9.0);
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => {
            check(isa, Erf);
            check(isa, Gelu);
            check(isa, Tanh);
            check(isa, Sigmoid);
        });
    }
}
