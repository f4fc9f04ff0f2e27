//! Images of few tiles, with channels in the lanes of vectors: tiles of 4 × 4 outputs on 7 × 7 would fill half of a vector of
//! eight, and neighbours on short lines would be parted and joined again by more instructions than the transforms take.
//!
//! The image is transposed with its padding, eight channels side by side; tiles are transformed without shuffles. A product
//! has tiles as its rows and output channels as its columns, the weight's panels being read as vectors of these.

use std::arch::x86_64::*;

use rten_simd::isa::Avx2Isa;

use super::tiling::{TileSize, Tiling};
use super::{input_transform, output_transform};
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::Masks;
use crate::conv::direct::panels::Panels;
use crate::isa::has_avx2;
use crate::loops::avx2::{LEN, first, transposed};
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::ops::window::Geometry;
use crate::threads::Pool;

/// Large tiles that fill half of a vector or less: up to 4.5 times as fast as tiles in the lanes, with AVX-512 as well.
const FEWEST: usize = 8;
/// Tiles up to which this was measured to be 1.05 to 1.2 times as fast with vectors of eight: small ones, and large. With more
/// outputs than channels it took 0.8 to 0.9 times the speed: what is won is the transform of the image.
const MOST: [usize; 2] = [49, 16];
/// Output channels that are multiplied at a time.
const OUTPUTS: usize = 2 * LEN;
/// Tiles that are, at most: sums, weights and an element fill 15 of 16 registers.
const ROWS: usize = 6;

/// What depends on shapes.
pub(super) struct FewTiles {
    tiling: Tiling,
    channels: usize,
    outputs: usize,
}

/// Elements of transformed tiles that several threads make at a time, at most, but for those of one image.
const TOGETHER: usize = 1 << 19;

/// Who multiplies some tiles.
type Multiply = unsafe fn(usize, (*const f32, usize), [*const f32; 4], *mut f32);

impl FewTiles {
    /// `None` without AVX2, for more tiles, and for panels that are no whole part of a vector.
    pub(super) fn new(size: TileSize, g: &Geometry, panels: &Panels) -> Option<Self> {
        let tiling = Tiling::new(size, g);
        let [_, outputs, channels] = panels.shape();
        let (count, large) = (tiling.count(), size == TileSize::Large);
        let most = MOST[usize::from(large)];
        let pays_off = large && count <= FEWEST || panels.rows() == 4 && outputs <= channels && count <= most;
        let fits = has_avx2() && matches!(panels.rows(), 4 | 8) && pays_off;
        fits.then_some(FewTiles { tiling, channels, outputs })
    }

    /// Elements of the transformed tiles.
    pub(super) fn scratch_len(&self) -> usize {
        self.tiling.size.elements() * self.step()
    }

    /// Elements from a transformed tile to the next.
    fn pitch(&self) -> usize {
        self.channels.next_multiple_of(LEN)
    }

    /// Elements from the transformed tiles at one element to those at the next: all elements at once are in different sets
    /// of a cache.
    fn step(&self) -> usize {
        (self.tiling.count() * self.pitch()).next_multiple_of(1024) + 2 * LEN
    }

    /// Rows and columns of what all tiles read.
    fn padded(&self) -> [usize; 2] {
        self.tiling.tiles.map(|tiles| tiles * self.tiling.size.outputs() + 2)
    }

    /// Images that are convolved at a time, which threads share.
    pub(super) fn together(&self, images: usize, threads: usize) -> usize {
        if threads == 1 { 1 } else { (TOGETHER / self.scratch_len().max(1)).clamp(1, images.max(1)) }
    }

