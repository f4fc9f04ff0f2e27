//! Convolutions of images with their channels innermost: products of patches, plain products of pixels where
//! windows have one, and depthwise ones.

use crate::ops::OpError;
use crate::ops::channels_last::NhwcConv;
use crate::ops::window::Geometry;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::gemm::{Axis, Epilogue, Matrix, Product, hopper};
use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::implicit::{Implicit, Layout, Names};
use super::{FEW_CHANNELS, depthwise, is_pointwise};

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let kernel = node.input(0).and_then(|ty| kernel(node.op::<NhwcConv>().clone(), ty));
    kernel.ok_or_else(|| node.no_kernel())
}

/// The kernel of a convolution; `None` for types without one.
pub(super) fn kernel(op: NhwcConv, ty: ElementType) -> Option<Box<dyn HipKernel>> {
    Some(Box::new(NhwcKernel { op, ty, names: names(ty)? }))
}

fn names(ty: ElementType) -> Option<Names> {
    Some(match ty {
        ElementType::F32 => Names {
            family: "conv_nhwc",
            large: Some(c"conv_nhwc_f32_large"),
            small: c"conv_nhwc_f32_small",
            direct: c"conv_nhwc_f32_direct",
        },
        ElementType::F16 => Names {
            family: "conv_nhwc_half",
            large: Some(c"conv_nhwc_f16_large"),
            small: c"conv_nhwc_f16_small",
            direct: c"conv_nhwc_f16_direct",
        },
        ElementType::BF16 => Names {
            family: "conv_nhwc_half",
            large: Some(c"conv_nhwc_bf16_large"),
            small: c"conv_nhwc_bf16_small",
            direct: c"conv_nhwc_bf16_direct",
        },
        _ => return None,
    })
}

/// Windows whose taps of a line lie one behind the other in memory, and are few numbers, as windows with one tap of
/// as many channels; others as they are.
fn joined_taps(mut g: Geometry, channels: usize, group: usize) -> (Geometry, usize) {
    let x = g.kernel.len() - 1;
    let together = group == 1 && g.dilations[x] == 1 && g.pads_begin[x] == 0 && g.pads_end[x] == 0;
    let joined = g.kernel[x] * channels;
    if !together || joined > hopper::STEP {
        return (g, channels);
    }
    g.kernel[x] = 1;
    (g, joined)
}

struct NhwcKernel {
    op: NhwcConv,
    ty: ElementType,
    names: Names,
}

impl HipKernel for NhwcKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(w), Some(Some(out))) = (inputs[0], inputs[1], outputs.first()) else {
            return Ok(());
        };
        let ([images, space @ .., pixel], [first, kernel @ .., channels]) = (x.shape, w.shape) else {
            return Ok(());
        };
        if out.contains(&0) {
            return Ok(());
        }
        let has = |i: usize| inputs.get(i).is_some_and(Option::is_some);
        let g = self.op.window.geometry(space, kernel)?;
        if self.op.is_depthwise(*first) {
            let depthwise = depthwise::Depthwise {
                ty: self.ty,
                g: &g,
                images: *images,
                channels: *channels,
                bias: has(2),
                residual: has(3),
                activation: self.op.activation,
            };
            return depthwise.plan(plan);
        }
        let (group, all) = (self.op.group, *first);
        let (m, n) = (images * g.output.iter().product::<usize>(), all / group);
        let k = channels * kernel.iter().product::<usize>();
        let strides = [*channels, n * k, n, n, n].map(|stride| stride as i64);
        let product = Product {
            m,
            n,
            k,
            a: Matrix::new(Operand::Input(0), *pixel, 1),
            b: Matrix::new(Operand::Input(1), 1, k),
            out: Matrix::new(Operand::Output(0), all, 1),
            bias: has(2).then(|| Matrix::new(Operand::Input(2), 0, 1)),
            residual: has(3).then(|| Matrix::new(Operand::Input(3), all, 1)),
            batch: vec![Axis { size: group, strides }],
            epilogue: Epilogue { activation: self.op.activation, ..Epilogue::default() },
        };
        let direct = n <= FEW_CHANNELS && group > 1 && m * all <= i32::MAX as usize;
        if is_pointwise(&g) && !direct {
            return product.plan(plan, self.ty);
        }
        let layout = Layout::Nhwc { pixel: *pixel };
        let (names, ty) = (self.names, self.ty);
        let (g, channels) = joined_taps(g, *channels, group);
        Implicit { names, ty, group, product, g, channels, outputs: n, layout, direct }.plan(plan, inputs)
    }
}
