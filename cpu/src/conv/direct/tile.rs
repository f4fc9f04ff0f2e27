//! The product of a panel of weights with a run of output positions, in registers.
//!
//! For a row of the right operand, output positions are neighbours in memory, so the operand is read where
//! it lies: at the row's offset plus the position. Nothing is packed.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::gemv::multiply;
use super::next::Next;
use super::panels::{SumTile, rows_of};
use super::tiles::{Positions, Tiles, by_lines};
use crate::conv::common::blocks::VECTORS;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::{Lines, Segments};
use crate::conv::common::masks::{LONGEST, Masks};
#[cfg(target_arch = "x86_64")]
use crate::ops::activation::Activation;

/// Room for a tile, and for a vector that begins at its last element.
const TILE_LEN: usize = 8 * VECTORS * LONGEST + LONGEST;
/// With vectors of 4, half of a first cache.
const CACHED: usize = 4 * 1024;
/// With AVX2, which computes the tiles of a panel in one call: 48 KB, of which the second cache holds what the first one
/// does not.
const CACHED_AVX2: usize = 12 * 1024;
/// With AVX-512: 96 KB of the second cache. The longer the lines of outputs that a panel writes one after the other, the more of
/// them the processor fetches ahead: 1 × 1 of 64 to 256 channels on 56 × 56 became 1.2 times as fast, and a first layer
/// of 7 × 7, with gaps between lines, 1.06 times (Cascade Lake). In a program of its own 384 KB cost half of the speed where outputs are few.
const CACHED_AVX512: usize = 24 * 1024;
/// Columns after the last whole vector that are cheaper as vectors of rows, at most. With four of AVX-512's sixteen 1 × 1 of
/// 14 × 14 gained 2 in a hundred, and groups of 120 channels lost 6.
pub(crate) const ALONE: usize = 2;
/// How far ahead weights are fetched, in elements: what finds them by itself stops where a page ends.
const AHEAD: usize = 1024;

/// The sums of a tile.
#[repr(align(64))]
struct Sums([f32; TILE_LEN]);

/// A part of a convolution for one thread.
pub(crate) struct Block<'a> {
    /// Panels, of each of which the first `taps.len()` times its rows are multiplied.
    pub(crate) panels: &'a [f32],
    /// Elements from the start of a panel to that of the next.
    pub(crate) panel: usize,
    /// Where each row of the right operand begins in `planes`.
    pub(crate) taps: &'a [usize],
    pub(crate) planes: &'a [f32],
    /// The position that `planes` begin with.
    pub(crate) origin: usize,
    /// Positions, gaps included.
    pub(crate) columns: Range<usize>,
    pub(crate) lines: Lines,
    /// Output channels; the last panel may have fewer than others.
    pub(crate) rows: Range<usize>,
    pub(crate) epilogue: F32Epilogue<'a>,
    /// For each of `ALONE` columns, its elements repeated for the rows of a panel.
    pub(crate) scratch: &'a mut [f32],
    /// What will be read after this block, if that is known.
    pub(crate) next: Option<Next<'a>>,
}

