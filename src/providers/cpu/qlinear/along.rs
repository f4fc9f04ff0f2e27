//! Operators along an axis of quantised tensors: QLinearSoftmax, QLinearConcat.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::normalize_axis;
use crate::ops::qlinear_elementwise::{QLinearConcat, QLinearSoftmax};
use crate::tensor::{ElementType, TensorView, TensorViewMut};

use super::super::number::dispatch;
use super::super::parallel::{GRAIN, Parts};
use super::super::quantised::divide;
use super::super::scratch::with_scratch;
use super::super::{CpuKernel, Kernel, KernelContext, NodeContext};
use super::parameter::{Byte, Linear};

pub(super) fn build_softmax(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
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
        let (x, y) = (x.slice::<Q>(), Parts::new(y.slice::<Q>()));
        if inner == 1 {
            let row = |row: usize, terms: &mut [f32]| {
                let elements = row * along..(row + 1) * along;
                let x = &x[elements.clone()];
                let max = x.iter().map(|x| x.int()).max().unwrap_or(0);
                terms.iter_mut().zip(x).for_each(|(term, x)| *term = exp[(max - x.int()) as usize]);
                let sum: f32 = terms.iter().sum();
                divide(terms, &[sum]);
                // SAFETY: each row belongs to one thread.
                to.quantise(terms, unsafe { y.get(elements) });
            };
            cx.pool.split(outer, (GRAIN / along.max(1)).max(1), |rows| {
                with_scratch([along], |[terms]: [&mut [f32]; 1]| rows.for_each(|i| row(i, terms)));
            });
            return Ok(());
        }
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
                    to.quantise(&mut [term(i) / sum], y);
                }
            }
        });
        Ok(())
    }
}

pub(super) fn build_concat(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
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
        let y = Parts::new(y.slice::<Q>());
        let mut start = 0;
        for i in (2..inputs.len()).step_by(3) {
            let Some(x) = inputs[i] else { return Ok(()) };
            let from = Linear::read(inputs, i + 1)?;
            let table = to.table::<Q>(match x.ty() {
                ElementType::I8 => from.values::<i8>(),
                _ => from.values::<u8>(),
            });
            let (own, x) = (x.shape()[axis..].iter().product::<usize>(), x.bytes());
            let rows = x.len().checked_div(own).unwrap_or(0);
            cx.pool.split(rows, (GRAIN / own.max(1)).max(1), |rows| {
                for r in rows {
                    // SAFETY: tensors and rows have parts of their own in the output.
                    let y = unsafe { y.get(r * row + start..r * row + start + own) };
                    let x = &x[r * own..][..own];
                    y.iter_mut().zip(x).for_each(|(y, &x)| *y = table[x as usize]);
                }
            });
            start += own;
        }
        Ok(())
    }
}
