//! ConvTranspose: the product `weightᵀ · image` into temporary memory, then each result adds up what
//! falls on its place.

use std::mem::offset_of;

use crate::ops::OpError;
use crate::ops::conv::transpose::ConvTranspose;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::gemm::{Axis, Epilogue, Matrix, Product};
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::{HipKernel, PlanBuilder};
use super::params::WindowParams;

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    match node.input(0).and_then(|ty| Some((ty, windows(ty)?))) {
        Some((ty, kernel)) => Ok(Box::new(Transposed { op: node.op::<ConvTranspose>().clone(), ty, kernel })),
        None => Err(node.no_kernel()),
    }
}

struct Transposed {
    op: ConvTranspose,
    ty: ElementType,
    kernel: KernelName,
}

/// The kernel that adds up.
fn windows(ty: ElementType) -> Option<KernelName> {
    let (family, name) = match ty {
        ElementType::F32 => ("conv", c"conv_f32_windows"),
        ElementType::F64 => ("conv", c"conv_f64_windows"),
        ElementType::F16 => ("conv_half", c"conv_f16_windows"),
        ElementType::BF16 => ("conv_half", c"conv_bf16_windows"),
        _ => return None,
    };
    Some(KernelName { family, name })
}

/// Bytes of temporary memory that images share at most; one image may take more.
const SCRATCH: usize = 256 << 20;

impl HipKernel for Transposed {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let [Some(x), Some(w), ..] = *inputs else { return Ok(()) };
        let g = self.op.geometry(&x.shape[2..], &w.shape[2..])?;
        let group = self.op.group;
        let (images, k, out_channels) = (x.shape[0], w.shape[0] / group, w.shape[1]);
        let volume: usize = g.kernel.iter().product();
        let (m, n) = (out_channels * volume, g.output.iter().product::<usize>());
        let channels = group * out_channels;
        let size: usize = g.input.iter().product();
        if images * channels * size == 0 {
            return Ok(());
        }
        let width = if self.ty == ElementType::F64 { 8 } else { 4 };
        let columns = group * m * n * width;
        let step = (SCRATCH / columns.max(1)).clamp(1, images);
        let scratch = plan.scratch(step * columns);
        let (image, plane) = (group * k * n, channels * size);
        for first in (0..images).step_by(step) {
            let count = step.min(images - first);
            let product = Product {
                m,
                n,
                k,
                a: Matrix::new(Operand::Input(1), 1, m),
                b: Matrix { offset: first * image, ..Matrix::new(Operand::Input(0), n, 1) },
                out: Matrix::new(scratch, n, 1),
                bias: None,
                residual: None,
                batch: vec![
                    Axis { size: count, strides: [0, image as i64, (group * m * n) as i64, 0, 0] },
                    Axis { size: group, strides: [(k * m) as i64, (k * n) as i64, (m * n) as i64, 0, 0] },
                ],
                epilogue: Epilogue::default(),
            };
            product.plan_sums(plan, self.ty, scratch)?;
            let mut params = WindowParams::new(&g)?;
            params.out = (first * plane * self.ty.size()) as u64;
            params.count = (count * plane) as u64;
            params.channels = channels as u32;
            params.taps = volume as u32;
            params.positions = n as u32;
            let mut addresses = vec![
                (offset_of!(WindowParams, columns), scratch),
                (offset_of!(WindowParams, out), Operand::Output(0)),
            ];
            if inputs.get(2).is_some_and(Option::is_some) {
                addresses.push((offset_of!(WindowParams, bias), Operand::Input(2)));
            }
            let groups = (count * plane).div_ceil(GROUP as usize);
            plan.launch(self.kernel, [groups, 1, 1], &params, &addresses)?;
        }
        Ok(())
    }
}
