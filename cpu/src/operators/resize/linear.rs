//! Linear interpolation of `f32`, compiled for the machine's vectors.

use std::ops::Range;

use crate::loops::simd::Loop;
use crate::provider::resample::Taps;

/// Units of a pass with two taps: rows of an output of `[outer, to, inner]`, or whole axes where `inner` is 1 and taps read all
/// elements, one after the other. Others are gathered, which is no faster with AVX-512 than one by one.
pub(super) struct Linear<'a> {
    /// `[from, to, inner]`
    pub(super) sizes: [usize; 3],
    pub(super) taps: &'a Taps,
    pub(super) weights: &'a [f32],
    pub(super) units: Range<usize>,
    /// What is where the axis is read outside.
    pub(super) fill: f32,
    pub(super) input: &'a [f32],
    pub(super) output: &'a mut [f32],
}

impl Loop for Linear<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Linear { sizes: [from, to, inner], taps, weights, units, fill, input, output } = self;
        let (positions, weights) = (taps.positions.as_chunks::<2>().0, weights.as_chunks::<2>().0);
        if inner == 1 {
            for (u, y) in units.zip(output.chunks_exact_mut(to)) {
                let x = &input[u * from..][..from];
                for ((y, weights), x) in y.iter_mut().zip(weights).zip(x.as_chunks::<2>().0) {
                    *y = weights[0] * x[0] + weights[1] * x[1];
                }
                for (y, _) in y.iter_mut().zip(&taps.outside).filter(|(_, outside)| **outside) {
                    *y = fill;
                }
            }
            return;
        }
        for (u, y) in units.zip(output.chunks_exact_mut(inner)) {
            let (o, p) = (u / to, u % to);
            if taps.outside[p] {
                y.fill(fill);
                continue;
            }
            let [a, b] = positions[p].map(|position| &input[(o * from + position) * inner..][..inner]);
            let [first, second] = weights[p];
            for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                *y = first * a + second * b;
            }
        }
    }
}
