//! Matrix products: the one interface that every kernel with a product in it uses.
//!
//! A [`Product`] is a batch of `m × k` times `k × n`. Each operand is a strided matrix in memory, a
//! constant packed beforehand, or a [`Source`] that writes blocks on demand (the patches of a
//! convolution, half-precision numbers to convert, quantised ones less their zero point). The result
//! goes to a [`Sink`] row by row; the usual one, [`Epilogue`], scales, adds bias and residual, applies
//! an activation and rounds to the output's type.
//!
//! The product of one block is computed by [`Compute`]: for `f32` in `panels` where the right operand is packed, else
//! by the crate `rten-gemm`; for bfloat16 by the processor's own products where it has them (`words`), for the other
//! types by plain loops. The split over threads is done here, in tiles of the result.
//!
//! Products of bytes have ways of their own (`bytes`, `dots`).

mod activate;
mod bytes;
mod compute;
mod dots;
mod epilogue;
mod exact;
mod halves;
mod packed;
mod panels;
mod plain;
mod single;
mod source;
mod tiles;
mod vector;
mod words;

pub(in crate::providers::cpu) use activate::{Activate, activate};
pub(in crate::providers::cpu) use bytes::{ByteMatrix, ByteSums, multiply_bytes};
pub(in crate::providers::cpu) use compute::Compute;
pub(in crate::providers::cpu) use dots::{
    ByteSink, PackedBytes, Right as ByteRight, byte_products, multiply_dots,
};
pub(in crate::providers::cpu) use epilogue::{Addend, Epilogue, Sink, Store};
pub(in crate::providers::cpu) use exact::{Accumulate, multiply_exact};
pub(in crate::providers::cpu) use halves::panel_product;
pub(in crate::providers::cpu) use packed::{PackedA, PackedB};
pub(in crate::providers::cpu) use source::{InMemory, Source};
pub(in crate::providers::cpu) use tiles::{Shared, multiply, multiply_block};
pub(in crate::providers::cpu) use words::{
    Bytes as ByteWord, COLUMNS, Halves as HalfWord, SumVector, TileSink, VECTOR, Word, missing,
};

/// A matrix in memory. Its extent is that of the product it takes part in.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) struct Matrix<'a, C> {
    pub(in crate::providers::cpu) data: &'a [C],
    pub(in crate::providers::cpu) row_stride: usize,
    pub(in crate::providers::cpu) column_stride: usize,
}

impl<'a, C> Matrix<'a, C> {
    /// A row-major matrix without gaps.
    pub(in crate::providers::cpu) fn new(data: &'a [C], columns: usize) -> Self {
        Matrix { data, row_stride: columns, column_stride: 1 }
    }

    /// The transpose of a row-major matrix with rows of `columns` elements.
    pub(in crate::providers::cpu) fn transposed(data: &'a [C], columns: usize) -> Self {
        Matrix { data, row_stride: 1, column_stride: columns }
    }

    /// The part that starts at an element.
    fn at(self, row: usize, column: usize) -> Self {
        let start = row * self.row_stride + column * self.column_stride;
        Matrix { data: &self.data[start.min(self.data.len())..], ..self }
    }
}

/// Where a batch's `i`-th matrix is: elements from the start, or for packed operands the index of
/// the packed matrix.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) enum Offsets<'a> {
    /// The same distance between all; 0 for one matrix that all share.
    Stride(usize),
    /// Matrix `i` at `(i % period) · stride`.
    Cycle {
        period: usize,
        stride: usize,
    },
    Table(&'a [usize]),
}

impl Offsets<'_> {
    pub(in crate::providers::cpu) fn at(self, i: usize) -> usize {
        match self {
            Offsets::Stride(stride) => i * stride,
            Offsets::Cycle { period, stride } => i % period * stride,
            Offsets::Table(table) => table[i],
        }
    }
}

/// The left operand.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) enum Left<'a, C: Compute> {
    Plain(Matrix<'a, C>, Offsets<'a>),
    Packed(&'a PackedA<C>, Offsets<'a>),
    Source(&'a dyn Source<C>),
}

/// The right operand.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) enum Right<'a, C: Compute> {
    Plain(Matrix<'a, C>, Offsets<'a>),
    Packed(&'a PackedB<C>, Offsets<'a>),
    Source(&'a dyn Source<C>),
}

/// A batch of products `a · b`.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) struct Product<'a, C: Compute> {
    pub(in crate::providers::cpu) batch: usize,
    pub(in crate::providers::cpu) m: usize,
    pub(in crate::providers::cpu) n: usize,
    pub(in crate::providers::cpu) k: usize,
    pub(in crate::providers::cpu) a: Left<'a, C>,
    pub(in crate::providers::cpu) b: Right<'a, C>,
}

#[cfg(test)]
mod tests;
