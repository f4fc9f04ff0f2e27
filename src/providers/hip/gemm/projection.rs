//! Projection: of few rows one launch, of many the normalisation, the product and the gated unit one after the other.

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::projection::Projection;
use crate::ops::unary::Unary;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::norm::{Rms, launch_rms};
use super::super::{HipKernel, PlanBuilder, map};
use super::gemv::Fused;
use super::matmul::{lines, stacked, wants_lines};
use super::product::{Matrix, Product};

const X: usize = 0;
const WEIGHT: usize = 1;
const BIAS: usize = 2;
const RESIDUAL: usize = 3;
const SKIP: usize = 4;
const SCALE: usize = 5;

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<Projection>();
    let half = [ElementType::F16, ElementType::BF16];
    let ty = node.input(X).filter(|ty| half.contains(ty)).ok_or_else(|| node.no_kernel())?;
    let gate =
        op.gate.map(|unit| gate_function(unit.activation).ok_or_else(|| node.no_kernel())).transpose()?;
    // A gate takes the place of what may follow a product otherwise.
    if gate.is_some() && (op.product.activation != Activation::Identity || node.has_input(RESIDUAL))
        || node.has_input(SKIP) && !node.has_input(SCALE)
    {
        return Err(node.no_kernel());
    }
    Ok(Box::new(ProjectionKernel { op, gate, ty, lines: wants_lines(node, ty, op.product.transpose[1]) }))
}

/// A gate's function as a product applies it.
pub(in super::super) fn gate_function(function: Unary) -> Option<Activation> {
    Some(match function {
        Unary::Sigmoid => Activation::Sigmoid,
        Unary::Swish { alpha: 1.0 } => Activation::Silu,
        Unary::Gelu { tanh } => Activation::Gelu { tanh },
        Unary::Relu => Activation::Relu,
        _ => return None,
    })
}

struct ProjectionKernel {
    op: Projection,
    gate: Option<Activation>,
    ty: ElementType,
    /// Whether the weight is a constant whose columns are contiguous.
    lines: bool,
}

impl HipKernel for ProjectionKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (&[Some(x), Some(weight), ..], Some(&Some(shape))) = (inputs, outputs.first()) else {
            return Ok(());
        };
        let given = |i: usize| inputs.get(i).copied().flatten().map(|_| Operand::Input(i));
        let mut product = stacked(&self.op.product, [X, WEIGHT], [x.shape, weight.shape]);
        if self.lines {
            product.b = lines(Operand::Input(WEIGHT), weight.shape);
        }
        product.bias = given(BIAS).map(|at| Matrix::new(at, 0, 1));
        product.epilogue.activation = self.op.product.activation;
        let norm = given(SCALE).map(|scale| Rms {
            epsilon: self.op.epsilon,
            scale,
            skip: given(SKIP),
            sum: outputs.get(1).copied().flatten().map(|_| Operand::Output(1)),
        });
        let mut few = product.clone();
        if let (Some(function), Some(gated)) = (self.gate, self.op.gate) {
            let columns = shape.last().copied().unwrap_or(0);
            few.out.strides = [columns as i64, 1];
            few.batch.iter_mut().zip(steps(shape)).for_each(|(axis, step)| axis.strides[2] = step as i64);
            few.epilogue.activation = function;
            let fused = Fused { norm: norm.clone(), gate: Some(gated.columns(columns)) };
            return self.either(plan, few, &fused, |plan| {
                let between = plan.scratch(product.batch_count() * product.m * product.n * self.ty.size());
                let matrix = Matrix { at: between, ..product.out };
                self.one_by_one(plan, Product { out: matrix, ..product }, norm.as_ref(), x.shape)?;
                map::launch_gated(plan, gated, self.ty, [between, Operand::Output(0)], shape)
            });
        }
        for product in [&mut product, &mut few] {
            product.residual = given(RESIDUAL).map(|at| Matrix { at, ..product.out });
            product.batch.iter_mut().for_each(|axis| axis.strides[4] = axis.strides[2]);
        }
        let fused = Fused { norm: norm.clone(), gate: None };
        self.either(plan, few, &fused, |plan| self.one_by_one(plan, product, norm.as_ref(), x.shape))
    }

    fn transposes(&self, input: usize) -> bool {
        input == WEIGHT && self.lines
    }
}

impl ProjectionKernel {
    /// Appends one launch where the product has few rows, or else what `otherwise` does.
    fn either(
        &self,
        plan: &mut PlanBuilder<'_>,
        mut few: Product,
        fused: &Fused,
        otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        few.simplify();
        let empty = few.m == 0 || few.n == 0 || few.batch_count() == 0;
        if empty || !few.is_gemv(fused.norm.is_some(), self.ty, plan.provider.unit()) {
            return otherwise(plan);
        }
        plan.by_alignment(16, &[(few.b.at, 0)], |plan| few.launch_gemv(plan, self.ty, fused), otherwise)
    }

    /// The normalisation and the product.
    fn one_by_one(
        &self,
        plan: &mut PlanBuilder<'_>,
        mut product: Product,
        norm: Option<&Rms>,
        shape: &[usize],
    ) -> Result<(), OpError> {
        if let Some(norm) = norm {
            let along = shape.last().copied().unwrap_or(1);
            let rows = shape.iter().product::<usize>() / along.max(1);
            let normalised = plan.scratch(rows * along * self.ty.size());
            launch_rms(plan, self.ty, [rows, along], norm, [Operand::Input(X), normalised])?;
            product.a.at = normalised;
        }
        product.plan(plan, self.ty)
    }
}

/// Elements between neighbours along each dimension of a batch of matrices of this shape.
fn steps(shape: &[usize]) -> Vec<usize> {
    let strides = super::row_major(shape);
    strides[..shape.len().saturating_sub(2)].to_vec()
}
