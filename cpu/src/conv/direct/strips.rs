//! Products with a right operand that is copied for the positions of a tile at a time, or of several: strips of these, of
//! which each row follows the one before. Where it lies, rows are apart and begin anywhere: a step of a tile of 4 × 24 reads its 96 bytes from three
//! cache lines rather than one and a half, which come from the second cache where there are many rows, or from as many
//! pages; and between the lines of a copy with padding are gaps, which are computed like outputs. With tiles of 8 × 48 1.04
//! to 1.3 times as fast where `pays` says so, and 0.5 to 1.0 times elsewhere.

use std::ops::Range;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use super::next::Next;
use super::panels::SumTile;
use super::tile::{ALONE, Block, cached};
use crate::conv::common::blocks::VECTORS;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::{Lines, Run};
use crate::conv::common::masks::LONGEST;
use crate::conv::common::planes::Planes;
use crate::isa::Dispatch;
use crate::loops::fetch::into_second_cache;

/// Tiles beside each other in a strip, at most: so many that runs of positions do not take much of the stack. From 64 rows on
/// `cached` allows fewer.
const TILES: usize = 8;
/// Runs of a strip, and of positions beyond it, at most.
const RUNS: usize = TILES * VECTORS * LONGEST + ALONE;
/// Bytes that stay in the first cache beside weights.
const FIRST_CACHE: usize = 32 * 1024;
/// Bytes of a cache line.
const CACHE_LINE: usize = 64;
/// Elements that stay in a processor's second cache: fetching them would cost a twentieth.
const SECOND_CACHE: usize = 64 * 1024;
/// Elements of a page. Where planes are smaller, fetching gained nothing with AVX2, and cost up to a tenth.
const PAGE: usize = 1024;
/// The same limit with AVX-512: 1 × 1 of 512 to 128 channels on 28 × 28 gained 15 in a hundred, and those on 14 × 14 nothing.
const LEAST_AVX512: usize = 512;
/// Rows that are fetched ahead of the one that is copied.
const ROWS_AHEAD: usize = 12;
/// Pages that a processor finds at once.
const PAGES: usize = 128;

/// Where rows of strips begin, for so many rows; by the vectors that each takes.
pub(crate) struct StripTaps {
    tile: SumTile,
    /// Positions of a strip, but for the last.
    width: usize,
    taps: Vec<Vec<usize>>,
    /// Whether strips are fetched before they are copied.
    fetched: bool,
}

impl StripTaps {
    /// For strips of so many positions of an image.
    pub(crate) fn new(tile: SumTile, depth: usize, positions: usize, planes: &Planes) -> Self {
        let width = tiles(tile, depth) * tile.width();
        let taps = |vectors: usize| (0..depth).map(|row| row * vectors * tile.vector).collect();
        let taps = (1..=(width + ALONE).min(positions).div_ceil(tile.vector)).map(taps).collect();
        let image = depth / planes.taps.len().max(1) * planes.plane;
        // Where lines overlap, the last position of a strip may lie before its first.
        let apart = planes.lines.line <= planes.lines.pitch;
        let least = if tile.vector == LONGEST { LEAST_AVX512 } else { PAGE };
        StripTaps { tile, width, taps, fetched: apart && planes.plane >= least && image > SECOND_CACHE }
    }

    /// Elements of the room for a strip of so many rows; a vector is written beyond its last element.
    pub(crate) fn room(&self, depth: usize) -> usize {
        depth * (self.width + self.tile.vector) + LONGEST
    }
}

/// Tiles beside each other in a strip of so many rows: with AVX2 more than one gained nothing.
fn tiles(tile: SumTile, depth: usize) -> usize {
    match tile.vector {
        LONGEST => (cached(tile) / (depth * tile.width()).max(1)).clamp(1, TILES),
        _ => 1,
    }
}

/// The strips of some positions, so many each. One or two beyond the last whole strip belong to that.
fn widths(width: usize, positions: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let Range { start, end } = positions;
    let count = match (end - start) % width {
        1..=ALONE if end - start > width => (end - start) / width,
        _ => (end - start).div_ceil(width),
    };
    (0..count).map(move |i| start + i * width..if i + 1 == count { end } else { start + (i + 1) * width })
}

