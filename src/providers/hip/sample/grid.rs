//! GridSample.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::grid::{GridSample, SampleMode, SamplePadding};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::elements::shape_of;
use super::super::fill::groups;
use super::super::launch::Operand;
use super::super::params::{Divider, divider};
use super::super::{HipKernel, PlanBuilder};
use super::{is_wide, name};

/// Channels that one work item samples at a place.
const CHANNELS: usize = 8;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct GridParams {
    to: u64,
    from: u64,
    grid: u64,
    count: u64,
    plane: u64,
    channels: u32,
    points: Divider,
    chunks: Divider,
    ty: u32,
    grid_type: u32,
    dimensions: u32,
    mode: u32,
    padding: u32,
    align_corners: u32,
    lengths: [u32; 3],
}

const _: () = assert!(size_of::<GridParams>() == 104);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (Some(ty), Some(grid_type)) = (node.input(0), node.input(1)) else { return Err(node.no_kernel()) };
    let wide = is_wide(ty).filter(|_| grid_type.is_float()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(GridKernel { op: node.op::<GridSample>().clone(), ty, grid_type, wide }))
}

struct GridKernel {
    op: GridSample,
    ty: ElementType,
    grid_type: ElementType,
    /// Whether sums are computed in f64.
    wide: bool,
}

impl HipKernel for GridKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (image, grid) = (shape_of(inputs, 0)?, shape_of(inputs, 1)?);
        let (&[batch, channels], space) = (&image[..2], &image[2..]) else { return Ok(()) };
        if outputs.iter().flatten().any(|s| s.contains(&0)) {
            return Ok(());
        }
        let plane: usize = space.iter().product();
        if plane == 0 {
            return Err(OpError::Data(format!("an image of shape {space:?} has nothing to sample")));
        }
        if space.len() > 3 || space.iter().any(|&n| n > u32::MAX as usize) {
            return Err(OpError::Unsupported(format!(
                "sampling an image of shape {space:?}; the GPU kernel takes up to 3 dimensions"
            )));
        }
        let points: usize = grid[1..grid.len() - 1].iter().product();
        let chunks = channels.div_ceil(CHANNELS);
        let count = batch * chunks * points;
        let mut lengths = [1; 3];
        lengths.iter_mut().zip(space.iter().rev()).for_each(|(to, &n)| *to = n as u32);
        let params = GridParams {
            count: count as u64,
            plane: plane as u64,
            channels: channels as u32,
            points: divider(points)?,
            chunks: divider(chunks)?,
            ty: self.ty as u32,
            grid_type: self.grid_type as u32,
            dimensions: space.len() as u32,
            mode: match self.op.mode {
                SampleMode::Nearest => 0,
                SampleMode::Linear => 1,
                SampleMode::Cubic => 2,
            },
            padding: match self.op.padding {
                SamplePadding::Zeros => 0,
                SamplePadding::Border => 1,
                SamplePadding::Reflection => 2,
            },
            align_corners: self.op.align_corners as u32,
            lengths,
            ..GridParams::zeroed()
        };
        plan.launch(
            name(self.wide, c"grid_sample_f32", c"grid_sample_f64"),
            groups(count),
            &params,
            &[
                (offset_of!(GridParams, to), Operand::Output(0)),
                (offset_of!(GridParams, from), Operand::Input(0)),
                (offset_of!(GridParams, grid), Operand::Input(1)),
            ],
        )
    }
}
