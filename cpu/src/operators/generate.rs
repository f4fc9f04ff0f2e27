//! Constant, ConstantOfShape, Range and EyeLike.

use std::marker::PhantomData;
use std::sync::Arc;

use num_traits::{AsPrimitive, One};

use crate::ops::OpError;
use crate::ops::generate::{Constant, ConstantOfShape, EyeLike};
use crate::tensor::{
    Bool, Element, ElementType, Tensor, TensorView, TensorViewMut, Value, ValueRef, bf16, f16,
};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::{Item, dispatch_item};
use crate::loops::number::{Float, dispatch};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::simd::{Loop, widest};
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Constant", |node| {
        Ok(CpuKernel::Value(Box::new(Share { value: node.op::<Constant>().value.clone() })))
    }),
    Entry::new("ConstantOfShape", constant_of_shape),
    Entry::new("Range", range),
    Entry::new("EyeLike", eye_like),
];

/// A constant is shared, not copied.
struct Share {
    value: Arc<Tensor>,
}

impl ValueKernel for Share {
    fn run(&self, _: &KernelContext<'_>, _: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        Ok(vec![Value::Tensor((*self.value).clone())])
    }
}

fn constant_of_shape(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let value = &node.op::<ConstantOfShape>().value;
    if let Some(strings) = value.strings() {
        return Ok(CpuKernel::Value(Box::new(FillStrings { value: strings[0].clone() })));
    }
    let bytes = value.buffer().map(|b| b.bytes().to_vec()).unwrap_or_default();
    Ok(CpuKernel::Tensor(Box::new(Fill { bytes, ty: value.ty() })))
}

/// Writes the bytes of one element everywhere.
struct Fill {
    bytes: Vec<u8>,
    ty: ElementType,
}

impl Kernel for Fill {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        _: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        dispatch_item!(self.ty, T => fill::<T>(cx, T::of_bytes(&self.bytes), T::of_view(output)));
        Ok(())
    }
}

fn fill<T: Item>(cx: &KernelContext<'_>, value: Option<T>, output: Option<&mut [T]>) {
    if let (Some(value), Some(output)) = (value, output) {
        split_mut(cx.pool, output, 1, 4 * GRAIN, |_, part| part.fill(value.clone()));
    }
}

struct FillStrings {
    value: String,
}

impl ValueKernel for FillStrings {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let shape = Ints::required(inputs[0].and_then(ValueRef::view), "the shape")?;
        let shape: Vec<usize> = shape
            .iter()
            .map(|d| usize::try_from(d).map_err(|_| OpError::Data(format!("{d} is no dimension"))))
            .collect::<Result<_, _>>()?;
        let count = crate::tensor::element_count(&shape)
            .ok_or_else(|| OpError::Data(format!("shape {shape:?} is too large")))?;
        Ok(vec![Value::Tensor(Tensor::from_strings(&shape, vec![self.value.clone(); count]))])
    }
}

fn range(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    fn ints<T: Element + num_traits::WrappingAdd + num_traits::WrappingMul>() -> CpuKernel
    where
        usize: AsPrimitive<T>,
    {
        let step = |start: T, delta: T, i: usize| start.wrapping_add(&delta.wrapping_mul(&i.as_()));
        CpuKernel::Tensor(Box::new(Range { step, _element: PhantomData }))
    }
    fn floats<T: Float>() -> CpuKernel {
        let step = |start: T, delta: T, i: usize| T::down(start.up() + T::constant(i as f64) * delta.up());
        CpuKernel::Tensor(Box::new(Range { step, _element: PhantomData }))
    }
    Ok(match node.input(0) {
        Some(ElementType::I16) => ints::<i16>(),
        Some(ElementType::I32) => ints::<i32>(),
        Some(ElementType::I64) => ints::<i64>(),
        other => {
            dispatch!(other, T in [f32, f64, f16, bf16] => floats::<T>(), else return Err(node.no_kernel()))
        }
    })
}

/// A range whose element `i` is `step(start, delta, i)`.
struct Range<T, F> {
    step: F,
    _element: PhantomData<fn(T)>,
}

/// The elements of a part of a range.
struct Steps<'a, T, F> {
    start: T,
    delta: T,
    first: usize,
    output: &'a mut [T],
    step: &'a F,
}

impl<T: Element, F: Fn(T, T, usize) -> T> Loop for Steps<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (i, y) in self.output.iter_mut().enumerate() {
            *y = (self.step)(self.start, self.delta, self.first + i);
        }
    }
}

impl<T: Element, F: Fn(T, T, usize) -> T + Send + Sync> Kernel for Range<T, F> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(start), Some(delta), Some(output)) = (inputs[0], inputs[2], &mut outputs[0]) else {
            return Ok(());
        };
        let (start, delta) = (start.slice::<T>()[0], delta.slice::<T>()[0]);
        split_mut(cx.pool, output.slice::<T>(), 1, GRAIN, |range, part| {
            widest(Steps { start, delta, first: range.start, output: part, step: &self.step });
        });
        Ok(())
    }
}

fn eye_like(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let ty = node.output(0);
    let one = dispatch!(
        ty,
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] => Tensor::from_slice(&[], &[T::one()])?,
        else match ty {
            Some(ElementType::Bool) => Tensor::from_slice(&[], &[Bool(1)])?,
            _ => return Err(node.no_kernel()),
        }
    );
    Ok(CpuKernel::Tensor(Box::new(Eye { k: node.op::<EyeLike>().k, one })))
}

struct Eye {
    k: i64,
    one: Tensor,
}

impl Kernel for Eye {
    fn run(
        &self,
        _: &KernelContext<'_>,
        _: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let &[rows, columns] = output.shape() else { return Ok(()) };
        let (size, one) = (output.ty().size(), self.one.view());
        let bytes = output.bytes();
        bytes.fill(0);
        for r in 0..rows {
            let c = (r as i64).saturating_add(self.k);
            if (0..columns as i64).contains(&c) {
                let at = (r * columns + c as usize) * size;
                bytes[at..at + size].copy_from_slice(one.bytes());
            }
        }
        Ok(())
    }
}
