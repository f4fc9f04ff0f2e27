//! Col2Im.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::col2im::Col2Im;
use crate::providers::ints::shape_input;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::fill::groups;
use super::super::launch::Operand;
use super::super::params::{Divider, divider};
use super::super::{HipKernel, PlanBuilder};
use super::{is_wide, name};

const MAX_RANK: usize = 4;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct AxisParams {
    image: Divider,
    block: Divider,
    stride: Divider,
    dilation: u32,
    pad: u32,
    count: u32,
}

const _: () = assert!(size_of::<AxisParams>() == 48);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ColumnsParams {
    to: u64,
    from: u64,
    count: u64,
    block: u32,
    blocks: u32,
    rank: u32,
    ty: u32,
    axes: [AxisParams; MAX_RANK],
}

const _: () = assert!(size_of::<ColumnsParams>() == 232);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let wide = is_wide(ty).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(ColumnsKernel { op: node.op::<Col2Im>().clone(), ty, wide }))
}

struct ColumnsKernel {
    op: Col2Im,
    ty: ElementType,
    /// Whether sums are computed in f64.
    wide: bool,
}

impl HipKernel for ColumnsKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let image = shape_input(inputs, 1)?.unwrap_or_default();
        let block = shape_input(inputs, 2)?.unwrap_or_default();
        let axes = self.op.axes(&image, &block)?;
        let count = outputs.iter().flatten().map(|s| s.iter().product()).next().unwrap_or(0usize);
        let (size, blocks) =
            axes.iter().fold((1usize, 1usize), |(size, blocks), a| (size * a.block, blocks * a.count));
        let reach = axes.iter().map(|a| a.image + a.pad + a.block * a.dilation).max().unwrap_or(0);
        if axes.len() > MAX_RANK || size.max(blocks).max(reach) >= 1 << 31 {
            return Err(OpError::Unsupported(format!(
                "Col2Im over an image of shape {image:?} and blocks of {block:?}; the GPU kernel takes up to \
                 {MAX_RANK} dimensions"
            )));
        }
        let mut params = ColumnsParams {
            count: count as u64,
            block: size as u32,
            blocks: blocks as u32,
            rank: axes.len() as u32,
            ty: self.ty as u32,
            ..ColumnsParams::zeroed()
        };
        for (to, axis) in params.axes.iter_mut().zip(&axes) {
            *to = AxisParams {
                image: divider(axis.image)?,
                block: divider(axis.block)?,
                stride: divider(axis.stride)?,
                dilation: axis.dilation as u32,
                pad: axis.pad as u32,
                count: axis.count as u32,
            };
        }
        plan.launch(
            name(self.wide, c"columns_to_image_f32", c"columns_to_image_f64"),
            groups(count),
            &params,
            &[
                (offset_of!(ColumnsParams, to), Operand::Output(0)),
                (offset_of!(ColumnsParams, from), Operand::Input(0)),
            ],
        )
    }
}
