//! The transform of the weight: `G · kernel · Gᵀ`.

use super::tiling::TileSize;
use crate::conv::common::masks::LONGEST;
use crate::conv::direct::panels::Panels;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, Parts};

/// Points but for the one at infinity; small tiles have the first three.
const POINTS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, -2.0];

/// The transformed weight `outputs × channels × 3 × 3`: for each element a matrix `outputs × channels`, in
/// panels of `rows`. On all threads of the pool.
pub(crate) fn panels(
    size: TileSize,
    weight: &[f32],
    rows: usize,
    [outputs, channels]: [usize; 2],
    packing: Packing<'_>,
) -> Panels {
    match size {
        TileSize::Small => transformed::<4, 16>(weight, rows, [outputs, channels], packing),
        TileSize::Large => transformed::<6, 36>(weight, rows, [outputs, channels], packing),
    }
}

/// `G` · kernel · `Gᵀ` for `N` points.
fn transformed<const N: usize, const ELEMENTS: usize>(
    weight: &[f32],
    rows: usize,
    [outputs, channels]: [usize; 2],
    packing: Packing<'_>,
) -> Panels {
    Panels::filled(packing, rows, ELEMENTS, outputs, channels, |data| {
        let number = outputs.next_multiple_of(rows) * channels;
        let (kernels, parts) = (weight.as_chunks::<9>().0, Parts::new(data));
        let grain = GRAIN.div_ceil(ELEMENTS * rows * channels);
        packing.pool.split(outputs.div_ceil(rows), grain, |range| {
            for first in range.map(|panel| panel * rows) {
                for channel in 0..channels {
                    let mut transformed = [[0.0; LONGEST]; ELEMENTS];
                    for row in 0..rows.min(outputs - first) {
                        let kernel = kernels[(first + row) * channels + channel].map(|x| [f64::from(x)]);
                        for (transformed, [x]) in
                            transformed.iter_mut().zip(filter_kernels::<N, 1>(&kernel).as_flattened())
                        {
                            transformed[row] = *x as f32;
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

/// `G` · kernel · `Gᵀ` of `L` kernels side by side.
#[inline(always)]
pub(super) fn filter_kernels<const N: usize, const L: usize>(kernels: &[[f64; L]; 9]) -> [[[f64; L]; N]; N] {
    let columns = [0, 1, 2].map(|j| filter::<N, L>([&kernels[j], &kernels[j + 3], &kernels[j + 6]]));
    std::array::from_fn(|i| filter([&columns[0][i], &columns[1][i], &columns[2][i]]))
}

/// `G` times a column of kernels: its polynomial at each point, over the product of the differences between that and
/// the others; last its highest coefficient.
#[inline(always)]
fn filter<const N: usize, const L: usize>([a, b, c]: [&[f64; L]; 3]) -> [[f64; L]; N] {
    let points = &POINTS[..N - 1];
    let mut out = [*c; N];
    for (out, &p) in out.iter_mut().zip(points) {
        let factor = points.iter().filter(|&&q| q != p).map(|q| p - q).product::<f64>().recip();
        for i in 0..L {
            out[i] = (a[i] + p * (b[i] + p * c[i])) * factor;
        }
    }
    out
}
