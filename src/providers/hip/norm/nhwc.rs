//! Group normalisation of images with their channels innermost.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::channels_last::NhwcGroupNorm;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::{KernelName, Operand};
use super::super::params::{Divider, MANY_GROUPS};
use super::super::{HipKernel, PlanBuilder};

/// Elements for which another workgroup is worth its moments' way through memory.
const PART: usize = 2048;

/// `NhwcNormParams` of `kernels/norm_nhwc.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct NhwcNormParams {
    x: u64,
    y: u64,
    scale: u64,
    shift: u64,
    partials: u64,
    positions: u32,
    channels: u32,
    groups: u32,
    in_group: u32,
    splits: u32,
    chunk: u32,
    packs: Divider,
    pack: u32,
    by_group: u32,
    epsilon: f32,
}

const _: () = assert!(size_of::<NhwcNormParams>() == 88);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let names = match ty {
        ElementType::F32 => [c"norm_nhwc_f32_rows", c"norm_nhwc_f32_parts", c"norm_nhwc_f32_apply"],
        ElementType::F16 => [c"norm_nhwc_f16_rows", c"norm_nhwc_f16_parts", c"norm_nhwc_f16_apply"],
        ElementType::BF16 => [c"norm_nhwc_bf16_rows", c"norm_nhwc_bf16_parts", c"norm_nhwc_bf16_apply"],
        _ => return Err(node.no_kernel()),
    };
    Ok(Box::new(NhwcNormKernel { op: *node.op::<NhwcGroupNorm>(), ty, names }))
}

struct NhwcNormKernel {
    op: NhwcGroupNorm,
    ty: ElementType,
    names: [&'static CStr; 3],
}

impl HipKernel for NhwcNormKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some([batch, space @ .., channels]) = inputs[0].map(|x| x.shape) else { return Ok(()) };
        let groups = self.op.0.groups.unwrap_or(*channels).max(1);
        let (positions, in_group) = (space.iter().product::<usize>(), channels / groups);
        let rows = batch * groups;
        if rows * positions * in_group == 0 {
            return Ok(());
        }
        let most = 16 / self.ty.size();
        let pack =
            (0..4).map(|i| most >> i).find(|&pack| pack > 0 && in_group.is_multiple_of(pack)).unwrap_or(1);
        let wanted = (MANY_GROUPS / rows).min(positions * in_group / PART).clamp(1, positions);
        let chunk = positions.div_ceil(wanted);
        let splits = positions.div_ceil(chunk);
        let limit = i32::MAX as usize;
        if chunk * in_group > limit || positions > limit || rows * splits > limit {
            return Err(OpError::Unsupported("a GPU group normalisation of over 2³¹ elements".to_owned()));
        }
        let params = NhwcNormParams {
            positions: positions as u32,
            channels: *channels as u32,
            groups: groups as u32,
            in_group: in_group as u32,
            splits: splits as u32,
            chunk: chunk as u32,
            packs: Divider::new(in_group / pack),
            pack: pack as u32,
            by_group: self.op.0.scale_by_group as u32,
            epsilon: self.op.0.epsilon,
            ..NhwcNormParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(NhwcNormParams, x), Operand::Input(0)),
            (offset_of!(NhwcNormParams, y), Operand::Output(0)),
            (offset_of!(NhwcNormParams, scale), Operand::Input(1)),
            (offset_of!(NhwcNormParams, shift), Operand::Input(2)),
        ];
        let [whole, parts, apply] = self.names.map(|name| KernelName { family: "norm_nhwc", name });
        let grid = [rows * splits, 1, 1];
        if splits == 1 {
            return plan.launch(whole, grid, &params, &addresses);
        }
        let partials = plan.scratch(rows * splits * 2 * size_of::<f32>());
        addresses.push((offset_of!(NhwcNormParams, partials), partials));
        plan.launch(parts, grid, &params, &addresses)?;
        plan.launch(apply, grid, &params, &addresses)
    }
}
