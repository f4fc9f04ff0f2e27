//! A row of scores and its softmax: the largest score, and exponentials with their sum.

use rten_simd::ops::{BitOps, IntOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp, SimdUnaryOp};

use super::exponential::POWER;
use super::store::store_first;
use super::vector::{BIAS, ROUND, at_least, exp_below_zero};

/// `exp_below_zero` as a function.
pub(crate) struct ExpBelowZero;

impl SimdUnaryOp<f32> for ExpBelowZero {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        exp_below_zero(isa, x)
    }
}

/// Twice `2ʳ` for r in [−1/2, 1/2].
const TWICE_POWER: [f32; 7] = {
    let [a, b, c, d, e, f] = POWER;
    [2.0, 2.0 * a, 2.0 * b, 2.0 * c, 2.0 * d, 2.0 * e, 2.0 * f]
};

/// `2ˣ` of what is not above zero, within 1.2 ulp; 0 below −125.5, so that no result is a denormal number.
pub(crate) struct PowerBelowOne;

impl SimdUnaryOp<f32> for PowerBelowOne {
    #[inline(always)]
    fn eval<I: Isa>(&self, isa: I, x: I::F32) -> I::F32 {
        let (ops, ints) = (isa.f32(), isa.i32());
        let x = at_least(isa, -BIAS, x);
        // Half of the power of two and twice the other factor, as in `many_exp_factors`.
        let biased = ops.splat(ROUND + BIAS);
        let rounded = ops.add(x, biased);
        let r = ops.sub(x, ops.sub(rounded, biased));
        let mut y = ops.splat(TWICE_POWER[6]);
        for i in (0..6).rev() {
            y = ops.mul_add(y, r, ops.splat(TWICE_POWER[i]));
        }
        let power: I::I32 = ints.shift_left::<23>(rounded.reinterpret_cast());
        ops.mul(y, power.reinterpret_cast())
    }
}

/// The largest of scores and of another number; a score that is no number counts as none.
pub(crate) struct Largest<'a> {
    pub(crate) scores: &'a [f32],
    pub(crate) other: f32,
}

impl SimdOp for Largest<'_> {
    type Output = f32;

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> f32 {
        let ops = isa.f32();
        let len = ops.len();
        // Four maxima, so that none waits for the one before it.
        let mut most = [ops.splat(self.other); 4];
        let mut fours = self.scores.chunks_exact(4 * len);
        for four in fours.by_ref() {
            for (most, scores) in most.iter_mut().zip(four.chunks_exact(len)) {
                *most = larger(isa, ops.load(scores), *most);
            }
        }
        for scores in fours.remainder().chunks(len) {
            let mask = ops.first_n_mask(scores.len());
            // SAFETY: the mask has as many elements as the slice.
            let x = unsafe { ops.load_ptr_mask(scores.as_ptr(), mask) };
            most[0] = ops.select(larger(isa, x, most[0]), most[0], mask);
        }
        let [a, b, c, d] = most;
        let most = larger(isa, larger(isa, a, b), larger(isa, c, d)).to_array();
        most.as_ref().iter().fold(self.other, |most, &x| if x > most { x } else { most })
    }
}

/// The larger number of each element; that of `y` where `x` is none.
#[inline(always)]
fn larger<I: Isa>(isa: I, x: I::F32, y: I::F32) -> I::F32 {
    let ops = isa.f32();
    // The operands in this order let NaN through that is the second one, where there is an instruction of that kind.
    if ops.len() >= 8 { ops.max(x, y) } else { ops.select(x, y, ops.gt(x, y)) }
}

/// `exp(score − largest)`, or another function of the difference, in the place of each score, none of which exceeds
/// `largest`; gives their sum.
pub(crate) struct Exponentials<'a, F> {
    pub(crate) scores: &'a mut [f32],
    pub(crate) largest: f32,
    pub(crate) below_zero: F,
}

