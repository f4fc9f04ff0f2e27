//! Depthwise convolutions of images with their channels innermost.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::window::Geometry;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::gemm::Function;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::Divider;
use super::params::NhwcAxes;

/// Output positions of a work item, but for the kernels for little work: they have one.
const STRIP: usize = 4;

/// `DepthwiseParams` of `kernels/include/rukh/depthwise.h`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct DepthwiseParams {
    image: u64,
    weight: u64,
    out: u64,
    bias: u64,
    residual: u64,
    count: u64,
    function: Function,
    channels: u32,
    width: u32,
    packs: Divider,
    axes: NhwcAxes,
    unused: u32,
}

const _: () = assert!(size_of::<DepthwiseParams>() == 192);

pub(super) struct Depthwise<'a> {
    pub(super) ty: ElementType,
    pub(super) g: &'a Geometry,
    pub(super) images: usize,
    pub(super) channels: usize,
    pub(super) bias: bool,
    pub(super) residual: bool,
    pub(super) activation: Activation,
}

impl Depthwise<'_> {
    pub(super) fn plan(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        let (family, [one, many], pack) = match self.ty {
            ElementType::F16 => {
                ("conv_nhwc_half", [c"conv_nhwc_f16_depthwise_one", c"conv_nhwc_f16_depthwise"], 8)
            }
            ElementType::BF16 => {
                ("conv_nhwc_half", [c"conv_nhwc_bf16_depthwise_one", c"conv_nhwc_bf16_depthwise"], 8)
            }
            _ => ("conv_nhwc", [c"conv_nhwc_f32_depthwise_one", c"conv_nhwc_f32_depthwise"], 4),
        };
        let mut axes = NhwcAxes::new(self.g, self.channels)?;
        let width = axes.output[2].divisor as usize;
        let rows: usize = self.images * self.g.output.iter().product::<usize>() / width;
        let packs = self.channels.div_ceil(pack);
        // Strips must give every processor a few workgroups.
        let items = |strip: usize| rows * width.div_ceil(strip) * packs;
        let few = items(STRIP) < 2 * plan.provider.unit().compute_units * GROUP as usize;
        let (strip, name) = if few { (1, one) } else { (STRIP, many) };
        axes.output[2] = Divider::new(width.div_ceil(strip));
        let count = items(strip);
        if count > i32::MAX as usize {
            return Err(OpError::Unsupported("a GPU depthwise convolution of over 2³¹ packs".to_owned()));
        }
        let params = DepthwiseParams {
            count: count as u64,
            function: Function::of(self.activation),
            channels: self.channels as u32,
            width: width as u32,
            packs: Divider::new(packs),
            axes,
            ..DepthwiseParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(DepthwiseParams, image), Operand::Input(0)),
            (offset_of!(DepthwiseParams, weight), Operand::Input(1)),
            (offset_of!(DepthwiseParams, out), Operand::Output(0)),
        ];
        if self.bias {
            addresses.push((offset_of!(DepthwiseParams, bias), Operand::Input(2)));
        }
        if self.residual {
            addresses.push((offset_of!(DepthwiseParams, residual), Operand::Input(3)));
        }
        let groups = count.div_ceil(GROUP as usize);
        plan.launch(KernelName { family, name }, [groups, 1, 1], &params, &addresses)
    }
}
