//! Products and convolutions of 8-bit numbers: MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv.

mod constant;
mod hopper;
mod pack;
mod packed;
mod params;
#[cfg(test)]
mod tests;

use crate::ops::OpError;
use crate::ops::matmul::MatMul;
use crate::ops::qlinear::{QuantizedConv, QuantizedMatMul};
use crate::providers::{Argument, NodeContext};
use crate::tensor::{ElementType, Tensor};

use super::conv::{FEW_CHANNELS, image_params, weight_times_patches};
use super::gemm::{Extra, Product, TileKernel, stacked};
use super::launch::{GROUP, KernelName};
use super::{Entry, HipKernel, PlanBuilder};
use constant::Constant;
use params::{IMAGE_BYTES, Side, Tail};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("ConvInteger", build_conv),
    Entry::new("MatMulInteger", build_product),
    Entry::new("MatMulIntegerToFloat", build_product).domain("com.microsoft"),
    Entry::new("QLinearConv", build_conv),
    Entry::new("QLinearMatMul", build_product),
];

/// A kernel with tiles of 64 × 64, or without.
fn tile(name: &'static std::ffi::CStr) -> TileKernel {
    let kernel = KernelName { family: "qlinear", name };
    TileKernel { adds_up: false, ..TileKernel::new(kernel, [64, 64]) }
}

fn is_byte(ty: Option<ElementType>) -> bool {
    matches!(ty, Some(ElementType::I8 | ElementType::U8))
}

/// Types of the operands and the output, and whether the kernels take them.
fn types(node: &NodeContext<'_>, a: usize, b: usize) -> Option<([bool; 2], ElementType)> {
    let out = node.output(0)?;
    let known = is_byte(node.input(a))
        && is_byte(node.input(b))
        && matches!(out, ElementType::I8 | ElementType::U8 | ElementType::I32 | ElementType::F32);
    let signed = |i: usize| node.input(i) == Some(ElementType::I8);
    known.then(|| ([signed(a), signed(b)], out))
}

/// Whether an operand is signed, and its zero point there is none or a constant of zeros.
fn is_centered(node: &NodeContext<'_>, is_signed: bool, zero: usize) -> bool {
    let zeros = |x: &Tensor| x.buffer().is_some_and(|b| b.bytes().iter().all(|&byte| byte == 0));
    is_signed && (node.input(zero).is_none() || node.constant(zero).is_some_and(zeros))
}

fn build_product(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<QuantizedMatMul>();
    let scale = match op {
        QuantizedMatMul::Sums => None,
        QuantizedMatMul::Requantized => Some(1),
        QuantizedMatMul::Float => Some(2),
        QuantizedMatMul::Dynamic => return Err(node.no_kernel()),
    };
    match types(node, 0, op.right()) {
        Some((signed, out)) => {
            let scale_type = scale.and_then(|i| node.input(i)).unwrap_or(ElementType::F32);
            let constant = node.constant(op.right()).filter(|b| b.shape().len() == 2).map(Constant::new);
            let mut kernel = ProductKernel { op, signed, centered: [false; 2], constant, out, scale_type };
            kernel.centered = [0, 1].map(|i| is_centered(node, signed[i], kernel.scale_and_zero(i).1));
            Ok(Box::new(kernel))
        }
        None => Err(node.no_kernel()),
    }
}

struct ProductKernel {
    op: QuantizedMatMul,
    /// Of the left and the right operand.
    signed: [bool; 2],
    centered: [bool; 2],
    /// The right operand where it is a constant matrix.
    constant: Option<Constant>,
    out: ElementType,
    scale_type: ElementType,
}

impl ProductKernel {
    /// Inputs that are the scale and the zero point of an operand.
    fn scale_and_zero(&self, operand: usize) -> (Option<usize>, usize) {
        match self.op {
            QuantizedMatMul::Requantized => (Some(1 + 3 * operand), 2 + 3 * operand),
            QuantizedMatMul::Float => (Some(2 + operand), 4 + operand),
            _ => (None, 2 + operand),
        }
    }
}

impl HipKernel for ProductKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let right = self.op.right();
        let (Some(a), Some(b)) = (input(0), input(right)) else { return Ok(()) };
        let mut product = stacked(&MatMul::PLAIN, [0, right], [a.shape, b.shape]);
        let mut sides = <[Side; 2]>::default();
        for (operand, side) in sides.iter_mut().enumerate() {
            let (scale, zero) = self.scale_and_zero(operand);
            let lines = if operand == 0 { product.m } else { product.n };
            (side.is_signed, side.is_centered) = (self.signed[operand], self.centered[operand]);
            let mut read = |i: Option<usize>| -> Result<Option<(usize, bool)>, OpError> {
                let Some((i, given)) = i.and_then(|i| Some((i, input(i)?))) else { return Ok(None) };
                Ok(Some((i, side.read(given.shape, lines, operand == 0, &product.batch)?)))
            };
            let (scale, zero) = (read(scale)?, read(Some(zero))?);
            (side.scale, side.zero) = (scale, zero);
        }
        if sides[0].is_uniform() && sides[1].batch.iter().all(|&s| s == 0) {
            product.simplify();
        }
        let requantized = self.op == QuantizedMatMul::Requantized;
        let bias = self.op.bias().filter(|&i| input(i).is_some());
        let tail = Tail {
            sides,
            y_scale: requantized.then_some(6),
            y_zero: (requantized && input(7).is_some()).then_some(7),
            row_bias: None,
            column_bias: bias,
            scale_type: self.scale_type,
            out_type: self.out,
        };
        if packed::takes(&product, plan.provider.unit()) {
            return packed::plan(plan, &product, None, self.constant.as_ref(), &tail);
        }
        launch(plan, &product, tile(c"bytes_product"), (vec![0; IMAGE_BYTES], Vec::new()), &tail, None)
    }
}

