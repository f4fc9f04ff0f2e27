//! How the outputs of a convolution are divided: among threads, and by what of the kernel they read.

use std::ops::Range;

use super::panels::LanePanels;
use super::part::{Part, spans};
use super::tile::{Block, Outputs};
use crate::conv::common::epilogue::F32Epilogue;
use crate::isa::Dispatch;
use crate::kernel::KernelContext;
use crate::loops::parallel::GRAIN;
use crate::loops::scratch::with_scratch;
use crate::ops::window::Geometry;

/// Positions whose sums are computed at a time, but for those of one line: from so many that tiles are mostly full.
const POSITIONS: Range<usize> = 48..513;
/// Floats of a panel that positions go by at a time, and of the image: parts of a processor's own cache.
const WEIGHTS: usize = 48 * 1024;
const IMAGE: usize = 128 * 1024;
/// Channels that are read at a time where each has pages of its own: a processor finds little more at once.
const PAGES: usize = 64;
/// Floats of a page.
const PAGE: usize = 1024;

/// What depends on shapes.
pub(crate) struct LanePlan {
    /// Elements of a channel of the image.
    plane: usize,
    /// Elements from what an output reads to what the next one of a part does: down and across.
    step: [usize; 2],
    /// Outputs of a line, and of a channel.
    line: usize,
    outputs: usize,
    chunks: Vec<Chunk>,
    /// Whether a thread has lines of all channels, which it also wrote if the convolution before was shared out like this one,
    /// and not channels of all lines.
    by_lines: bool,
    /// Input channels whose products are summed at a time.
    channels: usize,
}

/// Lines whose sums are computed at a time.
struct Chunk {
    lines: Range<usize>,
    parts: Vec<Part>,
}

impl LanePlan {
    /// For so many images and a geometry of one or two axes that has outputs.
    pub(crate) fn new(g: &Geometry, panels: &LanePanels, images: usize, threads: usize) -> Self {
        let sizes = [&g.input, &g.output];
        Self::of_axes(
            sizes,
            &g.kernel,
            [&g.strides, &vec![1; g.strides.len()]],
            panels,
            (images, threads),
            |axis, o, k| (o * g.strides[axis] + k * g.dilations[axis]).checked_sub(g.pads_begin[axis]),
        )
    }

    /// The same for a transposed convolution, whose outputs are the image of such a geometry.
    pub(crate) fn transposed(g: &Geometry, panels: &LanePanels, images: usize, threads: usize) -> Self {
        let sizes = [&g.output, &g.input];
        Self::of_axes(
            sizes,
            &g.kernel,
            [&vec![1; g.strides.len()], &g.strides],
            panels,
            (images, threads),
            |axis, o, k| {
                let at = (o + g.pads_begin[axis]).checked_sub(k * g.dilations[axis])?;
                at.is_multiple_of(g.strides[axis]).then_some(at / g.strides[axis])
            },
        )
    }

    /// `place`: what an output reads for a position of the kernel, along an axis. Outputs that are the second step apart read
    /// elements that are the first apart.
    fn of_axes(
        [input, output]: [&Vec<usize>; 2],
        kernel: &[usize],
        [image_steps, output_steps]: [&Vec<usize>; 2],
        panels: &LanePanels,
        (images, threads): (usize, usize),
        place: impl Fn(usize, usize, usize) -> Option<usize>,
    ) -> Self {
        // One axis goes down: lines of one output each.
        let axes = input.len();
        let two = |list: &[usize]| [list[0], list.get(1).copied().unwrap_or(1)];
        let ([input, output, kernel], steps) = ([input, output, kernel].map(two), two(image_steps));
        let apart = two(output_steps);
        let [rows, columns] = [0, 1].map(|axis| {
            let place = |o: usize, k: usize| if axis < axes { place(axis, o, k) } else { Some(0) };
            spans(output[axis], apart[axis], kernel[axis], |o, k| place(o, k).filter(|&at| at < input[axis]))
        });
        let [lines, line] = output;
        let by_lines = threads > 1 && panels.shape()[0] <= 2 * lines * line;
        let each = if by_lines { 1 } else { panels.groups() * panels.count() };
        let pieces = if by_lines { 2 * threads } else { 4 * threads };
        let wanted = if threads == 1 { 1 } else { pieces.div_ceil(images * each) };
        let wanted = lines.div_ceil(wanted).max(POSITIONS.start.div_ceil(line));
        let most = (POSITIONS.end / line).min(wanted).clamp(1, lines);
        let count = lines.div_ceil(most);
        let chunks = (0..count).map(|i| {
            let lines = lines * i / count..lines * (i + 1) / count;
            let rows = rows.iter().filter_map(|span| span.within(&lines, steps[0]));
            let parts = rows
                .flat_map(|down| columns.iter().map(move |across| down.part(across, input[1], kernel[1])));
            Chunk { parts: parts.collect(), lines }
        });
        let [_, channels, volume] = panels.shape();
        // Elements of a channel that the longest chunk reads.
        let reach = kernel[0].div_ceil(apart[0]) + most.div_ceil(apart[0]) * steps[0];
        let read = reach.min(input[0]) * input[1];
        let pages = if input[0] * input[1] < PAGE { 1 } else { channels.div_ceil(PAGES) };
        let blocks = (channels * volume * panels.lanes()).div_ceil(WEIGHTS);
        let blocks = blocks.max((channels * read).div_ceil(IMAGE)).max(pages).clamp(1, channels);
        LanePlan {
            plane: input[0] * input[1],
            step: [steps[0] * input[1], steps[1]],
            line,
            outputs: lines * line,
            chunks: chunks.collect(),
            by_lines,
            channels: channels.div_ceil(blocks),
        }
    }

