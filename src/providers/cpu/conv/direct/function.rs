//! Activations as functions of one vector. Comparisons are written so that NaN stays NaN.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdUnaryOp};

pub(super) struct Identity;
pub(super) struct Relu;
/// The factor of negative numbers.
pub(super) struct LeakyRelu(pub(super) f32);
/// Limits.
pub(super) struct Clip(pub(super) f32, pub(super) f32);
/// `clamp(a·x + b, 0, 1)`
pub(super) struct HardSigmoid(pub(super) f32, pub(super) f32);
/// `x · clamp(x/6 + 1/2, 0, 1)`
pub(super) struct HardSwish;

impl SimdUnaryOp<f32> for Identity {
    #[inline(always)]
    fn eval<I: Isa>(&self, _isa: I, x: I::F32) -> I::F32 {
        x
    }
}

impl SimdUnaryOp<f32> for Relu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.select(ops.zero(), x, ops.lt(x, ops.zero()))
    }
}

impl SimdUnaryOp<f32> for LeakyRelu {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.select(ops.mul(x, ops.splat(self.0)), x, ops.lt(x, ops.zero()))
    }
}

impl SimdUnaryOp<f32> for Clip {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        let (min, max) = (ops.splat(self.0), ops.splat(self.1));
        let x = ops.select(min, x, ops.lt(x, min));
        ops.select(max, x, ops.gt(x, max))
    }
}

impl SimdUnaryOp<f32> for HardSigmoid {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let ops = isa.f32();
        ops.clamp(ops.mul_add(x, ops.splat(self.0), ops.splat(self.1)), ops.zero(), ops.one())
    }
}

impl SimdUnaryOp<f32> for HardSwish {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        isa.f32().mul(x, HardSigmoid(1.0 / 6.0, 0.5).eval(isa, x))
    }
}
