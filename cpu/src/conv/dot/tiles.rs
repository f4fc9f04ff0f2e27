//! A block of a convolution by AMX's tiles: weights are the left operand, the image's dot groups the right one. Sums of
//! 32 rows and 32 positions go through memory to the epilogue. What does not depend on it is compiled once for all
//! epilogues.

use std::ops::Range;

use super::block::{BLOCK_SCRATCH, Block, ONES, Output, WIDTH, position_totals};
use super::epilogue::{ALL, ANY, Positions, TileEpilogue};
use super::panels::Steps;
use crate::gemm::{
    DotGroup, Int8x4, MicroKernel, Room, SumVector, TILE_SIDE, TILE_STRIP, TileProduct, TileShape, Tiles,
    VECTOR,
};

/// Rows, and positions, of the sums that are computed at a time.
const SIDE: usize = TILE_STRIP;
/// Dot groups of the right operand that all panels meet before others, and such tiles of them at most.
const CACHED: usize = 8 * 1024;
const TILES: usize = 8;
/// Rows that the epilogue is given at a time: whole blocks of channels.
const ROWS: usize = 4;

impl Block<'_> {
    /// As `compute`, for weights in panels for tiles. The product is `DotGroup::weight_tile_product`.
    #[inline(never)]
    pub(super) fn compute_by_tiles(
        self,
        steps: Steps,
        product: unsafe fn(&TileProduct),
        give: &dyn Fn(Part<'_>),
    ) {
        let (depth, Range { start, end }) = (self.taps.len(), self.columns.clone());
        let Steps { dot_groups, volume } = steps;
        let (padded, count) = (self.rows.len().next_multiple_of(TILE_SIDE), depth / dot_groups);
        let farthest = self.taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(count > 0 && depth == count * dot_groups && depth.is_multiple_of(volume));
        assert!(self.panels.len() >= padded * depth && self.first.len() >= padded);
        assert!(self.zeros.is_empty() || self.zeros.len() >= padded);
        assert!(farthest + end <= self.planes.len() && self.scratch.len() >= BLOCK_SCRATCH * depth);
        // From a dot group of channels to the next, for each position of the kernel.
        let line = if depth > volume { self.taps[volume] - self.taps[0] } else { 0 };
        // A step has a dot group at least. Its begin takes two words; memory of a thread begins where those may lie.
        let (begins, ones) = self.scratch.split_at_mut(2 * count);
        let ones = &mut ones[..depth];
        // Bytes alone have zero points.
        if !self.zeros.is_empty() {
            ones.fill(ONES);
        }
        let begins: &mut [u64] = bytemuck::cast_slice_mut(begins);
        for (step, begin) in begins.iter_mut().enumerate() {
            let steps = depth / volume / dot_groups;
            let tap = self.taps[step / steps] + step % steps * dot_groups * line;
            *begin = (tap * size_of::<u32>()) as u64;
        }
        let job = Job {
            panels: self.panels,
            first: self.first,
            zeros: self.zeros,
            planes: self.planes,
            begins,
            depth,
            dot_groups,
            line,
            rows: self.rows,
        };
        let (mut tiles, mut room) = (Tiles::new(), Room([0; SIDE * SIDE]));
        // Positions beyond whole tiles come last: tiles have other extents for them.
        let whole = start + (end - start) / SIDE * SIDE;
        let strip = (CACHED / (depth * SIDE).max(1)).clamp(1, TILES) * SIDE;
        let strips = (start..whole).step_by(strip).map(|at| at..(at + strip).min(whole));
        for strip in strips.chain((whole < end).then_some(whole..end)) {
            let (mut positions, mut totals) = ([const { Positions::NONE }; TILES], [[0; WIDTH]; TILES]);
            for (i, at) in strip.clone().step_by(SIDE).enumerate() {
                let at = (at, SIDE.min(strip.end - at));
                positions[i] = Positions::new(self.lines, self.before, at);
                if !job.zeros.is_empty() {
                    position_totals::<Int8x4>(self.taps, job.planes, ones, at, &mut totals[i]);
                }
            }
            for row in (0..job.rows.len()).step_by(SIDE) {
                for (i, at) in strip.clone().step_by(SIDE).enumerate() {
                    let at = (at, SIDE.min(strip.end - at));
                    job.tile(product, &mut tiles, &mut room, row, at, i == 0);
                    job.give((row, &room.0), at.1, (&positions[i], &totals[i]), give);
                }
            }
        }
    }
}

