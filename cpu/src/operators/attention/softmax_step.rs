//! A step of the softmax over tiles: the running maximum and sum of a row.

use crate::gemm::Activate;
use crate::loops::simd::{Loop, widest};

/// What exponentials are powers of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Base {
    E,
    /// Scores were multiplied by `log₂(e)`: powers of two take three multiplications less for each vector.
    Two,
}

impl Base {
    fn power<C: Activate>(self, exponent: C) -> C {
        match self {
            Base::E => exponent.exp(),
            Base::Two => exponent.exp2(),
        }
    }
}

/// Makes a row's part of the scores exponentials against the running maximum, and brings what
/// was summed before to the new maximum. Scores of which none is visible yet become exponentials of −∞.
pub(super) fn softmax_step<C: Activate>(max: &mut C, sum: &mut C, o: &mut [C], scores: &mut [C], base: Base) {
    let new = C::largest(scores, *max);
    let exponentials = match base {
        Base::E => C::exponentials,
        Base::Two => C::powers_of_two,
    };
    step_to(new, (max, sum, o), scores, base, exponentials);
}

/// The same where the new maximum is known, with exponentials by a function that gives their sum.
pub(super) fn step_to<C: Activate>(
    new: C,
    (max, sum, o): (&mut C, &mut C, &mut [C]),
    scores: &mut [C],
    base: Base,
    exponentials: impl FnOnce(&mut [C], C) -> C,
) {
    if new == C::neg_infinity() {
        exponentials(scores, C::zero());
        return;
    }
    let part = exponentials(scores, new);
    if *max < new && *sum > C::zero() {
        let factor = base.power(*max - new);
        *sum = *sum * factor;
        widest(Times(o, factor));
    }
    *sum = *sum + part;
    *max = new;
}

/// Multiplies all elements with a number.
pub(super) struct Times<'a, C>(pub(super) &'a mut [C], pub(super) C);

impl<C: Activate> Loop for Times<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|x| *x = *x * self.1);
    }
}
