//! Elementwise operators of any number of inputs.

use crate::ops::OpError;
use crate::ops::variadic::Variadic;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::broadcast::Broadcast;
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::widen::{RUN, Widen};
use crate::loops::zip::{Pairwise, Update};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Max", build),
    Entry::new("Mean", build),
    Entry::new("Min", build),
    Entry::new("Sum", build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Variadic>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
            Box::new(Fold::<T> {
                step: step(op),
                mean: op == Variadic::Mean,
            }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// What the fold needs of numbers.
trait Number: Copy + Send + Sync + PartialOrd + 'static {
    fn plus(self, other: Self) -> Self;
    fn times(self, factor: f64) -> Self;
}

macro_rules! numbers {
    ($($ty:ty: $plus:expr),*) => {$(
        impl Number for $ty {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { ($plus)(self, other) }
            #[inline(always)]
            fn times(self, factor: f64) -> Self { (self as f64 * factor) as $ty }
        }
    )*};
}
numbers!(
    f32: |a, b| a + b, f64: |a, b| a + b,
    i8: i8::wrapping_add, i16: i16::wrapping_add, i32: i32::wrapping_add, i64: i64::wrapping_add,
    u8: u8::wrapping_add, u16: u16::wrapping_add, u32: u32::wrapping_add, u64: u64::wrapping_add
);

/// One step of the fold. NaN wins over every number.
#[allow(clippy::eq_op)]
fn step<W: Number>(op: Variadic) -> Box<dyn Update<W>> {
    match op {
        Variadic::Max => Box::new(Pairwise::<_, true>(|a: W, b: W| if a > b || a != a { a } else { b })),
        Variadic::Min => Box::new(Pairwise::<_, true>(|a: W, b: W| if a < b || a != a { a } else { b })),
        Variadic::Sum | Variadic::Mean => Box::new(Pairwise::<_, true>(|a: W, b: W| a.plus(b))),
    }
}

/// Folds inputs one after the other, a run of the output at a time. Bound: a read of each input.
struct Fold<T: Widen> {
    step: Box<dyn Update<T::Wide>>,
    mean: bool,
}

impl<T: Widen<Wide: Number>> Kernel for Fold<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let walks: &Vec<Broadcast<1>> = cx.state();
        split_mut(cx.pool, output.slice::<T>(), 1, GRAIN, |range, part| {
            let (mut sum, mut operand) = ([T::Wide::default(); RUN], [T::Wide::default(); RUN]);
            for (i, y) in part.chunks_mut(RUN).enumerate() {
                let start = range.start + i * RUN;
                T::update(y, &mut sum, |y| {
                    for (k, (input, walk)) in inputs.iter().zip(walks).enumerate() {
                        // Without a view the output holds the first input already.
                        let Some(x) = input.map(|x| x.slice::<T>()) else { continue };
                        walk.each(start..start + y.len(), |out, [read]| {
                            let y = &mut y[out.start - start..out.end - start];
                            let x = T::load(&x[read], &mut operand);
                            match (k, x) {
                                (0, &[one]) => y.fill(one),
                                (0, x) => y.copy_from_slice(x),
                                (_, x) => self.step.update_left(y, x),
                            }
                        });
                    }
                    if self.mean {
                        let factor = 1.0 / inputs.len() as f64;
                        y.iter_mut().for_each(|y| *y = y.times(factor));
                    }
                });
            }
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(output) = outputs[0] else { return Ok(Prepared::default()) };
        let walks: Vec<Broadcast<1>> =
            inputs.iter().flatten().map(|input| Broadcast::new(output, [input.shape])).collect();
        Ok(Prepared { state: Some(Box::new(walks)), scratch: 0 })
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}
