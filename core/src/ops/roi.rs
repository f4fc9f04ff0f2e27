//! Pooling of regions: MaxRoiPool, RoiAlign.

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// How a region's bin is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoiMode {
    /// The mean of bilinear samples.
    Average,
    /// The largest weighted corner of any sample.
    Max,
    /// The maximum over whole elements: MaxRoiPool.
    MaxElements,
}

/// Pools regions of images to one size. RoiAlign has inputs X, regions `[x1, y1, x2, y2]` and the
/// image of each; MaxRoiPool has X and regions with the image in front.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoiPool {
    pub mode: RoiMode,
    pub height: usize,
    pub width: usize,
    /// Samples along each side of a bin; 0 adapts to the region.
    pub sampling: usize,
    pub scale: f32,
    /// Whether coordinates are shifted by half an element.
    pub half_pixel: bool,
}

impl Operator for RoiPool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (x, rois) = (cx.shape_of_rank(0, 4)?, cx.shape_of_rank(1, 2)?);
        let columns = if self.mode == RoiMode::MaxElements { 5 } else { 4 };
        if let Some(rois) = rois {
            cx.equal(1, "its second dimension", &Dim::Known(columns), &rois[1])?;
            if let Some(images) = cx.shape_of_rank(2, 1)? {
                cx.equal(2, "its length", &rois[0], &images[0])?;
            }
        }
        let count = rois.map_or_else(|| cx.unknown(), |r| r[0].clone());
        let channels = x.map_or_else(|| cx.unknown(), |x| x[1].clone());
        cx.set_shape(0, vec![count, channels, Dim::from(self.height), Dim::from(self.width)]);
        Ok(())
    }
}

fn count(a: &AttributeReader<'_>, name: &str, default: i64, least: i64) -> Result<usize, OpError> {
    let n = a.int(name, default)?;
    if (least..=i32::MAX as i64).contains(&n) {
        Ok(n as usize)
    } else {
        Err(OpError::attribute(name, format!("{n} is not allowed; allowed is {least} to 2147483647")))
    }
}

fn parse_align(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let half_pixel = match a.opset() < 16 {
        true => false,
        false => a.choice(
            "coordinate_transformation_mode",
            "half_pixel",
            &[("half_pixel", true), ("output_half_pixel", false)],
        )?,
    };
    Ok(Arc::new(RoiPool {
        mode: a.choice("mode", "avg", &[("avg", RoiMode::Average), ("max", RoiMode::Max)])?,
        height: count(a, "output_height", 1, 1)?,
        width: count(a, "output_width", 1, 1)?,
        sampling: count(a, "sampling_ratio", 0, 0)?,
        scale: a.float("spatial_scale", 1.0)?,
        half_pixel,
    }))
}

fn parse_max(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let &[height, width] = a.ints("pooled_shape")?.unwrap_or(&[]) else {
        return Err(OpError::attribute("pooled_shape", "it must be two integers, height and width"));
    };
    if height < 1 || width < 1 || height.max(width) > i32::MAX as i64 {
        let reason = format!("[{height}, {width}] is not allowed; allowed is 1 to 2147483647");
        return Err(OpError::attribute("pooled_shape", reason));
    }
    Ok(Arc::new(RoiPool {
        mode: RoiMode::MaxElements,
        height: height as usize,
        width: width as usize,
        sampling: 0,
        scale: a.float("spatial_scale", 1.0)?,
        half_pixel: false,
    }))
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("MaxRoiPool", &[1, 22], "X:T, rois:T -> Y:T", FLOAT, parse_max),
    Declaration::new(
        "RoiAlign",
        &[10, 16, 22],
        "X:T, rois:T, batch_indices:int64 -> Y:T",
        FLOAT,
        parse_align,
    ),
];
