//! Elementwise operators between quantized tensors. Bound: one byte read and one written an element;
//! what depends on one element goes through a table of all 256.

use std::marker::PhantomData;

use super::parameter::{Byte, Linear};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::broadcast::Broadcast;
use crate::loops::map::Function;
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::quantization::whole;
use crate::loops::simd::{Loop, widest};
use crate::operators::lookup::lookup;
use crate::operators::unary::function_f32;
use crate::ops::OpError;
use crate::ops::qlinear::elementwise::{QLinearBinary, QLinearUnary};
use crate::tensor::{Bool, TensorView, TensorViewMut};
use crate::threads::Pool;

pub(crate) fn build_binary(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
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
        let from = [Linear::read(inputs, 1)?, Linear::read(inputs, 4)?];
        let to = Linear::read(inputs, 6)?;
        let (a, b) = (a.slice::<Q>(), b.slice::<Q>());
        let walk: &Broadcast<2> = cx.state();
        split_mut(cx.pool, y.slice::<Q>(), 1, GRAIN, |range, part| {
            let start = range.start;
            walk.each(range, |elements, [at_a, at_b]| {
                let y = &mut part[elements.start - start..elements.end - start];
                widest(Pairs { op: self.op, x: &a[at_a], z: &b[at_b], from, to, y });
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

/// The elements of two rows, either of which may be one element for all.
struct Pairs<'a, Q> {
    op: QLinearBinary,
    x: &'a [Q],
    z: &'a [Q],
    from: [Linear; 2],
    to: Linear,
    y: &'a mut [Q],
}

impl<Q: Byte> Pairs<'_, Q> {
    /// Rounds half to even, shifts and limits.
    #[inline(always)]
    fn each(self, f: impl Fn(f32, f32) -> f32) {
        let Pairs { x, z, from: [a, b], to, y, .. } = self;
        // A zero point is whole, so limits may come before it.
        let (low, high, zero) = (Q::LOW - to.zero, Q::HIGH - to.zero, to.zero as i32);
        let one = |x: Q, z: Q| {
            let y = f(x.value() - a.zero, z.value() - b.zero);
            // One instruction each; `max` and `min` take more, for a second operand that is no number.
            let y = if y > low { y } else { low };
            let y = if y < high { y } else { high };
            Q::from_byte((whole(y) + zero) as u8)
        };
        match (x, z) {
            (&[x], &[z]) => y.fill(one(x, z)),
            (x, &[z]) => y.iter_mut().zip(x).for_each(|(y, &x)| *y = one(x, z)),
            (&[x], z) => y.iter_mut().zip(z).for_each(|(y, &z)| *y = one(x, z)),
            (x, z) => y.iter_mut().zip(x).zip(z).for_each(|((y, &x), &z)| *y = one(x, z)),
        }
    }
}

impl<Q: Byte> Loop for Pairs<'_, Q> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.op {
            QLinearBinary::Add => {
                let [a, b] = sum_factors(self.from, self.to);
                self.each(|x, z| x * a + z * b);
            }
            QLinearBinary::Mul => {
                let scales = self.from.map(|from| from.scale);
                let factor = (scales[0] * scales[1] / self.to.scale).min(f32::MAX / 65536.0);
                // The product of the integers is exact and scaled once.
                self.each(|x, z| x * z * factor);
            }
        }
    }
}

/// What the addends of a sum are multiplied with: finite, so that a difference of 0 stays 0.
pub(crate) fn sum_factors(from: [Linear; 2], to: Linear) -> [f32; 2] {
    from.map(|from| (from.scale / to.scale).min(f32::MAX / 1024.0))
}

/// Adds as many elements to those of `y`.
pub(crate) fn add_to<Q: Byte>(pool: &Pool, y: &mut [Q], z: &[Q], from: [Linear; 2], to: Linear) {
    split_mut(pool, y, 1, GRAIN, |range, y| {
        let mut copy = [Q::default(); 1024];
        for (y, z) in y.chunks_mut(copy.len()).zip(z[range].chunks(copy.len())) {
            let x = &mut copy[..y.len()];
            x.copy_from_slice(y);
            widest(Pairs { op: QLinearBinary::Add, x, z, from, to, y });
        }
    });
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

pub(crate) fn build_unary(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
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
        let table = Linear::read(inputs, 3)?.table::<Q>(values).map(Q::byte);
        let x = x.bytes();
        split_mut(cx.pool, y.bytes(), 1, GRAIN, |range, y| lookup(&table, &x[range], y));
        Ok(())
    }
}

pub(crate) fn build_where(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
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
