//! MatMul, FusedMatMul, Gemm and FusedGemm.

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::matmul::{Gemm, MatMul};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::epilogue::Epilogue;
use super::product::{Axis, Matrix, Product};
use super::{row_major, supports};

pub(super) fn build_matmul(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    match node.input(0).filter(|ty| supports(*ty)) {
        Some(ty) => {
            let op = *node.op::<MatMul>();
            Ok(Box::new(MatMulKernel { op, ty, lines: wants_lines(node, ty, op.transpose[1]) }))
        }
        None => Err(node.no_kernel()),
    }
}

struct MatMulKernel {
    op: MatMul,
    ty: ElementType,
    /// Whether B is a constant whose columns are contiguous.
    lines: bool,
}

/// Whether B is a constant that is best read by columns: the kernels for few rows read them whole, and those for many
/// copy packs of either order.
pub(super) fn wants_lines(node: &NodeContext<'_>, ty: ElementType, is_transposed: bool) -> bool {
    let constant = node.constants.get(1).copied().flatten();
    let whole = |shape: &[usize]| matches!(*shape, [k, _] if k > 0 && (k * ty.size()).is_multiple_of(16));
    ty.size() == 2 && !is_transposed && constant.is_some_and(|b| whole(b.shape()))
}

/// A matrix in memory whose columns are contiguous, of an operand of this shape.
pub(super) fn lines(at: Operand, shape: &[usize]) -> Matrix {
    Matrix::new(at, 1, shape.first().copied().unwrap_or(1))
}

/// The product of stacks of matrices, for operands at these inputs.
pub(in super::super) fn stacked(op: &MatMul, inputs: [usize; 2], shapes: [&[usize]; 2]) -> Product {
    let (a_batch, m, k) = op.matrix(0, shapes[0], 1);
    let (b_batch, _, n) = op.matrix(1, shapes[1], 1);
    let strides = |i: usize| {
        let strides = row_major(shapes[i]);
        match strides[..] {
            // A vector is a row on the left and a column on the right.
            [_] | [] => (Vec::new(), 1, 1),
            _ => op.matrix(i, &strides, 1),
        }
    };
    let ((a_steps, a_row, a_column), (b_steps, b_row, b_column)) = (strides(0), strides(1));
    let rank = a_batch.len().max(b_batch.len());
    let at = |i: usize, batch: &[usize], steps: &[usize]| match (i + batch.len()).checked_sub(rank) {
        Some(i) if batch[i] != 1 => (batch[i], steps[i] as i64),
        _ => (1, 0),
    };
    let mut batch: Vec<Axis> = (0..rank)
        .map(|i| {
            let ((a_size, a), (b_size, b)) = (at(i, &a_batch, &a_steps), at(i, &b_batch, &b_steps));
            Axis { size: if a_size == 1 { b_size } else { a_size }, strides: [a, b, 0, 0, 0] }
        })
        .collect();
    let mut step = m * n;
    for axis in batch.iter_mut().rev() {
        axis.strides[2] = step as i64;
        step *= axis.size;
    }
    Product {
        m,
        n,
        k,
        a: Matrix::new(Operand::Input(inputs[0]), a_row, a_column),
        b: Matrix::new(Operand::Input(inputs[1]), b_row, b_column),
        out: Matrix::new(Operand::Output(0), n, 1),
        bias: None,
        residual: None,
        batch,
        epilogue: Epilogue { alpha: op.alpha, ..Epilogue::default() },
    }
}

impl HipKernel for MatMulKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let [Some(a), Some(b), ..] = *inputs else { return Ok(()) };
        let mut product = stacked(&self.op, [0, 1], [a.shape, b.shape]);
        if self.lines {
            product.b = lines(Operand::Input(1), b.shape);
        }
        product.epilogue.activation = self.op.activation;
        let given = |i: usize| inputs.get(i).copied().flatten().map(|_| Operand::Input(i));
        product.bias = given(2).map(|at| Matrix::new(at, 0, 1));
        if let Some(at) = given(3) {
            // It lies like the result.
            product.residual = Some(Matrix { at, ..product.out });
            product.batch.iter_mut().for_each(|axis| axis.strides[4] = axis.strides[2]);
        }
        product.plan(plan, self.ty)
    }

    fn transposes(&self, input: usize) -> bool {
        input == 1 && self.lines
    }
}

pub(super) fn build_gemm(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<Gemm>();
    let float = matches!(
        node.input(0),
        Some(ElementType::F32 | ElementType::F16 | ElementType::BF16 | ElementType::F64)
    );
    // Integers are not scaled on the GPU.
    let plain =
        op.alpha == 1.0 && (op.beta == 1.0 || !node.has_input(2)) && op.activation == Activation::Identity;
    match node.input(0).filter(|ty| supports(*ty) && (float || plain)) {
        Some(ty) => Ok(Box::new(GemmKernel { op, ty, lines: wants_lines(node, ty, op.transpose[1]) })),
        None => Err(node.no_kernel()),
    }
}

struct GemmKernel {
    op: Gemm,
    ty: ElementType,
    /// Whether B is a constant whose columns are contiguous.
    lines: bool,
}

impl HipKernel for GemmKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (&[Some(a), Some(b), ..], Some(&Some(&[m, n]))) = (inputs, outputs.first()) else {
            return Ok(());
        };
        let matrix = |i: usize, shape: &[usize]| {
            let whole = Matrix::new(Operand::Input(i), shape[1], 1);
            if self.op.transpose[i] { Matrix { strides: [1, shape[1] as i64], ..whole } } else { whole }
        };
        let bias = inputs.get(2).copied().flatten().filter(|_| self.op.beta != 0.0).map(|c| {
            let (rows, columns) = match *c.shape {
                [.., rows, columns] => (rows, columns),
                [columns] => (1, columns),
                [] => (1, 1),
            };
            let row = if rows == 1 { 0 } else { columns };
            Matrix::new(Operand::Input(2), row, usize::from(columns != 1))
        });
        let product = Product {
            m,
            n,
            k: a.shape[usize::from(!self.op.transpose[0])],
            a: matrix(0, a.shape),
            b: if self.lines { lines(Operand::Input(1), b.shape) } else { matrix(1, b.shape) },
            out: Matrix::new(Operand::Output(0), n, 1),
            bias,
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue { alpha: self.op.alpha, beta: self.op.beta, activation: self.op.activation },
        };
        product.plan(plan, self.ty)
    }

    fn transposes(&self, input: usize) -> bool {
        input == 1 && self.lines
    }
}