/// Launches a kernel with the parameters of an image and of 8-bit numbers.
fn launch(
    plan: &mut PlanBuilder<'_>,
    product: &Product,
    tile: TileKernel,
    (mut bytes, mut addresses): (Vec<u8>, Vec<(usize, super::launch::Operand)>),
    tail: &Tail,
    groups: Option<usize>,
) -> Result<(), OpError> {
    if product.m * product.n * product.batch.iter().map(|a| a.size).product::<usize>() == 0 {
        return Ok(());
    }
    let (more, at) = tail.params();
    addresses.extend(at.into_iter().map(|(offset, operand)| (bytes.len() + offset, operand)));
    bytes.extend_from_slice(&more);
    let unit = plan.provider.unit();
    product.launch(plan, ElementType::U8, tile, unit, &Extra { params: Some((bytes, addresses)), groups })
}

fn build_conv(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = node.op::<QuantizedConv>().clone();
    match types(node, 0, op.weight()) {
        Some((signed, out)) if !op.channels_last => {
            let zeros = [2, op.weight_zero()];
            let centered = [0, 1].map(|i| is_centered(node, signed[i], zeros[i]));
            let packs = |w: &&Tensor| {
                op.group == 1 && centered[1] && w.shape().get(1).is_some_and(|&n| n >= packed::CHANNELS)
            };
            let constant = node.constant(op.weight()).filter(packs).map(Constant::new);
            Ok(Box::new(ConvKernel { op, signed, centered, constant, out }))
        }
        _ => Err(node.no_kernel()),
    }
}

struct ConvKernel {
    op: QuantizedConv,
    /// Of the image and the weight.
    signed: [bool; 2],
    centered: [bool; 2],
    /// The weight where it is one.
    constant: Option<Constant>,
    out: ElementType,
}

impl HipKernel for ConvKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let weight = self.op.weight();
        let (Some(x), Some(w)) = (input(0), input(weight)) else { return Ok(()) };
        let group = self.op.group;
        let g = self.op.window.geometry(&x.shape[2..], &w.shape[2..])?;
        let product = weight_times_patches(&g, group, (x.shape, 0), (w.shape, weight));
        let given = |i: usize| -> Result<Option<(usize, bool)>, OpError> {
            match input(i).map(|a| a.shape.iter().product::<usize>()) {
                None => Ok(None),
                Some(1) => Ok(Some((i, false))),
                Some(count) if count == w.shape[0] => Ok(Some((i, true))),
                Some(count) => Err(OpError::Data(format!(
                    "a scale or zero point of w has {count} elements; allowed are 1 and {}",
                    w.shape[0]
                ))),
            }
        };
        let requantized = self.op.requantized;
        let (w_scale, w_zero) = if requantized { (given(4)?, given(5)?) } else { (None, given(3)?) };
        let one = |i: usize| input(i).map(|_| (i, false));
        let sides = [
            // The weight's rows go on from group to group.
            Side {
                scale: w_scale,
                zero: w_zero,
                is_signed: self.signed[1],
                is_centered: self.centered[1],
                batch: vec![0, product.m as i64],
            },
            Side {
                scale: requantized.then(|| one(1)).flatten(),
                zero: one(2),
                is_signed: self.signed[0],
                is_centered: self.centered[0],
                batch: Vec::new(),
            },
        ];
        let tail = Tail {
            sides,
            y_scale: requantized.then_some(6),
            y_zero: (requantized && input(7).is_some()).then_some(7),
            row_bias: (requantized && input(8).is_some()).then_some(8),
            column_bias: None,
            scale_type: ElementType::F32,
            out_type: self.out,
        };
        let unit = plan.provider.unit();
        if packed::is_large(&product, unit) && packed::takes_windows(&product, &g, w.shape[1], &tail) {
            return packed::plan_windows(plan, &product, &g, w.shape[1], self.constant.as_ref(), &tail);
        }
        let image = image_params(plan, &g, w.shape[1])?;
        let results = x.shape[0] * group * product.m * product.n;
        if product.m <= FEW_CHANNELS && group > 1 && results <= i32::MAX as usize {
            let groups = Some(results.div_ceil(GROUP as usize));
            return launch(plan, &product, tile(c"bytes_direct"), image, &tail, groups);
        }
        if packed::takes(&product, unit) {
            return packed::plan(plan, &product, Some(&image), None, &tail);
        }
        launch(plan, &product, tile(c"bytes_conv"), image, &tail, None)
    }
}
