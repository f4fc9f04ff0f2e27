//! Rotary position embedding.

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::ops::attention::RotaryEmbedding;
use crate::ops::attention::rotary::RotaryHeads;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::{GROUP, KernelName, Operand};
use super::super::{HipKernel, PlanBuilder};
use super::params::RotaryParams;

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let kernel = kernel(node)?;
    Ok(Box::new(Rotary { op: *node.op::<RotaryEmbedding>(), kernel }))
}

pub(super) fn build_heads(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let kernel = kernel(node)?;
    let size = node.input(0).map_or(0, |ty| ty.size());
    Ok(Box::new(Heads { op: *node.op::<RotaryHeads>(), size, kernel }))
}

fn kernel(node: &NodeContext<'_>) -> Result<KernelName, OpError> {
    let name = match node.input(0) {
        Some(ElementType::F32) => c"rotary_f32",
        Some(ElementType::F16) => c"rotary_f16",
        Some(ElementType::BF16) => c"rotary_bf16",
        Some(ElementType::F64) => c"rotary_f64",
        _ => return Err(node.no_kernel()),
    };
    Ok(KernelName { family: "attention", name })
}

struct Rotary {
    op: RotaryEmbedding,
    kernel: KernelName,
}

impl HipKernel for Rotary {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let op = self.op;
        let input = |i: usize| inputs.get(i).copied().flatten();
        let [cosines, sines, positions] = op.inputs.map(input);
        let (Some(x), Some(cosines), Some(sines)) = (input(0), cosines, sines) else { return Ok(()) };
        let half = cosines.shape.last().copied().unwrap_or(0);
        let (batch, heads, steps, size) = match *x.shape {
            [b, h, s, d] => (b, h, s, d),
            [b, s, hidden] => {
                let size = match (op.heads, op.rotated) {
                    (0, 0) => 2 * half,
                    (0, _) => hidden,
                    (heads, _) => hidden / heads,
                };
                (b, hidden / size.max(1), s, size)
            }
            _ => return Ok(()),
        };
        let rotated = if op.rotated == 0 { size } else { op.rotated };
        if rotated > size || rotated != 2 * half || sines.shape != cosines.shape || size == 0 {
            return Err(OpError::Data(format!(
                "the caches have shapes {:?} and {:?}; allowed are equal shapes with a last dimension of half the \
                 {rotated} elements of a head of {size} that are rotated",
                cosines.shape, sines.shape
            )));
        }
        let rows = cosines.shape.iter().product::<usize>() / half.max(1);
        let kind = match positions.map(|p| p.shape.iter().product::<usize>()) {
            None if rows == batch * steps => 0,
            Some(n) if n == batch * steps => 1,
            Some(1) => 2,
            given => {
                return Err(OpError::Data(format!(
                    "there are {} positions and {rows} rows of the caches; allowed are {} positions, 1, or none \
                     and as many rows",
                    given.unwrap_or(0),
                    batch * steps
                )));
            }
        };
        let count = x.shape.iter().product::<usize>();
        let params = RotaryParams {
            count: count as u64,
            row: (heads * size) as i64,
            columns: half as u32,
            heads_inside: u32::from(x.shape.len() == 3),
            heads: heads as u32,
            steps: steps as u32,
            size: size as u32,
            half: half as u32,
            rows: rows as u32,
            kind,
            interleaved: u32::from(op.interleaved),
            scale: op.scale,
            ..RotaryParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(RotaryParams, x), Operand::Input(0)),
            (offset_of!(RotaryParams, cosines), Operand::Input(op.inputs[0])),
            (offset_of!(RotaryParams, sines), Operand::Input(op.inputs[1])),
            (offset_of!(RotaryParams, out), Operand::Output(0)),
        ];
        if kind != 0 {
            addresses.push((offset_of!(RotaryParams, positions), Operand::Input(op.inputs[2])));
            addresses.push((offset_of!(RotaryParams, errors), Operand::Errors));
        }
        plan.launch(self.kernel, [count.div_ceil(GROUP as usize), 1, 1], &params, &addresses)
    }
}

/// Heads within the columns of a wider matrix.
struct Heads {
    op: RotaryHeads,
    /// Bytes of an element.
    size: usize,
    kernel: KernelName,
}

impl HipKernel for Heads {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let [Some(x), Some(cosines), Some(sines)] = *inputs else { return Ok(()) };
        let &[batch, rows, columns] = x.shape else { return Ok(()) };
        let RotaryHeads { heads, size, offset } = self.op;
        let own = self.op.has_own_rows([cosines.shape, sines.shape], [batch, rows])?;
        let count = batch * rows * heads * size;
        let params = RotaryParams {
            // Bytes, to which the launch adds the address.
            x: (offset * self.size) as u64,
            count: count as u64,
            row: columns as i64,
            columns: size as u32,
            heads_inside: 1,
            heads: heads as u32,
            steps: rows as u32,
            size: size as u32,
            half: (size / 2) as u32,
            rows: if own { batch * rows } else { rows } as u32,
            kind: if own { OWN } else { STEP },
            scale: 1.0,
            ..RotaryParams::zeroed()
        };
        let addresses = [
            (offset_of!(RotaryParams, x), Operand::Input(0)),
            (offset_of!(RotaryParams, cosines), Operand::Input(1)),
            (offset_of!(RotaryParams, sines), Operand::Input(2)),
            (offset_of!(RotaryParams, out), Operand::Output(0)),
        ];
        plan.launch(self.kernel, [count.div_ceil(GROUP as usize), 1, 1], &params, &addresses)
    }
}

/// Kinds of positions, as the kernel numbers them.
const OWN: u32 = 0;
const STEP: u32 = 3;
