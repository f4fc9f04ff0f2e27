//! Gated linear units.

use crate::ops::OpError;
use crate::ops::gated::GatedUnit;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use super::unary::{function, function_f32};
use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::map::Function;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::statistics::Real;
use crate::loops::widen::{RUN, Widen};

pub(super) const KERNELS: &[Entry] = &[Entry::new("GatedUnit", build).domain("rukh")];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<GatedUnit>();
    fn kernel<T: Widen<Wide: Real>>(
        op: GatedUnit,
        f: Option<Box<dyn Function<T::Wide>>>,
    ) -> Option<Box<dyn Kernel>> {
        Some(Box::new(GatedKernel::<T> { op, f: f? }))
    }
    let kernel = match node.input(0) {
        Some(ElementType::F32) => kernel::<f32>(op, function_f32(op.activation)),
        Some(ElementType::F64) => kernel::<f64>(op, function(op.activation)),
        Some(ElementType::F16) => kernel::<f16>(op, function_f32(op.activation)),
        Some(ElementType::BF16) => kernel::<bf16>(op, function_f32(op.activation)),
        _ => None,
    };
    kernel.map(CpuKernel::Tensor).ok_or_else(|| node.no_kernel())
}

/// `f(gate) · up`. Bound: one read of both halves and one write.
struct GatedKernel<T: Widen> {
    op: GatedUnit,
    f: Box<dyn Function<T::Wide>>,
}

impl<T: Widen<Wide: Real>> Kernel for GatedKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(Some(x)), Some(Some(output))) = (inputs.first(), outputs.first_mut()) else {
            return Ok(());
        };
        let x = x.slice::<T>();
        let row = output.shape().last().copied().unwrap_or(1);
        let [gate, up] = self.op.columns(row);
        split_mut(cx.pool, output.slice::<T>(), row, (GRAIN / row.max(1)).max(1), |rows, part| {
            let (mut own, mut other) = ([T::Wide::default(); RUN], [T::Wide::default(); RUN]);
            for (i, y) in rows.zip(part.chunks_mut(row.max(1))) {
                let x = &x[i * 2 * row..][..2 * row];
                for (k, y) in y.chunks_mut(RUN).enumerate() {
                    let (start, count) = (k * RUN, y.len());
                    y.copy_from_slice(&x[gate + start..][..count]);
                    T::update(y, &mut own, |y| {
                        self.f.map_mut(y);
                        let up = T::load(&x[up + start..][..count], &mut other);
                        y.iter_mut().zip(up).for_each(|(y, &x)| *y = *y * x);
                    });
                }
            }
        });
        Ok(())
    }
}
