//! `CumSum` and `CumProd`: along one axis.

use std::marker::PhantomData;

use crate::ops::along::Cumulative;
use crate::ops::{OpError, normalize_axis};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::widen::Widen;
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("CumSum", build_cumulative), Entry::new("CumProd", build_cumulative)];

/// A shape around an axis: `(outer, along, inner)`.
pub(super) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

fn build_cumulative(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Cumulative>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
            Box::new(Running::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// Columns that are run down at a time.
const COLUMNS: usize = 128;

struct Running<T> {
    op: Cumulative,
    _type: PhantomData<fn(T)>,
}

/// What running sums and products need; integers wrap.
trait Ring: Copy {
    fn zero() -> Self;
    fn one() -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! rings {
    ($($ty:ty: $plus:expr, $times:expr);* $(;)?) => {$(
        impl Ring for $ty {
            fn zero() -> Self { 0 as $ty }
            fn one() -> Self { 1 as $ty }
            #[inline(always)]
            fn plus(self, other: Self) -> Self { ($plus)(self, other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { ($times)(self, other) }
        }
    )*};
}
rings! {
    f32: |a, b| a + b, |a, b| a * b;
    f64: |a, b| a + b, |a, b| a * b;
    i8: i8::wrapping_add, i8::wrapping_mul;
    i16: i16::wrapping_add, i16::wrapping_mul;
    i32: i32::wrapping_add, i32::wrapping_mul;
    i64: i64::wrapping_add, i64::wrapping_mul;
    u8: u8::wrapping_add, u8::wrapping_mul;
    u16: u16::wrapping_add, u16::wrapping_mul;
    u32: u32::wrapping_add, u32::wrapping_mul;
    u64: u64::wrapping_add, u64::wrapping_mul;
}

impl<T: Widen<Wide: Ring>> Kernel for Running<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x), Some(axis)) = (&mut outputs[0], inputs[0], inputs[1]) else {
            return Ok(());
        };
        let axis = Ints::required(Some(axis), "the axis")?;
        if axis.len() == 0 {
            return Err(OpError::Data("the axis is empty; allowed is one integer".into()));
        }
        let axis = axis.get(0);
        // A scalar has one element to run over.
        let (_, along, inner) = match x.rank() {
            0 => (1, 1, 1),
            rank => around(x.shape(), normalize_axis("axis", axis, rank)?),
        };
        let x = x.slice::<T>();
        if inner > 1 {
            self.across(cx, (along, inner), x, output.slice::<T>());
            return Ok(());
        }
        let unit = along * inner;
        split_mut(cx.pool, output.slice::<T>(), unit, (GRAIN / unit.max(1)).max(1), |range, part| {
            let x = &x[range.start * unit..range.end * unit];
            for (x, y) in x.chunks(unit).zip(part.chunks_mut(unit)) {
                self.row(x, y);
            }
        });
        Ok(())
    }
}

impl<T: Widen<Wide: Ring>> Running<T> {
    fn start(&self) -> T::Wide {
        if self.op.product { T::Wide::one() } else { T::Wide::zero() }
    }

    #[inline(always)]
    fn join(&self, acc: T::Wide, x: T) -> T::Wide {
        if self.op.product { acc.times(x.up()) } else { acc.plus(x.up()) }
    }

    /// Along elements that lie side by side.
    fn row(&self, x: &[T], y: &mut [T]) {
        let mut acc = self.start();
        for i in 0..x.len() {
            let at = if self.op.reverse { x.len() - 1 - i } else { i };
            let before = acc;
            acc = self.join(acc, x[at]);
            y[at] = T::down(if self.op.exclusive { before } else { acc });
        }
    }

    /// Over matrices `[along, inner]`, down their columns: a block of columns at a time, row by row.
    fn across(&self, cx: &KernelContext<'_>, (along, inner): (usize, usize), x: &[T], y: &mut [T]) {
        let blocks = inner.div_ceil(COLUMNS);
        let matrices = x.len() / (along * inner).max(1);
        let parts = Parts::new(y);
        cx.pool.split(matrices * blocks, (GRAIN / (along * COLUMNS).max(1)).max(1), |units| {
            for unit in units {
                let first = unit % blocks * COLUMNS;
                let width = COLUMNS.min(inner - first);
                let mut acc = [self.start(); COLUMNS];
                for i in 0..along {
                    let row = if self.op.reverse { along - 1 - i } else { i };
                    let at = (unit / blocks * along + row) * inner + first;
                    // SAFETY: each unit has columns of its own, and holds one row of them at a time.
                    let y = unsafe { parts.get(at..at + width) };
                    for ((y, &x), acc) in y.iter_mut().zip(&x[at..at + width]).zip(&mut acc) {
                        let before = *acc;
                        *acc = self.join(before, x);
                        *y = T::down(if self.op.exclusive { before } else { *acc });
                    }
                }
            }
        });
    }
}
