//! The right operand of tiles, gathered so that they are read from whole lines of the cache: that takes a third of the time
//! that others take. Strips have for each pair of tiles a line of dot groups for each dot group of the depth. Where lines of
//! the output fill tiles, rows have less: the lines of the image, once for each column of the kernel.

use std::ops::Range;

use super::panels::Steps;
use crate::conv::common::lines::Lines;
use crate::conv::common::planes::Planes;
use crate::gemm::{DotGroup, MicroKernel, SumVector, TILE_STRIP, TileProduct, VECTOR};

/// Outputs of a pair of tiles, and such pairs of the longest strip.
pub(super) const PAIR: usize = TILE_STRIP;
pub(super) const PAIRS: usize = 8;
/// Dot groups that stay in the first cache, and in the second one, beside weights.
const FIRST_CACHE: usize = 8 * 1024;
const SECOND_CACHE: usize = 256 * 1024;

/// A dot group whose products with others sum these.
pub(super) const ONES: u32 = 0x0101_0101;

/// What tiles read of the image.
pub(super) struct Right<'a> {
    /// What is gathered; else tiles read the image where it lies: kernels of one position.
    pub(super) gathering: Option<&'a Gathering>,
    /// Room for what is gathered, and for where steps begin, see `room`.
    pub(super) strip: &'a mut [u32],
    pub(super) begins: &'a mut [u32],
    /// The group and the positions of the strip, or 0 of rows, that lies there already.
    pub(super) gathered: &'a mut Option<(usize, Range<usize>)>,
}

/// Dot groups of scratch for what is gathered and for where steps begin.
pub(super) fn room(
    steps: Steps,
    depth: usize,
    positions: usize,
    gathering: Option<&Gathering>,
) -> [usize; 2] {
    let padded = depth.next_multiple_of(steps.dot_groups);
    let gathered = match gathering {
        None => 0,
        Some(Gathering::Strips(_)) => padded * PAIR * pairs_of(depth, positions),
        Some(Gathering::Rows(rows)) => rows.len(depth / steps.volume),
    };
    [gathered, 2 * (padded / steps.dot_groups)]
}

/// What depends on dot groups: the product, `DotGroup::weight_tile_product`, and the functions below.
#[allow(clippy::type_complexity, reason = "the types are those of the functions below")]
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub(super) product: unsafe fn(&TileProduct),
    pub(super) gather: fn((&[u32], Lines), (&[usize], usize), (usize, usize), (&mut [u32], usize)),
    pub(super) gather_rows: fn(&[u32], (usize, usize), &Rows, &mut [u32]),
    pub(super) totals: fn(&[u32], &[u64], (usize, usize), (usize, usize), &mut [i32; VECTOR]),
}

impl Of {
    pub(super) fn new<D: DotGroup>() -> Self {
        Of {
            product: D::weight_tile_product,
            gather: gather::<D>,
            gather_rows: gather_rows::<D>,
            totals: totals::<D>,
        }
    }
}

/// What is gathered.
pub(crate) enum Gathering {
    /// Strips, from an image with these lines.
    Strips(Lines),
    Rows(Rows),
}

/// Lines of an image in a multiple of a vector each: one after the other, of each those that columns of the kernel begin
/// with, of these all dot groups of channels.
pub(crate) struct Rows {
    /// Where columns of the kernel begin, and how many lines they have.
    columns: Vec<(usize, usize)>,
    /// The column and the line of each position of the kernel.
    taps: Vec<(usize, usize)>,
    /// From a line of the image to the next.
    pitch: usize,
    /// Lines, one of the output, and dot groups from one to the next.
    height: usize,
    line: usize,
    width: usize,
    pub(super) lines: Lines,
    pub(super) positions: usize,
}

impl Rows {
    /// `None` where lines of so many outputs leave too much of tiles unused.
    pub(super) fn new(planes: &Planes, line: usize) -> Option<Self> {
        let width = line.next_multiple_of(VECTOR);
        if 5 * width > 6 * line {
            return None;
        }
        let outputs = (planes.positions - line) / planes.lines.pitch.max(1) + 1;
        let outputs = if planes.lines.line == planes.lines.pitch { planes.positions / line } else { outputs };
        let (mut columns, mut taps): (Vec<(usize, usize)>, Vec<_>) = (Vec::new(), Vec::new());
        for tap in &planes.taps {
            let (phase, at) = (tap / planes.plane, tap % planes.plane);
            let (y, begin) = (at / planes.pitch, phase * planes.plane + at % planes.pitch);
            let column = columns.iter().position(|column| column.0 == begin).unwrap_or_else(|| {
                columns.push((begin, 0));
                columns.len() - 1
            });
            columns[column].1 = columns[column].1.max(outputs + y);
            taps.push((column, y));
        }
        let height = columns.iter().fold(0, |most, column| column.1.max(most));
        let (lines, positions) = match width == line {
            true => (Lines::whole(outputs * line), outputs * line),
            false => (Lines { line, pitch: width }, (outputs - 1) * width + line),
        };
        Some(Rows { columns, taps, pitch: planes.pitch, height, line, width, lines, positions })
    }

