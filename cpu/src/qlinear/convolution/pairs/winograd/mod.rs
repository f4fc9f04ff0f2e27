//! Convolutions with kernels of 3 × 3 and stride 1 by Winograd's minimal filtering, exactly: for 2 × 2 outputs of a channel
//! 16 multiplications instead of 36, for 4 × 4 outputs 36 instead of 144. Source: see `conv::winograd`.
//!
//! Transformed bytes (up to 4 · 255; of 4 × 4 outputs from −50 · 255 to 68 · 255) and weights (times four, up to 9 · 128; 49 · 128)
//! are integers of 16 bits, and products are summed as pairs. Sums of transformed numbers wrap; four times (64 times) an output
//! fits into 32 bits, so that it is right in the end.

mod kernels;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod larger;
#[cfg(test)]
mod tests;
mod transform;

use std::ops::Range;

use super::ROWS;
use super::job::Write;
use crate::gemm::pairs::{self, Tile};
use crate::loops::fetch::into_second_cache;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{Parts, Shares};
use crate::loops::scratch::with_scratch;
use crate::ops::window::Geometry;
use crate::threads::Pool;

/// Elements of a transformed tile at most.
const MOST: usize = 36;
/// Input channels up to which tiles have 4 × 4 outputs: with more, images are mostly too small for weights that take eight times
/// the memory of their bytes.
const LARGER: usize = 256;
/// Input and output channels from which on transforms take less time than products save, and input channels of which four
/// times the sums still fit.
const CHANNELS: Range<usize> = 32..1025;
/// Tiles of 2 × 2 outputs from which on vectors are filled well enough.
const FEWEST: usize = 12;
/// Words of transformed tiles that stay in a processor's own cache while strips go by.
const CACHED: usize = 112 * 1024;
/// Strips that a panel of transformed tiles meets one after the other, while it is in the first cache.
const TOGETHER: usize = 4;
/// Multiplications worth handing to another thread: about 10 µs of work.
const GRAIN: usize = 1 << 19;
/// Words of transformed tiles that take about as long.
const TRANSFORMED: usize = 1 << 14;

/// A transformed weight: strips of `[elements, pairs, ROWS]` pairs of 16 bits.
pub(super) struct WinogradRows {
    pub(super) words: Weights<u32>,
    pub(super) shape: TileShape,
    rows: usize,
}

/// What a transformed tile is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TileShape {
    /// Rows and columns of its outputs: 2 or 4.
    pub(super) size: usize,
    /// Pairs of channels: the two of each dot group, as `pairs::widen` makes them.
    pub(super) pairs: usize,
}

/// What depends on shapes.
pub(super) struct Tiling {
    /// Rows and columns of tiles, of outputs, of the image, and of padding before it.
    tiles: [usize; 2],
    output: [usize; 2],
    image: [usize; 2],
    pads: [usize; 2],
    /// Rows and columns of a tile's outputs.
    pub(super) size: usize,
    /// Words where all threads transform some channels of the whole image, which are then multiplied by parts of the weight;
    /// none where each transforms and multiplies lines of tiles.
    shared: Option<usize>,
}

impl TileShape {
    /// Elements of a transformed tile.
    fn elements(&self) -> usize {
        (self.size + 2) * (self.size + 2)
    }

    /// Words of a line of so many transformed tiles.
    fn of_line(&self, across: usize) -> usize {
        self.elements() * self.pairs * across
    }

    /// Words of so many transformed tiles, in panels.
    fn of_tiles(&self, count: usize) -> usize {
        self.elements() * self.pairs * count.next_multiple_of(pairs::WIDTH)
    }
}

impl Tiling {
    /// `None` where other ways are as fast.
    pub(super) fn new(g: &Geometry, shape: TileShape, threads: usize) -> Option<Self> {
        let two = |list: &[usize]| Some([*list.first()?, *list.get(1)?]);
        let (output, image, pads) = (two(&g.output)?, two(&g.input)?, two(&g.pads_begin)?);
        let size = shape.size;
        let tiles = output.map(|n| n.div_ceil(size));
        let (count, outputs) = (tiles[0] * tiles[1], output[0] * output[1]);
        let vectors = |count: usize| count.div_ceil(lanes::LANES);
        let smaller = output[0].div_ceil(2) * output[1].div_ceil(2);
        let saves = match size {
            // An output takes as long as 9 multiplications of bytes, which are faster than those of 16 bits, and transforms;
            // vectors of smaller tiles may be fuller.
            4 => {
                let multiplications = 36 * vectors(count);
                multiplications < 16 * vectors(smaller) && 2 * lanes::LANES * multiplications < 13 * outputs
            }
            // More than three of four outputs of the tiles are there.
            _ => count >= FEWEST && outputs > 3 * count,
        };
        // A line of tiles fits: of either size for images up to the same width.
        let fits = shape.of_line(tiles[1]) <= if size == 4 { CACHED / 8 * 9 } else { CACHED };
        let pays_off = saves && fits && !image.contains(&0);
        // With fewer lines than threads the image may be larger than one of them keeps in its cache, within bounds.
        let whole = shape.of_line(tiles[1]) * tiles[0];
        let is_shared = whole <= CACHED || tiles[0] < threads && whole <= 4 * CACHED;
        let shared = is_shared.then(|| shape.of_tiles(tiles[0] * tiles[1]));
        pays_off.then_some(Tiling { tiles, output, image, pads, size, shared })
    }

