//! DFT and STFT: launches of `kernels/fft.hip`.

mod params;
mod passes;
pub(super) mod plans;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::ops::OpError;
use crate::ops::fourier::Dft;
use crate::ops::movement::axis_of;
use crate::providers::ints::{int_list, shape_input};
use crate::providers::{Argument, NodeContext};
use crate::tensor::{Buffer, ElementType};

use super::elements::shape_of;
use super::launch::Operand;
use super::{Entry, HipKernel, PlanBuilder, transfer};
use passes::{Side, Transform};
use plans::Key;

pub(super) const KERNELS: &[Entry] = &[Entry::new("DFT", dft), Entry::new("STFT", stft)];

fn dft(node: &NodeContext<'_>) -> std::result::Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(DftKernel { op: node.op::<Dft>().clone(), ty: element(node)? }))
}

fn stft(node: &NodeContext<'_>) -> std::result::Result<Box<dyn HipKernel>, OpError> {
    element(node).map(|ty| Box::new(StftKernel { ty }) as _)
}

fn element(node: &NodeContext<'_>) -> std::result::Result<ElementType, OpError> {
    node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())
}

/// Appends the launches of a transform, by a plan that is kept or made.
fn transform(
    builder: &mut PlanBuilder<'_>,
    wanted: &Transform,
    ty: ElementType,
    inverse: bool,
) -> std::result::Result<(), OpError> {
    let double = ty == ElementType::F64;
    let key = Key { length: wanted.length, inverse, double };
    let provider = builder.provider;
    let plan =
        provider.fourier_plans().get(key, |tables| on_device(provider.device().index as usize, tables))?;
    let Some(plan) = plan else {
        return Err(OpError::Unsupported(format!(
            "a transform of {} points; the GPU's kernels take less than 2^31, and less than 2^29 where there are other factors than 2, 3, 5 and 7",
            wanted.length
        )));
    };
    passes::append(builder, wanted, &plan, double)?;
    builder.keep(plan);
    Ok(())
}

/// A copy on a device, in memory of the runtime's: in a session's arena it would hold that as long as the plan.
fn on_device(device_id: usize, bytes: &[u8]) -> Result<Buffer> {
    let memory = transfer::allocate_on(device_id, bytes.len())?;
    transfer::copy_bytes(&Buffer::copy_of(bytes)?, &memory)?;
    Ok(memory)
}

struct DftKernel {
    op: Dft,
    ty: ElementType,
}

impl HipKernel for DftKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> std::result::Result<(), OpError> {
        let (shape, Some(Some(out))) = (shape_of(inputs, 0)?, outputs.first()) else { return Ok(()) };
        let axis = int_list(&self.op.axis, inputs)?.and_then(|v| v.first().copied());
        let axis = axis_of(axis.unwrap_or(self.op.default_axis), shape.len())?;
        let given = shape_input(inputs, 1)?.and_then(|v| v.first().copied());
        let length = given.map_or_else(|| self.op.default_length(shape[axis]), |n| n as usize);
        let last = shape.len() - 1;
        let inners: usize = shape[axis + 1..last].iter().product();
        let outers: usize = shape[..axis].iter().product();
        if length == 0 || outers * inners == 0 {
            return Ok(());
        }
        let real_result = self.op.inverse && self.op.one_sided;
        let side = |operand, points: usize, is_complex| Side {
            operand,
            ty: self.ty,
            is_complex,
            outer: points * inners,
            inner: 1,
            step: inners,
            length: points,
        };
        // More points than the transform has are cut off; a mirrored half has n/2 + 1 of them.
        let most = if real_result { length / 2 + 1 } else { length };
        let from = side(Operand::Input(0), shape[axis], shape[last] == 2);
        let wanted = Transform {
            length,
            outers,
            inners,
            from: Side { length: shape[axis].min(most), ..from },
            to: side(Operand::Output(0), out[axis], !real_result),
            window: None,
            mirrored: real_result,
            scale: if self.op.inverse { 1.0 / length as f64 } else { 1.0 },
        };
        transform(plan, &wanted, self.ty, self.op.inverse)
    }

    fn host_inputs(&self) -> &[usize] {
        &[1, 2]
    }
}

struct StftKernel {
    ty: ElementType,
}

impl HipKernel for StftKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> std::result::Result<(), OpError> {
        let (&[batch, signal, parts], Some(&Some(&[_, frames, bins, _]))) =
            (shape_of(inputs, 0)?, outputs.first())
        else {
            return Ok(());
        };
        let first = |i: usize| Ok::<_, OpError>(shape_input(inputs, i)?.and_then(|v| v.first().copied()));
        let step = first(1)?.unwrap_or(1).max(1) as usize;
        let window = inputs.get(2).copied().flatten().map(|w| w.shape[0]);
        let length = first(3)?.map(|n| n as usize).or(window).unwrap_or(signal);
        if let Some(n) = window.filter(|n| *n > length) {
            return Err(OpError::Data(format!("the window has {n} points, more than a frame of {length}")));
        }
        if length == 0 || batch * frames == 0 {
            return Ok(());
        }
        let wanted = Transform {
            length,
            outers: batch,
            inners: frames,
            from: Side {
                operand: Operand::Input(0),
                ty: self.ty,
                is_complex: parts == 2,
                outer: signal,
                inner: step,
                step: 1,
                length,
            },
            to: Side {
                operand: Operand::Output(0),
                ty: self.ty,
                is_complex: true,
                outer: frames * bins,
                inner: bins,
                step: 1,
                length: bins,
            },
            window: window.map(|n| (Operand::Input(2), n)),
            mirrored: false,
            scale: 1.0,
        };
        transform(plan, &wanted, self.ty, false)
    }

    fn host_inputs(&self) -> &[usize] {
        &[1, 3]
    }
}
