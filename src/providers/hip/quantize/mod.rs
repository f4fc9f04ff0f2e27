//! Linear quantization.

mod convert;
mod params;
#[cfg(test)]
mod tests;

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::ops::quantize::{Dequantize, Granularity, Layout, Quantize};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::{GROUP, KernelName, Operand};
use super::map::Class;
use super::params::Divider;
use super::reduce::{self, Finish, Op, Reduction};
use super::{Entry, HipKernel, PlanBuilder};
use params::{DynamicParams, QuantizeParams};

pub(super) use convert::KERNELS as CAST_KERNELS;
pub(super) use convert::{converts, predicate};

const MICROSOFT: &str = "com.microsoft";

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("DequantizeLinear", dequantize),
    Entry::new("DequantizeLinear", dequantize).domain(MICROSOFT),
    Entry::new("DynamicQuantizeLinear", dynamic),
    Entry::new("QuantizeLinear", quantize),
    Entry::new("QuantizeLinear", quantize).domain(MICROSOFT),
];

/// Elements that a work item takes.
const PACK: usize = 4;
/// Packs of a work item of `quantize` and `dequantize`.
const PACKS: usize = 4;

fn kernel(name: &'static std::ffi::CStr) -> KernelName {
    KernelName { family: "quantize", name }
}

fn groups(count: usize) -> [usize; 3] {
    [count.div_ceil(PACK * GROUP as usize), 1, 1]
}

/// Types that numbers are quantized to.
fn is_quantized(ty: ElementType) -> bool {
    use ElementType as T;
    matches!(
        ty,
        T::U8
            | T::I8
            | T::U16
            | T::I16
            | T::U4
            | T::I4
            | T::U2
            | T::I2
            | T::F8E4M3FN
            | T::F8E4M3FNUZ
            | T::F8E5M2
            | T::F8E5M2FNUZ
            | T::F4E2M1
            | T::F6E2M3
            | T::F6E3M2
    )
}

fn is_number(ty: ElementType) -> bool {
    matches!(ty, ElementType::F32 | ElementType::F16 | ElementType::BF16 | ElementType::I32)
}

fn quantize(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<Quantize>();
    let (Some(from), Some(to), Some(scale)) = (node.input(0), node.output(0), node.input(1)) else {
        return Err(node.no_kernel());
    };
    if !is_number(from) || !is_quantized(to) {
        return Err(node.no_kernel());
    }
    Ok(Box::new(Linear {
        name: c"quantize",
        granularity: op.granularity,
        types: [from, scale, node.input(2).unwrap_or(to), to],
        saturate: op.saturate,
        precision: op.precision.unwrap_or(scale),
    }))
}

fn dequantize(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<Dequantize>();
    let (Some(from), Some(to), Some(scale)) = (node.input(0), node.output(0), node.input(1)) else {
        return Err(node.no_kernel());
    };
    if !(is_quantized(from) || from == ElementType::I32) || !(is_number(to) && to.is_float()) {
        return Err(node.no_kernel());
    }
    Ok(Box::new(Linear {
        name: c"dequantize",
        granularity: op.granularity,
        types: [from, scale, node.input(2).unwrap_or(from), to],
        saturate: true,
        precision: ElementType::F32,
    }))
}

/// Either direction.
struct Linear {
    name: &'static std::ffi::CStr,
    granularity: Granularity,
    /// Of the input, the scale, the zero point and the output.
    types: [ElementType; 4],
    saturate: bool,
    precision: ElementType,
}

impl HipKernel for Linear {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(scale)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let count: usize = x.shape.iter().product();
        let zero = inputs.get(2).copied().flatten();
        let [ty, scale_type, zero_type, out_type] = self.types.map(|ty| ty as u32);
        let mut params = QuantizeParams {
            count: count as u64,
            ty,
            scale_type,
            zero_type,
            out_type,
            one_zero: zero.is_some_and(|z| z.shape.iter().product::<usize>() == 1) as u32,
            saturate: self.saturate as u32,
            precision: self.precision as u32,
            ..QuantizeParams::zeroed()
        };
        match self.granularity.layout(x.shape, scale.shape)? {
            Layout::PerTensor => {}
            Layout::PerAxis { axis, inner, .. } => {
                params.granularity = 1;
                (params.inner, params.axis) = (Divider::new(inner), Divider::new(axis));
            }
            Layout::Blocked { axis, inner, block, .. } => {
                params.granularity = 2;
                (params.inner, params.axis) = (Divider::new(inner), Divider::new(axis));
                params.block = Divider::new(block.min(axis));
                params.blocks = axis.div_ceil(block) as u32;
            }
        }
        let mut addresses = vec![
            (offset_of!(QuantizeParams, x), Operand::Input(0)),
            (offset_of!(QuantizeParams, scale), Operand::Input(1)),
            (offset_of!(QuantizeParams, y), Operand::Output(0)),
            (offset_of!(QuantizeParams, errors), Operand::Errors),
        ];
        if zero.is_some() {
            addresses.push((offset_of!(QuantizeParams, zero), Operand::Input(2)));
        }
        plan.launch(kernel(self.name), groups(count.div_ceil(PACKS)), &params, &addresses)
    }
}

fn dynamic(_node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(Dynamic))
}

struct Dynamic;

impl HipKernel for Dynamic {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let count: usize = x.shape.iter().product();
        let limits = plan.scratch(2 * size_of::<f32>());
        let layout = reduce::Layout::new(&[count], &[true]);
        Reduction {
            class: Class::F32,
            op: Op::MinMax,
            finish: Finish::Plain,
            power: 0.0,
            added: 0,
            layout: &layout,
            from: (Operand::Input(0), ElementType::F32),
            center: None,
            to: (limits, ElementType::F32),
        }
        .launch(plan)?;
        let params = DynamicParams { count: count as u64, ..DynamicParams::zeroed() };
        let mut addresses = vec![
            (offset_of!(DynamicParams, limits), limits),
            (offset_of!(DynamicParams, x), Operand::Input(0)),
            (offset_of!(DynamicParams, errors), Operand::Errors),
        ];
        let places =
            [offset_of!(DynamicParams, y), offset_of!(DynamicParams, scale), offset_of!(DynamicParams, zero)];
        for (i, at) in places.into_iter().enumerate() {
            if outputs.get(i).copied().flatten().is_some() {
                addresses.push((at, Operand::Output(i)));
            }
        }
        plan.launch(kernel(c"dynamic_quantize"), groups(count.max(1)), &params, &addresses)
    }
}
