//! Gated linear units: launches of `kernels/gated.hip` for rows of whole packs, and else a program that reads both halves
//! of the columns of one matrix.

use std::ffi::CStr;
use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::gated::GatedUnit;
use crate::ops::unary::Unary;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::gemm::{Function, gate_function};
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::Divider;
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

/// Elements that a work item takes together, and how often, as in the kernel.
const PACK: usize = 8;
const TOGETHER: usize = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct GatedParams {
    input: u64,
    output: u64,
    packs: u64,
    columns: Divider,
    gate: u32,
    other: u32,
    function: u32,
}

const _: () = assert!(size_of::<GatedParams>() == 48);

impl Gated {
    fn launch(
        &self,
        plan: &mut PlanBuilder<'_>,
        from: Operand,
        to: Operand,
        shape: &[usize],
    ) -> Result<(), OpError> {
        let Some((name, params)) = self.packed(shape) else { return self.program(plan, from, to, shape) };
        let addresses = [(offset_of!(GatedParams, input), from), (offset_of!(GatedParams, output), to)];
        let groups = (params.packs as usize).div_ceil(GROUP as usize * TOGETHER);
        plan.by_alignment(
            16,
            &[(from, 0), (to, 0)],
            |plan| plan.launch(KernelName { family: "gated", name }, [groups, 1, 1], &params, &addresses),
            |plan| self.program(plan, from, to, shape),
        )
    }

    /// The kernel for rows of whole packs and its parameters; `None` where a program computes the unit.
    fn packed(&self, shape: &[usize]) -> Option<(&'static CStr, GatedParams)> {
        let name = match self.ty {
            ElementType::F32 => c"gated_f32",
            ElementType::F16 => c"gated_f16",
            ElementType::BF16 => c"gated_bf16",
            _ => return None,
        };
        let columns = *shape.last()?;
        let packs = shape.iter().product::<usize>() / PACK;
        // What a `Divider` divides, twice: rows of the matrix have two of the result.
        let fits = columns.is_multiple_of(PACK) && packs > 0 && packs < 1 << 30;
        let function = Function::of(gate_function(self.op.activation)?).number;
        let [gate, other] = self.op.columns(columns / PACK).map(|first| first as u32);
        // A function that is a bound in products has no number.
        (fits && function != 0).then(|| {
            let columns = Divider::new(columns / PACK);
            (
                name,
                GatedParams { packs: packs as u64, columns, gate, other, function, ..GatedParams::zeroed() },
            )
        })
    }

    fn program(
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
