//! Dilated convolutions by products with positions that are gathered from the image. A copy of the image with its padding
//! (`common::planes`) has gaps between lines that are as wide as the padding, which are computed like outputs. Here there are
//! no gaps, and rows of the kernel that lie in the padding are left out. Where there are many output channels, to gather costs
//! little beside the products.

use std::ops::Range;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use super::panels::Panels;
use super::products::Products;
use super::tile::{ALONE, Block};
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

/// What depends on shapes. The weight's elements go by rows of the kernel, channels, columns.
pub(crate) struct Gathered {
    table: PatchTable,
    parts: Vec<Part>,
    /// Elements from a row of the right operand to the next, and where the rows begin.
    pitch: usize,
    taps: Vec<usize>,
    /// Input channels of a group.
    channels: usize,
    /// Threads that share the output channels of a part.
    shared: usize,
}

struct Part {
    lines: Range<usize>,
    /// Rows of the kernel that are not all in the padding.
    rows: Range<usize>,
}

impl Gathered {
    /// For strides of 1 and two axes, with elements.
    pub(crate) fn new(g: &Geometry, panels: &Panels, channels: usize, threads: usize) -> Self {
        let ([groups, _, depth], table) = (panels.shape(), PatchTable::new(g));
        let (lines, line) = (table.lines(), table.line());
        let rows = |y: usize| {
            let inside = (0..g.kernel[0]).filter(|&k| table.row(y, k).is_some());
            inside.fold(None, |all: Option<Range<usize>>, k| Some(all.map_or(k, |all| all.start)..k + 1))
        };
        let mut alike: Vec<Part> = Vec::new();
        for y in 0..lines {
            let rows = rows(y).unwrap_or(0..1);
            match alike.last_mut() {
                Some(last) if last.rows == rows => last.lines.end = y + 1,
                // Too few lines for a part of their own read zeros.
                Some(last) if last.lines.len() * line < POSITIONS.start => {
                    last.lines.end = y + 1;
                    last.rows = last.rows.start.min(rows.start)..last.rows.end.max(rows.end);
                }
                _ => alike.push(Part { lines: y..y + 1, rows }),
            }
        }
        let most = (POSITIONS.end / line).max(1);
        let parts: Vec<Part> = alike
            .iter()
            .flat_map(|Part { lines, rows }| {
                let whole = |each: usize| cost(each * line) * (lines.len() / each);
                let all = |each: usize| whole(each) + cost(lines.len() % each * line);
                let each = (1..=most.min(lines.len())).rev().min_by_key(|&each| all(each)).unwrap_or(1);
                let cut = lines.clone().step_by(each);
                cut.map(move |start| Part { lines: start..(start + each).min(lines.end), rows: rows.clone() })
            })
            .collect();
        let shared = threads.div_ceil(groups * parts.len());
        // Vectors are aligned, and lines that follow one another in different places of the caches.
        let longest = parts.iter().fold(0, |most, part| most.max(part.lines.len())) * line;
        let pitch = longest.next_multiple_of(8) | 8;
        let taps = (0..depth).map(|row| row * pitch).collect();
        Gathered { table, parts, pitch, taps, channels, shared }
    }

    /// Convolves images of so many elements that follow one another.
    pub(crate) fn convolve(
        &self,
        cx: &KernelContext<'_>,
        panels: &Panels,
        (x, size): (&[f32], usize),
        epilogue: F32Epilogue<'_>,
    ) {
        let ([groups, m, depth], unit) = (panels.shape(), panels.rows());
        let (shared, line) = (self.shared.min(m.div_ceil(unit)), self.table.line());
        let (of_group, of_row) = (self.channels * self.table.plane(), depth / self.table.outer_kernel());
        let each = self.parts.len() * shared;
        cx.pool.split(x.len() / size * groups * each, 1, |range| {
            for i in range.take_while(|_| !cx.cancelled()) {
                let (image, group, i) = (i / (groups * each), i / each % groups, i % each);
                let (Part { lines, rows: of_kernel }, i) = (&self.parts[i / shared], i % shared);
                let rows = part(m, m.div_ceil(unit), unit, i, shared);
                let (count, positions) = (of_kernel.len() * of_row, lines.len() * line);
                let lengths = [count * self.pitch, Products::scratch_len(panels)];
                with_scratch(lengths, |[gathered, scratch]: [&mut [f32]; 2]| {
                    let channels = &x[image * size + group * of_group..][..of_group];
                    Gather { of: self, lines, rows: of_kernel, channels, out: gathered }.widest();
                    let start = image * groups * m * epilogue.columns + lines.start * line;
                    let block = Block {
                        panels: &panels.from(group, rows.start)[of_kernel.start * of_row * unit..],
                        panel: panels.size(),
                        taps: &self.taps[..count],
                        planes: gathered,
                        columns: 0..positions,
                        lines: Lines::whole(positions),
                        rows: group * m + rows.start..group * m + rows.end,
                        epilogue: F32Epilogue { start: epilogue.start + start, ..epilogue },
                        scratch,
                    };
                    block.widest();
                });
            }
        });
    }
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
    lines: &'a Range<usize>,
    /// Rows of the kernel.
    rows: &'a Range<usize>,
    /// The channels of a group.
    channels: &'a [f32],
    out: &'a mut [f32],
}

impl SimdOp for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Gather { of, lines, rows, channels, out } = self;
        let table = &of.table;
        let (line, zeros) = (table.line(), [0.0; LONGEST]);
        let mut out = out.chunks_exact_mut(of.pitch);
        for row in rows.clone() {
            for c in 0..of.channels {
                let channel = &channels[c * table.plane()..];
                for ((span, shift), out) in table.spans().iter().zip(&mut out) {
                    for (y, at) in lines.clone().zip((0..).step_by(line)) {
                        // What a vector writes beyond its end is written over by what follows.
                        let to = &mut out[at..];
                        match table.row(y, row) {
                            Some(start) if !span.is_empty() => {
                                let from = &channel[(start + span.start).wrapping_add_signed(*shift)..];
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
