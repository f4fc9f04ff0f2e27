//! Poolings by regions, and the partial inverse of max pooling.

use std::sync::Arc;

use crate::graph::Dim;

use super::window::{Padding, Window, spatial};
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Puts pooled maxima back where they were. Inputs: X, indices, and the output's shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MaxUnpool {
    window: Window,
}

impl MaxUnpool {
    /// The shape that the indices refer to.
    pub(crate) fn inferred(&self, x: &[Dim]) -> Result<Vec<Dim>, OpError> {
        let axes = x.len() - 2;
        self.window.check_rank(axes)?;
        if self.window.kernel.len() != axes {
            let reason = format!("it has {} entries; allowed is {axes}", self.window.kernel.len());
            return Err(OpError::attribute("kernel_shape", reason));
        }
        let mut shape = x[..2].to_vec();
        for (i, dim) in x[2..].iter().enumerate() {
            let stride = Dim::Known(self.window.strides.get(i).copied().unwrap_or(1));
            let pads = match &self.window.padding {
                Padding::Explicit(pads) if !pads.is_empty() => pads[i] + pads[axes + i],
                _ => 0,
            };
            let size = dim.sub(&Dim::Known(1)).mul(&stride).add(&Dim::Known(self.window.kernel[i] - pads));
            if size.known().is_some_and(|n| n < 0) {
                return Err(OpError::attribute(
                    "pads",
                    format!("they leave {size} elements of spatial axis {i}"),
                ));
            }
            shape.push(size);
        }
        Ok(shape)
    }
}

impl Operator for MaxUnpool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
        if let Some(indices) = cx.shape_of_rank(1, x.len())? {
            for (i, (want, given)) in x.iter().zip(indices).enumerate() {
                cx.equal(1, &format!("its dimension {i}"), want, given)?;
            }
        }
        let inferred = self.inferred(x)?;
        if !cx.has(2) {
            cx.set_shape(0, inferred);
            return Ok(());
        }
        match cx.ints(2) {
            Some(shape) if shape.len() == x.len() => {
                if shape.iter().any(|d| d.known().is_some_and(|n| n < 0)) {
                    return Err(cx.input_error(2, format!("it is {shape:?}; allowed are numbers from 0")));
                }
                cx.set_shape(0, shape);
            }
            Some(shape) => {
                let reason = format!("it has {} entries; allowed is {}", shape.len(), x.len());
                return Err(cx.input_error(2, reason));
            }
            None => cx.set_rank(0, x.len()),
        }
        Ok(())
    }
}

/// How a region's bin is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RoiMode {
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
pub(crate) struct RoiPool {
    pub(crate) mode: RoiMode,
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// Samples along each side of a bin; 0 adapts to the region.
    pub(crate) sampling: usize,
    pub(crate) scale: f32,
    /// Whether coordinates are shifted by half an element.
    pub(crate) half_pixel: bool,
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
    Declaration::new(
        "MaxUnpool",
        &[9, 11, 22],
        "X:T, I:int64, output_shape?:int64 -> output:T",
        FLOAT,
        |a| Ok(Arc::new(MaxUnpool { window: Window::read(a)? })),
    )
    .shape_inputs(&[2]),
    Declaration::new("MaxRoiPool", &[1, 22], "X:T, rois:T -> Y:T", FLOAT, parse_max),
    Declaration::new(
        "RoiAlign",
        &[10, 16, 22],
        "X:T, rois:T, batch_indices:int64 -> Y:T",
        FLOAT,
        parse_align,
    ),
];
