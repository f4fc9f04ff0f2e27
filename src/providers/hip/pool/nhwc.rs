//! Maxima and means over windows of images with their channels innermost.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::channels_last::NhwcPool;
use crate::ops::pool::Reduction;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::Divider;
use super::super::{HipKernel, PlanBuilder};
use super::DIMS;

/// `NhwcPoolParams` of `kernels/pool_nhwc.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct NhwcPoolParams {
    x: u64,
    y: u64,
    count: u64,
    average: u32,
    count_padding: u32,
    channels: u32,
    packs: Divider,
    input: [i32; DIMS],
    kernel: [i32; DIMS],
    stride: [i32; DIMS],
    dilation: [i32; DIMS],
    pad: [i32; DIMS],
    end: [i32; DIMS],
    output: [Divider; DIMS],
    unused: u32,
}

const _: () = assert!(size_of::<NhwcPoolParams>() == 160);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = node.op::<NhwcPool>().clone();
    let (name, pack) = match node.input(0) {
        Some(ElementType::F32) => (c"pool_nhwc_f32", 4),
        Some(ElementType::F16) => (c"pool_nhwc_f16", 8),
        Some(ElementType::BF16) => (c"pool_nhwc_bf16", 8),
        _ => return Err(node.no_kernel()),
    };
    if op.0.window.kernel.len() > DIMS {
        return Err(node.no_kernel());
    }
    Ok(Box::new(NhwcPoolKernel { op, kernel: KernelName { family: "pool_nhwc", name }, pack }))
}

struct NhwcPoolKernel {
    op: NhwcPool,
    kernel: KernelName,
    /// Channels of a work item.
    pack: usize,
}

impl HipKernel for NhwcPoolKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some([images, space @ .., channels]) = inputs[0].map(|x| x.shape) else { return Ok(()) };
        let kernel: Vec<usize> = self.op.0.window.kernel.iter().map(|&k| k as usize).collect();
        let g = self.op.0.window.geometry(space, &kernel)?;
        let packs = channels.div_ceil(self.pack);
        let count = images * g.output.iter().product::<usize>() * packs;
        let limit = |what: &str| OpError::Unsupported(format!("a GPU pooling over {what}"));
        if count > i32::MAX as usize {
            return Err(limit("2³¹ packs of channels"));
        }
        let mut params = NhwcPoolParams::zeroed();
        (params.count, params.channels, params.packs) = (count as u64, *channels as u32, Divider::new(packs));
        if let Reduction::Average { count_padding } = self.op.0.reduction {
            (params.average, params.count_padding) = (1, count_padding as u32);
        }
        let absent = DIMS - kernel.len();
        for d in 0..DIMS {
            let of = |list: &[usize], default: usize| {
                let value = d.checked_sub(absent).map_or(default, |d| list[d]);
                i32::try_from(value)
                    .ok()
                    .filter(|&n| n < 1 << 29)
                    .ok_or_else(|| limit("2²⁹ elements of an axis"))
            };
            params.output[d] = Divider::new(of(&g.output, 1)? as usize);
            params.input[d] = of(&g.input, 1)?;
            params.kernel[d] = of(&g.kernel, 1)?;
            params.stride[d] = of(&g.strides, 1)?;
            params.dilation[d] = of(&g.dilations, 1)?;
            params.pad[d] = of(&g.pads_begin, 0)?;
            params.end[d] = params.input[d] + of(&g.pads_end, 0)?;
        }
        let addresses = [
            (offset_of!(NhwcPoolParams, x), Operand::Input(0)),
            (offset_of!(NhwcPoolParams, y), Operand::Output(0)),
        ];
        plan.launch(self.kernel, [count.div_ceil(GROUP as usize), 1, 1], &params, &addresses)
    }
}
