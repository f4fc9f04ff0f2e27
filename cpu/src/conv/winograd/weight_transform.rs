//! The transform of the weight: `G · kernel · Gᵀ`.

use super::tiling::TileSize;
use crate::conv::common::masks::LONGEST;
use crate::conv::direct::panels::Panels;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, Parts};

/// Points but for the one at infinity; small tiles have the first three.
pub(super) const POINTS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, -2.0];

/// The transformed weight `outputs × channels × 3 × 3`: for each element a matrix `outputs × channels`, in
/// panels of `rows`. On all threads of the pool. The weight is asked for where its panels are not kept already.
pub(crate) fn panels<W: AsRef<[f32]>>(
    size: TileSize,
    weight: impl FnOnce() -> W,
    rows: usize,
    [outputs, channels]: [usize; 2],
    packing: Packing<'_>,
) -> Panels {
    match size {
        TileSize::Small => transformed::<4, 16, W>(weight, rows, [outputs, channels], packing),
        TileSize::Large => transformed::<6, 36, W>(weight, rows, [outputs, channels], packing),
    }
}

/// `G` · kernel · `Gᵀ` for `N` points.
fn transformed<const N: usize, const ELEMENTS: usize, W: AsRef<[f32]>>(
    weight: impl FnOnce() -> W,
    rows: usize,
    [outputs, channels]: [usize; 2],
    packing: Packing<'_>,
) -> Panels {
    Panels::filled(packing, rows, ELEMENTS, outputs, channels, |data| {
        let number = outputs.next_multiple_of(rows) * channels;
        let weight = weight();
        let (kernels, parts) = (weight.as_ref().as_chunks::<9>().0, Parts::new(data));
        let grain = GRAIN.div_ceil(ELEMENTS * rows * channels);
        packing.pool.split(outputs.div_ceil(rows), grain, |range| {
            for first in range.map(|panel| panel * rows) {
                for channel in 0..channels {
                    let mut transformed = [[0.0; LONGEST]; ELEMENTS];
                    for row in 0..rows.min(outputs - first) {
                        let kernel = kernels[(first + row) * channels + channel].map(f64::from);
                        let columns =
                            [0, 1, 2].map(|j| filter::<N>([kernel[j], kernel[j + 3], kernel[j + 6]]));
                        for (i, transformed) in transformed.chunks_exact_mut(N).enumerate() {
                            let line = filter::<N>([columns[0][i], columns[1][i], columns[2][i]]);
                            transformed
                                .iter_mut()
                                .zip(line)
                                .for_each(|(transformed, x)| transformed[row] = x as f32);
                        }
                    }
                    for (i, transformed) in transformed.iter().enumerate() {
                        let at = i * number + first * channels + channel * rows;
                        // SAFETY: rows of different panels, channels and numbers do not overlap.
                        unsafe { parts.get(at..at + rows) }.copy_from_slice(&transformed[..rows]);
                    }
                }
            }
        });
    })
}

/// `G` times a column of a kernel: its polynomial at each point, over the product of the differences between that and
/// the others; last its highest coefficient.
fn filter<const N: usize>([a, b, c]: [f64; 3]) -> [f64; N] {
    let points = &POINTS[..N - 1];
    let mut out = [c; N];
    for (out, &p) in out.iter_mut().zip(points) {
        let differences: f64 = points.iter().filter(|&&q| q != p).map(|q| p - q).product();
        *out = (a + p * (b + p * c)) / differences;
    }
    out
}
