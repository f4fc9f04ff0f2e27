//! The kernel of a node.

use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::LONGEST;
use crate::conv::common::weight::constant_weight;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::loops::parallel::Parts;
use crate::loops::simd::vector_len;
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::Conv;
use crate::ops::conv::transpose::ConvTranspose;
use crate::tensor::{ElementType, TensorView, TensorViewMut};

use super::panels::{LanePanels, LaneTile};
use super::plan::LanePlan;

/// Elements of a weight of lines from which on strips of the image are faster with AVX2.
const LARGE_WEIGHT: usize = 128 * 1024;

struct LanesConv {
    op: Op,
    panels: LanePanels,
    threads: usize,
}

enum Op {
    Conv(Conv),
    Transposed(ConvTranspose),
}

/// `None` for other convolutions than those of constant weights in `f32` over one or two axes, and where others are faster.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let Some(weight) = constant_weight(node, ElementType::F32) else { return Ok(None) };
    let (shape, aligned) = (weight.shape(), weight.aligned()?);
    let tile = LaneTile::of_groups(op.group, [shape[0] / op.group, shape[1]]);
    let (outputs, channels, volume) = (shape[0] / op.group, shape[1], shape[2..].iter().product());
    if outputs * channels * volume == 0 || !pays_off(op, tile, &shape[2..], [outputs, channels]) {
        return Ok(None);
    }
    let weight = aligned.view().slice::<f32>();
    let panels = LanePanels::new(weight, tile, op.group, [outputs, channels, volume], Packing::of(node));
    Ok(Some(Box::new(LanesConv { op: Op::Conv(op.clone()), panels, threads: node.pool.threads() })))
}

/// The same of a transposed convolution.
pub(crate) fn build_transposed(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<ConvTranspose>();
    let Some(weight) = constant_weight(node, ElementType::F32) else { return Ok(None) };
    let (shape, aligned) = (weight.shape(), weight.aligned()?);
    let (channels, outputs, volume) = (shape[0] / op.group, shape[1], shape[2..].iter().product());
    let tile = LaneTile::widest();
    // 0.4 to 0.7 of the time of a product whose windows are added; 1.14 with 21 outputs in 32 lanes.
    if volume == 0 || outputs.min(channels) < 16 || !fills(tile, outputs, 8) {
        return Ok(None);
    }
    let weight = aligned.view().slice::<f32>();
    let panels =
        LanePanels::transposed(weight, tile, op.group, [outputs, channels, volume], Packing::of(node));
    let op = Op::Transposed(op.clone());
    Ok(Some(Box::new(LanesConv { op, panels, threads: node.pool.threads() })))
}

/// Whether this is faster than other ways. Sums are transposed: there have to be enough channels.
fn pays_off(op: &Conv, tile: LaneTile, kernel: &[usize], [outputs, channels]: [usize; 2]) -> bool {
    let (axes, height, volume) = (kernel.len(), kernel[0], kernel.iter().product::<usize>());
    let any = |list: &[i64]| list.iter().any(|&x| x > 1);
    let fewest = outputs.min(channels);
    // With dilations 0.14 to 1.0 of the time of other ways, with strides 0.6 to 1.0; 1.1 to 1.5 with few channels, and 1.1 with
    // one axis and AVX2, where strips are as good.
    if any(&op.window.dilations) || any(&op.window.strides) {
        let wide = axes == 2 || vector_len() == LONGEST;
        return volume > 1 && wide && fewest >= 16 && fills(tile, outputs, 4);
    }
    // Kernels of 1 × 7 and 7 × 1, groups of 48 channels and large weights take 0.82 to 0.97 of it; 1 × 1 on large images and
    // 1-D ones up to 1.9. Large kernels on small images have many parts: 1.6. Groups of 16 channels take 0.7 with AVX2, but
    // 1.1 where they fill one vector.
    let group = tile.vector == 8 && op.group > 1 && (outputs, channels) == (16, 16);
    // Of lines of 5 and 7 with 192 channels, strips of the image take 0.86 to 0.9 of the time with AVX2; of columns 1.13.
    let line = tile.vector == 8 && height == 1 && volume > 3 && outputs * channels * volume > LARGE_WEIGHT;
    (2..10).contains(&volume) && axes == 2 && (fewest >= 32 && fills(tile, outputs, 16) && !line || group)
}

/// Whether of the lanes of so many outputs no more than one for each `most` of these is empty.
fn fills(tile: LaneTile, outputs: usize, most: usize) -> bool {
    (outputs.next_multiple_of(tile.vector) - outputs) * most <= outputs
}

impl Kernel for LanesConv {
    fn algorithm(&self) -> &'static str {
        "direct, output channels in lanes"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let (panels, images, threads) = (&self.panels, x.shape[0].max(1), self.threads);
        let plan = match &self.op {
            Op::Conv(op) => {
                let g = op.window.geometry(&x.shape[2..], &w.shape[2..])?;
                (!g.output.contains(&0)).then(|| LanePlan::new(&g, panels, images, threads))
            }
            Op::Transposed(op) => {
                let g = op.geometry(&x.shape[2..], &w.shape[2..])?;
                (!g.input.contains(&0)).then(|| LanePlan::transposed(&g, panels, images, threads))
            }
        };
        Ok(Prepared { state: Some(Box::new(plan)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let Some(plan) = cx.state::<Option<LanePlan>>() else { return Ok(()) };
        let columns = y.shape()[2..].iter().product();
        let out = Parts::new(y.slice::<f32>());
        let activation = match &self.op {
            Op::Conv(op) => op.activation,
            Op::Transposed(_) => Activation::Identity,
        };
        let epilogue = F32Epilogue::new(activation, inputs, &out, columns);
        plan.convolve(cx, &self.panels, x.slice::<f32>(), epilogue);
        if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}
