//! RoiAlign and MaxRoiPool.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::roi::{RoiMode, RoiPool};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::{GROUP, KernelName, Operand};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[Entry::new("MaxRoiPool", build), Entry::new("RoiAlign", build)];

/// `RoiParams` of `kernels/roi.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct RoiParams {
    x: u64,
    rois: u64,
    images: u64,
    y: u64,
    errors: u64,
    count: u64,
    image_count: u32,
    channels: u32,
    height: u32,
    width: u32,
    out_height: u32,
    out_width: u32,
    mode: u32,
    sampling: u32,
    ty: u32,
    half_pixel: u32,
    scale: f32,
    unused: u32,
}

const _: () = assert!(size_of::<RoiParams>() == 96);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(Roi { op: *node.op::<RoiPool>(), ty }))
}

struct Roi {
    op: RoiPool,
    ty: ElementType,
}

impl HipKernel for Roi {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(&[images, channels, height, width]) = inputs[0].map(|x| x.shape) else { return Ok(()) };
        let Some(Some(out)) = outputs.first() else { return Ok(()) };
        let count: usize = out.iter().product();
        let size = |n: usize| {
            u32::try_from(n).map_err(|_| {
                OpError::Unsupported(format!("a dimension of {n} elements; the GPU kernel takes 2^32 - 1"))
            })
        };
        let params = RoiParams {
            count: count as u64,
            image_count: size(images)?,
            channels: size(channels)?,
            height: size(height)?,
            width: size(width)?,
            out_height: size(self.op.height)?,
            out_width: size(self.op.width)?,
            mode: match self.op.mode {
                RoiMode::Average => 0,
                RoiMode::Max => 1,
                RoiMode::MaxElements => 2,
            },
            sampling: size(self.op.sampling)?,
            ty: self.ty as u32,
            half_pixel: self.op.half_pixel as u32,
            scale: self.op.scale,
            ..RoiParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(RoiParams, x), Operand::Input(0)),
            (offset_of!(RoiParams, rois), Operand::Input(1)),
            (offset_of!(RoiParams, y), Operand::Output(0)),
            (offset_of!(RoiParams, errors), Operand::Errors),
        ];
        if self.op.mode != RoiMode::MaxElements {
            addresses.push((offset_of!(RoiParams, images), Operand::Input(2)));
        }
        let name = if self.ty == ElementType::F64 { c"roi_f64" } else { c"roi_f32" };
        let groups = count.div_ceil(GROUP as usize);
        plan.launch(KernelName { family: "roi", name }, [groups, 1, 1], &params, &addresses)
    }
}
