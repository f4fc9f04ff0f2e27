//! Dilated convolutions by products with positions that are gathered from the image. A copy of the image with its padding
//! (`common::planes`) has gaps between lines that are as wide as the padding, which are computed like outputs. Here there are
//! no gaps, and rows and columns of the kernel that lie in the padding are left out. Where there are many output channels, to
//! gather costs little beside the products.

use std::ops::Range;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use super::panels::{Panels, Pieces};
use super::products::Products;
use super::strips::{StripTaps, Strips};
use super::tile::ALONE;
use crate::conv::common::blocks::part;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::Lines;
use crate::conv::common::masks::LONGEST;
use crate::conv::im2col::PatchTable;
use crate::isa::Dispatch;
use crate::kernel::KernelContext;
use crate::loops::scratch::with_scratch;
use crate::ops::window::Geometry;

/// With fewer output channels in a group it does not pay to gather.
pub(crate) const FEWEST: usize = 32;
/// Positions of a part: from two tiles to so many that rows of the right operand still share pages of memory.
const POSITIONS: Range<usize> = 48..289;

/// What depends on shapes. The weight's elements go by rows of the kernel, columns, channels.
pub(crate) struct Gathered {
    table: PatchTable,
    parts: Vec<Part>,
    /// Elements from a row of the right operand to the next, and where the rows begin.
    pitch: usize,
    taps: Vec<usize>,
    strips: StripTaps,
    /// Input channels of a group.
    channels: usize,
    /// Threads that share the output channels of a part.
    shared: usize,
}

/// A rectangle of outputs, and the rows and columns of the kernel that are not all in the padding.
struct Part {
    outputs: [Range<usize>; 2],
    kernel: [Range<usize>; 2],
    /// Where rows of the right operand begin in the channels of an image, if none of their elements lie in the padding: there
    /// is nothing to gather then.
    in_place: Option<Vec<usize>>,
}

impl Part {
    fn line(&self) -> usize {
        self.outputs[1].len()
    }

    fn positions(&self) -> usize {
        self.outputs[0].len() * self.line()
    }

    /// About how long it takes.
    fn cost(&self) -> usize {
        cost(self.positions()) * self.kernel[0].len() * self.kernel[1].len()
    }
}

impl Gathered {
    /// For strides of 1 and two axes, with elements.
    pub(crate) fn new(g: &Geometry, panels: &Panels, channels: usize, threads: usize) -> Self {
        let ([groups, _, depth], table) = (panels.shape(), PatchTable::new(g));
        let (lines, line) = (table.lines(), table.line());
        let row_inside = |y: usize, k: usize| table.row(y, k).is_some();
        let column_inside = |x: usize, k: usize| table.spans()[k].0.contains(&x);
        let columns = |fewest: usize| alike(line, g.kernel[1], fewest, column_inside);
        // Where columns of the kernel are left out, outputs lie in more pieces, which makes more tiles.
        let parts = [columns(line), columns(1)].map(|columns| {
            let narrowest = columns.iter().fold(line, |least, (x, _)| least.min(x.len()));
            let rows = alike(lines, g.kernel[0], POSITIONS.start.div_ceil(narrowest), row_inside);
            let parts = rows.iter().flat_map(|(y, rows)| {
                columns.iter().flat_map(|(x, columns)| {
                    let (outputs, kernel) = ([y.clone(), x.clone()], [rows.clone(), columns.clone()]);
                    Part { outputs, kernel, in_place: None }.cut()
                })
            });
            parts.collect::<Vec<_>>()
        });
        let time = |parts: &Vec<Part>| parts.iter().map(Part::cost).sum::<usize>();
        let [whole, pieces] = parts;
        let mut parts = if time(&pieces) < time(&whole) { pieces } else { whole };
        parts.iter_mut().for_each(|part| part.in_place = part.taps(&table, channels));
        let shared = threads.div_ceil(groups * parts.len());
        // Vectors are aligned, and lines that follow one another in different places of the caches.
        let longest = parts.iter().fold(0, |most, part| most.max(part.positions()));
        let pitch = longest.next_multiple_of(8) | 8;
        let taps = (0..depth).map(|row| row * pitch).collect();
        let strips = StripTaps::new(depth, parts.iter().map(Part::positions));
        Gathered { table, parts, pitch, taps, strips, channels, shared }
    }

