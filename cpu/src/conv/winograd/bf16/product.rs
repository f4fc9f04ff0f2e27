//! The products of transformed tiles and weights, summed over channels, with output channels in the lanes of vectors.

use std::arch::x86_64::*;

use crate::gemm::{Bf16Pair, DotGroup, MicroKernel, VECTOR};

use super::plan::TILES;
use super::{ELEMENTS, Matrices};

/// The sums of all tiles of a part with `V` vectors of output channels.
pub(super) struct Product<'a> {
    pub(super) channels: usize,
    pub(super) from: Matrices,
    pub(super) transformed: &'a [f32],
    /// As of `Kernels::from`.
    pub(super) weights: &'a [f32],
    pub(super) to: Matrices,
    pub(super) sums: &'a mut [f32],
}

impl Product<'_> {
    pub(super) fn compute(self) {
        let Product { channels, ref from, transformed, weights, ref to, ref sums } = self;
        assert!(Bf16Pair::available() && transformed.len() >= from.len() && sums.len() >= to.len());
        assert!(from.tiles == to.tiles && channels.div_ceil(VECTOR) == from.vectors);
        assert!(weights.len() == ELEMENTS * channels * to.vectors * VECTOR);
        match self.to.vectors {
            1 => self.all::<1>(),
            2 => self.all::<2>(),
            _ => unreachable!("weights are of one or two vectors"),
        }
    }

    fn all<const V: usize>(self) {
        let tiles = self.to.tiles;
        // Blocks of nearly as many tiles each.
        let count = tiles.div_ceil(TILES).max(1);
        let (size, larger) = (tiles / count, tiles % count);
        let at = self.sums.as_mut_ptr();
        for element in 0..ELEMENTS {
            // SAFETY: `compute` asserted what all blocks read and write, of which there is no other user.
            unsafe {
                self.blocks::<V>(at, element, 0, size + 1, larger);
                self.blocks::<V>(at, element, larger * (size + 1), size, count - larger);
            }
        }
    }

    /// Some blocks of so many tiles each, from a tile on.
    ///
    /// # Safety
    /// As `all` says.
    unsafe fn blocks<const V: usize>(
        &self,
        sums: *mut f32,
        element: usize,
        first: usize,
        size: usize,
        count: usize,
    ) {
        let weights = &self.weights[element * self.channels * V * VECTOR..];
        for first in (0..count).map(|i| first + i * size) {
            let from = &self.transformed[element * self.from.step() + first * VECTOR..];
            // SAFETY: as the caller promises.
            unsafe {
                let to = sums.add(element * self.to.step() + first * V * VECTOR);
                let (from, weights) = (from.as_ptr(), weights.as_ptr());
                let (channels, vector) = (self.channels, self.from.tiles * VECTOR);
                macro_rules! by_size {
                    ($($tiles:literal)*) => {
                        match size {
                            $($tiles => Bf16Pair::run(Block::<$tiles, V> { channels, vector, from, weights, to }),)*
                            _ => unreachable!("blocks have 1 to 14 tiles"),
                        }
                    };
                }
                by_size!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
            }
        }
    }
}

/// The sums of `P` tiles with `V` vectors of output channels, of one element of tiles.
struct Block<const P: usize, const V: usize> {
    channels: usize,
    /// Floats from a vector of channels to the next.
    vector: usize,
    from: *const f32,
    weights: *const f32,
    to: *mut f32,
}

impl<const P: usize, const V: usize> MicroKernel for Block<P, V> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Block { channels, vector, from, mut weights, to } = self;
        // SAFETY: `Product::compute` asserted what is read and written.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); V]; P];
            for first in (0..channels).step_by(VECTOR) {
                let mut x = from.add(first / VECTOR * vector);
                for _ in 0..(channels - first).min(VECTOR) {
                    let mut w = [_mm512_setzero_ps(); V];
                    for (v, w) in w.iter_mut().enumerate() {
                        *w = _mm512_loadu_ps(weights.add(v * VECTOR));
                    }
                    for (p, sums) in sums.iter_mut().enumerate() {
                        let x = _mm512_set1_ps(*x.add(p * VECTOR));
                        for (sum, w) in sums.iter_mut().zip(w) {
                            *sum = _mm512_fmadd_ps(x, w, *sum);
                        }
                    }
                    (x, weights) = (x.add(1), weights.add(V * VECTOR));
                }
            }
            // By reference: an iterator over the sums themselves goes through memory.
            for (p, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    _mm512_storeu_ps(to.add((p * V + v) * VECTOR), *sum);
                }
            }
        }
    }
}
