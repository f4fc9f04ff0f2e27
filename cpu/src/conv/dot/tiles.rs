//! A block of a convolution by AMX's tiles: weights are the left operand, the image's dot groups the right one. Sums of
//! 32 rows and 32 positions go through memory to the epilogue. What does not depend on it is compiled once for all
//! epilogues.

use std::ops::Range;

use super::block::{Block, Output, WIDTH};
use super::epilogue::{ALL, ANY, Positions, TileEpilogue};
use super::panels::Steps;
use super::strip::{Gathering, Of, PAIR, PAIRS, Right, pairs_of};
use crate::gemm::{
    DotGroup, MicroKernel, Room, SumVector, TILE_SIDE, TileProduct, TileShape, Tiles, VECTOR, keep_awake,
};
use crate::loops::fetch::into_second_cache;

/// Rows, and positions, of the sums that are computed at a time.
const SIDE: usize = PAIR;
/// Rows that the epilogue is given at a time: whole blocks of channels.
const ROWS: usize = 4;

/// So many outputs of a block do not stay in the second cache until they are read, nor does a residual.
const DISTANT: usize = 128 * 1024;

impl Block<'_> {
    /// As `compute`, for weights in panels for tiles.
    #[inline(never)]
    pub(super) fn compute_by_tiles(self, steps: Steps, of: Of, right: Right<'_>, give: &dyn Fn(Task<'_>)) {
        let (depth, Range { start, end }) = (self.taps.len(), self.columns.clone());
        let Steps { dot_groups, volume } = steps;
        let (padded, count) = (self.rows.len().next_multiple_of(TILE_SIDE), depth.div_ceil(dot_groups));
        let all = count * dot_groups;
        assert!(count > 0 && self.panels.len() >= padded * all && self.first.len() >= padded);
        assert!(self.zeros.is_empty() || self.zeros.len() >= padded);
        let Right { gathering, strip, begins, gathered } = right;
        let (pairs, channels) = (pairs_of(depth, end - start), depth / volume);
        // A begin takes two words; memory of a thread begins where those may lie.
        let begins: &mut [u64] = bytemuck::cast_slice_mut(&mut begins[..2 * count]);
        let begin = |words: usize| (words * size_of::<u32>()) as u64;
        let channel = self.taps.get(volume).map_or(0, |next| next - self.taps[0]);
        // What is gathered has whole tiles. Where the image lies, tiles have other extents for positions beyond whole ones,
        // which come last.
        let (line, whole, len) = match gathering {
            Some(Gathering::Strips(_)) => {
                begins.iter_mut().enumerate().for_each(|(i, at)| *at = begin(i * dot_groups * PAIR));
                (PAIR, end, pairs * all * PAIR)
            }
            Some(Gathering::Rows(rows)) => {
                assert!(channels.is_multiple_of(dot_groups) && start.is_multiple_of(VECTOR));
                for (i, at) in begins.iter_mut().enumerate() {
                    let (tap, group) = (i * dot_groups / channels, i * dot_groups % channels);
                    *at = begin(rows.tap(tap, channels) + group * rows.channel());
                }
                let key = Some((self.group, 0..0));
                if *gathered != key {
                    (of.gather_rows)(self.planes, (channels, channel), rows, strip);
                    *gathered = key;
                }
                (rows.channel(), end, rows.len(channels))
            }
            None => {
                assert!(volume == 1 && depth == all);
                assert!(self.taps[0] + (depth - 1) * channel + end <= self.planes.len());
                let first = |i: usize| begin(self.taps[0] + i * dot_groups * channel);
                begins.iter_mut().enumerate().for_each(|(i, at)| *at = first(i));
                (channel, start + (end - start) / SIDE * SIDE, 0)
            }
        };
        assert!(strip.len() >= len);
        let padded = gathering.is_some();
        let distant = self.rows.len() * (end - start) > DISTANT;
        let (mut tiles, mut room) = (Tiles::new(), Room([0; SIDE * SIDE]));
        let strips = (start..whole).step_by(pairs * PAIR).map(|at| at..(at + pairs * PAIR).min(whole));
        for positions in strips.chain((whole < end).then_some(whole..end)) {
            let Range { start: first, end: last } = positions;
            if let Some(&Gathering::Strips(lines)) = gathering {
                let key = Some((self.group, positions));
                if *gathered != key {
                    let to = (&mut strip[..len], all);
                    (of.gather)((self.planes, lines), (self.taps, volume), (first, last - first), to);
                    *gathered = key;
                }
            }
            let job = Job {
                panels: self.panels,
                first: self.first,
                zeros: self.zeros,
                image: if padded { &strip[..len] } else { self.planes },
                padded,
                begins,
                depth: all,
                dot_groups,
                line,
                rows: self.rows.clone(),
            };
            let (mut places, mut totals) = ([const { Positions::NONE }; PAIRS], [[0; WIDTH]; PAIRS]);
            let tile = |i: usize| (first + i * SIDE, SIDE.min(last - first - i * SIDE));
            // Where that lies in the image.
            let place = |i: usize, right: usize| match gathering {
                Some(Gathering::Strips(_)) => i * all * PAIR + right,
                Some(Gathering::Rows(rows)) => rows.place(first + i * SIDE + right, channels),
                None => first + i * SIDE + right,
            };
            let here = (last - first).div_ceil(SIDE);
            for i in 0..here {
                places[i] = Positions::new(self.lines, self.before, tile(i));
                if !job.zeros.is_empty() {
                    let totals = totals[i].as_chunks_mut::<VECTOR>().0.iter_mut().enumerate();
                    for (v, totals) in totals.take(tile(i).1.div_ceil(VECTOR)) {
                        let here = (place(i, v * VECTOR), (tile(i).1 - v * VECTOR).min(VECTOR));
                        (of.totals)(job.image, job.begins, (dot_groups, line), here, totals);
                    }
                }
            }
            let panels = job.rows.len().div_ceil(SIDE);
            for at in 0..panels * here {
                let (panel, i) = (at / here, at % here);
                let (row, count) = (panel * SIDE, tile(i).1);
                if !padded && last < whole {
                    // The next strip, a part for each tile.
                    let part = |at: usize| at * depth / (panels * here);
                    job.fetch(part(at)..part(at + 1), last..(last + pairs * PAIR).min(end));
                }
                let rows = job.rows.start + row..job.rows.start + (row + SIDE).min(job.rows.len());
                if distant {
                    give(Task::Fetch(rows.clone(), &places[i]));
                }
                let right = place(i, TILE_SIDE);
                job.tile(of.product, &mut tiles, &mut room, row, [place(i, 0), right], count);
                give(Task::Take(&Part {
                    first: &job.first[row..],
                    sums: &room.0,
                    rows,
                    zeros: if job.zeros.is_empty() { &[] } else { &job.zeros[row..] },
                    totals: &totals[i],
                    positions: &places[i],
                    // Vectors without positions are written to nowhere, but only where lanes count.
                    whole: count == SIDE && places[i].lanes_are() == ALL,
                }));
            }
        }
    }
}