/// Whether it pays to copy strips of an image: for so many panels and so many rows of the operand.
pub(crate) fn pays(tile: SumTile, planes: &Planes, panels: usize, depth: usize) -> bool {
    let outputs = planes.lines.outputs_before(planes.positions);
    // In cycles for each row of a strip: what a tile takes, and what is saved and lost.
    let product = tile.rows * VECTORS / 2 * panels;
    let gaps = product * (planes.positions - outputs) / outputs.max(1);
    // Kernel positions in one line of a plane read the same cache lines.
    let taps = planes.taps.len().max(1);
    let mut lines: Vec<usize> = planes.taps.iter().map(|tap| tap / planes.pitch.max(1)).collect();
    lines.sort_unstable();
    lines.dedup();
    // Bytes of cache lines that a tap reads: those that hold a tile's positions, shared by the taps of one line.
    let touched = (tile.width() * 4 + CACHE_LINE) * lines.len() / taps;
    let crowded = touched > tile.width() * 4 && depth * touched * tiles(tile, depth) > FIRST_CACHE;
    let far = depth / taps * planes.phases() * (planes.plane * 4).min(4096) > PAGES * 4096;
    let reading = if crowded || far { product / 12 } else { 0 };
    let copy = 9 + 3 * (tile.width() / planes.lines.line.min(tile.width()));
    gaps + reading > copy
}

/// A part of a convolution for one thread, as `Block`.
pub(crate) struct Strips<'a> {
    pub(crate) panels: &'a [f32],
    pub(crate) panel: usize,
    pub(crate) planes: &'a [f32],
    /// Where each row of the right operand begins in `planes`.
    pub(crate) taps: &'a [usize],
    /// Where positions without gaps lie in the planes.
    pub(crate) from: Lines,
    /// Positions without gaps, and where their outputs go.
    pub(crate) columns: Range<usize>,
    pub(crate) to: Lines,
    pub(crate) rows: Range<usize>,
    pub(crate) epilogue: F32Epilogue<'a>,
    pub(crate) strip_taps: &'a StripTaps,
    /// As of `Block`.
    pub(crate) scratch: &'a mut [f32],
    /// For a strip.
    pub(crate) room: &'a mut [f32],
}

impl Strips<'_> {
    pub(crate) fn compute(self) {
        let (depth, last) = (self.taps.len(), self.taps.iter().fold(0, |last, &tap| last.max(tap)));
        let &StripTaps { tile, width, taps: ref strip_taps, fetched } = self.strip_taps;
        let mut runs = [Run { from: 0, to: 0, len: 0 }; RUNS];
        let mut strips = widths(width, self.columns.clone()).peekable();
        while let Some(strip) = strips.next() {
            let next = strips.peek().filter(|_| fetched).map(|next| {
                let positions = self.from.position_of(next.start)..self.from.position_of(next.end - 1) + 1;
                Next { planes: self.planes, taps: self.taps, positions }
            });
            let (vectors, mut count) = (strip.len().div_ceil(tile.vector), 0);
            let pitch = vectors * tile.vector;
            let mut at = strip.start;
            while at < strip.end {
                let left = if self.from.line == self.from.pitch {
                    strip.len()
                } else {
                    self.from.line - at % self.from.line
                };
                let (from, len) = (self.from.position_of(at), left.min(strip.end - at));
                runs[count] = Run { from, to: at - strip.start, len };
                (at, count) = (at + len, count + 1);
            }
            let room = &mut self.room[..depth * pitch + LONGEST];
            let (planes, runs) = (self.planes, &runs[..count]);
            let fetch = fetched && strip.start == self.columns.start;
            CopyRuns { planes, taps: self.taps, last, runs, pitch, fetch, out: &mut *room }.widest();
            let block = Block {
                panels: self.panels,
                panel: self.panel,
                taps: &strip_taps[vectors - 1][..depth],
                planes: &room[..depth * pitch],
                origin: strip.start,
                columns: strip,
                lines: self.to,
                rows: self.rows.clone(),
                epilogue: self.epilogue,
                scratch: &mut *self.scratch,
                next,
            };
            block.widest();
        }
    }
}

/// Copies runs of positions of each row of the right operand.
struct CopyRuns<'a> {
    planes: &'a [f32],
    taps: &'a [usize],
    /// The last tap's place.
    last: usize,
    runs: &'a [Run],
    pitch: usize,
    /// Whether rows are fetched ahead: nothing did so before.
    fetch: bool,
    out: &'a mut [f32],
}