    /// Dot groups of a line for so many of channels.
    fn step(&self, dot_groups: usize) -> usize {
        self.columns.len() * dot_groups * self.width
    }

    /// Dot groups that all lines take.
    pub(super) fn len(&self, dot_groups: usize) -> usize {
        self.height * self.step(dot_groups)
    }

    /// Where a position lies.
    pub(super) fn place(&self, position: usize, dot_groups: usize) -> usize {
        position / self.width * self.step(dot_groups) + position % self.width
    }

    /// From a dot group of channels to the next.
    pub(super) fn channel(&self) -> usize {
        self.width
    }

    /// Where the first dot group of channels of a position of the kernel begins, of so many.
    pub(super) fn tap(&self, tap: usize, dot_groups: usize) -> usize {
        let (column, y) = self.taps[tap];
        y * self.step(dot_groups) + column * dot_groups * self.width
    }
}

/// Gathers all rows of so many dot groups of channels, which are so far from each other in the image.
pub(super) fn gather_rows<D: DotGroup>(
    planes: &[u32],
    (dot_groups, channel): (usize, usize),
    rows: &Rows,
    out: &mut [u32],
) {
    let end = |&(begin, lines): &(usize, usize)| begin + (lines - 1) * rows.pitch + rows.line;
    let farthest = rows.columns.iter().map(end).fold(0, usize::max) + (dot_groups - 1) * channel;
    assert!(D::available() && farthest <= planes.len() && out.len() >= rows.len(dot_groups));
    assert!(rows.columns.iter().all(|column| column.1 <= rows.height));
    // SAFETY: the instructions and the extents were asserted.
    unsafe { D::run(GatherRows { planes, dot_groups, channel, rows, out }) }
}

struct GatherRows<'a> {
    planes: &'a [u32],
    dot_groups: usize,
    channel: usize,
    rows: &'a Rows,
    out: &'a mut [u32],
}

impl MicroKernel for GatherRows<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let GatherRows { planes, dot_groups, channel, rows, out } = self;
        let mut to = out.as_mut_ptr();
        for y in 0..rows.height {
            for &(begin, lines) in &rows.columns {
                let mut from = planes.as_ptr().wrapping_add(begin + y * rows.pitch);
                for _ in 0..dot_groups {
                    for at in (0..rows.line).step_by(VECTOR) {
                        let lanes = (!0u32 >> (32 - (rows.line - at).min(VECTOR))) as u16;
                        if y < lines {
                            // SAFETY: `gather_rows` asserted that all lines lie in `planes` and in `out`.
                            unsafe { copy(from.add(at), to.add(at), lanes) };
                        }
                    }
                    from = from.wrapping_add(channel);
                    to = to.wrapping_add(rows.width);
                }
            }
        }
    }
}

/// Pairs of tiles of a strip, of so many outputs that there are.
pub(super) fn pairs_of(depth: usize, outputs: usize) -> usize {
    // What does not stay in the first cache anyhow is at least not brought there for each strip.
    let cache = if PAIR * depth > FIRST_CACHE { SECOND_CACHE } else { FIRST_CACHE };
    (cache / (PAIR * depth).max(1)).clamp(1, PAIRS).min(outputs.div_ceil(PAIR))
}

/// Outputs that are neighbours in the image, too: from where, to where, and a mask of as many lanes.
type Segment = (usize, usize, u16);

/// Where the image has the outputs of a strip.
struct Segments {
    list: [Segment; PAIR * PAIRS],
    count: usize,
}

impl Segments {
    /// Those of `count` outputs from `start` on; lines of the image are as `lines` says, and a pair of tiles has so many dot
    /// groups.
    fn new(lines: Lines, start: usize, count: usize, pair: usize) -> Self {
        let mut segments = Segments { list: [(0, 0, 0); PAIR * PAIRS], count: 0 };
        // No more of them than there must be, or stores to one line of the cache each.
        let step = if lines.line < VECTOR { PAIR } else { VECTOR };
        let mut done = 0;
        while done < count {
            let (y, x) = ((start + done) / lines.line, (start + done) % lines.line);
            let len = (lines.line - x).min(count - done).min(VECTOR).min(step - done % step);
            let to = done / PAIR * pair + done % PAIR;
            segments.list[segments.count] = (y * lines.pitch + x, to, (!0u32 >> (32 - len)) as u16);
            segments.count += 1;
            done += len;
        }
        segments
    }
}

