//! Masks of the first elements of a vector.

use rten_simd::Isa;
use rten_simd::ops::BitOps;

pub(crate) use crate::loops::simd::LONGEST;

/// The masks of the first elements of a vector, by their number.
pub(crate) struct Masks<I: Isa>([I::M32; LONGEST + 1]);

impl<I: Isa> Masks<I> {
    #[inline(always)]
    pub(crate) fn new(isa: I) -> Self {
        let ops = isa.f32();
        let mut masks = [ops.first_n_mask(0); LONGEST + 1];
        for (i, mask) in masks.iter_mut().enumerate().take(ops.len() + 1) {
            *mask = ops.first_n_mask(i);
        }
        Masks(masks)
    }

    #[inline(always)]
    pub(crate) fn first(&self, count: usize) -> I::M32 {
        self.0[count]
    }
}