impl SimdOp for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        if rows_of(isa) == 4 { self.run::<I, 4>(isa) } else { self.run::<I, 8>(isa) }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn run<I: Isa, const R: usize>(self, isa: I) {
        let len = isa.f32().len();
        let depth = self.taps.len();
        let of_panel = R * depth;
        let ends = self.rows.len().div_ceil(R).checked_sub(1).map_or(0, |last| last * self.panel + of_panel);
        assert!(self.panels.len() >= ends && self.panel >= of_panel, "panels hold all rows");
        let masks = Masks::new(isa);
        let mut sums = Sums([0.0; TILE_LEN]);
        let last = self.taps.iter().fold(0, |last, &tap| last.max(tap));
        let Range { start, end } = self.columns;
        assert!(start >= self.origin, "positions lie in the planes");
        let cached = cached(SumTile::of(isa)) / depth.max(1);
        // One tile's positions of each tap, so that the product of AVX2, whose panels have four rows, need not look up where they are.
        let contiguous = R == 4 && self.taps.iter().enumerate().all(|(i, &tap)| tap == i * VECTORS * len);
        let by_lines = self.epilogue.residual.is_none()
            && by_lines(SumTile::of(isa), self.lines, &self.columns, depth, cached);
        // Behind the last line no strip begins.
        let Lines { line, pitch } = self.lines;
        let end = if by_lines { end.min((end - 1) / pitch * pitch + line) } else { end };
        let alone = match (end - start) % len {
            _ if by_lines => 0,
            rest @ 1..=ALONE if end - start > len => rest,
            _ => 0,
        };
        let (scratch, _) = self.scratch.split_at_mut(alone * R * depth);
        for (column, position) in scratch.chunks_exact_mut((R * depth).max(1)).zip(end - alone..) {
            let plane = &self.planes[position - self.origin..];
            for (to, &tap) in column.as_chunks_mut::<R>().0.iter_mut().zip(self.taps) {
                *to = [plane[tap]; R];
            }
        }
        let mut segments = Segments::NONE;
        // So many columns of all taps stay in a cache while panels go by.
        let width = VECTORS * len;
        let unit = if by_lines && end - start > self.lines.pitch { self.lines.pitch } else { width };
        let strip = (cached / unit).max(1) * unit;
        for strip in (start..end - alone).step_by(strip).map(|start| start..(start + strip).min(end - alone))
        {
            // In the last strip, while a panel is at hand.
            let alone = if strip.end == end - alone { strip.end..end } else { end..end };
            let count = self.rows.len().div_ceil(R);
            for (i, row) in self.rows.clone().step_by(R).enumerate() {
                if let Some(next) = &self.next {
                    next.fetch(i, count);
                }
                let panel = &self.panels[i * self.panel..][..of_panel];
                let rows = row..(row + R).min(self.rows.end);
                // Of what the next strip reads from memory, one vector of each tap.
                let ahead = if i < VECTORS { strip.len() + i * len } else { 0 };
                #[cfg_attr(
                    not(target_arch = "x86_64"),
                    allow(unused_mut, reason = "what changes it is of x86-64")
                )]
                let mut tiles = Tiles::new(self.lines, strip.clone(), len, by_lines);
                #[cfg(target_arch = "x86_64")]
                if R == avx2::ROWS && rows.len() == R && (by_lines || self.lines.line == self.lines.pitch) {
                    // All whole tiles of a line at a time.
                    let count = tiles.whole();
                    let mut done = count > 0;
                    for Positions { start, output, .. } in tiles.lines().take_while(|_| count > 0) {
                        let at = start - self.origin;
                        let reach = reach(last, at, count, self.planes.len());
                        let to = output.map(|column| (&self.epilogue, row, column));
                        let (taps, planes) = (self.taps, self.planes);
                        let tile = Tile {
                            panel,
                            taps,
                            planes,
                            start: at,
                            count,
                            reach,
                            ahead,
                            strip: contiguous,
                            to,
                        };
                        // SAFETY: panels of so many rows are those of AVX2; what is read lies inside, see `reach`;
                        // `strip` is as `contiguous` found taps.
                        done = unsafe { tile.outputs_avx2::<VECTORS>(count / width) };
                        if !done {
                            break;
                        }
                    }
                    if done {
                        tiles.skip_whole();
                    }
                }
                for Positions { start, count, output } in tiles {
                    let at = start - self.origin;
                    let reach = reach(last, at, count, self.planes.len());
                    // Looking up what is no whole line took as long as 20 steps of a tile.
                    let to = output.or_else(|| {
                        segments.set(self.lines, start, count, len);
                        segments.contiguous(len)
                    });
                    let to = to.filter(|_| rows.len() == R);
                    let to = to.map(|column| (&self.epilogue, row, column));
                    let (taps, planes) = (self.taps, self.planes);
                    let tile =
                        Tile { panel, taps, planes, start: at, count, reach, ahead, strip: contiguous, to };
                    let written = match count.div_ceil(len) {
                        1 => tile.compute::<I, R, 1>(isa, &mut sums),
                        2 => tile.compute::<I, R, 2>(isa, &mut sums),
                        _ => tile.compute::<I, R, VECTORS>(isa, &mut sums),
                    };
                    if !written {
                        segments.set(self.lines, start, count, len);
                        let width = count.next_multiple_of(len);
                        self.epilogue.rows(isa, &masks, &sums.0, width, rows.clone(), &segments);
                    }
                }
                for (column, position) in scratch.chunks_exact((R * depth).max(1)).zip(alone.clone()) {
                    multiply(isa, panel, column, &mut sums.0[..R]);
                    segments.set(self.lines, position, 1, len);
                    self.epilogue.rows(isa, &masks, &sums.0, 1, rows.clone(), &segments);
                }
            }
        }
    }
}