    /// Convolves images of so many elements that follow one another.
    pub(crate) fn convolve(
        &self,
        cx: &KernelContext<'_>,
        panels: &Panels,
        (x, size): (&[f32], usize),
        epilogue: F32Epilogue<'_>,
    ) {
        let ([groups, m, _], unit) = (panels.shape(), panels.rows());
        let (shared, line) = (self.shared.min(m.div_ceil(unit)), self.table.line());
        let (of_group, width) = (self.channels * self.table.plane(), self.table.spans().len());
        let each = self.parts.len() * shared;
        cx.pool.split(x.len() / size * groups * each, 1, |range| {
            for i in range.take_while(|_| !cx.cancelled()) {
                let (image, group, i) = (i / (groups * each), i / each % groups, i % each);
                let (of, i) = (&self.parts[i / shared], i % shared);
                let ([lines, columns], [height, across]) = (&of.outputs, &of.kernel);
                let rows = part(m, m.div_ceil(unit), unit, i, shared);
                let (count, positions) = (height.len() * across.len() * self.channels, of.positions());
                let channels = &x[image * size + group * of_group..][..of_group];
                let gathered = if of.in_place.is_some() { 0 } else { count * self.pitch };
                let lengths = [gathered, Products::scratch_len(panels), Strips::room(count)];
                with_scratch(lengths, |[gathered, scratch, room]: [&mut [f32]; 3]| {
                    let (planes, taps, from) = match &of.in_place {
                        Some(taps) => {
                            let from = Lines { line: columns.len(), pitch: self.table.width() };
                            (channels, &taps[..], from)
                        }
                        None => {
                            Gather { of: self, part: of, channels, out: &mut *gathered }.widest();
                            (&*gathered, &self.taps[..count], Lines::whole(positions))
                        }
                    };
                    let start = image * groups * m * epilogue.columns + lines.start * line + columns.start;
                    let first = (height.start * width + across.start) * self.channels;
                    let strips = Strips {
                        panels: &panels.from(group, rows.start)[first * unit..],
                        pieces: Pieces {
                            run: across.len() * self.channels,
                            skipped: (width - across.len()) * self.channels,
                        },
                        panel: panels.size(),
                        planes,
                        taps,
                        from,
                        columns: 0..positions,
                        to: match columns.len() == line {
                            true => Lines::whole(positions),
                            false => Lines { line, pitch: columns.len() },
                        },
                        rows: group * m + rows.start..group * m + rows.end,
                        epilogue: F32Epilogue { start: epilogue.start + start, ..epilogue },
                        strip_taps: &self.strips,
                        scratch,
                        room,
                    };
                    strips.compute();
                });
            }
        });
    }
}

impl Part {
    /// Parts of some lines each, of not too many positions.
    fn cut(self) -> impl Iterator<Item = Part> {
        let (lines, line) = (self.outputs[0].len(), self.line());
        let most = (POSITIONS.end / line).max(1);
        let all = |each: usize| cost(each * line) * (lines / each) + cost(lines % each * line);
        let each = (1..=most.min(lines)).rev().min_by_key(|&each| all(each)).unwrap_or(1);
        let Range { start, end } = self.outputs[0];
        (start..end).step_by(each).map(move |start| {
            let lines = start..(start + each).min(end);
            let outputs = [lines, self.outputs[1].clone()];
            Part { outputs, kernel: self.kernel.clone(), in_place: None }
        })
    }

    /// See `in_place`; rows of the right operand go by rows of the kernel, columns, channels.
    fn taps(&self, table: &PatchTable, channels: usize) -> Option<Vec<usize>> {
        let ([lines, columns], [height, across]) = (&self.outputs, &self.kernel);
        let mut taps = Vec::with_capacity(height.len() * across.len() * channels);
        for row in height.clone() {
            let first = table.row(lines.start, row)?;
            let follows = |y: usize| table.row(y, row) == Some(first + (y - lines.start) * table.width());
            if !lines.clone().all(follows) {
                return None;
            }
            for (span, shift) in &table.spans()[across.clone()] {
                if span.start > columns.start || span.end < columns.end {
                    return None;
                }
                let first = (first + columns.start).checked_add_signed(*shift)?;
                taps.extend((0..channels).map(|c| first + c * table.plane()));
            }
        }
        Some(taps)
    }
}