    /// Words of scratch that threads share.
    pub(super) fn scratch_len(&self) -> usize {
        self.shared.unwrap_or(0)
    }
}

impl WinogradRows {
    /// Of signed bytes with the sign bit flipped by `flip`. `None` for too few channels, or too many.
    pub(super) fn new(
        weight: &[u8],
        flip: u8,
        [m, channels]: [usize; 2],
        packing: Packing<'_>,
    ) -> Option<Self> {
        if !CHANNELS.contains(&channels) || m < CHANNELS.start {
            return None;
        }
        // The size is kept with the words: where these were packed before, the weight may not be there to tell it.
        let size = packing.filled(1, |size: &mut [u32]| {
            // Sums of 4 × 4 outputs are right within 26 bits.
            let fits = |row: &[u8]| {
                let bytes = row.iter().map(|&byte| i64::from((byte ^ flip) as i8));
                let [above, below] = bytes.fold([0, 0], |[a, b], x| [a + x.max(0), b - x.min(0)]);
                255 * above.max(below) < 1 << 25
            };
            let large = channels <= LARGER && weight.chunks_exact(channels * 9).all(fits);
            size[0] = if large { 4 } else { 2 };
        });
        let size = if size.first() == Some(&4) { 4 } else { 2 };
        Some(Self::with_size(weight, flip, [m, channels], size, packing))
    }

    /// For tiles of so many rows and columns of outputs.
    pub(super) fn with_size(
        weight: &[u8],
        flip: u8,
        [m, channels]: [usize; 2],
        size: usize,
        packing: Packing<'_>,
    ) -> Self {
        let words = kernels::transformed(weight, flip, [m, channels], size, packing);
        let pairs = 2 * channels.div_ceil(4);
        WinogradRows { words, shape: TileShape { size, pairs }, rows: m }
    }

    /// Gives the sums of an image, in planes of dot groups, to `write`; `border` is what lies around it. `shared` has
    /// `Tiling::scratch_len` words.
    pub(super) fn multiply(
        &self,
        pool: &Pool,
        tiling: &Tiling,
        (planes, border): (&[u32], u32),
        shared: &mut [u32],
        write: &Write<'_>,
    ) {
        let ([lines, across], strips, threads) = (tiling.tiles, self.rows.div_ceil(ROWS), pool.threads());
        let of_line = self.shape.of_line(across);
        if let Some(words) = tiling.shared {
            let transformed = Parts::new(&mut shared[..words]);
            let quads = self.shape.pairs / 2;
            pool.split(quads, (TRANSFORMED * quads).div_ceil(words), |quads| {
                self.transform(tiling, (planes, border), 0..lines, quads, &transformed);
            });
            let transformed = &shared[..words];
            let few = if threads > strips / 8 { 1 } else { TOGETHER };
            let least = (GRAIN / 4).div_ceil(lines * of_line * 2 * ROWS).max(few);
            let shares = Shares::new(strips, threads, strips, least);
            return pool.for_each(shares.runs(), &|i| {
                if !pool.cancelled() {
                    self.products(tiling, transformed, 0..lines, shares.run(i), write);
                }
            });
        }
        let least = (GRAIN / 4).div_ceil(of_line * 2 * self.rows);
        let shares = Shares::new(lines, threads, (CACHED / of_line).max(1), least);
        // With more threads than lines several transform a line, and each multiplies it by a part of the weight.
        let sharing = (threads / lines).clamp(1, strips);
        pool.for_each(shares.runs() * sharing, &|i| {
            let (lines, part) = (shares.run(i / sharing), i % sharing);
            if lines.is_empty() || pool.cancelled() {
                return;
            }
            with_scratch([self.shape.of_tiles(lines.len() * across)], |[transformed]: [&mut [u32]; 1]| {
                let parts = Parts::new(transformed);
                self.transform(tiling, (planes, border), lines.clone(), 0..self.shape.pairs / 2, &parts);
                self.products(
                    tiling,
                    transformed,
                    lines,
                    strips * part / sharing..strips * (part + 1) / sharing,
                    write,
                );
            });
        });
    }

