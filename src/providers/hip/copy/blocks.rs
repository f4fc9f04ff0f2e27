//! Blocks of images in NCHW as pixels in NHWC.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::channels_last::NhwcSpaceToDepth;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::Divider;
use super::super::{HipKernel, PlanBuilder};

/// Bytes that a work item stores.
const PACK: usize = 16;

/// `SpaceToDepthParams` of `kernels/space_to_depth.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct SpaceToDepthParams {
    x: u64,
    y: u64,
    count: u32,
    packs: Divider,
    width: Divider,
    height: Divider,
    block_width: Divider,
    block_height: Divider,
    channels: u32,
    lines: u32,
    columns: u32,
    first_line: i32,
    first_column: i32,
    whole: u32,
    unused: [u32; 2],
}

const _: () = assert!(size_of::<SpaceToDepthParams>() == 112);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<NhwcSpaceToDepth>();
    let (name, size) = match node.input(0) {
        Some(ElementType::F32) => (c"space_to_depth_4", 4),
        Some(ElementType::F16 | ElementType::BF16) => (c"space_to_depth_2", 2),
        _ => return Err(node.no_kernel()),
    };
    if !op.channels.is_multiple_of(PACK / size) {
        return Err(node.no_kernel());
    }
    Ok(Box::new(BlocksKernel { op, kernel: KernelName { family: "space_to_depth", name }, size }))
}

struct BlocksKernel {
    op: NhwcSpaceToDepth,
    kernel: KernelName,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for BlocksKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(Some(out))) = (inputs[0], outputs.first()) else { return Ok(()) };
        let (&[_, channels, lines, columns], &[images, height, width, pixel]) = (x.shape, *out) else {
            return Ok(());
        };
        let NhwcSpaceToDepth {
            blocks: [block_height, block_width],
            pads: [first_line, first_column, ..],
            ..
        } = self.op;
        let in_pack = PACK / self.size;
        let count = images * height * width * (pixel / in_pack);
        if [count, channels * lines * columns].iter().any(|&n| n > i32::MAX as usize) {
            return Err(OpError::Unsupported("a GPU copy of 2³¹ packs, or of images as large".to_owned()));
        }
        let packs = |n: usize| n.is_multiple_of(in_pack);
        let launch = |whole: bool, plan: &mut PlanBuilder<'_>| {
            let params = SpaceToDepthParams {
                x: 0,
                y: 0,
                count: count as u32,
                packs: Divider::new(pixel / in_pack),
                width: Divider::new(width),
                height: Divider::new(height),
                block_width: Divider::new(block_width),
                block_height: Divider::new(block_height),
                channels: channels as u32,
                lines: lines as u32,
                columns: columns as u32,
                first_line: -(first_line as i32),
                first_column: -(first_column as i32),
                whole: u32::from(whole),
                unused: [0; 2],
            };
            let addresses = [
                (offset_of!(SpaceToDepthParams, x), Operand::Input(0)),
                (offset_of!(SpaceToDepthParams, y), Operand::Output(0)),
            ];
            plan.launch(self.kernel, [count.div_ceil(GROUP as usize), 1, 1], &params, &addresses)
        };
        // Packs that begin in a line end in it.
        if !(packs(block_width) && packs(columns) && packs(first_column)) {
            return launch(false, plan);
        }
        let operands = [(Operand::Input(0), 0)];
        plan.by_alignment(PACK as u32, &operands, |plan| launch(true, plan), |plan| launch(false, plan))
    }
}
