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

/// Those keep the weight of a workgroup's channels in workgroup memory, in so many floats, and a row of the window in
/// packs of at most so many taps.
const WEIGHT: usize = 4096;
const TAPS: [usize; 3] = [3, 5, 7];

/// Packs of channels of a workgroup of such a kernel, which are whole cache lines, and work items at least and at most.
const SIDE: usize = 8;
const ITEMS: [usize; 2] = [64, 128];

/// `DepthwiseParams` of `kernels/include/rukh/depthwise.h`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct DepthwiseParams {
    image: u64,
    weight: u64,
    out: u64,
    bias: u64,
    residual: u64,
    count: u32,
    items: u32,
    function: Function,
    channels: u32,
    width: u32,
    packs: Divider,
    axes: NhwcAxes,
    in_group: u32,
    side: Divider,
    tiles: Divider,
}

const _: () = assert!(size_of::<DepthwiseParams>() == 216);

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
        let units = plan.provider.unit().compute_units;
        let items = |strip: usize| rows * width.div_ceil(strip) * packs;
        let few = items(STRIP) < 2 * units * GROUP as usize;
        let most = WEIGHT / (self.padded_taps() * pack);
        let one_each = few && most > 0;
        let (strip, name) = if one_each { (1, one) } else { (STRIP, many) };
        axes.output[2] = Divider::new(width.div_ceil(strip));
        let count = items(strip);
        if count > i32::MAX as usize {
            return Err(OpError::Unsupported("a GPU depthwise convolution of over 2³¹ packs".to_owned()));
        }
        let mut params = DepthwiseParams {
            count: count as u32,
            items: GROUP,
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
        let name = KernelName { family, name };
        if !one_each {
            return plan.launch(name, [count.div_ceil(GROUP as usize), 1, 1], &params, &addresses);
        }
        // As many packs for each of the workgroups that share a position's.
        let tiles = packs.div_ceil(most.min(SIDE));
        let side = packs.div_ceil(tiles);
        let [mut size, largest] = ITEMS;
        while size < largest && count > 2 * units * size {
            size *= 2;
        }
        let (positions, in_group) = (rows * width, size / side);
        params.count = positions as u32;
        params.items = size as u32;
        params.in_group = in_group as u32;
        (params.side, params.tiles) = (Divider::new(side), Divider::new(tiles));
        let grid = [positions.div_ceil(in_group) * tiles, 1, 1];
        plan.launch_with(name, grid, size as u32, 0, &params, &addresses)
    }

    /// Taps of the window where each of its lines is a whole number of the kernel's rows of taps.
    fn padded_taps(&self) -> usize {
        let Some((width, lines)) = self.g.kernel.split_last() else { return 1 };
        let row = TAPS.into_iter().find(|taps| width <= taps).unwrap_or(TAPS[TAPS.len() - 1]);
        width.next_multiple_of(row) * lines.iter().product::<usize>()
    }
}