    /// Convolves so many images on all threads of the pool; of `transformed` each has `scratch_len`.
    pub(super) fn convolve(
        &self,
        pool: &Pool,
        panels: &Panels,
        images: &[f32],
        transformed: &mut [f32],
        epilogue: F32Epilogue<'_>,
    ) {
        let (elements, count, of_image) =
            (self.tiling.size.elements(), self.tiling.count(), self.scratch_len());
        let size = self.channels * self.tiling.image[0] * self.tiling.image[1];
        let number = images.len() / size;
        let [height, width] = self.padded();
        let parts = Parts::new(&mut transformed[..number * of_image]);
        let blocks = self.pitch() / LEN;
        pool.split(number * blocks, GRAIN.div_ceil(2 * elements * count * LEN), |range| {
            with_scratch([height * width * LEN], |[padded]: [&mut [f32]; 1]| {
                padded.fill(0.0);
                for i in range {
                    let (image, channel) = (i / blocks, i % blocks * LEN);
                    let to = image * of_image + channel;
                    // SAFETY: `new` asks for the instructions; each element is written by one block of channels.
                    unsafe {
                        self.pad(&images[image * size..][..size], channel, padded);
                        match self.tiling.size {
                            TileSize::Small => self.transform_input::<2, 4>(padded, &parts, to),
                            TileSize::Large => self.transform_input::<4, 6>(padded, &parts, to),
                        }
                    }
                }
            });
        });
        let plane = epilogue.columns.next_multiple_of(LEN) * LEN;
        let work = elements * count * self.channels * OUTPUTS;
        let blocks = self.outputs.div_ceil(OUTPUTS);
        pool.split(number * blocks, GRAIN.div_ceil(work), |range| {
            let lengths = [elements * count * OUTPUTS, plane, plane];
            with_scratch(lengths, |[sums, positions, planes]: [&mut [f32]; 3]| {
                for i in range {
                    let (image, output) = (i / blocks, i % blocks * OUTPUTS);
                    let start = epilogue.start + image * self.outputs * epilogue.columns;
                    let epilogue = F32Epilogue { start, ..epilogue };
                    self.multiply(panels, &transformed[image * of_image..][..of_image], output, sums);
                    for half in 0..(self.outputs - output).div_ceil(LEN).min(2) {
                        // SAFETY: as above; each output channel is written by one block.
                        unsafe {
                            match self.tiling.size {
                                TileSize::Small => self.transform_output::<2, 4>(sums, half, positions),
                                TileSize::Large => self.transform_output::<4, 6>(sums, half, positions),
                            }
                            self.store(positions, output + half * LEN, planes, &epilogue);
                        }
                    }
                }
            });
        });
    }

