//! What becomes of the sums of dot groups on their way to memory.

use std::cell::Cell;
use std::ops::Range;

use super::block::{Block, VECTORS, WIDTH};
use crate::ops::activation::Activation;
use crate::providers::cpu::conv::common::lines::Lines;
use crate::providers::cpu::gemm::{Bf16Pair, DotGroup, Int8x4, SumVector, TileSink, VECTOR};
use crate::providers::cpu::parallel::Parts;
use crate::tensor::bf16;

/// Takes the sums of products of dot groups `W`. Each is given once, from any thread.
pub(crate) trait DotStore<W: DotGroup>: Sync {
    /// Computes a block and takes its sums.
    fn block(&self, block: Block<'_>);
}

/// Takes the sums of tiles.
pub(crate) trait Rows: Sync {
    /// See `TileSink`.
    const SHORT: bool;

    /// Takes the sums of some output channels; what `sums` has beyond them is nobody's. `LANES` is what
    /// `Runs::lanes_are` says, or `ANY`.
    ///
    /// # Safety
    /// As of `TileSink::rows`; sums at the same positions are given once.
    unsafe fn rows<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        runs: &Runs,
        sums: [[SumVector; V]; R],
    );
}

/// Takes them row by row.
pub(crate) trait Row: Sync {
    /// See `TileSink`.
    const SHORT: bool;

    /// Takes the sums of an output channel.
    ///
    /// # Safety
    /// As of `Rows::rows`.
    unsafe fn row<const V: usize, const LANES: u8>(&self, row: usize, runs: &Runs, sums: [SumVector; V]);
}

impl<S: Row> Rows for S {
    const SHORT: bool = S::SHORT;

    #[inline(always)]
    unsafe fn rows<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        runs: &Runs,
        sums: [[SumVector; V]; R],
    ) {
        for (r, sums) in sums.into_iter().enumerate() {
            if r < rows.len() {
                // SAFETY: as the caller promises.
                unsafe { self.row::<V, LANES>(rows.start + r, runs, sums) };
            }
        }
    }
}

/// Which lanes of a tile's vectors are the output's: all, the first ones, or any.
pub(crate) const ALL: u8 = 0;
pub(crate) const FIRST: u8 = 1;
pub(crate) const ANY: u8 = 2;

/// The positions of a tile that are the output's, where they follow one another.
pub(crate) struct Runs {
    /// The first of them, and their number.
    begin: usize,
    count: usize,
    /// Of each vector the lanes that are the output's, and how many are in vectors before it.
    lanes: [u16; VECTORS],
    before: [usize; VECTORS],
    gaps: bool,
}

impl Runs {
    pub(crate) const NONE: Runs =
        Runs { begin: 0, count: 0, lanes: [0; VECTORS], before: [0; VECTORS], gaps: false };

    /// Those of `count` positions from `start` on, after so many outputs `before` all positions.
    pub(crate) fn new(lines: Lines, before: usize, (start, count): (usize, usize)) -> Self {
        let (mut y, mut x) = match lines.line == lines.pitch {
            true => (0, start),
            false => (start / lines.pitch, start % lines.pitch),
        };
        let begin = before + y * lines.line + x.min(lines.line);
        let (mut all, mut at) = (0u64, 0);
        while at < count {
            let run = lines.line.saturating_sub(x).min(count - at);
            all |= !(!0 << run) << at;
            // Over the gap, to the next line.
            at += lines.pitch.max(lines.line) - x;
            (y, x) = (y + 1, 0);
        }
        let lanes = std::array::from_fn(|v| (all >> (v * VECTOR)) as u16);
        let earlier = std::array::from_fn(|v| (all & !(!0 << (v * VECTOR))).count_ones() as usize);
        let kept = all.count_ones() as usize;
        Runs { begin, count: kept, lanes, before: earlier, gaps: kept != count }
    }

    /// `ALL`, `FIRST` or `ANY`.
    pub(crate) fn lanes_are(&self) -> u8 {
        match self.gaps {
            true => ANY,
            false if self.count.is_multiple_of(VECTOR) => ALL,
            false => FIRST,
        }
    }

    /// Where the outputs of a tile lie in a plane.
    #[inline(always)]
    pub(crate) fn range(&self) -> Range<usize> {
        self.begin..self.begin + self.count
    }

    /// The lanes of a vector that are the output's.
    #[inline(always)]
    pub(crate) fn lanes(&self, v: usize) -> u16 {
        self.lanes[v]
    }

    /// Where the outputs of a vector lie in those of the tile, and a mask of as many lanes.
    #[inline(always)]
    pub(crate) fn place<const LANES: u8>(&self, v: usize) -> (usize, u16) {
        match LANES {
            ALL => (v * VECTOR, !0),
            FIRST => (v * VECTOR, self.lanes[v]),
            _ => (self.before[v], !(!0u32 << self.lanes[v].count_ones()) as u16),
        }
    }
}

/// The rows of a tile, of which some may be missing at the end.
pub(crate) struct Tile<'a, S, const LANES: u8> {
    pub(crate) store: &'a S,
    pub(crate) rows: Range<usize>,
    pub(crate) runs: &'a Runs,
}

impl<'a, S> Tile<'a, S, ANY> {
    /// The same where lanes are known to be of another kind.
    pub(crate) fn with<const LANES: u8>(&self) -> Tile<'a, S, LANES> {
        Tile { store: self.store, rows: self.rows.clone(), runs: self.runs }
    }
}

