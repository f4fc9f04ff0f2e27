//! Sums of two output channels on their way to a `TileEpilogue`.

use std::arch::x86_64::*;

use super::PAIR;
use crate::conv::common::lines::Lines;
use crate::conv::dot::{ALL, FIRST, Positions, TileEpilogue, VECTORS};
use crate::gemm::{Bf16Pair, DotGroup, MicroKernel, VECTOR};

/// Elements that a vector reads behind the last sums, and one more.
pub(super) const BEHIND: usize = VECTOR;

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
        for start in (0..self.area).step_by(VECTORS * VECTOR) {
            let count = (self.area - start).min(VECTORS * VECTOR);
            let positions = Positions::new(Lines::whole(self.area), self.before, (start, count));
            // SAFETY: as `compute` asserts; nothing lies between lines, so the first lanes are the output's, if not all.
            unsafe {
                match (count.div_ceil(VECTOR), positions.lanes_are()) {
                    (1, ALL) => self.tile::<1, ALL>(start, &positions),
                    (1, _) => self.tile::<1, FIRST>(start, &positions),
                    (2, ALL) => self.tile::<2, ALL>(start, &positions),
                    (2, _) => self.tile::<2, FIRST>(start, &positions),
                    (_, ALL) => self.tile::<VECTORS, ALL>(start, &positions),
                    _ => self.tile::<VECTORS, FIRST>(start, &positions),
                }
            }
        }
    }
}

impl<E: TileEpilogue> Round<'_, E> {
    /// So many vectors of both channels from an output on.
    ///
    /// # Safety
    /// Only inside `run`. The last vector must begin in the row, and `LANES` be what the positions say.
    #[inline(always)]
    unsafe fn tile<const V: usize, const LANES: u8>(&self, start: usize, positions: &Positions) {
        let &Round { sums, area, row, bias, epilogue, .. } = self;
        // SAFETY: a vector from any sum on can be read by the assertion in `compute`; each output is given once.
        unsafe {
            let mut tile = [[_mm512_setzero_si512(); V]; PAIR];
            for (r, vectors) in tile.iter_mut().enumerate() {
                for (v, vector) in vectors.iter_mut().enumerate() {
                    let x = _mm512_loadu_ps(sums.as_ptr().add(r * area + start + v * VECTOR));
                    *vector = _mm512_castps_si512(_mm512_add_ps(x, _mm512_set1_ps(bias[r])));
                }
            }
            epilogue.tile::<PAIR, V, LANES>(row..row + PAIR, positions, tile);
        }
    }
}
