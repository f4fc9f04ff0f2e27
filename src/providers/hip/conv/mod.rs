//! Convolutions as implicit products, depthwise ones directly, and transposed ones.

mod depthwise;
mod excite;
mod implicit;
mod nhwc;
mod params;
mod shapes;
#[cfg(test)]
mod tests;
mod transpose;
mod tuned;
mod windows;

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::gemm::{Axis, Epilogue, Matrix, Product};
use super::launch::Operand;
use super::{Entry, HipKernel, PlanBuilder};
use implicit::{Implicit, Layout, Names};
pub(super) use params::{image_params, nhwc_params};
pub(super) use shapes::plan as plan_shape;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Conv", build),
    Entry::new("ConvTranspose", transpose::build),
    Entry::new("FusedConv", build).domain("com.microsoft"),
    Entry::new("NhwcConv", nhwc::build).domain("rukh"),
    Entry::new("NhwcExcite", excite::build).domain("rukh"),
];

fn names(ty: ElementType) -> Option<Names> {
    Some(match ty {
        ElementType::F32 => Names {
            family: "conv",
            large: Some(c"conv_f32_large"),
            small: c"conv_f32_small",
            direct: c"conv_f32_direct",
        },
        ElementType::F64 => {
            Names { family: "conv", large: None, small: c"conv_f64_small", direct: c"conv_f64_direct" }
        }
        ElementType::F16 => Names {
            family: "conv_half",
            large: Some(c"conv_f16_large"),
            small: c"conv_f16_small",
            direct: c"conv_f16_direct",
        },
        ElementType::BF16 => Names {
            family: "conv_half",
            large: Some(c"conv_bf16_large"),
            small: c"conv_bf16_small",
            direct: c"conv_bf16_direct",
        },
        _ => return None,
    })
}

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    match node.input(0).and_then(|ty| Some((ty, names(ty)?))) {
        Some((ty, names)) => Ok(Box::new(ConvKernel { op: node.op::<Conv>().clone(), ty, names })),
        None => Err(node.no_kernel()),
    }
}

struct ConvKernel {
    op: Conv,
    ty: ElementType,
    names: Names,
}

/// Output channels of a group up to which each result is computed by itself.
pub(super) const FEW_CHANNELS: usize = 4;

/// Whether output positions are input positions.
fn is_pointwise(g: &Geometry) -> bool {
    let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
    all(&g.kernel, 1) && all(&g.strides, 1) && all(&g.pads_begin, 0) && all(&g.pads_end, 0)
}

/// The product `weight · patches` of each image and group: weight and image at these inputs.
pub(super) fn weight_times_patches(
    g: &Geometry,
    group: usize,
    (x, x_input): (&[usize], usize),
    (w, w_input): (&[usize], usize),
) -> Product {
    let (m, n) = (w[0] / group, g.output.iter().product::<usize>());
    let (plane, k) = (g.input.iter().product::<usize>(), w[1..].iter().product::<usize>());
    let image = (w[1] * plane) as i64;
    let out = (m * n) as i64;
    Product {
        m,
        n,
        k,
        a: Matrix::new(Operand::Input(w_input), k, 1),
        b: Matrix::new(Operand::Input(x_input), plane, 1),
        out: Matrix::new(Operand::Output(0), n, 1),
        bias: None,
        residual: None,
        batch: vec![
            Axis {
                size: x[0],
                strides: [0, image * group as i64, out * group as i64, 0, out * group as i64],
            },
            Axis { size: group, strides: [(m * k) as i64, image, out, m as i64, out] },
        ],
        epilogue: Epilogue::default(),
    }
}

impl HipKernel for ConvKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let [Some(x), Some(w), ..] = *inputs else { return Ok(()) };
        let has = |i: usize| inputs.get(i).is_some_and(Option::is_some);
        let g = self.op.window.geometry(&x.shape[2..], &w.shape[2..])?;
        let mut product = weight_times_patches(&g, self.op.group, (x.shape, 0), (w.shape, 1));
        product.bias = has(2).then(|| Matrix::new(Operand::Input(2), 1, 0));
        product.residual = has(3).then(|| Matrix::new(Operand::Input(3), product.n, 1));
        product.epilogue.activation = self.op.activation;
        let batch = x.shape[0] * self.op.group;
        if product.m == 0 || product.n == 0 || batch == 0 {
            return Ok(());
        }
        let results = batch * product.m * product.n;
        let direct = product.m <= FEW_CHANNELS && self.op.group > 1 && results <= i32::MAX as usize;
        if is_pointwise(&g) && !direct {
            return product.plan(plan, self.ty);
        }
        Implicit {
            names: self.names,
            ty: self.ty,
            group: self.op.group,
            outputs: product.m,
            channels: w.shape[1],
            layout: Layout::Nchw,
            product,
            g,
            direct,
        }
        .plan(plan, inputs)
    }
}

impl Implicit {
    /// Appends the launches: of the default kernel, or of what tuning chooses.
    fn plan(&self, plan: &mut PlanBuilder<'_>, inputs: &[Option<Argument<'_>>]) -> Result<(), OpError> {
        match plan.provider.tuner().is_enabled() {
            true => tuned::plan(self, plan, inputs),
            false => {
                let (tile, wanted) = self.default_way(plan.provider.unit());
                self.launch(plan, tile, wanted)
            }
        }
    }
}
