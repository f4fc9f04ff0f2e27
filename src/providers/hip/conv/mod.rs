//! Convolutions as implicit products, depthwise ones directly, and transposed ones.

mod params;
#[cfg(test)]
mod tests;
mod transpose;
mod tuned;

use std::ffi::CStr;

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::gemm::{Axis, Epilogue, Extra, Matrix, Product, TileKernel, pick};
use super::launch::{GROUP, KernelName, Operand};
use super::unit::Unit;
use super::{Entry, HipKernel, PlanBuilder};
pub(super) use params::image_params;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Conv", build),
    Entry::new("ConvTranspose", transpose::build),
    Entry::new("FusedConv", build).domain("com.microsoft"),
];

/// The kernels of a type.
#[derive(Clone, Copy)]
struct Names {
    family: &'static str,
    large: Option<&'static CStr>,
    small: &'static CStr,
    direct: &'static CStr,
    windows: &'static CStr,
}

fn names(ty: ElementType) -> Option<Names> {
    Some(match ty {
        ElementType::F32 => Names {
            family: "conv",
            large: Some(c"conv_f32_large"),
            small: c"conv_f32_small",
            direct: c"conv_f32_direct",
            windows: c"conv_f32_windows",
        },
        ElementType::F64 => Names {
            family: "conv",
            large: None,
            small: c"conv_f64_small",
            direct: c"conv_f64_direct",
            windows: c"conv_f64_windows",
        },
        ElementType::F16 => Names {
            family: "conv_half",
            large: Some(c"conv_f16_large"),
            small: c"conv_f16_small",
            direct: c"conv_f16_direct",
            windows: c"conv_f16_windows",
        },
        ElementType::BF16 => Names {
            family: "conv_half",
            large: Some(c"conv_bf16_large"),
            small: c"conv_bf16_small",
            direct: c"conv_bf16_direct",
            windows: c"conv_bf16_windows",
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
        let implicit = Implicit { conv: self, product, g, channels: w.shape[1], direct };
        match plan.provider.tuner().is_enabled() {
            true => tuned::plan(&implicit, plan, inputs),
            false => {
                let (tile, wanted) = implicit.default_way(plan.provider.unit());
                implicit.launch(plan, tile, wanted)
            }
        }
    }
}

/// A convolution as a product whose right operand is read from the image.
struct Implicit<'c> {
    conv: &'c ConvKernel,
    product: Product,
    g: Geometry,
    /// Of a group's input.
    channels: usize,
    /// Whether each result is computed by itself unless something else is found faster.
    direct: bool,
}

impl Implicit<'_> {
    fn kernel(&self, name: &'static CStr) -> KernelName {
        KernelName { family: self.conv.names.family, name }
    }

    fn results(&self) -> usize {
        self.product.batch_count() * self.product.m * self.product.n
    }

    /// The kernel that computes each result by itself.
    fn direct_kernel(&self) -> TileKernel {
        TileKernel {
            kernel: self.kernel(self.conv.names.direct),
            rows: 1,
            columns: 1,
            lds: 0,
            items: GROUP,
            adds_up: false,
            resident: 0,
        }
    }

    /// The kernel, and how many parts of K are wanted.
    fn default_way(&self, unit: Unit) -> (TileKernel, usize) {
        if self.direct {
            return (self.direct_kernel(), 1);
        }
        let Product { m, n, .. } = self.product;
        let half = self.conv.ty.size() == 2;
        let have = [false, self.conv.names.large.is_some()];
        let (rows, columns, lds) = pick(unit, half, m, n, self.product.batch_count(), have);
        let name = if rows == 128 { self.conv.names.large } else { None };
        let kernel = self.kernel(name.unwrap_or(self.conv.names.small));
        let tile = TileKernel { kernel, rows, columns, lds, items: GROUP, adds_up: true, resident: 0 };
        (tile, self.product.wanted_parts(tile, unit, &Extra::default()))
    }

    fn launch(&self, plan: &mut PlanBuilder<'_>, tile: TileKernel, wanted: usize) -> Result<(), OpError> {
        let params = Some(image_params(plan, &self.g, self.channels)?);
        let direct = tile.kernel.name == self.conv.names.direct;
        let groups = direct.then(|| self.results().div_ceil(GROUP as usize));
        self.product.launch_in_parts(plan, self.conv.ty, tile, wanted, &Extra { params, groups })
    }
}
