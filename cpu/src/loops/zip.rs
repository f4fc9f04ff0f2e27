//! Kernels that combine the elements of two tensors, which broadcast.

use crate::ops::OpError;
use crate::ops::binary::Alignment;
use crate::tensor::{Element, Shape, TensorView, TensorViewMut, f16};

use super::broadcast::Broadcast;
use super::map::{HALF_RUN, Half};
use super::parallel::{GRAIN, split_mut};
use super::simd::{Loop, run};
use crate::kernel::{Argument, Kernel, KernelContext, Prepared};

/// A function of two elements, applied to many. A slice of one element stands for as many equal
/// ones as the output has.
pub(crate) trait Combine<T, U = T>: Send + Sync {
    fn combine(&self, y: &mut [U], a: &[T], b: &[T]);
}

/// The same, where the output may hold one of the operands.
pub(crate) trait Update<T>: Combine<T> {
    /// `y = f(y, b)`
    fn update_left(&self, y: &mut [T], b: &[T]);
    /// `y = f(a, y)`
    fn update_right(&self, y: &mut [T], a: &[T]);
}

/// A closure; `WIDE` compiles its loops for several instruction sets.
pub(crate) struct Pairwise<F, const WIDE: bool>(pub(crate) F);

impl<T: Copy + Send + Sync, U, F: Fn(T, T) -> U + Send + Sync, const WIDE: bool> Combine<T, U>
    for Pairwise<F, WIDE>
{
    fn combine(&self, y: &mut [U], a: &[T], b: &[T]) {
        let f = &self.0;
        match (a, b) {
            (&[a], b) if b.len() == y.len() => run::<_, WIDE>(One { y, x: b, f: &move |b| f(a, b) }),
            (a, &[b]) => run::<_, WIDE>(One { y, x: a, f: &move |a| f(a, b) }),
            (a, b) => run::<_, WIDE>(Two { y, a, b, f }),
        }
    }
}

impl<T: Copy + Send + Sync, F: Fn(T, T) -> T + Send + Sync, const WIDE: bool> Update<T>
    for Pairwise<F, WIDE>
{
    fn update_left(&self, y: &mut [T], b: &[T]) {
        let f = &self.0;
        match b {
            &[b] => run::<_, WIDE>(UpdateOne { y, f: &move |y| f(y, b) }),
            b => run::<_, WIDE>(UpdateTwo { y, x: b, f: &move |y, b| f(y, b) }),
        }
    }

    fn update_right(&self, y: &mut [T], a: &[T]) {
        let f = &self.0;
        match a {
            &[a] => run::<_, WIDE>(UpdateOne { y, f: &move |y| f(a, y) }),
            a => run::<_, WIDE>(UpdateTwo { y, x: a, f: &move |y, a| f(a, y) }),
        }
    }
}

struct One<'a, T, U, F> {
    y: &'a mut [U],
    x: &'a [T],
    f: &'a F,
}

impl<T: Copy, U, F: Fn(T) -> U> Loop for One<'_, T, U, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = (self.f)(x);
        }
    }
}

struct Two<'a, T, U, F> {
    y: &'a mut [U],
    a: &'a [T],
    b: &'a [T],
    f: &'a F,
}

impl<T: Copy, U, F: Fn(T, T) -> U> Loop for Two<'_, T, U, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((y, &a), &b) in self.y.iter_mut().zip(self.a).zip(self.b) {
            *y = (self.f)(a, b);
        }
    }
}

struct UpdateOne<'a, T, F> {
    y: &'a mut [T],
    f: &'a F,
}

impl<T: Copy, F: Fn(T) -> T> Loop for UpdateOne<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for y in self.y {
            *y = (self.f)(*y);
        }
    }
}

struct UpdateTwo<'a, T, F> {
    y: &'a mut [T],
    x: &'a [T],
    f: &'a F,
}

impl<T: Copy, F: Fn(T, T) -> T> Loop for UpdateTwo<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = (self.f)(*y, x);
        }
    }
}

/// Looks at the second operand before the loop: for divisors.
pub(crate) type Check<T> = fn(&[T]) -> Result<(), OpError>;

/// Two tensors of one type into that type. Bound: two reads and one write.
pub(crate) struct Zip<T> {
    pub(crate) f: Box<dyn Update<T>>,
    pub(crate) alignment: Alignment,
    pub(crate) check: Option<Check<T>>,
}