/// What `Block` has, and how tiles go through it.
struct Job<'a> {
    panels: &'a [u32],
    first: &'a [u32],
    zeros: &'a [i32],
    planes: &'a [u32],
    /// Where the image's dot groups of each step begin, in bytes.
    begins: &'a [u64],
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
        (start, count): (usize, usize),
        fetch: bool,
    ) {
        let Job { depth, dot_groups, line, .. } = *self;
        let (left, right) = (count.min(TILE_SIDE), count.saturating_sub(TILE_SIDE));
        tiles.configure(TileShape {
            rows: [TILE_SIDE as u8; 2],
            columns: [left as u8, right.max(1) as u8],
            depth: dot_groups as u8,
        });
        let at = room.0.as_mut_ptr();
        let a = self.panels[row * depth..].as_ptr();
        let product = TileProduct {
            a,
            second_a: a.wrapping_add(TILE_SIDE * depth),
            row: dot_groups * size_of::<u32>(),
            step: TILE_SIDE * dot_groups * size_of::<u32>(),
            b: self.planes[start..].as_ptr(),
            line: line * size_of::<u32>(),
            steps: self.begins.as_ptr(),
            count: self.begins.len(),
            sums: at,
            second_sums: at.wrapping_add(TILE_SIDE * SIDE),
            sums_row: SIDE * size_of::<u32>(),
            // The first tile of a strip fetches the next rows, which may lie in memory.
            fetch: a.wrapping_add(SIDE * depth).cast(),
            fetch_lines: if fetch { (SIDE * dot_groups * size_of::<u32>()).div_ceil(64) } else { 0 },
            two_rows: u8::from(self.rows.len() - row > TILE_SIDE),
            two_columns: u8::from(right > 0),
            add: 0,
        };
        // SAFETY: `compute_by_tiles` asserted that there are whole panels, and the farthest position of all taps.
        unsafe { multiply(&product) };
    }

    /// Gives sums at so many positions away.
    fn give(
        &self,
        (row, sums): (usize, &[u32]),
        count: usize,
        (positions, totals): (&Positions, &[i32; WIDTH]),
        give: &dyn Fn(Part<'_>),
    ) {
        // Vectors without positions are written to nowhere, but only where lanes count.
        let whole = count == SIDE && positions.lanes_are() == ALL;
        for part in (0..SIDE.min(self.rows.len() - row)).step_by(ROWS) {
            let begin = row + part;
            give(Part {
                first: &self.first[begin..][..ROWS],
                sums: &sums[part * SIDE..][..ROWS * SIDE],
                rows: self.rows.start + begin..self.rows.start + (begin + ROWS).min(self.rows.len()),
                zeros: if self.zeros.is_empty() { &[] } else { &self.zeros[begin..][..ROWS] },
                totals,
                positions,
                whole,
            });
        }
    }
}

/// Sums of `ROWS` rows at `SIDE` positions.
pub(super) struct Part<'a> {
    /// What sums begin with.
    first: &'a [u32],
    sums: &'a [u32],
    rows: Range<usize>,
    zeros: &'a [i32],
    totals: &'a [i32; WIDTH],
    positions: &'a Positions,
    /// Whether all positions are the output's.
    whole: bool,
}

impl Part<'_> {
    /// Gives them to the epilogue.
    ///
    /// # Safety
    /// As of `TileEpilogue::tile`, but anywhere on a processor with `D::available()`.
    pub(super) unsafe fn give<D: DotGroup, E: TileEpilogue>(self, epilogue: &E) {
        let Part { first, sums, rows, zeros, totals, positions, whole } = self;
        let output = Output { epilogue, rows, positions, zeros, totals };
        // SAFETY: as the caller promises.
        unsafe {
            // What is long is compiled for any lanes alone.
            match whole && E::SHORT {
                true => D::run(Give::<E, ALL> { first, sums, output }),
                false => D::run(Give::<E, ANY> { first, sums, output }),
            }
        }
    }
}

/// What `Part::give` gives.
struct Give<'a, E, const LANES: u8> {
    first: &'a [u32],
    sums: &'a [u32],
    output: Output<'a, E>,
}

impl<E: TileEpilogue, const LANES: u8> MicroKernel for Give<'_, E, LANES> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Give { first, sums, output } = self;
        // SAFETY: as the caller promises.
        unsafe { output.take::<D, ROWS, 2, LANES>(loaded::<D, 2>(first, sums)) };
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