    /// Writes eight channels of an image side by side between its padding.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn pad(&self, image: &[f32], channel: usize, padded: &mut [f32]) {
        let ([height, width], pads, pitch) = (self.tiling.image, self.tiling.pads, self.padded()[1]);
        let size = height * width;
        assert!(
            padded.len() >= self.padded()[0] * pitch * LEN
                && height + pads[0] <= self.padded()[0]
                && width + pads[1] <= pitch
        );
        let planes: [&[f32]; LEN] = std::array::from_fn(|lane| match channel + lane {
            channel if channel < self.channels => &image[channel * size..][..size],
            _ => &[],
        });
        let (mut x, mut to) = (0, padded[(pads[0] * pitch + pads[1]) * LEN..].as_mut_ptr());
        for start in (0..size).step_by(LEN) {
            let part = (size - start).min(LEN);
            let mask = first(part);
            let rows = planes.map(|plane| match plane.is_empty() {
                true => _mm256_setzero_ps(),
                // SAFETY: the mask leaves out what follows the plane.
                false => unsafe { _mm256_maskload_ps(plane.as_ptr().wrapping_add(start), mask) },
            });
            for column in transposed(rows).into_iter().take(part) {
                // SAFETY: as many as the planes have positions, for which there is room by the assertion.
                unsafe { _mm256_storeu_ps(to, column) };
                x += 1;
                to = to.wrapping_add(LEN);
                if x == width {
                    (x, to) = (0, to.wrapping_add((pitch - width) * LEN));
                }
            }
        }
    }

    /// Transforms the tiles of eight channels, of `M` outputs and `N` inputs along each axis; the first element goes `to`.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA, and nobody else writes these channels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn transform_input<const M: usize, const N: usize>(
        &self,
        padded: &[f32],
        transformed: &Parts<'_, f32>,
        to: usize,
    ) {
        let Some(isa) = Avx2Isa::new() else { return };
        let ([down, across], width) = (self.tiling.tiles, self.padded()[1]);
        assert!(padded.len() >= (M * down + 2) * width * LEN && width >= M * across + 2);
        for y in 0..down {
            for x in 0..across {
                let from = padded.as_ptr().wrapping_add((y * M * width + x * M) * LEN);
                let mut columns = [[_mm256_setzero_ps(); N]; N];
                for j in 0..N {
                    let mut column = [_mm256_setzero_ps().into(); N];
                    for (i, x) in column.iter_mut().enumerate() {
                        // SAFETY: a tile lies inside by the assertion.
                        *x = unsafe { _mm256_loadu_ps(from.add((i * width + j) * LEN)) }.into();
                    }
                    let column = input_transform::transform::<Avx2Isa, N>(isa, column);
                    columns.iter_mut().zip(column).for_each(|(row, x)| row[j] = x.0);
                }
                let at = (y * across + x) * self.pitch() + to;
                for (i, row) in columns.into_iter().enumerate() {
                    let row = input_transform::transform::<Avx2Isa, N>(isa, row.map(|x| x.into()));
                    for (j, x) in row.into_iter().enumerate() {
                        let at = (i * N + j) * self.step() + at;
                        // SAFETY: as the caller promises.
                        unsafe { _mm256_storeu_ps(transformed.get(at..at + LEN).as_mut_ptr(), x.0) };
                    }
                }
            }
        }
    }

    /// The sums over channels of all tiles for some output channels: by element, tile and channel.
    fn multiply(&self, panels: &Panels, transformed: &[f32], output: usize, sums: &mut [f32]) {
        let (count, rows, pitch) = (self.tiling.count(), panels.rows(), self.pitch());
        assert!(transformed.len() >= self.scratch_len());
        for (i, sums) in sums.chunks_exact_mut(count * OUTPUTS).enumerate() {
            let (panels, size) = (panels.from(i, output), panels.size());
            // Of panels that are not there the last one takes the place: nobody reads the sums.
            let last = panels.len() / size - 1;
            let weights = std::array::from_fn(|k| panels[k.min(last) * size..].as_ptr());
            for tile in (0..count).step_by(ROWS) {
                let from = transformed[i * self.step() + tile * pitch..].as_ptr();
                let to = sums[tile * OUTPUTS..].as_mut_ptr();
                let multiply: Multiply = match (rows, (count - tile).min(ROWS)) {
                    (4, 1) => product::<4, 1>,
                    (4, 2) => product::<4, 2>,
                    (4, 3) => product::<4, 3>,
                    (4, 4) => product::<4, 4>,
                    (4, 5) => product::<4, 5>,
                    (4, _) => product::<4, ROWS>,
                    (_, 1) => product::<8, 1>,
                    (_, 2) => product::<8, 2>,
                    (_, 3) => product::<8, 3>,
                    (_, 4) => product::<8, 4>,
                    (_, 5) => product::<8, 5>,
                    _ => product::<8, ROWS>,
                };
                // SAFETY: `new` asks for the instructions; panels hold a row of weights for each channel, transformed
                // tiles and sums lie inside by the lengths above.
                unsafe { multiply(self.channels, (from, pitch), weights, to) };
            }
        }
    }

    /// Transforms the sums of eight output channels into outputs: by position and channel.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn transform_output<const M: usize, const N: usize>(
        &self,
        sums: &[f32],
        half: usize,
        positions: &mut [f32],
    ) {
        let Some(isa) = Avx2Isa::new() else { return };
        let ([down, across], [height, width]) = (self.tiling.tiles, self.tiling.output);
        let count = down * across;
        assert!(sums.len() >= N * N * count * OUTPUTS && half < 2 && positions.len() >= height * width * LEN);
        for y in 0..down {
            for x in 0..across {
                let from = sums.as_ptr().wrapping_add((y * across + x) * OUTPUTS + half * LEN);
                let mut lines = [[_mm256_setzero_ps(); N]; M];
                for j in 0..N {
                    let mut column = [_mm256_setzero_ps().into(); N];
                    for (i, x) in column.iter_mut().enumerate() {
                        // SAFETY: the sums of all elements lie inside by the assertion.
                        *x = unsafe { _mm256_loadu_ps(from.add((i * N + j) * count * OUTPUTS)) }.into();
                    }
                    let column = output_transform::transform::<Avx2Isa, N, M>(isa, column);
                    lines.iter_mut().zip(column).for_each(|(line, x)| line[j] = x.0);
                }
                let to = positions.as_mut_ptr().wrapping_add((y * M * width + x * M) * LEN);
                let (inside, columns) = ((height - y * M).min(M), (width - x * M).min(M));
                for (i, line) in lines.into_iter().enumerate().take(inside) {
                    let line = output_transform::transform::<Avx2Isa, N, M>(isa, line.map(|x| x.into()));
                    for (j, x) in line.into_iter().enumerate().take(columns) {
                        // SAFETY: a position of the output, for which there is room by the assertion.
                        unsafe { _mm256_storeu_ps(to.wrapping_add((i * width + j) * LEN), x.0) };
                    }
                }
            }
        }
    }

    /// Writes eight output channels from `first_row` on, as far as there are so many.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA, and nobody else writes these channels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn store(
        &self,
        positions: &[f32],
        first_row: usize,
        planes: &mut [f32],
        epilogue: &F32Epilogue<'_>,
    ) {
        let Some(isa) = Avx2Isa::new() else { return };
        let (masks, columns) = (Masks::new(isa), epilogue.columns);
        let pitch = columns.next_multiple_of(LEN);
        assert!(positions.len() >= pitch * LEN && planes.len() >= pitch * LEN);
        for start in (0..columns).step_by(LEN) {
            // SAFETY: rows of whole vectors by the assertion; what follows the last position is not written further.
            unsafe {
                let rows =
                    std::array::from_fn(|i| _mm256_loadu_ps(positions.as_ptr().add((start + i) * LEN)));
                for (lane, row) in transposed(rows).into_iter().enumerate() {
                    _mm256_storeu_ps(planes.as_mut_ptr().add(lane * pitch + start), row);
                }
            }
        }
        for (row, plane) in (first_row..self.outputs).zip(planes.chunks_exact(pitch)) {
            let at = epilogue.start + row * columns;
            // SAFETY: as the caller promises.
            let out = unsafe { epilogue.out.get(at..at + columns) };
            epilogue.line(isa, &masks, &plane[..columns], row, at, out);
        }
    }
}