    /// Transforms some lines of tiles of some dot groups of channels, to panels of `[elements, panels, pairs, WIDTH]`.
    fn transform(
        &self,
        tiling: &Tiling,
        (planes, border): (&[u32], u32),
        lines: Range<usize>,
        quads: Range<usize>,
        transformed: &Parts<'_, u32>,
    ) {
        let (across, size, elements) = (tiling.tiles[1], self.shape.size, self.shape.elements());
        let panels = (lines.len() * across).div_ceil(pairs::WIDTH);
        // Vectors may begin at the last tile.
        let pitch = panels * pairs::WIDTH + lanes::LANES;
        let panel = self.shape.pairs * pairs::WIDTH;
        let plane = tiling.image[0] * tiling.image[1];
        let lengths = [(size + 2) * lanes::line_len(across, size), 2 * elements * pitch];
        with_scratch(lengths, |[rows, linear]: [&mut [u32]; 2]| {
            for quad in quads {
                let image = &planes[quad * plane..][..plane];
                for line in lines.clone() {
                    tiling.read(image, line, border, rows);
                    let linear = &mut linear[(line - lines.start) * across..];
                    transform::inputs(size, rows, across, linear, pitch);
                }
                for (i, words) in linear.chunks_exact(pitch).enumerate() {
                    let (half, element) = (i / elements, i % elements);
                    let first = element * panels * panel + (2 * quad + half) * pairs::WIDTH;
                    for (i, words) in words.chunks_exact(pairs::WIDTH).enumerate() {
                        let at = first + i * panel;
                        // SAFETY: each line of a panel is of one pair, and each pair is transformed once.
                        unsafe { transformed.get(at..at + pairs::WIDTH) }.copy_from_slice(words);
                    }
                }
            }
        });
    }

    /// Some output channels of some lines of tiles.
    fn products(
        &self,
        tiling: &Tiling,
        transformed: &[u32],
        lines: Range<usize>,
        strips: Range<usize>,
        write: &Write<'_>,
    ) {
        let (pairs, across, output) = (self.shape.pairs, tiling.tiles[1], tiling.output);
        let (size, elements) = (self.shape.size, self.shape.elements());
        let count = lines.len() * across;
        let panels = count.div_ceil(pairs::WIDTH);
        let pitch = panels * pairs::WIDTH + lanes::LANES;
        let panel = pairs * pairs::WIDTH;
        let of_strip = elements * ROWS * pitch;
        let positions = size * lines.start * output[1]..(size * lines.end).min(output[0]) * output[1];
        with_scratch([TOGETHER * of_strip, positions.len()], |[sums, outputs]: [&mut [i32]; 2]| {
            for first in strips.clone().step_by(TOGETHER) {
                let strips = first..(first + TOGETHER).min(strips.end);
                for i in 0..elements * panels {
                    let (element, at) = (i / panels, i % panels * pairs::WIDTH);
                    let right = &transformed[i * panel..][..panel];
                    for strip in strips.clone() {
                        let at_left = (strip * elements + element) * pairs * ROWS;
                        let left = &self.words[at_left..][..pairs * ROWS];
                        if i % panels == 0 {
                            // A large weight comes from memory at each run: what the strip's next element takes.
                            let next = at_left + pairs * ROWS..at_left + 2 * pairs * ROWS;
                            self.words.get(next).into_iter().for_each(into_second_cache);
                        }
                        let sums = &mut sums[(strip - first) * of_strip + element * ROWS * pitch + at..];
                        assert!(sums.len() >= (ROWS - 1) * pitch + pairs::WIDTH);
                        let tile = Tile {
                            out: sums.as_mut_ptr(),
                            columns: pitch,
                            left: left.as_ptr(),
                            row: 1,
                            step: ROWS,
                            right: right.as_ptr(),
                            pitch: pairs::WIDTH,
                            depth: pairs,
                            adds: false,
                        };
                        // SAFETY: a weight is packed where there are the instructions; both operands have `pairs` lines,
                        // and there is room for sums by the assertion.
                        unsafe { tile.compute_wide::<ROWS>((count - at).min(pairs::WIDTH), panel) };
                    }
                }
                for row in first * ROWS..(strips.end * ROWS).min(self.rows) {
                    let sums = &sums[(row / ROWS - first) * of_strip + row % ROWS * pitch..];
                    for line in lines.clone() {
                        let at = (line - lines.start) * across;
                        let to = &mut outputs[size * (line - lines.start) * output[1]..];
                        transform::outputs(size, &sums[at..], ROWS * pitch, across, output[1], to);
                    }
                    write(row, positions.clone(), outputs, 0);
                }
            }
        });
    }
}

impl Tiling {
    /// The lines of dot groups that a line of tiles reads, with what is around the image.
    fn read(&self, image: &[u32], line: usize, border: u32, out: &mut [u32]) {
        let ([height, across], [above, before]) = (self.image, self.pads);
        let width = out.len() / (self.size + 2);
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let Some(from) = (self.size * line + i).checked_sub(above).filter(|&row| row < height) else {
                out.fill(border);
                continue;
            };
            let from = &image[from * across..][..across];
            let start = before.min(width);
            let end = (before + across).min(width);
            out[..start].fill(border);
            out[start..end].copy_from_slice(&from[..end - start]);
            out[end..].fill(border);
        }
    }
}
