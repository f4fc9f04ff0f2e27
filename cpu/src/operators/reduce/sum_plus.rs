//! Sums of integers and a constant, as another type.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::reduce::SumPlus;
use crate::tensor::{Element, ElementType, TensorView, TensorViewMut};

use super::{COLUMNS, Layout, prepared};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::parallel::{GRAIN, split_mut};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<SumPlus>().clone();
    fn kernel<T: Integer, U: Element>(op: SumPlus, narrow: fn(T) -> U) -> Box<dyn Kernel> {
        Box::new(SumPlusKernel { op, narrow, data: PhantomData })
    }
    let kernel = match (node.input(0), op.to) {
        (Some(ElementType::I64), ElementType::I64) => kernel::<i64, i64>(op, |x| x),
        (Some(ElementType::I64), ElementType::I32) => kernel::<i64, i32>(op, |x| x as i32),
        (Some(ElementType::I32), ElementType::I32) => kernel::<i32, i32>(op, |x| x),
        _ => return Err(node.no_kernel()),
    };
    Ok(CpuKernel::Tensor(kernel))
}

trait Integer: Element + Copy + Default + Send + Sync {
    fn plus(self, other: Self) -> Self;
    fn of(x: i64) -> Self;
}

impl Integer for i32 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn of(x: i64) -> Self {
        x as i32
    }
}

impl Integer for i64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn of(x: i64) -> Self {
        x
    }
}

struct SumPlusKernel<T, U> {
    op: SumPlus,
    narrow: fn(T) -> U,
    data: PhantomData<T>,
}

impl<T: Integer, U: Element> Kernel for SumPlusKernel<T, U> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let (x, layout) = (x.slice::<T>(), cx.state::<Layout>());
        let grain = (GRAIN / layout.count.max(1)).max(1);
        split_mut(cx.pool, output.slice::<U>(), 1, grain, |places, mut y| {
            let mut place = places.start;
            while !y.is_empty() {
                let mut sums = [T::of(self.op.added); COLUMNS];
                let count = match layout.row_reduced {
                    true => {
                        layout.each_row(place, |start| {
                            let row = &x[start..start + layout.row];
                            sums[0] = row.iter().fold(sums[0], |sum, &x| sum.plus(x));
                        });
                        1
                    }
                    false => {
                        let (row, column) = (place / layout.row, place % layout.row);
                        let count = (layout.row - column).min(y.len()).min(COLUMNS);
                        layout.each_row(row, |start| {
                            let columns = &x[start + column..][..count];
                            sums.iter_mut().zip(columns).for_each(|(sum, &x)| *sum = sum.plus(x));
                        });
                        count
                    }
                };
                let (now, later) = y.split_at_mut(count);
                now.iter_mut().zip(sums).for_each(|(y, sum)| *y = (self.narrow)(sum));
                (y, place) = (later, place + count);
            }
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        prepared(&self.op.reduce, inputs)
    }
}
