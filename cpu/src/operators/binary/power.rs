//! `Pow`: base and exponent may have different types.

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::binary::{Alignment, Elementwise};
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::broadcast::Broadcast;
use crate::loops::number::dispatch;
use crate::loops::parallel::split_mut;
use crate::loops::simd::{Loop, widest};
use crate::loops::zip::prepare_pair;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let alignment = node.op::<Elementwise>().alignment;
    let read = dispatch!(node.input(1), E in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
        read::<E> as Read, else return Err(node.no_kernel()));
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
            Box::new(Power::<T> { read, alignment, _base: std::marker::PhantomData }),
            else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// Exponents as f64, from `start` on.
type Read = fn(&TensorView<'_>, usize, &mut [f64]);

fn read<E: Element + AsPrimitive<f64>>(from: &TensorView<'_>, start: usize, to: &mut [f64]) {
    for (to, from) in to.iter_mut().zip(&from.slice::<E>()[start..]) {
        *to = from.as_();
    }
}

/// Exponents that are converted at a time.
const RUN: usize = 256;

/// Elements a piece of work has at least; a power takes some 20 ns.
const GRAIN: usize = 2048;

struct Power<T> {
    read: Read,
    alignment: Alignment,
    _base: std::marker::PhantomData<fn(T)>,
}

impl<T: Base> Kernel for Power<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(exponents)) = (&mut outputs[0], inputs[1]) else { return Ok(()) };
        let base = inputs[0].map(|x| x.slice::<T>());
        let output = output.slice::<T>();
        let walk: &Broadcast<2> = cx.state();
        split_mut(cx.pool, output, 1, GRAIN, |range, part| {
            let start = range.start;
            let mut exponent = [0.0f64; RUN];
            walk.each(range, |out, [ra, rb]| {
                let y = &mut part[out.start - start..out.end - start];
                match base.map(|x| &x[ra]) {
                    Some([one]) => y.fill(*one),
                    Some(x) => y.copy_from_slice(x),
                    None => {}
                }
                if rb.len() == 1 {
                    (self.read)(&exponents, rb.start, &mut exponent[..1]);
                    return T::raise_all(y, exponent[0]);
                }
                for (i, y) in y.chunks_mut(RUN).enumerate() {
                    let exponent = &mut exponent[..y.len()];
                    (self.read)(&exponents, rb.start + i * RUN, exponent);
                    y.iter_mut().zip(exponent).for_each(|(y, e)| *y = y.raise(*e));
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
        prepare_pair(self.alignment, inputs, outputs)
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// A type that can be raised to a power.
trait Base: Element {
    fn raise(self, exponent: f64) -> Self;

    /// One exponent for all.
    fn raise_all(x: &mut [Self], exponent: f64) {
        x.iter_mut().for_each(|x| *x = x.raise(exponent));
    }
}

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Base for $ty {
            fn raise(self, exponent: f64) -> Self {
                self.powf(exponent as $ty)
            }

            fn raise_all(x: &mut [Self], exponent: f64) {
                if exponent == 2.0 {
                    widest(Each { x, f: &|x| x * x })
                } else if exponent == 3.0 {
                    widest(Each { x, f: &|x| x * x * x })
                } else if exponent == -1.0 {
                    widest(Each { x, f: &|x| 1.0 / x })
                } else if exponent == 0.5 {
                    // Unlike a square root, a power takes −∞ to ∞ and −0 to 0.
                    let f = |x: $ty| if x == <$ty>::NEG_INFINITY { <$ty>::INFINITY } else { (x + 0.0).sqrt() };
                    widest(Each { x, f: &f })
                } else if exponent != 1.0 {
                    x.iter_mut().for_each(|x| *x = x.raise(exponent));
                }
            }
        }
    )*};
}
floats!(f32, f64);

struct Each<'a, T, F> {
    x: &'a mut [T],
    f: &'a F,
}

impl<T: Copy, F: Fn(T) -> T> Loop for Each<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for x in self.x {
            *x = (self.f)(*x);
        }
    }
}

impl Base for f16 {
    fn raise(self, exponent: f64) -> Self {
        f16::from_f32(self.to_f32().powf(exponent as f32))
    }
}

impl Base for bf16 {
    fn raise(self, exponent: f64) -> Self {
        bf16::from_f32(self.to_f32().powf(exponent as f32))
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Base for $ty {
            /// Whole exponents wrap on overflow as multiplication does; a negative one rounds
            /// towards zero; others go through f64. Of 0 a negative one gives infinity, for which
            /// conversions of processors have the least number.
            fn raise(self, exponent: f64) -> Self {
                if exponent.fract() != 0.0 || !exponent.is_finite() {
                    let power = (self as f64).powf(exponent);
                    // What is too large becomes the least number, as conversions of processors do.
                    let fits = power.abs() < <$ty>::MAX as f64;
                    return if fits { power as $ty } else { <$ty>::MIN };
                }
                if exponent < 0.0 {
                    let odd = exponent % 2.0 != 0.0;
                    return match self {
                        0 => <$ty>::MIN,
                        1 => 1,
                        x if x.wrapping_add(1) == 0 && (0 as $ty).wrapping_sub(1) < 1 => if odd { x } else { 1 },
                        _ => 0,
                    };
                }
                let (mut result, mut square, mut left) = (1 as $ty, self, exponent as u64);
                while left > 0 {
                    if left & 1 == 1 {
                        result = result.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    left >>= 1;
                }
                result
            }

        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);
