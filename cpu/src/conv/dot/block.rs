//! A part of a convolution of dot groups for one thread: panels of weights times output positions.

use std::ops::Range;

use super::epilogue::{ALL, ANY, FIRST, Positions, TileEpilogue, VECTORS};
use super::panels::{ROWS, Steps};
use super::strip::{ONES, Of, Right};
use crate::conv::common::lines::Lines;
use crate::gemm::{DotGroup, MicroKernel, SumVector, TileOperands, VECTOR, column_sums, tile_sums};

/// Positions of a tile.
pub(super) const WIDTH: usize = VECTORS * VECTOR;
/// Dot groups of the right operand that all panels meet before others, and tiles of them at most.
const CACHED: usize = 4 * 1024;
const TILES: usize = 8;
/// So many positions beyond whole vectors are computed each by itself, see `column_sums`.
const ALONE: usize = 2;
/// Dot groups of scratch for each dot group of depth: ones, and those at single positions.
pub(crate) const BLOCK_SCRATCH: usize = 1 + ALONE;

pub(crate) struct Block<'a> {
    /// Whole panels.
    pub(crate) panels: &'a [u32],
    /// What sums begin with, for whole panels.
    pub(crate) first: &'a [u32],
    /// Zero points of the rows, for whole panels; none where all are 0.
    pub(crate) zeros: &'a [i32],
    /// How tiles multiply, and what, if they do.
    pub(super) tiles: Option<(Steps, Right<'a>)>,
    pub(crate) group: usize,
    /// Where each row of the right operand begins in `planes`.
    pub(crate) taps: &'a [usize],
    pub(crate) planes: &'a [u32],
    /// Positions, gaps included.
    pub(crate) columns: Range<usize>,
    pub(crate) lines: Lines,
    /// Outputs of a channel before the first of these.
    pub(crate) before: usize,
    /// Output channels; the last panel may have fewer than others.
    pub(crate) rows: Range<usize>,
    /// `BLOCK_SCRATCH` times the depth.
    pub(crate) scratch: &'a mut [u32],
}