impl<F: SimdUnaryOp<f32>> SimdOp for Exponentials<'_, F> {
    type Output = f32;

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> f32 {
        let ops = isa.f32();
        let len = ops.len();
        let largest = ops.splat(self.largest);
        // Four sums, so that none waits for the one before it.
        let mut sums = [ops.zero(); 4];
        let mut fours = self.scores.chunks_exact_mut(4 * len);
        for four in fours.by_ref() {
            for (sum, scores) in sums.iter_mut().zip(four.chunks_exact_mut(len)) {
                let y = self.below_zero.eval(isa, ops.sub(ops.load(scores), largest));
                ops.store(y, scores);
                *sum = ops.add(*sum, y);
            }
        }
        for scores in fours.into_remainder().chunks_mut(len) {
            let mask = ops.first_n_mask(scores.len());
            // SAFETY: the mask has as many elements as the slice.
            unsafe {
                let x = ops.load_ptr_mask(scores.as_ptr(), mask);
                let y = self.below_zero.eval(isa, ops.sub(x, largest));
                store_first(isa, y, scores.as_mut_ptr(), scores.len(), mask);
                sums[0] = ops.add(sums[0], ops.select(y, ops.zero(), mask));
            }
        }
        ops.sum(ops.add(ops.add(sums[0], sums[1]), ops.add(sums[2], sums[3])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<I: Isa>(isa: I) {
        for count in [0, 1, 15, 16, 63, 64, 65, 200] {
            let scores: Vec<f32> = (0..count).map(|i| ((i * 37) % 101) as f32 * -0.4 + 7.0).collect();
            let near = |got: f32, want: f64| (f64::from(got) - want).abs() <= 3e-7 * want;
            let (mut exponentials, mut powers) = (scores.clone(), scores.clone());
            let sums = [
                Exponentials { scores: &mut exponentials, largest: 7.0, below_zero: ExpBelowZero }.eval(isa),
                Exponentials { scores: &mut powers, largest: 7.0, below_zero: PowerBelowOne }.eval(isa),
            ];
            for (got, of, sum) in
                [(exponentials, f64::exp as fn(f64) -> f64, sums[0]), (powers, f64::exp2, sums[1])]
            {
                let want: Vec<f64> = scores.iter().map(|&x| of(f64::from(x) - 7.0)).collect();
                assert!(
                    got.iter().zip(&want).all(|(&got, &want)| near(got, want)),
                    "{count}: {got:?} {want:?}"
                );
                let want: f64 = want.iter().sum();
                assert!((f64::from(sum) - want).abs() <= 1e-6 * want, "{count}: {sum} {want}");
            }
            let want = scores.iter().copied().fold(-30.0, f32::max);
            assert_eq!(Largest { scores: &scores, other: -30.0 }.eval(isa), want, "{count}");
            assert_eq!(Largest { scores: &scores, other: 9.0 }.eval(isa), 9.0, "{count}");
        }
        let special = [f32::NEG_INFINITY, f32::NAN, -1000.0, 0.0];
        assert_eq!(Largest { scores: &special, other: f32::NEG_INFINITY }.eval(isa), 0.0);
        assert_eq!(Largest { scores: &special[..2], other: f32::NEG_INFINITY }.eval(isa), f32::NEG_INFINITY);
        let (mut first, mut second) = (special, special);
        let sums = [
            Exponentials { scores: &mut first, largest: 0.0, below_zero: ExpBelowZero }.eval(isa),
            Exponentials { scores: &mut second, largest: 0.0, below_zero: PowerBelowOne }.eval(isa),
        ];
        assert!(sums.iter().all(|sum| sum.is_nan()));
        for x in [first, second] {
            assert!(x[0] == 0.0 && x[1].is_nan() && x[2] == 0.0 && x[3] == 1.0, "{x:?}");
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }

    #[test]
    fn powers_of_two_are_near() {
        for i in 0..=130_000 {
            let x = i as f32 * -1e-3;
            let (got, want) = (f64::from(PowerBelowOne.scalar_eval(x)), f64::from(x).exp2());
            let worst = if x >= -125.0 { 1.2e-7 * want } else { want };
            assert!(
                (got - want).abs() <= worst && (got == 0.0 || got as f32 >= f32::MIN_POSITIVE),
                "{x}: {got} {want}"
            );
        }
    }
}