/// Gathers a strip of `count` outputs from `start` on. The depth goes through `taps.len() / volume` dot groups of channels
/// for each position of the kernel, and has `depth` lines; what there is beyond those is 0.
pub(super) fn gather<D: DotGroup>(
    (planes, lines): (&[u32], Lines),
    (taps, volume): (&[usize], usize),
    (start, count): (usize, usize),
    (out, depth): (&mut [u32], usize),
) {
    let segments = Segments::new(lines, start, count, depth * PAIR);
    let segments = &segments.list[..segments.count];
    let farthest = taps[..volume].iter().fold(0, |last, &tap| last.max(tap));
    let end = segments.iter().fold(0, |end, part| end.max(part.0 + part.2.count_ones() as usize));
    let (dot_groups, channel) = (taps.len() / volume, taps.get(volume).map_or(0, |next| next - taps[0]));
    let farthest = farthest + (dot_groups - 1) * channel;
    assert!(D::available() && farthest + end <= planes.len() && taps.len() == dot_groups * volume);
    assert!(depth >= taps.len() && out.len() >= count.div_ceil(PAIR) * depth * PAIR);
    for pair in out.chunks_exact_mut(depth * PAIR) {
        pair[taps.len() * PAIR..].fill(0);
    }
    // SAFETY: the instructions and the extents were asserted.
    unsafe { D::run(Gather { planes, taps: &taps[..volume], channel, dot_groups, segments, out }) }
}

struct Gather<'a> {
    planes: &'a [u32],
    /// Of the first dot group of channels, and how far the next one is from it.
    taps: &'a [usize],
    channel: usize,
    dot_groups: usize,
    segments: &'a [Segment],
    out: &'a mut [u32],
}

impl MicroKernel for Gather<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Gather { planes, taps, channel, dot_groups, segments, out } = self;
        for &(from, to, lanes) in segments {
            let mut to = out.as_mut_ptr().wrapping_add(to);
            for tap in taps {
                let mut from = planes.as_ptr().wrapping_add(from + tap);
                for _ in 0..dot_groups {
                    // SAFETY: `gather` asserted that all segments of all taps lie in `planes`, and lines in `out`.
                    unsafe { copy(from, to, lanes) };
                    from = from.wrapping_add(channel);
                    to = to.wrapping_add(PAIR);
                }
            }
        }
    }
}

/// Copies the first elements, as the mask says.
///
/// # Safety
/// Only inside `DotGroup::run`. Both must be valid for what is in the mask.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy(from: *const u32, to: *mut u32, lanes: u16) {
    use std::arch::x86_64::*;
    // SAFETY: as the caller promises.
    unsafe { _mm512_mask_storeu_epi32(to.cast(), lanes, _mm512_maskz_loadu_epi32(lanes, from.cast())) }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy(from: *const u32, to: *mut u32, lanes: u16) {
    crate::gemm::missing((from, to, lanes))
}

/// What weights are multiplied with at up to `VECTOR` positions, in total: the sums of the bytes of so many lines of each
/// step, which begin at these bytes.
pub(super) fn totals<D: DotGroup>(
    image: &[u32],
    begins: &[u64],
    (lines, line): (usize, usize),
    (at, count): (usize, usize),
    totals: &mut [i32; VECTOR],
) {
    assert!(D::available() && (1..=VECTOR).contains(&count));
    let lanes = (!0u32 >> (32 - count)) as u16;
    for begin in begins {
        let first = *begin as usize / size_of::<u32>() + at;
        assert!(lines > 0 && image.len() >= first + (lines - 1) * line + count);
        // SAFETY: this was asserted.
        unsafe { D::run(Total { image: &image[first..], lines, line, lanes, totals }) };
    }
}

/// Those of a step, which are added.
struct Total<'a> {
    image: &'a [u32],
    lines: usize,
    line: usize,
    lanes: u16,
    totals: &'a mut [i32; VECTOR],
}

impl MicroKernel for Total<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Total { image, lines, line, lanes, totals } = self;
        // SAFETY: `totals` asserted that the lines lie in the image; a vector of sums is so many integers.
        unsafe {
            #[cfg_attr(
                not(target_arch = "x86_64"),
                allow(clippy::useless_transmute, reason = "one type elsewhere")
            )]
            let vector = |words: [u32; VECTOR]| std::mem::transmute::<[u32; VECTOR], SumVector>(words);
            let mut sum = std::mem::transmute::<[i32; VECTOR], SumVector>(*totals);
            let (ones, mut words) = (vector([ONES; VECTOR]), [0; VECTOR]);
            for i in 0..lines {
                copy(image.as_ptr().add(i * line), words.as_mut_ptr(), lanes);
                sum = D::dot(sum, vector(words), ones);
            }
            *totals = std::mem::transmute::<SumVector, [i32; VECTOR]>(sum);
        }
    }
}