/// Ranges of outputs along an axis that read the same elements of the kernel, and from the first of these to the last. Less
/// than `fewest` of them are no range of their own: they read zeros with others.
fn alike(
    outputs: usize,
    kernel: usize,
    fewest: usize,
    inside: impl Fn(usize, usize) -> bool,
) -> Vec<(Range<usize>, Range<usize>)> {
    let mut ranges: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for at in 0..outputs {
        let first = (0..kernel).find(|&k| inside(at, k));
        let last = (0..kernel).rfind(|&k| inside(at, k));
        let read = first.zip(last).map_or(0..1, |(first, last)| first..last + 1);
        match ranges.last_mut() {
            Some((all, of)) if *of == read => all.end = at + 1,
            Some((all, of)) if all.len() < fewest => {
                all.end = at + 1;
                *of = of.start.min(read.start)..of.end.max(read.end);
            }
            _ => ranges.push((at..at + 1, read)),
        }
    }
    ranges
}

/// About how long so many positions of a part take: tiles of one vector and of two have to load as many weights as those of
/// three, and positions after whole vectors take a sixth of a vector's time each.
fn cost(positions: usize) -> usize {
    let rest = positions % 24;
    let alone = if rest % 8 <= ALONE { rest % 8 } else { 0 };
    12 * (positions / 24) + [0, 6, 9, 12][(rest - alone).div_ceil(8)] + alone
}

/// Gathers the right operand of a part.
struct Gather<'a> {
    of: &'a Gathered,
    part: &'a Part,
    /// The channels of a group.
    channels: &'a [f32],
    out: &'a mut [f32],
}

impl SimdOp for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Gather { of, part, channels, out } = self;
        let table = &of.table;
        let ([lines, columns], [height, across]) = (&part.outputs, &part.kernel);
        let (line, zeros) = (part.line(), [0.0; LONGEST]);
        let mut out = out.chunks_exact_mut(of.pitch);
        for row in height.clone() {
            for (span, shift) in &table.spans()[across.clone()] {
                // What lies inside, from the part's first column on.
                let inside = |at: usize| at.clamp(columns.start, columns.end) - columns.start;
                let span = inside(span.start)..inside(span.end);
                for (c, out) in (0..of.channels).zip(&mut out) {
                    let channel = &channels[c * table.plane()..];
                    for (y, at) in lines.clone().zip((0..).step_by(line)) {
                        // What a vector writes beyond its end is written over by what follows.
                        let to = &mut out[at..];
                        match table.row(y, row) {
                            Some(start) if !span.is_empty() => {
                                let first = start + columns.start + span.start;
                                let from = &channel[first.wrapping_add_signed(*shift)..];
                                fill(isa, &zeros, 0, &mut *to, span.start);
                                fill(isa, from, isa.f32().len(), &mut to[span.start..], span.len());
                                fill(isa, &zeros, 0, &mut to[span.end..], line - span.end);
                            }
                            _ => fill(isa, &zeros, 0, to, line),
                        }
                    }
                }
            }
        }
    }
}

/// Writes the first `count` elements of `from`, and up to a vector of any numbers more. A `step` of 0 repeats one vector of
/// zeros, else it is the length of a vector.
#[inline(always)]
fn fill<I: Isa>(isa: I, from: &[f32], step: usize, to: &mut [f32], count: usize) {
    let ops = isa.f32();
    let len = ops.len();
    let reach = count.next_multiple_of(len);
    if to.len() >= reach && (step == 0 || from.len() >= reach) {
        let mut from = from.as_ptr();
        for to in to[..reach].chunks_exact_mut(len) {
            // SAFETY: `from` has a whole vector (`LONGEST` zeros), or as many elements as are written.
            ops.store(unsafe { ops.load_ptr(from) }, to);
            from = from.wrapping_add(step);
        }
    } else if step == 0 {
        to[..count].fill(0.0);
    } else {
        to[..count].copy_from_slice(&from[..count]);
    }
}
