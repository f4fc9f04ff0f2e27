//! Elementwise operators between quantised tensors. Bound: one byte read and one written an element;
//! what depends on one element goes through a table of all 256.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::qlinear_elementwise::{QLinearBinary, QLinearUnary};
use crate::tensor::{Bool, TensorView, TensorViewMut};

use super::super::broadcast::Broadcast;
use super::super::lanes::RUN;
use super::super::map::Function;
use super::super::number::dispatch;
use super::super::parallel::{GRAIN, split_mut};
use super::super::simd::{Loop, widest};
use super::super::unary::function_f32;
use super::super::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use super::parameter::{Byte, Linear};

pub(super) fn build_binary(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<QLinearBinary>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), Q in [u8, i8] =>
        Box::new(BinaryKernel::<Q> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// Computes in f32 and rounds once.
struct BinaryKernel<Q> {
    op: QLinearBinary,
    _type: PhantomData<fn(Q)>,
}

impl<Q: Byte> Kernel for BinaryKernel<Q> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(a), Some(b), Some(y)) = (inputs[0], inputs[3], &mut outputs[0]) else { return Ok(()) };
        let (mut from_a, mut from_b) = (Linear::read(inputs, 1)?, Linear::read(inputs, 4)?);
        let mut to = Linear::read(inputs, 6)?;
        let factor = from_a.scale * from_b.scale / to.scale;
        if self.op == QLinearBinary::Mul {
            // The product of the integers is exact and scaled once.
            (from_a.scale, from_b.scale, to.scale) = (1.0, 1.0, 1.0);
        }
        let (a, b) = (a.slice::<Q>(), b.slice::<Q>());
        let walk: &Broadcast<2> = cx.state();
        split_mut(cx.pool, y.slice::<Q>(), 1, GRAIN, |range, part| {
            let (start, mut wide) = (range.start, [[0.0f32; RUN]; 2]);
            walk.each(range, |elements, [at_a, at_b]| {
                let part = &mut part[elements.start - start..elements.end - start];
                let total = part.len();
                for (k, y) in part.chunks_mut(RUN).enumerate() {
                    let [left, right] = &mut wide;
                    if self.op == QLinearBinary::Add && at_a.len() == total && at_b.len() == total {
                        let (x, z) =
                            (&a[at_a.start + k * RUN..][..y.len()], &b[at_b.start + k * RUN..][..y.len()]);
                        let left = &mut left[..y.len()];
                        widest(Total { x, z, from: [from_a, from_b], y: left });
                        to.quantise(left, y);
                        continue;
                    }
                    let left = widen(a, at_a.clone(), k, y.len(), from_a, left);
                    let right = widen(b, at_b.clone(), k, y.len(), from_b, right);
                    let pairs = left.iter_mut().zip(&*right);
                    match self.op {
                        QLinearBinary::Add => pairs.for_each(|(x, y)| *x += y),
                        QLinearBinary::Mul => pairs.for_each(|(x, y)| *x = *x * y * factor),
                    }
                    to.quantise(left, y);
                }
            });
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        prepare(inputs, outputs, [0, 3])
    }
}

/// The sums of the numbers that two rows of bytes stand for.
struct Total<'a, Q> {
    x: &'a [Q],
    z: &'a [Q],
    from: [Linear; 2],
    y: &'a mut [f32],
}

impl<Q: Byte> Loop for Total<'_, Q> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [a, b] = self.from;
        for ((y, &x), &z) in self.y.iter_mut().zip(self.x).zip(self.z) {
            *y = (x.value() - a.zero) * a.scale + (z.value() - b.zero) * b.scale;
        }
    }
}

/// The `k`-th run of at most `count` numbers of the range, or its only one repeated.
fn widen<'a, Q: Byte>(
    x: &[Q],
    range: std::ops::Range<usize>,
    k: usize,
    count: usize,
    from: Linear,
    wide: &'a mut [f32; RUN],
) -> &'a mut [f32] {
    let wide = &mut wide[..count];
    match range.len() {
        1 => wide.fill((x[range.start].value() - from.zero) * from.scale),
        _ => Q::dequantise(&x[range.start + k * RUN..][..count], &[from.zero], &[from.scale], wide),
    }
    wide
}

fn prepare<const N: usize>(
    inputs: &[Option<Argument<'_>>],
    outputs: &[Option<&[usize]>],
    operands: [usize; N],
) -> Result<Prepared, OpError> {
    let Some(output) = outputs[0] else { return Ok(Prepared::default()) };
    let shapes = operands.map(|i| inputs.get(i).copied().flatten().map_or(&[][..], |a| a.shape));
    Ok(Prepared { state: Some(Box::new(Broadcast::new(output, shapes))), scratch: 0 })
}

pub(super) fn build_unary(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let Some(f) = function_f32(node.op::<QLinearUnary>().0) else { return Err(node.no_kernel()) };
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), Q in [u8, i8] =>
        Box::new(UnaryKernel::<Q> { f, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct UnaryKernel<Q> {
    f: Box<dyn Function<f32>>,
    _type: PhantomData<fn(Q)>,
}

impl<Q: Byte> Kernel for UnaryKernel<Q> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let mut values = Linear::read(inputs, 1)?.values::<Q>();
        self.f.map_mut(&mut values);
        let table = Linear::read(inputs, 3)?.table::<Q>(values);
        let x = x.slice::<Q>();
        split_mut(cx.pool, y.slice::<Q>(), 1, GRAIN, |range, y| {
            y.iter_mut().zip(&x[range]).for_each(|(y, x)| *y = table[x.byte() as usize]);
        });
        Ok(())
    }
}

pub(super) fn build_where(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let kernel: Box<dyn Kernel> = dispatch!(node.input(1), Q in [u8, i8] =>
        Box::new(WhereKernel::<Q>(PhantomData)), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct WhereKernel<Q>(PhantomData<fn(Q)>);

impl<Q: Byte> Kernel for WhereKernel<Q> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(condition), Some(a), Some(b), Some(z)) = (inputs[0], inputs[1], inputs[4], &mut outputs[0])
        else {
            return Ok(());
        };
        let to = Linear::read(inputs, 7)?;
        let tables = [
            to.table::<Q>(Linear::read(inputs, 2)?.values::<Q>()),
            to.table::<Q>(Linear::read(inputs, 5)?.values::<Q>()),
        ];
        let (condition, a, b) = (condition.slice::<Bool>(), a.slice::<Q>(), b.slice::<Q>());
        let walk: &Broadcast<3> = cx.state();
        split_mut(cx.pool, z.slice::<Q>(), 1, GRAIN, |range, part| {
            let start = range.start;
            walk.each(range, |elements, [at_c, at_a, at_b]| {
                let at = |range: &std::ops::Range<usize>, i: usize| match range.len() {
                    1 => range.start,
                    _ => range.start + i,
                };
                let part = &mut part[elements.start - start..elements.end - start];
                for (i, z) in part.iter_mut().enumerate() {
                    *z = match condition[at(&at_c, i)].get() {
                        true => tables[0][a[at(&at_a, i)].byte() as usize],
                        false => tables[1][b[at(&at_b, i)].byte() as usize],
                    };
                }
            });
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        prepare(inputs, outputs, [0, 1, 4])
    }
}
