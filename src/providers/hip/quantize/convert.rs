//! Casts from and to types of one byte and less. Casts between wider types are elementwise programs.

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::ops::cast::{Cast, RoundMode};
use crate::ops::unary::Predicate;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::map::{self, Class};
use super::super::{Entry, HipKernel, PlanBuilder};
use super::params::ConvertParams;
use super::{groups, kernel};

pub(in super::super) const KERNELS: &[Entry] = &[Entry::new("Cast", cast), Entry::new("CastLike", cast)];

/// Whether a type is one that only this family converts.
pub(in super::super) fn converts(ty: ElementType) -> bool {
    let plain = matches!(ty, ElementType::String | ElementType::C64 | ElementType::C128);
    !plain && Class::of(ty).is_none()
}

fn cast(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (Some(from), Some(to)) = (node.input(0), node.output(0)) else { return Err(node.no_kernel()) };
    let of_bits = |ty| matches!(ty, ElementType::String | ElementType::C64 | ElementType::C128);
    if of_bits(from) || of_bits(to) {
        return Err(node.no_kernel());
    }
    if from == to || !(converts(from) || converts(to)) {
        return map::cast(node);
    }
    let op = node.op::<Cast>();
    // Integers keep their low bits.
    let name = if from.is_integer() && to.is_integer() {
        c"convert_i64"
    } else if from.size() >= 4 && from != ElementType::F32 {
        c"convert_f64"
    } else {
        c"convert_f32"
    };
    let rounding = match op.round_mode {
        RoundMode::Up => 0,
        RoundMode::Down => 1,
        RoundMode::Nearest => 2,
    };
    let params = ConvertParams {
        ty: from as u32,
        to: to as u32,
        saturate: op.saturate as u32,
        rounding,
        ..ConvertParams::zeroed()
    };
    Ok(Box::new(Convert { name, params }))
}

/// IsNaN and IsInf of 8-bit floats.
pub(in super::super) fn predicate(
    node: &NodeContext<'_>,
    op: Predicate,
) -> Result<Box<dyn HipKernel>, OpError> {
    let from = node.input(0).ok_or_else(|| node.no_kernel())?;
    let to = ElementType::Bool as u32;
    let mut params = ConvertParams { ty: from as u32, to, ..ConvertParams::zeroed() };
    match op {
        Predicate::IsNan => params.op = 1,
        Predicate::IsInf { negative, positive } => {
            (params.op, params.negative, params.positive) = (2, negative as u32, positive as u32);
        }
    }
    Ok(Box::new(Convert { name: c"convert_f32", params }))
}

struct Convert {
    name: &'static std::ffi::CStr,
    params: ConvertParams,
}

impl HipKernel for Convert {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let count: usize = x.shape.iter().product();
        let params = ConvertParams { count: count as u64, ..self.params };
        let addresses = [
            (offset_of!(ConvertParams, x), Operand::Input(0)),
            (offset_of!(ConvertParams, y), Operand::Output(0)),
        ];
        plan.launch(kernel(self.name), groups(count), &params, &addresses)
    }
}