    /// Convolves images that follow one another.
    pub(crate) fn convolve(
        &self,
        cx: &KernelContext<'_>,
        panels: &LanePanels,
        x: &[f32],
        epilogue: F32Epilogue<'_>,
    ) {
        let [outputs, channels, volume] = panels.shape();
        let images = epilogue.out.len() / (panels.groups() * outputs * self.outputs);
        let (count, room) = (self.count(panels, images), self.scratch_len(panels));
        cx.pool.split(count, GRAIN.div_ceil((room * channels * volume).max(1)), |range| {
            with_scratch([room], |[sums]: [&mut [f32]; 1]| {
                for i in range.take_while(|_| !cx.cancelled()) {
                    // Panels of short vectors are those of AVX2, maybe on a processor that has longer ones.
                    if panels.tile().vector == 8 {
                        let write = |outputs: Outputs<'_>| outputs.by_eight();
                        self.piece(panels, i, x, epilogue, sums, |block| block.by_eight(), write);
                    } else {
                        let write = |outputs: Outputs<'_>| outputs.widest();
                        self.piece(panels, i, x, epilogue, sums, |block| block.widest(), write);
                    }
                }
            });
        });
    }

    /// Pieces of so many images that may be computed in any order.
    pub(crate) fn count(&self, panels: &LanePanels, images: usize) -> usize {
        images * panels.groups() * panels.count() * self.chunks.len()
    }

    /// Floats of scratch for a piece.
    pub(crate) fn scratch_len(&self, panels: &LanePanels) -> usize {
        let longest = self.chunks.iter().fold(0, |most, chunk| most.max(chunk.lines.len()));
        longest * self.line * panels.lanes()
    }

    /// Computes a piece, its products by `multiply`; `write` takes the sums to the outputs.
    pub(crate) fn piece(
        &self,
        panels: &LanePanels,
        i: usize,
        x: &[f32],
        epilogue: F32Epilogue<'_>,
        sums: &mut [f32],
        multiply: impl Fn(Block<'_>),
        write: impl Fn(Outputs<'_>),
    ) {
        let ([outputs, channels, _], groups) = (panels.shape(), panels.groups());
        let (chunks, of_panels) = (self.chunks.len(), groups * panels.count());
        let (image, i) = (i / (chunks * of_panels), i % (chunks * of_panels));
        let (chunk, panel) =
            if self.by_lines { (i / of_panels, i % of_panels) } else { (i % chunks, i / chunks) };
        let (Chunk { lines, parts }, group) = (&self.chunks[chunk], panel / panels.count());
        let x = &x[(image * groups + group) * channels * self.plane..][..channels * self.plane];
        let panel = panels.panel(group, panel % panels.count());
        let (lanes, positions) = (panel.vectors * panels.tile().vector, lines.len() * self.line);
        let sums = &mut sums[..positions * lanes];
        for first in (0..channels).step_by(self.channels) {
            let count = self.channels.min(channels - first);
            for part in parts {
                multiply(Block {
                    image: &x[first * self.plane..][..count * self.plane],
                    channels: count,
                    plane: self.plane,
                    step: self.step,
                    part,
                    weights: &panel.weights[first * lanes..],
                    tap: channels * lanes,
                    vectors: panel.vectors,
                    place: [lines.start, self.line],
                    sums: &mut *sums,
                    add: first > 0,
                });
            }
        }
        let row = group * outputs + panel.first;
        let rows = row..row + panel.outputs;
        let start = epilogue.start + image * groups * outputs * self.outputs;
        let epilogue = F32Epilogue { start, ..epilogue };
        write(Outputs { sums, lanes, rows, start: lines.start * self.line, epilogue });
    }
}
