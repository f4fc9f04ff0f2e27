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

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<GatedUnit>();
    let function = match op.activation {
        Unary::Sigmoid => MapOp::Sigmoid,
        Unary::Swish { alpha: 1.0 } => MapOp::Swish,
        Unary::Gelu { tanh: false } => MapOp::GeluErf,
        Unary::Gelu { tanh: true } => MapOp::GeluTanh,
        Unary::Relu => MapOp::Relu,
        _ => return Err(node.no_kernel()),
    };
    match node.input(0).filter(|ty| ty.is_float()).and_then(|ty| Some((ty, Class::of(ty)?))) {
        Some((ty, class)) => Ok(Box::new(Gated { op, function, ty, class })),
        None => Err(node.no_kernel()),
    }
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
        let count = out.last().copied().unwrap_or(1);
        let half = |first: usize| MapTensor {
            within: Some([2 * count, first]),
            ..MapTensor::new(Operand::Input(0), self.ty, out)
        };
        Program::new(self.class).input(MapOp::Load, 0).number(self.function, 1.0).input(MapOp::Mul, 1).launch(
            plan,
            &MapTensor::new(Operand::Output(0), self.ty, out),
            &self.op.columns(count).map(half),
        )
    }
}
