//! Gated linear units: a program that reads both halves of the columns of one matrix.

use crate::ops::OpError;
use crate::ops::gated::GatedUnit;
use crate::ops::unary::Unary;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{Entry, HipKernel, PlanBuilder};
use super::{Class, MapOp, MapTensor, Program};

pub(in super::super) const KERNELS: &[Entry] = &[Entry::new("GatedUnit", build).domain("rukh")];

/// Appends the launch of a gated unit, from the one operand to the other, whose result has this shape.
pub(in super::super) fn launch_gated(
    plan: &mut PlanBuilder<'_>,
    op: GatedUnit,
    ty: ElementType,
    [from, to]: [Operand; 2],
    shape: &[usize],
) -> Result<(), OpError> {
    match (function(op.activation), Class::of(ty)) {
        (Some(function), Some(class)) => (Gated { op, function, ty, class }).launch(plan, from, to, shape),
        _ => Err(OpError::Unsupported(format!("the GPU has no gated unit of {ty}"))),
    }
}

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<GatedUnit>();
    let function = function(op.activation).ok_or_else(|| node.no_kernel())?;
    match node.input(0).filter(|ty| ty.is_float()).and_then(|ty| Some((ty, Class::of(ty)?))) {
        Some((ty, class)) => Ok(Box::new(Gated { op, function, ty, class })),
        None => Err(node.no_kernel()),
    }
}

fn function(activation: Unary) -> Option<MapOp> {
    Some(match activation {
        Unary::Sigmoid => MapOp::Sigmoid,
        Unary::Swish { alpha: 1.0 } => MapOp::Swish,
        Unary::Gelu { tanh: false } => MapOp::GeluErf,
        Unary::Gelu { tanh: true } => MapOp::GeluTanh,
        Unary::Relu => MapOp::Relu,
        _ => return None,
    })
}

struct Gated {
    op: GatedUnit,
    function: MapOp,
    ty: ElementType,
    class: Class,
}

impl HipKernel for Gated {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        _inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(out) = outputs.first().copied().flatten() else { return Ok(()) };
        self.launch(plan, Operand::Input(0), Operand::Output(0), out)
    }
}

impl Gated {
    fn launch(
        &self,
        plan: &mut PlanBuilder<'_>,
        from: Operand,
        to: Operand,
        shape: &[usize],
    ) -> Result<(), OpError> {
        let count = shape.last().copied().unwrap_or(1);
        let half = |first: usize| MapTensor {
            within: Some([2 * count, first]),
            ..MapTensor::new(from, self.ty, shape)
        };
        Program::new(self.class).input(MapOp::Load, 0).number(self.function, 1.0).input(MapOp::Mul, 1).launch(
            plan,
            &MapTensor::new(to, self.ty, shape),
            &self.op.columns(count).map(half),
        )
    }
}
