//! The extents of products, and where matrices lie in memory.

use std::ops::Range;

/// The extent of a batch of products: `m × k` times `k × n` each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GemmShape {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl GemmShape {
    /// Whether there are no results.
    pub(crate) fn is_empty(self) -> bool {
        self.batch == 0 || self.m == 0 || self.n == 0
    }

    /// Multiplications.
    pub(crate) fn work(self) -> usize {
        self.batch * self.m * self.n * self.k.max(1)
    }

    /// Tiles of so many rows and columns.
    pub(crate) fn tiles(self, rows: usize, columns: usize) -> usize {
        self.batch * self.m.div_ceil(rows) * self.n.div_ceil(columns)
    }

    /// A tile of so many rows and columns: its index in the batch, its rows and its columns.
    pub(crate) fn tile(
        self,
        (rows, columns): (usize, usize),
        index: usize,
    ) -> (usize, Range<usize>, Range<usize>) {
        let GemmShape { m, n, .. } = self;
        let column_tiles = n.div_ceil(columns);
        let (j, rest) = (index % column_tiles * columns, index / column_tiles);
        let (i, batch) = (rest % m.div_ceil(rows) * rows, rest / m.div_ceil(rows));
        (batch, i..(i + rows).min(m), j..(j + columns).min(n))
    }
}

/// Extent of one block: `rows × depth` times `depth × columns`.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) depth: usize,
}

/// A matrix in memory. Its extent is that of the product it takes part in.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, C> {
    pub(crate) data: &'a [C],
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl<'a, C> Matrix<'a, C> {
    /// A row-major matrix without gaps.
    pub(crate) fn new(data: &'a [C], columns: usize) -> Self {
        Matrix { data, row_stride: columns, column_stride: 1 }
    }

    /// The transpose of a row-major matrix with rows of `columns` elements.
    pub(crate) fn transposed(data: &'a [C], columns: usize) -> Self {
        Matrix { data, row_stride: 1, column_stride: columns }
    }

    /// The part that starts at an element.
    pub(crate) fn at(self, row: usize, column: usize) -> Self {
        let start = row * self.row_stride + column * self.column_stride;
        Matrix { data: &self.data[start.min(self.data.len())..], ..self }
    }
}

/// Where a batch's `i`-th matrix is: elements from the start, or for packed operands the index of
/// the packed matrix.
#[derive(Clone, Copy)]
pub(crate) enum Offsets<'a> {
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
    pub(crate) fn at(self, i: usize) -> usize {
        match self {
            Offsets::Stride(stride) => i * stride,
            Offsets::Cycle { period, stride } => i % period * stride,
            Offsets::Table(table) => table[i],
        }
    }
}