impl Block<'_> {
    /// Computes the sums, which go to the epilogue.
    pub(crate) fn compute<D: DotGroup, E: TileEpilogue>(mut self, epilogue: &E) {
        if let Some((steps, right)) = self.tiles.take() {
            assert!(D::available());
            // SAFETY: this was just asserted; `compute_by_tiles` asserts the extents.
            return self.compute_by_tiles(steps, Of::new::<D>(), right, &|task| unsafe {
                task.ask::<D, E>(epilogue)
            });
        }
        let (depth, Range { start, end }) = (self.taps.len(), self.columns.clone());
        let panels = self.rows.len().div_ceil(ROWS);
        let farthest = self.taps.iter().fold(0, |last, &tap| last.max(tap));
        assert!(D::available() && self.panels.len() >= panels * ROWS * depth);
        assert!(self.first.len() >= panels * ROWS && farthest + end <= self.planes.len());
        assert!(self.zeros.is_empty() || self.zeros.len() >= panels * ROWS);
        // One or two positions more than whole vectors are cheaper as vectors of rows.
        let alone = match (end - start) % VECTOR {
            rest @ ..=ALONE => rest,
            _ => 0,
        };
        assert!(self.scratch.len() >= BLOCK_SCRATCH * depth);
        if has_zeros::<D>(self.zeros) {
            self.scratch[..depth].fill(ONES);
        }
        // So many positions of all taps stay in the first cache while panels go by.
        let strip = (CACHED / (depth * WIDTH).max(1)).clamp(1, TILES) * WIDTH;
        let whole = end - alone;
        let columns = self.scratch[depth..].chunks_exact_mut(depth.max(1));
        for (column, position) in columns.zip(whole..end) {
            column.iter_mut().zip(self.taps).for_each(|(group, tap)| *group = self.planes[tap + position]);
        }
        let mut at = start;
        loop {
            let next = (at + strip).min(whole);
            self.strip::<D, E>(epilogue, at..next, if next == whole { whole..end } else { next..next });
            at = next;
            if at == whole {
                break;
            }
        }
    }

    /// The sums of all panels at a strip of positions, and at some single ones.
    fn strip<D: DotGroup, E: TileEpilogue>(&self, epilogue: &E, strip: Range<usize>, alone: Range<usize>) {
        let depth = self.taps.len();
        let tiles = strip.clone().step_by(WIDTH).map(|start| (start, WIDTH.min(strip.end - start)));
        let mut positions = [const { Positions::NONE }; TILES];
        for (positions, at) in positions.iter_mut().zip(tiles.clone()) {
            *positions = Positions::new(self.lines, self.before, at);
        }
        let mut single = [const { Positions::NONE }; ALONE];
        for (positions, position) in single.iter_mut().zip(alone.clone()) {
            *positions = Positions::new(self.lines, self.before, (position, 1));
        }
        let columns = self.scratch[depth..].chunks_exact(depth.max(1));
        let (mut totals, mut column_totals) = ([[0; WIDTH]; TILES], [[0; WIDTH]; ALONE]);
        if has_zeros::<D>(self.zeros) {
            for (totals, at) in totals.iter_mut().zip(tiles.clone()) {
                position_totals::<D>(self.taps, self.planes, &self.scratch[..depth], at, totals);
            }
            for (totals, column) in column_totals.iter_mut().zip(columns.clone()) {
                let bytes = column.iter().flat_map(|group| group.to_le_bytes());
                *totals = [bytes.map(i32::from).fold(0, i32::wrapping_add); WIDTH];
            }
        }
        for (i, row) in self.rows.clone().step_by(ROWS).enumerate() {
            let rows = || row..(row + ROWS).min(self.rows.end);
            let panel = &self.panels[i * ROWS * depth..][..ROWS * depth];
            let first = &self.first[i * ROWS..][..ROWS];
            let zeros = if has_zeros::<D>(self.zeros) { &self.zeros[i * ROWS..][..ROWS] } else { &[] };
            for (t, (at, positions)) in tiles.clone().zip(&positions).enumerate() {
                // The first tile fetches the next panel, which may lie in memory.
                let ahead = if t == 0 { ROWS * depth } else { 0 };
                let output = Output { epilogue, rows: rows(), positions, zeros, totals: &totals[t] };
                match positions.lanes_are() {
                    ALL => self.tile::<D, E, ALL>((first, panel), ahead, at, output),
                    FIRST => self.tile::<D, E, FIRST>((first, panel), ahead, at, output),
                    _ => self.tile::<D, E, ANY>((first, panel), ahead, at, output),
                }
            }
            let single = single[..alone.len()].iter().zip(&column_totals);
            for (column, (positions, totals)) in columns.clone().zip(single) {
                let output = Output { epilogue, rows: rows(), positions, zeros, totals };
                // SAFETY: the instructions were asserted in `compute`; panel and column have `depth` groups a row.
                unsafe { D::run(Column { first, panel, column, output }) };
            }
        }
    }

    /// The sums of a panel, and what they begin with, at so many positions from one on. What lies so many groups
    /// `ahead` of each one of the panel is fetched.
    fn tile<D: DotGroup, E: TileEpilogue, const LANES: u8>(
        &self,
        (first, panel): (&[u32], &[u32]),
        ahead: usize,
        at: (usize, usize),
        output: Output<'_, E>,
    ) {
        assert!(first.len() == ROWS && panel.len() == ROWS * self.taps.len());
        let operands = operands((first, panel), ahead, (self.taps, self.planes), at);
        // SAFETY: the instructions, and the farthest position of all taps, were asserted in `compute`; the mask
        // leaves out what follows the last position.
        unsafe {
            match at.1.div_ceil(VECTOR) {
                1 => D::run(Tile::<E, 1, LANES> { operands, output }),
                2 => D::run(Tile::<E, 2, LANES> { operands, output }),
                _ => D::run(Tile::<E, VECTORS, LANES> { operands, output }),
            }
        }
    }
}

/// The operands of a panel at so many positions from one on.
fn operands<'a>(
    (first, panel): (&'a [u32], &'a [u32]),
    ahead: usize,
    (taps, planes): (&'a [usize], &'a [u32]),
    (start, count): (usize, usize),
) -> TileOperands<'a> {
    TileOperands {
        first: first.as_ptr(),
        panel: panel.as_ptr(),
        ahead,
        taps,
        image: planes[start..].as_ptr(),
        mask: !0 >> (count.next_multiple_of(VECTOR) - count),
    }
}

/// What the weights of a row are multiplied with at each position, in total. The caller asserts what `Block::compute` does.
fn position_totals<D: DotGroup>(
    taps: &[usize],
    planes: &[u32],
    ones: &[u32],
    at: (usize, usize),
    totals: &mut [i32; WIDTH],
) {
    assert!(ones.len() >= taps.len());
    let operands = operands((&[0], ones), 0, (taps, planes), at);
    // SAFETY: as in `Block::tile`, for a panel of one row.
    unsafe {
        match at.1.div_ceil(VECTOR) {
            1 => D::run(Totals::<1> { operands, totals }),
            2 => D::run(Totals::<2> { operands, totals }),
            _ => D::run(Totals::<VECTORS> { operands, totals }),
        }
    }
}