impl SimdOp for CopyRuns<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let CopyRuns { planes, taps, last, runs, pitch, fetch, out } = self;
        let ops = isa.f32();
        let len = ops.len();
        let farthest = runs.iter().map(|run| run.from + run.len.next_multiple_of(len)).max();
        let inside = farthest.is_none_or(|farthest| last + farthest <= planes.len());
        let ends = runs.iter().all(|run| run.to + run.len <= pitch) && len <= LONGEST;
        assert!(ends && out.len() >= taps.len() * pitch + LONGEST, "there is room for all rows");
        if let ([run], true, false) = (runs, inside, fetch) {
            let (rows, to) = (Rows { planes, taps, from: run.from, pitch }, out[run.to..].as_mut_ptr());
            let vectors = run.len.div_ceil(len);
            // SAFETY: whole vectors lie inside the planes, and there is room for all rows and a vector.
            unsafe {
                match vectors {
                    1 => rows.copy::<I, 1>(isa, to),
                    2 => rows.copy::<I, 2>(isa, to),
                    VECTORS => rows.copy::<I, VECTORS>(isa, to),
                    _ => {}
                }
            }
            if (1..=VECTORS).contains(&vectors) {
                return;
            }
        }
        for (row, &tap) in taps.iter().enumerate() {
            let to = &mut out[row * pitch..];
            if let Some(&soon) = taps.get(row + ROWS_AHEAD).filter(|_| fetch) {
                for run in runs {
                    into_second_cache(&planes[soon + run.from..][..run.len]);
                }
            }
            for run in runs {
                // What a vector writes beyond its end is written over by what follows.
                let (from, to) = (tap + run.from, &mut to[run.to..]);
                if inside {
                    // SAFETY: whole vectors lie inside the planes, and the room has one beyond the last element.
                    unsafe {
                        let (from, to) = (planes.as_ptr().add(from), to.as_mut_ptr());
                        for at in (0..run.len).step_by(len) {
                            ops.store_ptr(ops.load_ptr(from.add(at)), to.add(at));
                        }
                    }
                } else {
                    to[..run.len].copy_from_slice(&planes[from..][..run.len]);
                }
            }
        }
    }
}

/// Rows of one run that are copied from there on.
struct Rows<'a> {
    planes: &'a [f32],
    taps: &'a [usize],
    from: usize,
    pitch: usize,
}

impl Rows<'_> {
    /// Copies `V` vectors of each row. In a loop of its own, without lengths and bounds to look at, it takes a half to a third
    /// of the time.
    ///
    /// # Safety
    /// `V` vectors lie inside the planes from each tap's run on, and at `to` there is room for all rows, `pitch` apart, and a
    /// vector behind the last.
    #[inline(always)]
    unsafe fn copy<I: Isa, const V: usize>(&self, isa: I, to: *mut f32) {
        let ops = isa.f32();
        let from = self.planes.as_ptr().wrapping_add(self.from);
        for (row, &tap) in self.taps.iter().enumerate() {
            let (from, to) = (from.wrapping_add(tap), to.wrapping_add(row * self.pitch));
            for v in 0..V {
                // SAFETY: as the caller promises.
                unsafe { ops.store_ptr(ops.load_ptr(from.add(v * ops.len())), to.add(v * ops.len())) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::each_instruction_set;

    #[test]
    fn strips_are_all_positions() {
        for width in [12, 24, 48, 96, 384] {
            for count in 0..800 {
                let strips: Vec<_> = widths(width, 5..5 + count).collect();
                assert_eq!(
                    strips.iter().cloned().flatten().collect::<Vec<_>>(),
                    (5..5 + count).collect::<Vec<_>>()
                );
                assert!(strips.iter().all(|strip| strip.len() <= width + ALONE && !strip.is_empty()));
            }
        }
    }

    /// One run of one to four vectors, the last of them whole or not, whose vectors lie inside the planes: the loops of so many
    /// vectors, and the general one. What a row writes beyond its run belongs to the next, or is one vector.
    #[test]
    fn runs_are_copied() {
        each_instruction_set!(isa => {
            let len = isa.f32().len();
            // In no order, and not as far apart.
            let taps = [0, 211, 64, 130, 65, 300, 7];
            let planes: Vec<f32> = (0..300 + 5 + 4 * len).map(|i| i as f32).collect();
            for vectors in 1..=VECTORS + 1 {
                let all = vectors * len;
                for (count, to, gap) in [(all, 0, 0), (all - 3, 0, 0), (all - 1, 2, len)] {
                    let pitch = all + gap;
                    let runs = [Run { from: 5, to, len: count }];
                    let mut out = vec![-1.0; taps.len() * pitch + LONGEST];
                    let (planes, taps, runs) = (&planes[..], &taps[..], &runs[..]);
                    CopyRuns { planes, taps, last: 300, runs, pitch, fetch: false, out: &mut out }.eval(isa);
                    for (row, &tap) in taps.iter().enumerate() {
                        let got = &out[row * pitch + to..][..count];
                        let want = &planes[tap + 5..][..count];
                        assert_eq!(got, want, "row {row}, {count} positions, vectors of {len}");
                    }
                    let end = (taps.len() - 1) * pitch + to + all;
                    assert!(out[end..].iter().all(|&x| x == -1.0), "{count} positions, vectors of {len}");
                }
            }
        });
    }
}