/// What `Block` has, and how tiles go through it.
struct Job<'a> {
    panels: &'a [u32],
    first: &'a [u32],
    zeros: &'a [i32],
    /// The planes, or a strip of them.
    image: &'a [u32],
    /// Whether that has whole tiles.
    padded: bool,
    /// Where the image's dot groups of each step begin, in bytes.
    begins: &'a [u64],
    /// Of whole steps.
    depth: usize,
    dot_groups: usize,
    line: usize,
    rows: Range<usize>,
}

impl Job<'_> {
    /// The sums of up to `SIDE` rows from one on at up to `SIDE` positions.
    fn tile(
        &self,
        multiply: unsafe fn(&TileProduct),
        tiles: &mut Tiles,
        room: &mut Room,
        row: usize,
        [start, second]: [usize; 2],
        count: usize,
    ) {
        let Job { depth, dot_groups, line, .. } = *self;
        let columns = if self.padded { count.next_multiple_of(TILE_SIDE) } else { count };
        let (left, right) = (columns.min(TILE_SIDE), columns.saturating_sub(TILE_SIDE));
        tiles.configure(TileShape {
            rows: [TILE_SIDE as u8; 2],
            // Strips need no other extents.
            columns: [left as u8, if right > 0 { right } else { left } as u8],
            depth: dot_groups as u8,
        });
        let at = room.0.as_mut_ptr();
        let a = self.panels[row * depth..].as_ptr();
        let product = TileProduct {
            a,
            second_a: a.wrapping_add(TILE_SIDE * depth),
            row: dot_groups * size_of::<u32>(),
            step: TILE_SIDE * dot_groups * size_of::<u32>(),
            b: self.image[start..].as_ptr(),
            second_b: (second - start) * size_of::<u32>(),
            line: line * size_of::<u32>(),
            steps: self.begins.as_ptr(),
            count: self.begins.len(),
            sums: at,
            second_sums: at.wrapping_add(TILE_SIDE * SIDE),
            sums_row: SIDE * size_of::<u32>(),
            // The processor itself foresees rows that are read one after the other.
            fetch: std::ptr::null(),
            fetch_lines: 0,
            two_rows: u8::from(self.rows.len() - row > TILE_SIDE),
            two_columns: u8::from(right > 0),
            add: 0,
        };
        // SAFETY: `compute_by_tiles` asserted that there are whole panels, and the farthest position of all taps or a strip.
        unsafe { multiply(&product) };
    }

    /// Fetches so many lines of the image at some positions.
    fn fetch(&self, lines: Range<usize>, positions: Range<usize>) {
        for line in lines {
            let from = self.begins[0] as usize / size_of::<u32>() + line * self.line;
            into_second_cache(&self.image[from + positions.start..from + positions.end]);
        }
    }
}

