//! A step of the softmax over tiles: the running maximum and sum of a row.

use crate::gemm::Activate;
use crate::loops::simd::{Loop, widest};

/// Has a row's part of the scores, multiplied with `scale`, made exponentials against the running maximum by
/// `exponentials`, which gives their sum, and brings what was summed before to the new maximum. Scores of which none
/// is visible yet become exponentials of −∞.
pub(super) fn softmax_step<C: Activate>(
    max: &mut C,
    sum: &mut C,
    o: &mut [C],
    scores: &mut [C],
    scale: C,
    exponentials: impl FnOnce(&mut [C], C) -> C,
) {
    let new = widest(Largest { row: scores, scale, other: *max });
    step_to(new, (max, sum, o), scores, exponentials);
}

/// The same where the new maximum is known.
pub(super) fn step_to<C: Activate>(
    new: C,
    (max, sum, o): (&mut C, &mut C, &mut [C]),
    scores: &mut [C],
    exponentials: impl FnOnce(&mut [C], C) -> C,
) {
    if new == C::neg_infinity() {
        exponentials(scores, C::zero());
        return;
    }
    let part = exponentials(scores, new);
    if *max < new && *sum > C::zero() {
        let factor = (*max - new).exp();
        *sum = *sum * factor;
        widest(Times(o, factor));
    }
    *sum = *sum + part;
    *max = new;
}

/// The largest of a row's elements, scaled, and another.
struct Largest<'a, C> {
    row: &'a [C],
    scale: C,
    other: C,
}

impl<C: Activate> Loop for Largest<'_, C> {
    type Output = C;

    /// In sixteen lanes, which vector instructions can do at once.
    #[inline(always)]
    fn run(self) -> C {
        let Largest { row, scale, other } = self;
        let larger = |a: C, b: C| if b > a { b } else { a };
        let (chunks, rest) = row.as_chunks::<16>();
        let mut lanes = [C::neg_infinity(); 16];
        for chunk in chunks {
            for i in 0..16 {
                lanes[i] = larger(lanes[i], chunk[i] * scale);
            }
        }
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] = larger(lanes[i], lanes[i + half]);
            }
        }
        rest.iter().fold(larger(other, lanes[0]), |a, &b| larger(a, b * scale))
    }
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
