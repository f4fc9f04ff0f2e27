//! Parameters of the convolution kernels, as `kernels/include/rukh/patches.h` declares them.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::OpError;
use crate::ops::window::Geometry;

use super::super::PlanBuilder;
use super::super::gemm::GemmParams;
use super::super::launch::AddressedParams;
use super::super::params::Divider;

/// What one column of the weight multiplies: a channel, and how far from the window's begin along each axis.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
struct Tap {
    channel: i32,
    at: [i32; 3],
}

/// What `ConvParams` has beyond the product's parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ImageParams {
    taps: u64,
    input: [i32; 3],
    output: [i32; 3],
    stride: [i32; 3],
    pad: [i32; 3],
}

const _: () = assert!(size_of::<GemmParams>() + size_of::<ImageParams>() == 544);

/// What `NhwcConvParams` of `kernels/include/rukh/patches_nhwc.h` has beyond the product's parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct NhwcParams {
    channels: u32,
    pixel: u32,
    axes: NhwcAxes,
}

/// Along z, y and x.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct NhwcAxes {
    input: [i32; 3],
    kernel: [i32; 3],
    stride: [i32; 3],
    dilation: [i32; 3],
    pad: [i32; 3],
    pub(super) output: [Divider; 3],
}

const _: () = assert!(size_of::<GemmParams>() + size_of::<NhwcParams>() == 592);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct WindowParams {
    pub(super) columns: u64,
    pub(super) bias: u64,
    pub(super) out: u64,
    pub(super) count: u64,
    pub(super) channels: u32,
    pub(super) taps: u32,
    pub(super) positions: u32,
    unused: u32,
    output: [i32; 3],
    input: [i32; 3],
    kernel: [i32; 3],
    stride: [i32; 3],
    dilation: [i32; 3],
    pad: [i32; 3],
}

const _: () = assert!(size_of::<WindowParams>() == 120);

/// Three axes, the innermost last; `fill` for those that the image lacks.
fn three(list: &[usize], fill: i32) -> Result<[i32; 3], OpError> {
    let mut out = [fill; 3];
    if list.len() > 3 {
        return Err(OpError::Unsupported(format!(
            "a convolution over {} spatial axes; the GPU kernel takes 3",
            list.len()
        )));
    }
    for (to, &x) in out[3 - list.len()..].iter_mut().zip(list) {
        // Coordinates are computed in 32 bits, with room for a window beyond both ends.
        *to = i32::try_from(x).ok().filter(|&x| x < 1 << 29).ok_or_else(|| {
            OpError::Unsupported(format!("a convolution with a size of {x}; the GPU limit is 536870911"))
        })?;
    }
    Ok(out)
}

/// The parameters of an image's patches that follow the product's, and their addresses.
pub(in super::super) fn image_params(
    plan: &mut PlanBuilder<'_>,
    g: &Geometry,
    channels: usize,
) -> Result<AddressedParams, OpError> {
    let (kernel, dilation) = (three(&g.kernel, 1)?, three(&g.dilations, 1)?);
    let params = ImageParams {
        taps: 0,
        input: three(&g.input, 1)?,
        output: three(&g.output, 1)?,
        stride: three(&g.strides, 1)?,
        pad: three(&g.pads_begin, 0)?,
    };
    if params.input.iter().map(|&x| x as usize).product::<usize>() > i32::MAX as usize {
        return Err(OpError::Unsupported("a GPU convolution of an image of over 2³¹ elements".to_owned()));
    }
    let mut taps = Vec::with_capacity(channels * g.kernel.iter().product::<usize>());
    for channel in 0..channels as i32 {
        for z in 0..kernel[0] {
            for y in 0..kernel[1] {
                for x in 0..kernel[2] {
                    let at = [z, y, x];
                    taps.push(Tap {
                        channel,
                        at: std::array::from_fn(|i| at[i].saturating_mul(dilation[i])),
                    });
                }
            }
        }
    }
    let table = plan.table(&taps);
    Ok((bytes_of(&params).to_vec(), vec![(offset_of!(ImageParams, taps), table)]))
}

/// The parameters that follow the product's for an image with its channels innermost: so many of a group, and
/// of a pixel.
pub(in super::super) fn nhwc_params(
    g: &Geometry,
    channels: usize,
    pixel: usize,
) -> Result<AddressedParams, OpError> {
    let axes = NhwcAxes::new(g, pixel)?;
    let params = NhwcParams { channels: channels as u32, pixel: pixel as u32, axes };
    Ok((bytes_of(&params).to_vec(), Vec::new()))
}

impl NhwcAxes {
    pub(super) fn new(g: &Geometry, pixel: usize) -> Result<Self, OpError> {
        let output = three(&g.output, 1)?;
        let axes = NhwcAxes {
            input: three(&g.input, 1)?,
            kernel: three(&g.kernel, 1)?,
            stride: three(&g.strides, 1)?,
            dilation: three(&g.dilations, 1)?,
            pad: three(&g.pads_begin, 0)?,
            output: output.map(|n| Divider::new(n as usize)),
        };
        // Places in an image, and those where windows end beyond it, are counted in 32 bits.
        let reach = |i: usize| {
            let window = (axes.kernel[i] as usize).saturating_mul(axes.dilation[i] as usize);
            (axes.input[i] as usize).saturating_add(window)
        };
        let elements = (0..3).map(reach).fold(pixel, usize::saturating_mul);
        if elements > i32::MAX as usize {
            return Err(OpError::Unsupported(
                "a GPU convolution of an image of over 2³¹ elements".to_owned(),
            ));
        }
        Ok(axes)
    }
}

impl WindowParams {
    /// For the windows of a geometry whose image is the result.
    pub(super) fn new(g: &Geometry) -> Result<Self, OpError> {
        Ok(WindowParams {
            output: three(&g.input, 1)?,
            input: three(&g.output, 1)?,
            kernel: three(&g.kernel, 1)?,
            stride: three(&g.strides, 1)?,
            dilation: three(&g.dilations, 1)?,
            pad: three(&g.pads_begin, 0)?,
            ..WindowParams::zeroed()
        })
    }
}