/// Elements of the right operand that all panels meet before others.
#[inline(always)]
pub(super) fn cached(tile: SumTile) -> usize {
    match tile.vector {
        8 => CACHED_AVX2,
        LONGEST => CACHED_AVX512,
        _ => CACHED,
    }
}

/// How many elements from the tile's start may be read for every tap, of which `last` is the farthest.
/// Panics where a tap's positions do not lie inside the planes.
#[inline(always)]
fn reach(last: usize, start: usize, count: usize, planes: usize) -> usize {
    let reach = planes.saturating_sub(last + start);
    assert!(reach >= count, "a tile lies inside the planes");
    reach
}

/// One tile.
struct Tile<'a> {
    panel: &'a [f32],
    taps: &'a [usize],
    planes: &'a [f32],
    start: usize,
    count: usize,
    reach: usize,
    /// How far behind the tile's first elements lie those to fetch into the cache.
    ahead: usize,
    /// Only where tap `i` is exactly `i * 3 * LEN` with AVX2's `LEN`; never with other instruction sets.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
    strip: bool,
    /// Where outputs go from registers: the first row and column. None if they are not whole vectors.
    to: Option<(&'a F32Epilogue<'a>, usize, usize)>,
}

impl Tile<'_> {
    /// Tells whether the outputs are written; else the sums are in `sums`.
    #[inline(always)]
    fn compute<I: Isa, const R: usize, const V: usize>(&self, isa: I, sums: &mut Sums) -> bool {
        assert!(self.panel.len() >= R * self.taps.len() && R * V * isa.f32().len() <= TILE_LEN);
        // SAFETY: the panel and the sums are large enough by the assertion; of every tap, `reach` elements
        // from the start lie inside the planes, at least `count` of them (see `reach`), and more than that
        // are read only without the mask; `strip` is true of the taps, see `contiguous`.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if R == 4 {
                return self.compute_avx2::<I, R, V>(isa, sums);
            }
            if self.reach < V * isa.f32().len() {
                store(isa, self.product::<I, R, V, true>(isa), sums);
                return false;
            }
            if let Some((epilogue, row, column)) = self.to {
                epilogue.fetch::<I, R, V>(isa, row, column);
            }
            let product = self.product::<I, R, V, false>(isa);
            match self.to {
                Some((epilogue, row, column)) => epilogue.vectors_of_rows(isa, product, row, column),
                None => store(isa, product, sums),
            }
        }
        self.to.is_some()
    }

    /// The same with AVX2, the one instruction set whose panels have four rows.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn compute_avx2<I: Isa, const R: usize, const V: usize>(&self, isa: I, sums: &mut Sums) -> bool {
        let ops = isa.f32();
        let len = ops.len();
        let last = (self.reach - (V - 1) * len).min(len);
        let to = self.to.filter(|_| last == len);
        // SAFETY: as of `compute`: from each tap as many elements lie inside as a tile has, and `strip` is true of the taps.
        if to.is_some() && V > 1 && unsafe { self.outputs_avx2::<V>(1) } {
            return true;
        }
        if let Some((epilogue, row, column)) = to {
            epilogue.fetch::<I, R, V>(isa, row, column);
        }
        let operands = self.operands_avx2(last);
        // SAFETY: as of `compute`; with vectors of 8 there are AVX2 and FMA, and `strip` is true of the taps.
        unsafe { avx2::product::<V>(operands, &mut sums.0) };
        if let Some((epilogue, row, column)) = to {
            let mut product = [[ops.zero(); V]; R];
            for (to, from) in product.as_flattened_mut().iter_mut().zip(sums.0.chunks_exact(len)) {
                *to = ops.load(from);
            }
            epilogue.vectors_of_rows(isa, product, row, column);
        }
        to.is_some()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn operands_avx2(&self, last: usize) -> avx2::Operands<'_> {
        let positions = self.planes.as_ptr().wrapping_add(self.start);
        let (panel, taps, ahead, strip) = (self.panel, self.taps, self.ahead, self.strip);
        avx2::Operands { panel, taps, positions, ahead, strip, last }
    }

    /// Computes so many tiles of `V` whole vectors, each beside the one before, from registers; tells whether there is such a
    /// way for these outputs.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; from the start on as many elements of each tap lie inside the planes; with `strip`, tap `i` is
    /// exactly `i * 3 * LEN`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn outputs_avx2<const V: usize>(&self, tiles: usize) -> bool {
        let Some((epilogue, row, column)) = self.to else { return false };
        let relu = match epilogue.activation {
            Activation::Identity => false,
            Activation::Relu => true,
            _ => return false,
        };
        let (width, stride) = (tiles * V * avx2::LEN, epilogue.columns);
        let at = epilogue.start + row * stride + column;
        let end = at + (avx2::ROWS - 1) * stride + width;
        assert!(column + width <= stride && end <= epilogue.out.len(), "tiles lie inside the outputs");
        let outputs = avx2::Outputs {
            to: epilogue.out.start().wrapping_add(at),
            residual: epilogue.residual.map(|residual| residual[at..end].as_ptr()),
            stride,
            bias: &std::array::from_fn(|r| epilogue.bias.map_or(0.0, |bias| bias[row + r])),
        };
        // SAFETY: as the caller promises; of each row the vectors lie inside by the assertion. Only this thread writes them; one
        // of a line's last tile that the tile before has written gets the same value again.
        unsafe { avx2::outputs::<V>(self.operands_avx2(avx2::LEN), tiles, outputs, relu) };
        true
    }

    #[inline(always)]
    unsafe fn product<I: Isa, const R: usize, const V: usize, const MASKED: bool>(
        &self,
        isa: I,
    ) -> [[I::F32; V]; R] {
        let ops = isa.f32();
        let len = ops.len();
        let mask = ops.first_n_mask(self.count - (V - 1) * len);
        let mut acc = [[ops.zero(); V]; R];
        // SAFETY: see `compute`.
        unsafe {
            let planes = self.planes.as_ptr().wrapping_add(self.start);
            let mut weights = self.panel.as_ptr();
            // Two rows at a time, whose weights take as much as a line of a cache: fewer instructions beside the
            // multiplications.
            let (pairs, rest) = self.taps.as_chunks::<2>();
            for &[first, second] in pairs {
                ops.prefetch(weights.wrapping_add(AHEAD));
                let (first, second) = (planes.add(first), planes.add(second));
                ops.prefetch(first.wrapping_add(self.ahead));
                multiply_row::<I, R, V, MASKED>(isa, weights, first, mask, &mut acc);
                ops.prefetch(second.wrapping_add(self.ahead));
                multiply_row::<I, R, V, MASKED>(isa, weights.add(R), second, mask, &mut acc);
                weights = weights.add(2 * R);
            }
            for &tap in rest {
                ops.prefetch(planes.add(tap).wrapping_add(self.ahead));
                multiply_row::<I, R, V, MASKED>(isa, weights, planes.add(tap), mask, &mut acc);
            }
        }
        acc
    }
}