/// Whether there are zero points. Only bytes have them: for other dot groups, what follows is not compiled.
#[inline(always)]
fn has_zeros<D: DotGroup>(zeros: &[i32]) -> bool {
    D::COUNT == 4 && !zeros.is_empty()
}

/// What becomes of the sums of a tile.
pub(super) struct Output<'a, E> {
    pub(super) epilogue: &'a E,
    pub(super) rows: Range<usize>,
    pub(super) positions: &'a Positions,
    /// The zero points of the rows, if any, and what each row's weights are multiplied with in total.
    pub(super) zeros: &'a [i32],
    pub(super) totals: &'a [i32; WIDTH],
}

impl<E: TileEpilogue> Output<'_, E> {
    /// Takes the zero points off the sums and gives these to the epilogue: `Σ (w − zero)·x = Σ w·x − zero · Σ x`.
    ///
    /// # Safety
    /// As of `TileEpilogue::tile`.
    #[inline(always)]
    pub(super) unsafe fn take<D: DotGroup, const R: usize, const V: usize, const LANES: u8>(
        self,
        mut sums: [[SumVector; V]; R],
    ) {
        if has_zeros::<D>(self.zeros) {
            for (sums, &zero) in sums.iter_mut().zip(self.zeros) {
                for (v, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: as the caller promises.
                    *sums = unsafe { less_product(*sums, zero, &self.totals[v * VECTOR..]) };
                }
            }
        }
        // Through memory: what is long is not compiled for each row of the tile, which has its sums in registers.
        let sums = if E::SHORT { sums } else { std::hint::black_box(sums) };
        // SAFETY: as the caller promises.
        unsafe { self.epilogue.tile::<R, V, LANES>(self.rows, self.positions, sums) };
    }
}

/// A panel times `V` vectors of positions.
struct Tile<'a, E, const V: usize, const LANES: u8> {
    operands: TileOperands<'a>,
    output: Output<'a, E>,
}

impl<E: TileEpilogue, const V: usize, const LANES: u8> MicroKernel for Tile<'_, E, V, LANES> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        // SAFETY: as the caller promises.
        unsafe { self.output.take::<D, ROWS, V, LANES>(tile_sums::<D, ROWS, V>(self.operands)) };
    }
}

/// A panel times a single position.
struct Column<'a, E> {
    first: &'a [u32],
    panel: &'a [u32],
    column: &'a [u32],
    output: Output<'a, E>,
}

impl<E: TileEpilogue> MicroKernel for Column<'_, E> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let Column { first, panel, column, output } = self;
        // SAFETY: as the caller promises.
        unsafe {
            let sums = column_sums::<D>(first.as_ptr(), panel.as_ptr(), column.as_ptr(), column.len());
            output.take::<D, ROWS, 1, ANY>(sums);
        }
    }
}

/// One row times `V` vectors of positions, to memory.
struct Totals<'a, const V: usize> {
    operands: TileOperands<'a>,
    totals: &'a mut [i32; WIDTH],
}

impl<const V: usize> MicroKernel for Totals<'_, V> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        // SAFETY: as the caller promises.
        let [sums] = unsafe { tile_sums::<D, 1, V>(self.operands) };
        for (totals, sums) in self.totals.as_chunks_mut::<VECTOR>().0.iter_mut().zip(sums) {
            // SAFETY: a vector of sums is so many integers.
            *totals = unsafe { std::mem::transmute::<SumVector, [i32; VECTOR]>(sums) };
        }
    }
}

/// Sums less a factor times others.
///
/// # Safety
/// As of `TileEpilogue::tile`; there are as many others as a vector has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn less_product(sums: SumVector, factor: i32, others: &[i32]) -> SumVector {
    use std::arch::x86_64::*;
    // SAFETY: as the caller promises.
    unsafe {
        let others = _mm512_loadu_si512(others.as_ptr().cast());
        _mm512_sub_epi32(sums, _mm512_mullo_epi32(_mm512_set1_epi32(factor), others))
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn less_product(sums: SumVector, factor: i32, others: &[i32]) -> SumVector {
    crate::gemm::missing((sums, factor, others))
}
