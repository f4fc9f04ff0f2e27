//! Convolution with kernels of 3 × 3 and stride 1 by Winograd's minimal filtering: for 2 × 2 outputs of a channel 16
//! multiplications instead of 36, for 4 × 4 outputs 36 instead of 144. Source: Lavin and Gray, "Fast Algorithms for
//! Convolutional Neural Networks", F(2×2, 3×3) and F(4×4, 3×3).
//!
//! Three steps: the input transform of every tile; for each element of a transformed tile, the product of the transformed
//! weight with it, summed over channels (a batched matrix product with a column for each tile); the output transform.
//! The weight is transformed once.
//!
//! F(2×2) evaluates polynomials at 0, 1, -1 and ∞, F(4×4) at ½ and -2 as well: summed over 128 channels in NumPy, its
//! largest error was 2.5 times that of sums in order, with 2 and -2 instead 7 times. On the choice of points: Barabasz,
//! Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
//! Networks".

#[cfg(target_arch = "x86_64")]
pub(crate) mod bf16;
pub(crate) mod conv3x3;
pub(crate) mod dilated;
#[cfg(target_arch = "x86_64")]
mod few_tiles;
pub(crate) mod input_transform;
pub(crate) mod output_transform;
mod rows;
pub(crate) mod tiling;
pub(crate) mod weight_transform;

pub(crate) use conv3x3::build;

#[cfg(not(target_arch = "x86_64"))]
mod few_tiles {
    //! Not on this architecture.

    use super::tiling::TileSize;
    use crate::conv::common::epilogue::F32Epilogue;
    use crate::conv::direct::panels::Panels;
    use crate::ops::window::Geometry;
    use crate::threads::Pool;

    pub(super) enum FewTiles {}

    impl FewTiles {
        pub(super) fn new(_: TileSize, _: &Geometry, _: &Panels) -> Option<Self> {
            None
        }

        pub(super) fn scratch_len(&self) -> usize {
            match *self {}
        }

        pub(super) fn together(&self, _: usize, _: usize) -> usize {
            match *self {}
        }

        pub(super) fn convolve(&self, _: &Pool, _: &Panels, _: &[f32], _: &mut [f32], _: F32Epilogue<'_>) {
            match *self {}
        }
    }
}