impl<S: Rows, const LANES: u8> TileSink for Tile<'_, S, LANES> {
    const SHORT: bool = S::SHORT;

    #[inline(always)]
    unsafe fn rows<const R: usize, const V: usize>(&self, sums: [[SumVector; V]; R]) {
        // SAFETY: as the caller promises.
        unsafe { self.store.rows::<R, V, LANES>(self.rows.clone(), self.runs, sums) };
    }
}

/// Keeps the sums of a tile of one row.
pub(crate) struct Totals<'a>(pub(crate) &'a Cell<[i32; WIDTH]>);

/// Takes from sums the zero point of the row times the total of what its weights were multiplied with.
pub(crate) struct LessZeros<'a, S> {
    pub(crate) sink: &'a S,
    pub(crate) zeros: &'a [i32],
    pub(crate) totals: &'a [i32; WIDTH],
}

/// Where the sums of an image go: a row-major matrix of a row for each output channel.
pub(crate) struct Place<'a, T> {
    /// The outputs of all images.
    pub(crate) out: &'a Parts<'a, T>,
    /// Where this matrix begins there.
    pub(crate) start: usize,
    /// Columns of the matrix.
    pub(crate) columns: usize,
}

impl<T> Place<'_, T> {
    /// Where a tile's outputs of a row lie in all outputs.
    #[inline(always)]
    pub(crate) fn range(&self, row: usize, runs: &Runs) -> Range<usize> {
        let (start, Range { start: from, end }) = (self.start + row * self.columns, runs.range());
        start + from..start + end
    }
}

/// Sums of bytes as they are.
pub(crate) struct WholeSums<'a>(pub(crate) Place<'a, i32>);

impl DotStore<Int8x4> for WholeSums<'_> {
    fn block(&self, block: Block<'_>) {
        block.compute::<Int8x4, _>(self);
    }
}

/// Sums of bytes times a factor for each row, as bytes: rounded to nearest even, shifted and limited.
pub(crate) struct Requantized<'a> {
    /// Bytes, whose bits are those of signed ones if `signed`.
    pub(crate) place: Place<'a, u8>,
    pub(crate) factors: &'a [f32],
    pub(crate) zero: i32,
    pub(crate) signed: bool,
}

impl DotStore<Int8x4> for Requantized<'_> {
    fn block(&self, block: Block<'_>) {
        block.compute::<Int8x4, _>(self);
    }
}

/// The same, then added to a residual of the outputs' shape and type: rounded, shifted and limited once more.
pub(crate) struct Summed<'a> {
    pub(crate) sums: Requantized<'a>,
    pub(crate) residual: &'a [u8],
    pub(crate) residual_zero: f32,
    /// Of what is rounded, and of the residual.
    pub(crate) factors: [f32; 2],
    /// The zero point of the result.
    pub(crate) zero: i32,
}

impl DotStore<Int8x4> for Summed<'_> {
    fn block(&self, block: Block<'_>) {
        block.compute::<Int8x4, _>(self);
    }
}

/// Sums of bfloat16 numbers, with residual and activation, rounded to bfloat16. What is smaller than the smallest
/// normal number counts as zero.
pub(crate) struct RoundedToHalf<'a> {
    pub(crate) place: Place<'a, bf16>,
    /// Of the outputs' shape.
    pub(crate) residual: Option<&'a [bf16]>,
    pub(crate) activation: Activation,
}

impl DotStore<Bf16Pair> for RoundedToHalf<'_> {
    #[cfg(target_arch = "x86_64")]
    fn block(&self, block: Block<'_>) {
        super::avx512::with_function!(self.activation, f => block.compute::<Bf16Pair, _>(&Rounded(self, f)));
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn block(&self, block: Block<'_>) {
        block.compute::<Bf16Pair, _>(&Rounded(self, ()));
    }
}

/// A store with its activation, as a function of its own.
pub(crate) struct Rounded<'a, F>(pub(crate) &'a RoundedToHalf<'a>, pub(crate) F);

// Nobody has dot groups there.
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    use super::*;
    use crate::providers::cpu::gemm::missing;

    macro_rules! rows {
        ($store:ty, $self:ident, $place:expr, $rest:expr) => {
            impl Row for $store {
                const SHORT: bool = false;

                unsafe fn row<const V: usize, const LANES: u8>(
                    &$self,
                    row: usize,
                    runs: &Runs,
                    sums: [SumVector; V],
                ) {
                    missing(($place.range(row, runs), runs.lanes(0), runs.place::<LANES>(0), sums, $rest))
                }
            }
        };
    }
    impl TileSink for Totals<'_> {
        const SHORT: bool = true;

        unsafe fn rows<const R: usize, const V: usize>(&self, sums: [[SumVector; V]; R]) {
            missing((self.0, sums))
        }
    }

    impl<S: TileSink> TileSink for LessZeros<'_, S> {
        const SHORT: bool = S::SHORT;

        unsafe fn rows<const R: usize, const V: usize>(&self, sums: [[SumVector; V]; R]) {
            let sums: [[SumVector; V]; R] = missing((self.zeros, self.totals, sums));
            // SAFETY: nobody comes here.
            unsafe { self.sink.rows(sums) }
        }
    }

    rows!(WholeSums<'_>, self, self.0, self.0.out);
    rows!(Requantized<'_>, self, self.place, (self.place.out, self.factors, self.zero, self.signed));
    rows!(
        Summed<'_>,
        self,
        self.sums.place,
        (self.sums.factors, self.residual, self.residual_zero, self.factors, self.zero)
    );
    rows!(
        Rounded<'_, ()>,
        self,
        self.0.place,
        (self.0.place.out, self.0.residual, self.0.activation, self.1)
    );
}
