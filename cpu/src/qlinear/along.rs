//! Operators along an axis of quantized tensors: QLinearSoftmax, QLinearConcat.

use std::marker::PhantomData;

use super::parameter::{Byte, Linear};
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::operators::lookup::lookup;
use crate::ops::qlinear::elementwise::{QLinearConcat, QLinearSoftmax};
use crate::ops::{OpError, normalize_axis};
use crate::tensor::{ElementType, TensorView, TensorViewMut};

pub(crate) fn build_softmax(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<QLinearSoftmax>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), Q in [u8, i8] =>
        Box::new(SoftmaxKernel::<Q> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct SoftmaxKernel<Q> {
    op: QLinearSoftmax,
    _type: PhantomData<fn(Q)>,
}

impl<Q: Byte> Kernel for SoftmaxKernel<Q> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (outer, along, inner) = self.op.0.split(x.shape())?;
        let (from, to) = (Linear::read(inputs, 1)?, Linear::read(inputs, 3)?);
        // By the distance from the largest element, which the zero point does not change.
        let exp: [f32; 256] = std::array::from_fn(|d| (-(d as f32) * from.scale).exp());
        let x = x.slice::<Q>();
        if inner == 1 {
            let bytes = Parts::new(y.bytes());
            cx.pool.split(outer, (GRAIN / along.max(1)).max(1), |rows| {
                with_scratch([along], |[distances]: [&mut [u8]; 1]| {
                    for row in rows {
                        let elements = row * along..(row + 1) * along;
                        widest(Distances { x: &x[elements.clone()], y: distances });
                        let mut table = [Q::default(); 256];
                        Q::quantize_scaled(&exp, sum(distances, &exp) * to.scale, to.zero, true, &mut table);
                        let table = table.map(Q::byte);
                        // SAFETY: each row belongs to one thread.
                        lookup(&table, distances, unsafe { bytes.get(elements) });
                    }
                });
            });
            return Ok(());
        }
        let y = Parts::new(y.slice::<Q>());
        cx.pool.split(outer * inner, (GRAIN / along.max(1)).max(1), |rows| {
            for row in rows {
                let start = row / inner * along * inner + row % inner;
                let elements = || (start..).step_by(inner).take(along);
                let max = elements().map(|i| x[i].int()).max().unwrap_or(0);
                let term = |i: usize| exp[(max - x[i].int()) as usize];
                let sum: f32 = elements().map(term).sum();
                for i in elements() {
                    // SAFETY: each element belongs to one row, each row to one thread.
                    let y = unsafe { y.get(i..i + 1) };
                    to.quantize(&mut [term(i) / sum], y);
                }
            }
        });
        Ok(())
    }
}

/// How far each element of a row is below the largest.
struct Distances<'a, Q> {
    x: &'a [Q],
    y: &'a mut [u8],
}

impl<Q: Byte> Loop for Distances<'_, Q> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let max = self.x.iter().copied().fold(Q::from_byte(Q::LOW as i32 as u8), Q::max).byte();
        self.y.iter_mut().zip(self.x).for_each(|(y, x)| *y = max.wrapping_sub(x.byte()));
    }
}

/// The sum of the table's entries for these bytes, in several chains.
fn sum(x: &[u8], table: &[f32; 256]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (chunks, rest) = x.as_chunks::<8>();
    for x in chunks {
        sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum += table[x as usize]);
    }
    sums.iter().chain(rest.iter().map(|&x| &table[x as usize])).sum()
}

pub(crate) fn build_concat(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<QLinearConcat>();
    let kernel: Box<dyn Kernel> = dispatch!(node.output(0), Q in [u8, i8] =>
        Box::new(ConcatKernel::<Q> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct ConcatKernel<Q> {
    op: QLinearConcat,
    _type: PhantomData<fn(Q)>,
}

impl<Q: Byte> Kernel for ConcatKernel<Q> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(y) = &mut outputs[0] else { return Ok(()) };
        let axis = normalize_axis("axis", self.op.axis, y.shape().len())?;
        let row: usize = y.shape()[axis..].iter().product();
        let to = Linear::read(inputs, 0)?;
        let y = Parts::new(y.bytes());
        let mut start = 0;
        for i in (2..inputs.len()).step_by(3) {
            let Some(x) = inputs[i] else { return Ok(()) };
            let from = Linear::read(inputs, i + 1)?;
            let table = to.table::<Q>(match x.ty() {
                ElementType::I8 => from.values::<i8>(),
                _ => from.values::<u8>(),
            });
            let table = table.map(Q::byte);
            let (own, x) = (x.shape()[axis..].iter().product::<usize>(), x.bytes());
            let rows = x.len().checked_div(own).unwrap_or(0);
            cx.pool.split(rows, (GRAIN / own.max(1)).max(1), |rows| {
                for r in rows {
                    // SAFETY: tensors and rows have parts of their own in the output.
                    let y = unsafe { y.get(r * row + start..r * row + start + own) };
                    lookup(&table, &x[r * own..][..own], y);
                }
            });
            start += own;
        }
        Ok(())
    }
}
