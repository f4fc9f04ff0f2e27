//! A product of matrices: folds its batch, picks a tile and parts of K, and makes parameters.

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::tensor::ElementType;

use super::super::launch::{AddressedParams, Operand};
use super::super::unit::Unit;
use super::epilogue::Epilogue;
use super::params::{AxisParams, GemmParams, MAX_AXES};
use super::tiles::{self, Shape, TileKernel};

/// A matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Matrix {
    pub(in super::super) at: Operand,
    /// Elements from the operand's begin.
    pub(in super::super) offset: usize,
    /// Elements between rows and between columns.
    pub(in super::super) strides: [i64; 2],
}

impl Matrix {
    pub(in super::super) fn new(at: Operand, row: usize, column: usize) -> Self {
        Matrix { at, offset: 0, strides: [row as i64, column as i64] }
    }

    pub(in super::super) fn transposed(self) -> Self {
        Matrix { strides: [self.strides[1], self.strides[0]], ..self }
    }
}

/// A dimension of a batch, with the strides of A, B, the result, bias and residual along it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Axis {
    pub(in super::super) size: usize,
    pub(in super::super) strides: [i64; 5],
}

/// `epilogue(A · B)` for each matrix of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Product {
    pub(in super::super) m: usize,
    pub(in super::super) n: usize,
    pub(in super::super) k: usize,
    pub(in super::super) a: Matrix,
    pub(in super::super) b: Matrix,
    pub(in super::super) out: Matrix,
    pub(in super::super) bias: Option<Matrix>,
    pub(in super::super) residual: Option<Matrix>,
    /// Outermost first.
    pub(in super::super) batch: Vec<Axis>,
    pub(in super::super) epilogue: Epilogue,
}

/// Elements of K for which another workgroup is worth its sums' way through memory.
const PART: usize = 256;
/// The columns of a workgroup, at most, of the kernels that take one a wave.
const COLUMNS_BY_K: usize = 8;

/// Parts of a split K are multiples of this: of every tile's depth, and of packs.
const PART_STEP: usize = 64;

impl Product {
    pub(super) fn matrices(&self) -> [Option<Matrix>; 5] {
        [Some(self.a), Some(self.b), Some(self.out), self.bias, self.residual]
    }

    pub(in super::super) fn batch_count(&self) -> usize {
        self.batch.iter().map(|a| a.size).product()
    }

    /// Whether the sums are the results.
    pub(super) fn is_plain(&self) -> bool {
        let none = self.bias.is_none() && self.residual.is_none();
        none && self.epilogue.alpha == 1.0 && self.epilogue.activation == Activation::Identity
    }

    /// Exchanges rows and columns: Cᵀ = Bᵀ · Aᵀ.
    pub(super) fn transpose(&mut self) {
        std::mem::swap(&mut self.m, &mut self.n);
        (self.a, self.b) = (self.b.transposed(), self.a.transposed());
        self.out = self.out.transposed();
        self.bias = self.bias.map(Matrix::transposed);
        self.residual = self.residual.map(Matrix::transposed);
        self.batch.iter_mut().for_each(|axis| axis.strides.swap(0, 1));
    }