/// The sums of `T` tiles, so far apart, for `OUTPUTS` output channels, whose weights are in panels of `R`.
///
/// # Safety
/// The processor has AVX2 and FMA. Tiles have elements, and panels `R` weights, for so many channels; the first panels
/// together have `OUTPUTS` rows. There is room for the sums.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn product<const R: usize, const T: usize>(
    channels: usize,
    (from, pitch): (*const f32, usize),
    panels: [*const f32; 4],
    to: *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); 2]; T];
        for channel in 0..channels {
            let weights = match R {
                4 => [
                    joined(panels[0].add(channel * R), panels[1].add(channel * R)),
                    joined(panels[2].add(channel * R), panels[3].add(channel * R)),
                ],
                _ => {
                    [_mm256_loadu_ps(panels[0].add(channel * R)), _mm256_loadu_ps(panels[1].add(channel * R))]
                }
            };
            for (t, sums) in sums.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*from.add(t * pitch + channel));
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = _mm256_fmadd_ps(weight, x, *sum);
                }
            }
        }
        for (v, sum) in sums.into_iter().flatten().enumerate() {
            _mm256_storeu_ps(to.add(v * LEN), sum);
        }
    }
}

/// Four floats and four more.
///
/// # Safety
/// The processor has AVX2; they can be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn joined(low: *const f32, high: *const f32) -> __m256 {
    // SAFETY: as the caller promises.
    unsafe { _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high)) }
}