/// What is asked of an epilogue.
pub(super) enum Task<'a> {
    /// To fetch what sums of these rows and positions are stored to and added to.
    Fetch(Range<usize>, &'a Positions),
    /// To take sums.
    Take(&'a Part<'a>),
}

impl Task<'_> {
    /// # Safety
    /// As of `TileEpilogue::tile`, but anywhere on a processor with `D::available()`.
    pub(super) unsafe fn ask<D: DotGroup, E: TileEpilogue>(self, epilogue: &E) {
        match self {
            Task::Fetch(rows, positions) => epilogue.fetch(rows, positions),
            // SAFETY: as the caller promises. What is long is compiled for any lanes alone.
            Task::Take(part) => unsafe {
                match part.whole && E::SHORT {
                    true => D::run(Give::<E, ALL> { part, epilogue }),
                    false => D::run(Give::<E, ANY> { part, epilogue }),
                }
            },
        }
    }
}

/// Sums of up to `SIDE` rows at up to `SIDE` positions.
pub(super) struct Part<'a> {
    /// What sums begin with, for whole panels.
    first: &'a [u32],
    sums: &'a [u32],
    rows: Range<usize>,
    /// None where all are 0.
    zeros: &'a [i32],
    totals: &'a [i32; WIDTH],
    positions: &'a Positions,
    /// Whether all positions are the output's.
    whole: bool,
}

/// Gives them to the epilogue.
struct Give<'a, E, const LANES: u8> {
    part: &'a Part<'a>,
    epilogue: &'a E,
}

impl<E: TileEpilogue, const LANES: u8> MicroKernel for Give<'_, E, LANES> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Give { part: &Part { first, sums, ref rows, zeros, totals, positions, .. }, epilogue } = self;
        for (i, row) in rows.clone().step_by(ROWS).enumerate() {
            let begin = i * ROWS;
            let zeros = if zeros.is_empty() { &[] } else { &zeros[begin..][..ROWS] };
            let output = Output { epilogue, rows: row..(row + ROWS).min(rows.end), positions, zeros, totals };
            // SAFETY: as the caller promises; `compute_by_tiles` has configured tiles.
            unsafe {
                if !E::SHORT {
                    keep_awake();
                }
                output.take::<D, ROWS, 2, LANES>(loaded::<D, 2>(&first[begin..], &sums[begin * SIDE..]));
            }
        }
    }
}

/// Sums of `ROWS` rows, `SIDE` apart, and what they begin with.
///
/// # Safety
/// Only inside `DotGroup::run` of `D`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn loaded<D: DotGroup, const V: usize>(first: &[u32], sums: &[u32]) -> [[SumVector; V]; ROWS] {
    use std::arch::x86_64::*;
    let (first, sums) = (&first[..ROWS], &sums[..ROWS * SIDE]);
    // SAFETY: as the caller promises; each row has two vectors.
    unsafe {
        let mut all = [[_mm512_setzero_si512(); V]; ROWS];
        for (r, row) in all.iter_mut().enumerate() {
            let first = _mm512_set1_epi32(first[r] as i32);
            for (v, sum) in row.iter_mut().enumerate() {
                *sum = D::add(_mm512_loadu_si512(sums.as_ptr().add(r * SIDE + v * VECTOR).cast()), first);
            }
        }
        all
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn loaded<D: DotGroup, const V: usize>(first: &[u32], sums: &[u32]) -> [[SumVector; V]; ROWS] {
    crate::gemm::missing((first, sums, VECTOR))
}