impl<T: Element> Kernel for Zip<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let (a, b) = (inputs[0].map(|x| x.slice::<T>()), inputs[1].map(|x| x.slice::<T>()));
        let walk: &Broadcast<2> = cx.state();
        let output = output.slice::<T>();
        if let Some(check) = self.check {
            check(b.unwrap_or(output))?;
        }
        split_mut(cx.pool, output, 1, GRAIN, |range, part| {
            let start = range.start;
            walk.each(range, |out, [ra, rb]| {
                let y = &mut part[out.start - start..out.end - start];
                match (a, b) {
                    (Some(a), Some(b)) => self.f.combine(y, &a[ra], &b[rb]),
                    (None, Some(b)) => self.f.update_left(y, &b[rb]),
                    (Some(a), None) => self.f.update_right(y, &a[ra]),
                    (None, None) => {}
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
        &[0, 1]
    }
}

/// Two tensors of float16: computed in f32, rounded once.
pub(crate) struct HalfZip {
    pub(crate) f: Box<dyn Update<f32>>,
    pub(crate) alignment: Alignment,
}

impl Kernel for HalfZip {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let (a, b) = (inputs[0].map(|x| x.slice::<f16>()), inputs[1].map(|x| x.slice::<f16>()));
        let walk: &Broadcast<2> = cx.state();
        split_mut(cx.pool, output.slice::<f16>(), 1, GRAIN, |range, part| {
            let start = range.start;
            let (mut wide_a, mut wide_b) = ([0.0f32; HALF_RUN], [0.0f32; HALF_RUN]);
            walk.each(range, |out, [ra, rb]| {
                let y = &mut part[out.start - start..out.end - start];
                for (i, y) in y.chunks_mut(HALF_RUN).enumerate() {
                    let (skip, count) = (i * HALF_RUN, y.len());
                    let left = widen(a.map(|a| &a[ra.clone()]), y, skip, &mut wide_a);
                    let right = widen(b.map(|b| &b[rb.clone()]), y, skip, &mut wide_b);
                    // One of the two is as long as the output, or they would broadcast to less.
                    if left == count {
                        self.f.update_left(&mut wide_a[..count], &wide_b[..right]);
                        f16::narrow(&wide_a[..count], y);
                    } else {
                        self.f.update_right(&mut wide_b[..count], &wide_a[..left]);
                        f16::narrow(&wide_b[..count], y);
                    }
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
        &[0, 1]
    }
}

/// The piece at `skip` of what an operand reads in a run, or of the output that holds the operand.
/// Tells how many elements were converted.
fn widen(from: Option<&[f16]>, own: &[f16], skip: usize, to: &mut [f32; HALF_RUN]) -> usize {
    let piece = match from {
        Some([one]) => std::slice::from_ref(one),
        Some(many) => &many[skip..][..own.len()],
        None => own,
    };
    f16::widen(piece, &mut to[..piece.len()]);
    piece.len()
}

/// Two tensors of one type into another: comparisons.
pub(crate) struct ZipTo<T, U> {
    pub(crate) f: Box<dyn Combine<T, U>>,
    pub(crate) alignment: Alignment,
    /// Whether the function takes the second operand first.
    pub(crate) swap: bool,
}

impl<T: Element, U: Element> Kernel for ZipTo<T, U> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(a), Some(b)) = (&mut outputs[0], inputs[0], inputs[1]) else { return Ok(()) };
        let (a, b) = (a.slice::<T>(), b.slice::<T>());
        let walk: &Broadcast<2> = cx.state();
        split_mut(cx.pool, output.slice::<U>(), 1, GRAIN, |range, part| {
            let start = range.start;
            walk.each(range, |out, [ra, rb]| {
                let (a, b) = if self.swap { (&b[rb], &a[ra]) } else { (&a[ra], &b[rb]) };
                self.f.combine(&mut part[out.start - start..out.end - start], a, b);
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
}

/// The walk over two inputs and an output.
pub(crate) fn prepare_pair(
    alignment: Alignment,
    inputs: &[Option<Argument<'_>>],
    outputs: &[Option<&[usize]>],
) -> Result<Prepared, OpError> {
    let (Some(a), Some(b), Some(output)) = (inputs[0], inputs[1], outputs[0]) else {
        return Ok(Prepared::default());
    };
    let mut second = Shape::from_slice(b.shape);
    let trailing = alignment.trailing(a.shape.len(), b.shape.len())?;
    second.extend(std::iter::repeat_n(1, trailing));
    let walk = Broadcast::<2>::new(output, [a.shape, &second]);
    Ok(Prepared { state: Some(Box::new(walk)), scratch: 0 })
}
