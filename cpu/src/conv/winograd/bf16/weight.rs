//! The transformed weight, with output channels in the lanes of vectors.

use crate::conv::winograd::weight_transform::filter_kernels;
use crate::gemm::{Bf16Pair, DotGroup, MicroKernel, VECTOR};
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, Parts};
use crate::tensor::bf16;

use super::{EDGE, ELEMENTS};

/// Vectors of output channels that are multiplied together.
pub(super) const TOGETHER: usize = 2;

/// For every two vectors of output channels `[elements of a tile, channels, 2 · VECTOR]`; for the last one, where their number
/// is odd, `[elements of a tile, channels, VECTOR]`. Missing channels are 0.
pub(super) struct Kernels {
    data: Weights<f32>,
    outputs: usize,
    channels: usize,
}

impl Kernels {
    /// Transforms a weight `outputs × channels × 3 × 3` on all threads of the pool.
    pub(super) fn new(weight: &[bf16], [outputs, channels]: [usize; 2], packing: Packing<'_>) -> Self {
        let vectors = outputs.div_ceil(VECTOR);
        let data = packing.filled(vectors * VECTOR * channels * ELEMENTS, |data| {
            assert!(Bf16Pair::available() && weight.len() == 9 * outputs * channels);
            let (kernels, parts) = (weight.as_chunks::<9>().0, Parts::new(data));
            let grain = GRAIN.div_ceil(ELEMENTS * VECTOR * channels);
            packing.pool.split(vectors, grain, |range| {
                for vector in range {
                    let first = vector * VECTOR;
                    let rows = &kernels[first * channels..(first + VECTOR).min(outputs) * channels];
                    let place = Place::of(vector, vectors, channels);
                    // SAFETY: the instructions were asserted.
                    unsafe { Bf16Pair::run(Transform { rows, channels, place, parts: &parts }) };
                }
            });
        });
        Kernels { data, outputs, channels }
    }

    pub(super) fn shape(&self) -> [usize; 2] {
        [self.outputs, self.channels]
    }

    /// Those of some vectors of output channels from an even one on: how many vectors that are, and the numbers.
    pub(super) fn from(&self, vector: usize) -> (usize, &[f32]) {
        let count = (self.outputs.div_ceil(VECTOR) - vector).min(TOGETHER);
        let of_vector = VECTOR * self.channels * ELEMENTS;
        (count, &self.data[vector * of_vector..][..count * of_vector])
    }
}

/// Where the numbers of a vector of output channels lie.
struct Place {
    start: usize,
    /// From a channel to the next.
    width: usize,
}

impl Place {
    fn of(vector: usize, vectors: usize, channels: usize) -> Self {
        let first = vector / TOGETHER * TOGETHER;
        let width = (vectors - first).min(TOGETHER) * VECTOR;
        Place { start: first * VECTOR * channels * ELEMENTS + (vector - first) * VECTOR, width }
    }
}

/// Transforms the kernels of a vector of output channels: `G` · kernel · `Gᵀ`.
struct Transform<'a> {
    /// Those of up to `VECTOR` output channels.
    rows: &'a [[bf16; 9]],
    channels: usize,
    place: Place,
    parts: &'a Parts<'a, f32>,
}

impl MicroKernel for Transform<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Transform { rows, channels, place, parts } = self;
        for channel in 0..channels {
            let mut kernel = [[0.0; VECTOR]; 9];
            for (row, taps) in rows.chunks_exact(channels).enumerate() {
                for (to, x) in kernel.iter_mut().zip(&taps[channel]) {
                    to[row] = f64::from(x.to_f32());
                }
            }
            for (element, lanes) in filter_kernels::<EDGE, VECTOR>(&kernel).as_flattened().iter().enumerate()
            {
                let at = place.start + (element * channels + channel) * place.width;
                // SAFETY: vectors of different channels and elements do not overlap.
                let to = unsafe { parts.get(at..at + VECTOR) };
                to.iter_mut().zip(lanes).for_each(|(y, &x)| *y = x as f32);
            }
        }
    }
}
