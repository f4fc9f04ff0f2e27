//! Kernels that apply one function to each element.

use std::marker::PhantomData;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp, SimdUnaryOp};

use crate::loops::store::store_first;
use crate::ops::OpError;
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use super::half_types as halves;
use super::parallel::{GRAIN, split_mut};
use super::simd::{Loop, run};
use crate::isa::Dispatch;
use crate::kernel::{Kernel, KernelContext};

/// A function of one element, applied to many.
pub(crate) trait Function<T>: Send + Sync {
    /// `y[i] = f(x[i])`; the slices are equally long.
    fn map(&self, x: &[T], y: &mut [T]);
    fn map_mut(&self, x: &mut [T]);
}

/// A closure; `WIDE` compiles its loops for several instruction sets.
pub(crate) struct Plain<F, const WIDE: bool>(pub(crate) F);

impl<T: Element, F: Fn(T) -> T + Send + Sync, const WIDE: bool> Function<T> for Plain<F, WIDE> {
    fn map(&self, x: &[T], y: &mut [T]) {
        run::<_, WIDE>(Copying { x, y, f: &self.0 });
    }

    fn map_mut(&self, x: &mut [T]) {
        run::<_, WIDE>(InPlace { x, f: &self.0 });
    }
}

struct Copying<'a, T, U, F> {
    x: &'a [T],
    y: &'a mut [U],
    f: &'a F,
}

impl<T: Copy, U, F: Fn(T) -> U> Loop for Copying<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = (self.f)(x);
        }
    }
}

struct InPlace<'a, T, F> {
    x: &'a mut [T],
    f: &'a F,
}

impl<T: Copy, F: Fn(T) -> T> Loop for InPlace<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for x in self.x {
            *x = (self.f)(*x);
        }
    }
}

/// A function over vectors.
pub(crate) struct Vector<Op>(pub(crate) Op);

impl<Op: SimdUnaryOp<f32> + Send + Sync> Function<f32> for Vector<Op> {
    fn map(&self, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), y.len(), "an element for each element");
        Vectors { f: &self.0, x: x.as_ptr(), y: y.as_mut_ptr(), len: y.len() }.widest();
    }

    fn map_mut(&self, x: &mut [f32]) {
        apply(&self.0, x);
    }
}

/// Applies a function over vectors to each element.
pub(crate) fn apply<Op: SimdUnaryOp<f32>>(f: &Op, x: &mut [f32]) {
    Vectors { f, x: x.as_ptr(), y: x.as_mut_ptr(), len: x.len() }.widest();
}

/// `y[i] = f(x[i])` for `len` elements. One body serves both: what is read and what is written may be the same.
struct Vectors<'a, Op> {
    f: &'a Op,
    x: *const f32,
    y: *mut f32,
    len: usize,
}

impl<Op: SimdUnaryOp<f32>> SimdOp for Vectors<'_, Op> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let ops = isa.f32();
        let Vectors { f, x, y, len } = self;
        let whole = len / ops.len() * ops.len();
        // SAFETY: those who made it give `len` elements that are read, and as many that nothing else reads or writes.
        // Each vector is read before it is written. The mask has the elements that are left.
        unsafe {
            for i in (0..whole).step_by(ops.len()) {
                ops.store_ptr(f.eval(isa, ops.load_ptr(x.add(i))), y.add(i));
            }
            if whole < len {
                let mask = ops.first_n_mask(len - whole);
                let last = f.eval(isa, ops.load_ptr_mask(x.add(whole), mask));
                store_first(isa, last, y.add(whole), len - whole, mask);
            }
        }
    }
}

/// A function on a type that it computes in. Bound: one read and one write of the tensor.
pub(crate) struct Map<T>(pub(crate) Box<dyn Function<T>>);

impl<T: Element> Kernel for Map<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let x = inputs[0].map(|x| x.slice::<T>());
        split_mut(cx.pool, output.slice::<T>(), 1, GRAIN, |range, y| match x {
            Some(x) => self.0.map(&x[range], y),
            None => self.0.map_mut(y),
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// A 16-bit float, converted to and from f32 in runs.
pub(crate) trait Half: Element {
    fn widen(from: &[Self], to: &mut [f32]);
    /// Rounds to nearest even.
    fn narrow(from: &[f32], to: &mut [Self]);
}

impl Half for f16 {
    fn widen(from: &[Self], to: &mut [f32]) {
        halves::widen(from, to);
    }
    fn narrow(from: &[f32], to: &mut [Self]) {
        halves::narrow(from, to);
    }
}

impl Half for bf16 {
    fn widen(from: &[Self], to: &mut [f32]) {
        halves::widen_bfloat16(from, to);
    }
    fn narrow(from: &[f32], to: &mut [Self]) {
        halves::narrow_bfloat16(from, to);
    }
}

/// Elements of a half type that are computed in f32 at a time.
pub(crate) const HALF_RUN: usize = 512;

/// A function on a half type: computed in f32, rounded once.
pub(crate) struct HalfMap<H> {
    f: Box<dyn Function<f32>>,
    _type: PhantomData<fn(H)>,
}

impl<H> HalfMap<H> {
    pub(crate) fn new(f: Box<dyn Function<f32>>) -> Self {
        HalfMap { f, _type: PhantomData }
    }
}

impl<H: Half> Kernel for HalfMap<H> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let x = inputs[0].map(|x| x.slice::<H>());
        split_mut(cx.pool, output.slice::<H>(), 1, GRAIN, |range, part| {
            let mut run = [0.0f32; HALF_RUN];
            for (i, y) in part.chunks_mut(HALF_RUN).enumerate() {
                let run = &mut run[..y.len()];
                match x {
                    Some(x) => H::widen(&x[range.start + i * HALF_RUN..][..y.len()], run),
                    None => H::widen(y, run),
                }
                self.f.map_mut(run);
                H::narrow(run, y);
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// A function into another type.
pub(crate) struct MapTo<T, U, F> {
    f: F,
    _types: PhantomData<fn(T) -> U>,
}

impl<T: Element, U: Element, F: Fn(T) -> U + Send + Sync + 'static> MapTo<T, U, F> {
    pub(crate) fn boxed(f: F) -> Box<dyn Kernel> {
        Box::new(MapTo { f, _types: PhantomData })
    }
}

impl<T: Element, U: Element, F: Fn(T) -> U + Send + Sync> Kernel for MapTo<T, U, F> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let x = x.slice::<T>();
        split_mut(cx.pool, output.slice::<U>(), 1, GRAIN, |range, y| {
            run::<_, true>(Copying { x: &x[range], y, f: &self.f });
        });
        Ok(())
    }
}
