//! What happens to the sums of a tile on their way to memory: residual, activation, requantization, rounding. The
//! contract is that of `gemm::epilogue`; the bias is what sums begin with.

use std::ops::Range;

use crate::conv::common::lines::Lines;
use crate::gemm::{SumVector, VECTOR};
use crate::loops::parallel::Parts;
use crate::tensor::bf16;

/// Vectors of a tile's columns.
pub(crate) const VECTORS: usize = 3;

/// Takes the sums of tiles. `tile` is to be `#[inline(always)]`.
pub(crate) trait TileEpilogue: Sync {
    /// Whether a row takes few instructions, so that they can be compiled for each row of a tile; sums stay in
    /// registers then.
    const SHORT: bool;

    /// Fetches into the cache what the outputs of some channels at some positions are stored to, and what is added to them.
    fn fetch(&self, _rows: Range<usize>, _positions: &Positions) {}

    /// Takes the sums of some output channels at some positions; what `sums` has beyond the channels is nobody's.
    /// `LANES` is what `positions.lanes_are()` says, or `ANY`.
    ///
    /// # Safety
    /// The contract of `gemm::epilogue`: only inside `DotGroup::run`, and each output is given once.
    unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        positions: &Positions,
        sums: [[SumVector; V]; R],
    );
}

/// Which lanes of a tile's vectors are the output's: all, the first ones, or any.
pub(crate) const ALL: u8 = 0;
pub(crate) const FIRST: u8 = 1;
pub(crate) const ANY: u8 = 2;

/// The positions of a tile that are the output's, as lanes of its vectors; their outputs follow one another.
pub(crate) struct Positions {
    /// The first output, and their number.
    begin: usize,
    count: usize,
    /// Of each vector the lanes that are the output's, and how many are in vectors before it.
    lanes: [u16; VECTORS],
    before: [usize; VECTORS],
    gaps: bool,
}

impl Positions {
    pub(crate) const NONE: Positions =
        Positions { begin: 0, count: 0, lanes: [0; VECTORS], before: [0; VECTORS], gaps: false };

    /// Those of `count` positions from `start` on, after so many outputs `before` all positions.
    pub(crate) fn new(lines: Lines, before: usize, (start, count): (usize, usize)) -> Self {
        let all = lines.runs(start, count).fold(0u64, |all, run| all | !(!0 << run.len) << run.from);
        let kept = all.count_ones() as usize;
        Positions {
            begin: before + lines.outputs_before(start),
            count: kept,
            lanes: std::array::from_fn(|v| (all >> (v * VECTOR)) as u16),
            before: std::array::from_fn(|v| (all & !(!0 << (v * VECTOR))).count_ones() as usize),
            gaps: kept != count,
        }
    }

    /// `ALL`, `FIRST` or `ANY`.
    pub(crate) fn lanes_are(&self) -> u8 {
        match self.gaps {
            true => ANY,
            false if self.count.is_multiple_of(VECTOR) => ALL,
            false => FIRST,
        }
    }

    /// Where the outputs of a tile lie in a channel.
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

/// Where the outputs of an image go: a row-major matrix of a row for each output channel.
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
    pub(crate) fn range(&self, row: usize, positions: &Positions) -> Range<usize> {
        self.block_range(1, row, positions)
    }

    /// Where a tile's outputs of a block of so many channels lie, whose first channel is `row`.
    #[inline(always)]
    pub(crate) fn block_range(&self, channels: usize, row: usize, positions: &Positions) -> Range<usize> {
        let (start, Range { start: from, end }) = (self.start + row * self.columns, positions.range());
        start + channels * from..start + channels * end
    }
}

/// Sums of bytes as they are.
pub(crate) struct RawSums<'a>(pub(crate) Place<'a, i32>);

/// Sums of bytes times a factor for each row, as bytes: rounded to nearest even, shifted and limited.
pub(crate) struct Requantized<'a> {
    /// Bytes, whose bits are those of signed ones if `signed`.
    pub(crate) place: Place<'a, u8>,
    pub(crate) factors: &'a [f32],
    pub(crate) zero: i32,
    pub(crate) signed: bool,
    pub(crate) residual: Option<Residual<'a>>,
}

/// What is added to requantized sums, which are rounded, shifted and limited once more.
#[derive(Clone, Copy)]
pub(crate) struct Residual<'a> {
    /// Of the outputs' shape and type.
    pub(crate) data: &'a [u8],
    /// Its zero point.
    pub(crate) zero: f32,
    /// Of what is rounded, and of the residual.
    pub(crate) factors: [f32; 2],
    /// The zero point of the result.
    pub(crate) result_zero: i32,
}

/// Sums of bfloat16 numbers, with residual and an activation `F`, rounded to bfloat16. What is smaller than the smallest
/// normal number counts as zero.
pub(crate) struct RoundedToBf16<'a, F> {
    pub(crate) place: Place<'a, bf16>,
    /// Of the outputs' shape.
    pub(crate) residual: Option<&'a [bf16]>,
    pub(crate) function: F,
}

/// What an epilogue does, to channel-blocked outputs. A residual is channel-blocked too. Rows are those of whole blocks.
pub(crate) struct ChannelBlocked<E>(pub(crate) E);

// Nobody has dot products there.
#[cfg(not(target_arch = "x86_64"))]
mod without {
    use super::*;
    use crate::gemm::missing;

    macro_rules! epilogues {
        ($([$($parameter:ident)?] $epilogue:ty, $self:ident => $fields:expr;)*) => {$(
            impl $(<$parameter: Sync>)? TileEpilogue for $epilogue {
                const SHORT: bool = false;

                unsafe fn tile<const R: usize, const V: usize, const LANES: u8>(
                    &$self,
                    rows: Range<usize>,
                    positions: &Positions,
                    sums: [[SumVector; V]; R],
                ) {
                    let (before, _) = positions.place::<LANES>(0);
                    missing(($fields, rows, positions.range(), positions.lanes(0), before, sums))
                }
            }
        )*};
    }
    epilogues! {
        [] RawSums<'_>, self => (self.0.range(0, &Positions::NONE), self.0.out);
        [] Requantized<'_>, self => (
            (self.place.out, self.factors, self.zero, self.signed),
            self.residual.map(|residual| (residual.data, residual.zero, residual.factors, residual.result_zero)),
        );
        [F] RoundedToBf16<'_, F>, self => (self.place.out, self.residual, &self.function);
        [E] ChannelBlocked<E>, self => &self.0;
    }
}
