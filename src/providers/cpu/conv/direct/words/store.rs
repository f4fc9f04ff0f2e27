//! What becomes of the sums of words on their way to memory.

use std::cell::Cell;
use std::ops::Range;

use crate::ops::activation::Activation;
use crate::tensor::bf16;

use super::super::tile::Lines;
use super::block::{Block, VECTORS, WIDTH};
use crate::providers::cpu::gemm::{ByteWord, HalfWord, SumVector, TileSink, VECTOR, Word};
use crate::providers::cpu::parallel::Parts;

/// Takes the sums of products of words `W`. Each is given once, from any thread.
pub(in crate::providers::cpu) trait Store<W: Word>: Sync {
    /// Computes a block and takes its sums.
    fn block(&self, block: Block<'_>);
}

/// Takes the sums of tiles.
pub(super) trait Rows: Sync {
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
pub(super) trait Row: Sync {
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
pub(super) const ALL: u8 = 0;
pub(super) const FIRST: u8 = 1;
pub(super) const ANY: u8 = 2;

/// The positions of a tile that are the output's, where they follow one another.
pub(super) struct Runs {
    /// The first of them, and their number.
    begin: usize,
    count: usize,
    /// Of each vector the lanes that are the output's, and how many are in vectors before it.
    lanes: [u16; VECTORS],
    before: [usize; VECTORS],
    gaps: bool,
}

impl Runs {
    pub(super) const NONE: Runs =
        Runs { begin: 0, count: 0, lanes: [0; VECTORS], before: [0; VECTORS], gaps: false };

    /// Those of `count` positions from `start` on, after so many outputs `before` all positions.
    pub(super) fn new(lines: Lines, before: usize, (start, count): (usize, usize)) -> Self {
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
    pub(super) fn lanes_are(&self) -> u8 {
        match self.gaps {
            true => ANY,
            false if self.count.is_multiple_of(VECTOR) => ALL,
            false => FIRST,
        }
    }

    /// Where the outputs of a tile lie in a plane.
    #[inline(always)]
    pub(super) fn range(&self) -> Range<usize> {
        self.begin..self.begin + self.count
    }

    /// The lanes of a vector that are the output's.
    #[inline(always)]
    pub(super) fn lanes(&self, v: usize) -> u16 {
        self.lanes[v]
    }

    /// Where the outputs of a vector lie in those of the tile, and a mask of as many lanes.
    #[inline(always)]
    pub(super) fn place<const LANES: u8>(&self, v: usize) -> (usize, u16) {
        match LANES {
            ALL => (v * VECTOR, !0),
            FIRST => (v * VECTOR, self.lanes[v]),
            _ => (self.before[v], !(!0u32 << self.lanes[v].count_ones()) as u16),
        }
    }
}

/// The rows of a tile, of which some may be missing at the end.
pub(super) struct Tile<'a, S, const LANES: u8> {
    pub(super) store: &'a S,
    pub(super) rows: Range<usize>,
    pub(super) runs: &'a Runs,
}

impl<'a, S> Tile<'a, S, ANY> {
    /// The same where lanes are known to be of another kind.
    pub(super) fn with<const LANES: u8>(&self) -> Tile<'a, S, LANES> {
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
pub(super) struct Totals<'a>(pub(super) &'a Cell<[i32; WIDTH]>);

/// Takes from sums the zero point of the row times the total of what its weights were multiplied with.
pub(super) struct LessZeros<'a, S> {
    pub(super) sink: &'a S,
    pub(super) zeros: &'a [i32],
    pub(super) totals: &'a [i32; WIDTH],
}

/// Where the sums of an image go: a row-major matrix of a row for each output channel.
pub(in crate::providers::cpu) struct Place<'a, T> {
    /// The outputs of all images.
    pub(in crate::providers::cpu) out: &'a Parts<'a, T>,
    /// Where this matrix begins there.
    pub(in crate::providers::cpu) start: usize,
    /// Columns of the matrix.
    pub(in crate::providers::cpu) columns: usize,
}

impl<T> Place<'_, T> {
    /// Where a tile's outputs of a row lie in all outputs.
    #[inline(always)]
    pub(super) fn range(&self, row: usize, runs: &Runs) -> Range<usize> {
        let (start, Range { start: from, end }) = (self.start + row * self.columns, runs.range());
        start + from..start + end
    }
}

/// Sums of bytes as they are.
pub(in crate::providers::cpu) struct WholeSums<'a>(pub(in crate::providers::cpu) Place<'a, i32>);

impl Store<ByteWord> for WholeSums<'_> {
    fn block(&self, block: Block<'_>) {
        block.compute::<ByteWord, _>(self);
    }
}

/// Sums of bytes times a factor for each row, as bytes: rounded to nearest even, shifted and limited.
pub(in crate::providers::cpu) struct Requantized<'a> {
    /// Bytes, whose bits are those of signed ones if `signed`.
    pub(in crate::providers::cpu) place: Place<'a, u8>,
    pub(in crate::providers::cpu) factors: &'a [f32],
    pub(in crate::providers::cpu) zero: i32,
    pub(in crate::providers::cpu) signed: bool,
}

impl Store<ByteWord> for Requantized<'_> {
    fn block(&self, block: Block<'_>) {
        block.compute::<ByteWord, _>(self);
    }
}

/// The same, then added to a residual of the outputs' shape and type: rounded, shifted and limited once more.
pub(in crate::providers::cpu) struct Summed<'a> {
    pub(in crate::providers::cpu) sums: Requantized<'a>,
    pub(in crate::providers::cpu) residual: &'a [u8],
    pub(in crate::providers::cpu) residual_zero: f32,
    /// Of what is rounded, and of the residual.
    pub(in crate::providers::cpu) factors: [f32; 2],
    /// The zero point of the result.
    pub(in crate::providers::cpu) zero: i32,
}

impl Store<ByteWord> for Summed<'_> {
    fn block(&self, block: Block<'_>) {
        block.compute::<ByteWord, _>(self);
    }
}

/// Sums of bfloat16 numbers, with residual and activation, rounded to bfloat16. What is smaller than the smallest
/// normal number counts as zero.
pub(in crate::providers::cpu) struct RoundedToHalf<'a> {
    pub(in crate::providers::cpu) place: Place<'a, bf16>,
    /// Of the outputs' shape.
    pub(in crate::providers::cpu) residual: Option<&'a [bf16]>,
    pub(in crate::providers::cpu) activation: Activation,
}

impl Store<HalfWord> for RoundedToHalf<'_> {
    #[cfg(target_arch = "x86_64")]
    fn block(&self, block: Block<'_>) {
        super::vectors::with_function!(self.activation, f => block.compute::<HalfWord, _>(&Rounded(self, f)));
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn block(&self, block: Block<'_>) {
        block.compute::<HalfWord, _>(&Rounded(self, ()));
    }
}

/// A store with its activation, as a function of its own.
pub(super) struct Rounded<'a, F>(pub(super) &'a RoundedToHalf<'a>, pub(super) F);

// Nobody has words there.
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
