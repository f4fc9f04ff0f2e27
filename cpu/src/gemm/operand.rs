//! The operands of products.

use std::ops::Range;

use super::compute::Compute;
use super::pack::{PackedA, PackedB};
use super::shape::{GemmShape, Matrix, Offsets};
use crate::tensor::bf16;

/// The left operand.
#[derive(Clone, Copy)]
pub(crate) enum Left<'a, C: Compute> {
    Plain(Matrix<'a, C>, Offsets<'a>),
    Packed(&'a PackedA<C>, Offsets<'a>),
    Source(&'a dyn Source<C>),
}

/// The right operand.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, C: Compute> {
    Plain(Matrix<'a, C>, Offsets<'a>),
    Packed(&'a PackedB<C>, Offsets<'a>),
    Source(&'a dyn Source<C>),
}

/// A batch of products `a · b`.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a, C: Compute> {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: Left<'a, C>,
    pub(crate) b: Right<'a, C>,
}

impl<C: Compute> Product<'_, C> {
    pub(crate) fn shape(&self) -> GemmShape {
        GemmShape { batch: self.batch, m: self.m, n: self.n, k: self.k }
    }
}

/// A virtual matrix.
pub(crate) trait Source<C>: Sync {
    /// Writes the block `rows × columns` of the batch's matrix to `out`, row-major without gaps.
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [C]);

    /// The matrices, where they lie in memory as bfloat16 numbers with contiguous rows.
    fn halves(&self) -> Option<(Matrix<'_, bf16>, Offsets<'_>)> {
        None
    }
}

/// A matrix of bytes less zero points: one for each row of a left operand, for each column of a right one.
/// Both are asked for as unsigned numbers, or as signed ones, which are 128 less.
pub(crate) trait ByteMatrix: Sync {
    /// Writes the block `rows × columns` of the batch's matrix, row-major without gaps.
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]);

    /// The zero point of a row or column.
    fn zero(&self, batch: usize, at: usize, signed: bool) -> u8;

    /// The batch's matrix, where its rows are contiguous in memory: the bytes from its first one on, how many from a row to the
    /// next, and which bits of each to flip for unsigned numbers, or for signed ones.
    fn lines(&self, _batch: usize, _signed: bool) -> Option<(&[u8], usize, u8)> {
        None
    }

    /// Whether all rows (or columns) of a matrix share theirs.
    fn shares_zero(&self) -> bool {
        false
    }
}