    /// Leaves out batch dimensions of one, joins neighbours that every operand walks through evenly, and
    /// makes a batch that shares B one tall product.
    pub(in super::super) fn simplify(&mut self) {
        let mut joined: Vec<Axis> = Vec::new();
        for axis in self.batch.iter().filter(|a| a.size != 1) {
            match joined.last_mut() {
                Some(last) if (0..5).all(|i| last.strides[i] == axis.strides[i] * axis.size as i64) => {
                    *last = Axis { size: last.size * axis.size, strides: axis.strides };
                }
                _ => joined.push(*axis),
            }
        }
        self.batch = joined;
        while let Some(axis) = self.batch.last().copied() {
            let m = self.m as i64;
            let follows = |i: usize, matrix: Matrix| axis.strides[i] == m * matrix.strides[0];
            let rest = [(2, Some(self.out)), (3, self.bias), (4, self.residual)];
            let all = axis.strides[1] == 0
                && follows(0, self.a)
                && rest.into_iter().all(|(i, matrix)| matrix.is_none_or(|x| follows(i, x)));
            if !all {
                break;
            }
            self.m *= axis.size;
            self.batch.pop();
        }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            m: self.m,
            n: self.n,
            batch: self.batch_count(),
            b_rows: self.b.strides[1] == 1,
            b_columns: self.b.strides[0] == 1,
        }
    }

    pub(super) fn tile(&self, ty: ElementType, unit: Unit) -> Result<TileKernel, OpError> {
        tiles::choose(ty, self.shape(), unit)
            .ok_or_else(|| OpError::Unsupported(format!("the GPU has no product of {ty}")))
    }

    pub(super) fn groups(&self, tile: TileKernel) -> usize {
        self.tiles(tile.rows, tile.columns)
    }

    /// Tiles of this size that cover the results.
    pub(in super::super) fn tiles(&self, rows: usize, columns: usize) -> usize {
        self.m.div_ceil(rows) * self.n.div_ceil(columns) * self.batch_count()
    }

    /// Parts of K with which a kernel fills the device.
    pub(in super::super) fn wanted_parts(&self, tile: TileKernel, unit: Unit, extra: &Extra) -> usize {
        // Two workgroups for each processor, but for those that have one to themselves.
        let busy = if tile.rows * tile.columns < 128 * 256 { 2 } else { 1 };
        let wanted = (busy * unit.compute_units).div_ceil(extra.groups.unwrap_or_else(|| self.groups(tile)));
        // Waves that take a column each read so much of it while a launch for the parts would begin.
        const COLUMN: usize = 4096;
        if tile.columns <= COLUMNS_BY_K { wanted.min(self.k.div_ceil(COLUMN)).max(1) } else { wanted }
    }

    /// Elements of K in a part when so many parts are wanted, and how many parts that gives.
    pub(in super::super) fn parts(&self, ty: ElementType, wanted: usize, extra: &Extra) -> (usize, usize) {
        let may_split = tiles::parts_kernel(ty).is_some() && extra.groups.is_none();
        let wanted = if may_split { wanted.min(self.k / PART).max(1) } else { 1 };
        let k_part = self.k.div_ceil(wanted).next_multiple_of(PART_STEP).max(PART_STEP);
        (k_part, self.k.div_ceil(k_part).max(1))
    }

    /// The operands, and where each begins in bytes.
    pub(super) fn operands(&self, ty: ElementType) -> Vec<(Operand, u64)> {
        let given = self.matrices().into_iter().flatten();
        given.map(|matrix| (matrix.at, (matrix.offset * ty.size()) as u64)).collect()
    }

    pub(in super::super) fn addresses(&self) -> Vec<(usize, Operand)> {
        let fields = [
            offset_of!(GemmParams, a),
            offset_of!(GemmParams, b),
            offset_of!(GemmParams, out),
            offset_of!(GemmParams, bias),
            offset_of!(GemmParams, residual),
        ];
        self.matrices().into_iter().zip(fields).filter_map(|(m, field)| Some((field, m?.at))).collect()
    }

    /// Whether results are sums with bias and residual within bounds.
    pub(super) fn is_linear(&self) -> bool {
        self.epilogue.is_linear() && (self.bias.is_none() || self.epilogue.beta == 1.0)
    }

    pub(in super::super) fn params(&self, ty: ElementType) -> Result<GemmParams, OpError> {
        let mut p = GemmParams::zeroed();
        let size = |n: usize| {
            u32::try_from(n).ok().filter(|&n| n <= i32::MAX as u32).ok_or_else(|| {
                OpError::Unsupported(format!("a dimension of a GPU product is {n}; the limit is 2147483647"))
            })
        };
        (p.m, p.n, p.k, p.batch) = (size(self.m)?, size(self.n)?, size(self.k)?, size(self.batch_count())?);
        if self.batch.len() > MAX_AXES {
            return Err(OpError::Unsupported(format!(
                "a batch of {} dimensions that cannot be joined; the GPU kernel takes {MAX_AXES}",
                self.batch.len()
            )));
        }
        p.axes = self.batch.len() as u32;
        for (to, axis) in p.axis.iter_mut().zip(&self.batch) {
            *to = AxisParams { size: axis.size as i64, strides: axis.strides };
        }
        let offsets = [&mut p.a, &mut p.b, &mut p.out, &mut p.bias, &mut p.residual];
        for ((matrix, offset), strides) in self.matrices().into_iter().zip(offsets).zip(&mut p.strides) {
            if let Some(matrix) = matrix {
                *offset = (matrix.offset * ty.size()) as u64;
                *strides = matrix.strides;
            }
        }
        self.epilogue.write(&mut p);
        Ok(p)
    }
}

/// What a kernel takes beyond the product's parameters.
#[derive(Default)]
pub(in super::super) struct Extra {
    /// Bytes that follow them, and the addresses within.
    pub(in super::super) params: Option<AddressedParams>,
    /// Workgroups, where a kernel has no tiles; then K stays whole.
    pub(in super::super) groups: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fold() {
        let matrix = |row, column| Matrix::new(Operand::Input(0), row, column);
        let product = |batch: &[(usize, [i64; 5])]| Product {
            m: 3,
            n: 5,
            k: 4,
            a: matrix(4, 1),
            b: matrix(5, 1),
            out: matrix(5, 1),
            bias: None,
            residual: None,
            batch: batch.iter().map(|&(size, strides)| Axis { size, strides }).collect(),
            epilogue: Epilogue::default(),
        };
        // A batch, then rows and remaining dimensions.
        for (batch, m, left) in [
            (vec![(2, [24, 0, 30, 0, 0]), (2, [12, 0, 15, 0, 0])], 12, 0),
            (vec![(2, [24, 40, 30, 0, 0]), (2, [12, 20, 15, 0, 0])], 3, 1),
            (vec![(2, [24, 20, 30, 0, 0]), (2, [12, 0, 15, 0, 0])], 6, 1),
            (vec![(2, [0, 40, 30, 0, 0]), (1, [7, 7, 7, 7, 7]), (2, [0, 20, 15, 0, 0])], 3, 1),
        ] {
            let mut p = product(&batch);
            p.simplify();
            assert_eq!((p.m, p.batch.len()), (m, left), "{batch:?}");
        }
    }
}
