//! The transformed weight, with output channels in the lanes of vectors.

use crate::conv::winograd::weight_transform::filter;
use crate::gemm::VECTOR;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, Parts};
use crate::tensor::bf16;

use super::ELEMENTS;

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
            let (kernels, parts) = (weight.as_chunks::<9>().0, Parts::new(data));
            let grain = GRAIN.div_ceil(ELEMENTS * VECTOR * channels);
            packing.pool.split(vectors, grain, |range| {
                for vector in range {
                    let (first, place) = (vector * VECTOR, Place::of(vector, vectors, channels));
                    for channel in 0..channels {
                        let mut transformed = [[0.0; VECTOR]; ELEMENTS];
                        for row in 0..VECTOR.min(outputs - first) {
                            let kernel = &kernels[(first + row) * channels + channel];
                            for (to, x) in transformed.iter_mut().zip(transform(kernel)) {
                                to[row] = x;
                            }
                        }
                        for (i, transformed) in transformed.iter().enumerate() {
                            let at = place.start + (i * channels + channel) * place.width;
                            // SAFETY: vectors of different channels and elements do not overlap.
                            unsafe { parts.get(at..at + VECTOR) }.copy_from_slice(transformed);
                        }
                    }
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

/// `G` · kernel · `Gᵀ`.
fn transform(kernel: &[bf16; 9]) -> [f32; ELEMENTS] {
    let kernel = kernel.map(|x| f64::from(x.to_f32()));
    let columns = [0, 1, 2].map(|j| filter::<6>([kernel[j], kernel[j + 3], kernel[j + 6]]));
    let mut out = [0.0; ELEMENTS];
    for (i, out) in out.as_chunks_mut::<6>().0.iter_mut().enumerate() {
        let line = filter::<6>([columns[0][i], columns[1][i], columns[2][i]]);
        *out = line.map(|x| x as f32);
    }
    out
}
