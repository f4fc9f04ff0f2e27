//! `Where` and `Clip`.

use crate::ops::OpError;
use crate::ops::choose::Clip;
use crate::tensor::{Bool, ElementType, Tensor, TensorView, TensorViewMut, Value, ValueRef, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared, ValueKernel};
use crate::loops::broadcast::{Broadcast, shape_of};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::simd::{Loop, widest};
use crate::loops::widen::{RUN, Widen};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Where", build_where), Entry::new("Clip", build_clip)];

fn build_where(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let kernel: Box<dyn Kernel> = match node.input(1).map(ElementType::size) {
        // Strings have no size.
        Some(0) => return Ok(CpuKernel::Value(Box::new(WhereStrings))),
        Some(1) => Box::new(Where::<1>),
        Some(2) => Box::new(Where::<2>),
        Some(4) => Box::new(Where::<4>),
        Some(8) => Box::new(Where::<8>),
        Some(16) => Box::new(Where::<16>),
        _ => return Err(node.no_kernel()),
    };
    Ok(CpuKernel::Tensor(kernel))
}

/// Chooses elements. Bound: a read of the condition and of both operands, and a write.
/// Elements of `N` bytes are moved without a look at them.
struct Where<const N: usize>;

impl<const N: usize> Kernel for Where<N> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(condition)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let condition = condition.slice::<Bool>();
        let (x, y) = (inputs[1].map(elements::<N>), inputs[2].map(elements::<N>));
        let walk: &Broadcast<3> = cx.state();
        split_mut(cx.pool, output.bytes().as_chunks_mut::<N>().0, 1, GRAIN, |range, part| {
            let start = range.start;
            walk.each(range, |out, [rc, rx, ry]| {
                let to = &mut part[out.start - start..out.end - start];
                let (c, x, y) = (&condition[rc], x.map(|x| &x[rx]), y.map(|y| &y[ry]));
                match (x, y) {
                    (None, Some(y)) => choose(to, c, y, false),
                    (Some(x), None) => choose(to, c, x, true),
                    (Some(x), Some(y)) => {
                        set(to, x);
                        choose(to, c, y, false);
                    }
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
        let (Some(c), Some(x), Some(y), Some(output)) = (inputs[0], inputs[1], inputs[2], outputs[0]) else {
            return Ok(Prepared::default());
        };
        let walk = Broadcast::<3>::new(output, [c.shape, x.shape, y.shape]);
        Ok(Prepared { state: Some(Box::new(walk)), scratch: 0 })
    }

    fn in_place(&self) -> &[usize] {
        &[1, 2]
    }
}

fn elements<const N: usize>(view: TensorView<'_>) -> &[[u8; N]] {
    view.bytes().as_chunks().0
}

fn set<T: Copy>(to: &mut [T], from: &[T]) {
    match from {
        &[one] => to.fill(one),
        from => to.copy_from_slice(from),
    }
}

/// Overwrites the elements whose condition is `when`.
fn choose<T: Copy>(to: &mut [T], condition: &[Bool], from: &[T], when: bool) {
    match (condition, from) {
        (&[c], from) => {
            if c.get() == when {
                set(to, from);
            }
        }
        (c, &[one]) => {
            for (to, c) in to.iter_mut().zip(c) {
                *to = if c.get() == when { one } else { *to };
            }
        }
        (c, from) => {
            for ((to, c), from) in to.iter_mut().zip(c).zip(from) {
                *to = if c.get() == when { *from } else { *to };
            }
        }
    }
}

/// `Where` of strings.
struct WhereStrings;

impl ValueKernel for WhereStrings {
    fn run(&self, _cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let missing = |index: usize, name: &str, what: &str| OpError::Input {
            index,
            name: name.to_owned(),
            reason: format!("it is no tensor of {what}"),
        };
        let at = |i: usize| inputs.get(i).copied().flatten();
        let strings = |i: usize, name: &str| {
            at(i).and_then(|v| v.strings().zip(v.shape())).ok_or_else(|| missing(i, name, "strings"))
        };
        let condition = at(0).and_then(ValueRef::view).ok_or_else(|| missing(0, "condition", "bool"))?;
        let ((x, x_shape), (y, y_shape)) = (strings(1, "X")?, strings(2, "Y")?);
        let shape = shape_of(&[condition.shape(), x_shape, y_shape])?;
        let walk = Broadcast::<3>::new(&shape, [condition.shape(), x_shape, y_shape]);
        let condition = condition.slice::<Bool>();
        let count = shape.iter().product();
        let mut result = Vec::with_capacity(count);
        walk.each(0..count, |out, [rc, rx, ry]| {
            for i in 0..out.len() {
                let at = |r: &std::ops::Range<usize>| if r.len() == 1 { r.start } else { r.start + i };
                result.push(if condition[at(&rc)].get() { x[at(&rx)].clone() } else { y[at(&ry)].clone() });
            }
        });
        Ok(vec![Value::Tensor(Tensor::from_strings(&shape, result))])
    }
}

fn build_clip(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let Clip { min, max } = *node.op::<Clip>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
            Box::new(Limit::<T> { min: min.map(Bound::bound), max: max.map(Bound::bound) }),
            else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// A type that can be limited.
trait Bound: Copy + PartialOrd + Send + Sync {
    /// Bounds that limit nothing.
    const NONE: (Self, Self);

    /// A bound given as an attribute.
    fn bound(x: f32) -> Self;
}

macro_rules! bounds {
    ($least:ident to $most:ident: $($ty:ty),*) => {$(
        impl Bound for $ty {
            const NONE: (Self, Self) = (<$ty>::$least, <$ty>::$most);
            fn bound(x: f32) -> Self { x as $ty }
        }
    )*};
}
bounds!(NEG_INFINITY to INFINITY: f32, f64);
bounds!(MIN to MAX: i8, i16, i32, i64, u8, u16, u32, u64);

/// Limits elements; bounds that are inputs have precedence. NaN stays, and where the lower bound
/// exceeds the upper one, the upper one is the result.
struct Limit<T: Widen> {
    min: Option<T::Wide>,
    max: Option<T::Wide>,
}

impl<T: Widen<Wide: Bound>> Kernel for Limit<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let x = inputs[0].map(|x| x.slice::<T>());
        let bound = |i: usize| inputs.get(i).copied().flatten()?.slice::<T>().first().map(|b| b.up());
        let (least, most) = <T::Wide as Bound>::NONE;
        let min = bound(1).or(self.min).unwrap_or(least);
        let max = bound(2).or(self.max).unwrap_or(most);
        split_mut(cx.pool, output.slice::<T>(), 1, GRAIN, |range, part| {
            let (mut own, mut other) = ([T::Wide::default(); RUN], [T::Wide::default(); RUN]);
            for (i, y) in part.chunks_mut(RUN).enumerate() {
                match x {
                    Some(x) => {
                        let x = T::load(&x[range.start + i * RUN..][..y.len()], &mut other);
                        T::store(y, &mut own, |y| widest(Clamp { x: Some(x), y, min, max }));
                    }
                    None => T::update(y, &mut own, |y| widest(Clamp { x: None, y, min, max })),
                }
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Without `x`, `y` holds it.
struct Clamp<'a, W> {
    x: Option<&'a [W]>,
    y: &'a mut [W],
    min: W,
    max: W,
}

impl<W: Bound> Loop for Clamp<'_, W> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let limited = |x: W| {
            let x = if x < self.min { self.min } else { x };
            if x > self.max { self.max } else { x }
        };
        match self.x {
            Some(x) => self.y.iter_mut().zip(x).for_each(|(y, &x)| *y = limited(x)),
            None => self.y.iter_mut().for_each(|y| *y = limited(*y)),
        }
    }
}
