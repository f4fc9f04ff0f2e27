//! What becomes of accumulated values of columns, in vectors.

use crate::loops::simd::Loop;

use super::accumulate::Accumulate;

/// Whether all values are finite.
pub(super) struct AreFinite<'a, W: Accumulate>(pub(super) &'a [W::Acc]);

impl<W: Accumulate> Loop for AreFinite<'_, W> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        // Not until the first that is not, which would take them one by one.
        self.0.iter().fold(true, |all, &acc| all & W::as_f64(acc).is_finite())
    }
}

/// Writes a function of each accumulated value.
pub(super) struct Finish<'a, A, T, F> {
    pub(super) y: &'a mut [T],
    pub(super) sums: &'a [A],
    pub(super) f: F,
}

impl<A: Copy, T, F: Fn(A) -> T> Loop for Finish<'_, A, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.y.iter_mut().zip(self.sums).for_each(|(y, &sum)| *y = (self.f)(sum));
    }
}
