//! Sums of two output channels on their way to a `TileEpilogue`.

use std::arch::x86_64::*;

use super::PAIR;
use crate::conv::common::lines::Lines;
use crate::conv::dot::{FIRST, Positions, TileEpilogue, VECTORS};
use crate::gemm::{Bf16Pair, DotGroup, MicroKernel, VECTOR};

/// Elements that vectors read behind the last sums.
pub(super) const BEHIND: usize = VECTORS * VECTOR;

/// Some outputs of two channels.
pub(super) struct Round<'a, E> {
    /// A row for each channel, and `BEHIND` elements more.
    pub(super) sums: &'a [f32],
    pub(super) area: usize,
    /// The first channel.
    pub(super) row: usize,
    pub(super) bias: [f32; PAIR],
    /// Outputs of a channel that come before these.
    pub(super) before: usize,
    pub(super) epilogue: &'a E,
}

impl<E: TileEpilogue> Round<'_, E> {
    pub(super) fn compute(self) {
        assert!(Bf16Pair::available() && self.sums.len() >= PAIR * self.area + BEHIND);
        // SAFETY: the instructions are there, and the sums, by the assertion.
        unsafe { Bf16Pair::run(self) };
    }
}

impl<E: TileEpilogue> MicroKernel for Round<'_, E> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Round { sums, area, row, bias, before, epilogue } = self;
        for start in (0..area).step_by(VECTORS * VECTOR) {
            let count = (area - start).min(VECTORS * VECTOR);
            let positions = Positions::new(Lines::whole(area), before, (start, count));
            // SAFETY: vectors from any sum on can be read by the assertion in `compute`; each output is given once.
            unsafe {
                let mut tile = [[_mm512_setzero_si512(); VECTORS]; PAIR];
                for (r, vectors) in tile.iter_mut().enumerate() {
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        let x = _mm512_loadu_ps(sums.as_ptr().add(r * area + start + v * VECTOR));
                        *vector = _mm512_castps_si512(_mm512_add_ps(x, _mm512_set1_ps(bias[r])));
                    }
                }
                epilogue.tile::<PAIR, VECTORS, FIRST>(row..row + PAIR, &positions, tile);
            }
        }
    }
}