/// Adds the products of one row of the right operand, of whose vectors the last may be cut off by the mask.
///
/// # Safety
/// `R` weights can be read, and `V` vectors of elements, the last one as far as the mask says.
#[inline(always)]
unsafe fn multiply_row<I: Isa, const R: usize, const V: usize, const MASKED: bool>(
    isa: I,
    weights: *const f32,
    from: *const f32,
    mask: I::M32,
    sums: &mut [[I::F32; V]; R],
) {
    let ops = isa.f32();
    let mut columns = [ops.zero(); V];
    // SAFETY: as the caller promises.
    unsafe {
        for (v, column) in columns.iter_mut().enumerate() {
            let from = from.add(v * ops.len());
            *column = if MASKED && v == V - 1 { ops.load_ptr_mask(from, mask) } else { ops.load_ptr(from) };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let weight = ops.splat(*weights.add(r));
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = ops.mul_add(weight, column, *sum);
            }
        }
    }
}

#[inline(always)]
fn store<I: Isa, const R: usize, const V: usize>(isa: I, product: [[I::F32; V]; R], sums: &mut Sums) {
    let ops = isa.f32();
    for (to, &sum) in sums.0.chunks_exact_mut(ops.len()).zip(product.as_flattened()) {
        ops.store(sum, to);
    }
}
