//! Elementwise operators of two inputs.

use std::marker::PhantomData;

use num_traits::{PrimInt, WrappingAdd, WrappingMul, WrappingSub, Zero};

use crate::ops::OpError;
use crate::ops::binary::{Alignment, Binary, Elementwise};
use crate::tensor::{Bool, Element, ElementType, Tensor, Value, ValueRef, bf16, f16};

use super::broadcast::Broadcast;
use super::number::dispatch;
use super::zip::{Check, Combine, HalfZip, Pairwise, Update, Zip, ZipTo};
use super::{CpuKernel, Entry, Kernel, KernelContext, NodeContext, ValueKernel};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Add", build),
    Entry::new("Sub", build),
    Entry::new("Mul", build),
    Entry::new("Div", build),
    Entry::new("Mod", build),
    Entry::new("Pow", super::power::build),
    Entry::new("And", build),
    Entry::new("Or", build),
    Entry::new("Xor", build),
    Entry::new("BitwiseAnd", build),
    Entry::new("BitwiseOr", build),
    Entry::new("BitwiseXor", build),
    Entry::new("BitShift", build),
    Entry::new("PRelu", build),
    Entry::new("SwiGLU", build),
    Entry::new("Equal", build_comparison),
    Entry::new("Greater", build_comparison),
    Entry::new("GreaterOrEqual", build_comparison),
    Entry::new("Less", build_comparison),
    Entry::new("LessOrEqual", build_comparison),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let Elementwise { op, alignment } = *node.op::<Elementwise>();
    fn half<H: super::map::Half>(f: Box<dyn Update<f32>>, alignment: Alignment) -> Box<dyn Kernel> {
        Box::new(HalfZip::<H> { f, alignment, _type: PhantomData })
    }
    fn zip<T: Element>(
        f: Box<dyn Update<T>>,
        alignment: Alignment,
        check: Option<Check<T>>,
    ) -> Box<dyn Kernel> {
        Box::new(Zip { f, alignment, check })
    }
    let kernel: Option<Box<dyn Kernel>> = match node.input(0) {
        Some(ElementType::F32) => float::<f32>(op).map(|f| zip(f, alignment, None)),
        Some(ElementType::F64) => float::<f64>(op).map(|f| zip(f, alignment, None)),
        Some(ElementType::F16) => float::<f32>(op).map(|f| half::<f16>(f, alignment)),
        Some(ElementType::BF16) => float::<f32>(op).map(|f| half::<bf16>(f, alignment)),
        Some(ElementType::Bool) => logic(op).map(|f| zip(f, alignment, None)),
        Some(ElementType::I32) => integer::<i32, true>(op).map(|f| zip(f, alignment, check(op))),
        Some(ElementType::I64) => integer::<i64, true>(op).map(|f| zip(f, alignment, check(op))),
        ty => dispatch!(ty, T in [i8, i16, u8, u16, u32, u64] =>
            integer::<T, false>(op).map(|f| zip(f, alignment, check::<T>(op))), else None),
    };
    kernel.map(CpuKernel::Tensor).ok_or_else(|| node.no_kernel())
}

fn wide<T: Element>(f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Option<Box<dyn Update<T>>> {
    Some(Box::new(Pairwise::<_, true>(f)))
}

fn float<T: num_traits::Float + Element>(op: Binary) -> Option<Box<dyn Update<T>>> {
    let zero = T::zero();
    match op {
        Binary::Add => wide(|a: T, b| a + b),
        Binary::Sub => wide(|a: T, b| a - b),
        Binary::Mul => wide(|a: T, b| a * b),
        Binary::Div => wide(|a: T, b| a / b),
        Binary::Mod { fmod: true } => wide(|a: T, b| a % b),
        Binary::Mod { fmod: false } => wide(|a: T, b| floor_mod(a, b)),
        Binary::PRelu => wide(move |a: T, b| if a < zero { a * b } else { a }),
        Binary::SwiGlu { alpha } => {
            let alpha = T::from(alpha)?;
            wide(move |a: T, b| a / (T::one() + (-alpha * a).exp()) * b)
        }
        _ => None,
    }
}

/// The remainder of a division rounded down: it has the sign of `b`, zeros included.
fn floor_mod<T: num_traits::Float>(a: T, b: T) -> T {
    let r = a % b;
    if r.is_zero() {
        if b.is_sign_negative() { -T::zero() } else { T::zero() }
    } else if (r < T::zero()) != (b < T::zero()) {
        r + b
    } else {
        r
    }
}

fn logic(op: Binary) -> Option<Box<dyn Update<Bool>>> {
    fn boxed(f: fn(bool, bool) -> bool) -> Option<Box<dyn Update<Bool>>> {
        Some(Box::new(Pairwise::<_, false>(move |a: Bool, b: Bool| Bool::from(f(a.get(), b.get())))))
    }
    match op {
        Binary::And => boxed(|a, b| a & b),
        Binary::Or => boxed(|a, b| a | b),
        Binary::Xor => boxed(|a, b| a ^ b),
        _ => None,
    }
}

pub(super) trait Integer: PrimInt + WrappingAdd + WrappingSub + WrappingMul + Element {
    fn quotient(self, by: Self) -> Self;
    fn remainder(self, by: Self) -> Self;
    /// The shift count, or `None` when it is negative or not below the type's width.
    fn count(self) -> Option<u32>;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Integer for $ty {
            #[inline(always)]
            fn quotient(self, by: Self) -> Self { self.wrapping_div(by) }
            #[inline(always)]
            fn remainder(self, by: Self) -> Self { self.wrapping_rem(by) }
            #[inline(always)]
            fn count(self) -> Option<u32> {
                u32::try_from(self).ok().filter(|&n| n < <$ty>::BITS)
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

fn integer<T: Integer, const WIDE: bool>(op: Binary) -> Option<Box<dyn Update<T>>> {
    fn boxed<T: Integer, const WIDE: bool>(
        f: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Option<Box<dyn Update<T>>> {
        Some(Box::new(Pairwise::<_, WIDE>(f)))
    }
    let zero = T::zero();
    match op {
        Binary::Add => boxed::<T, WIDE>(|a, b| a.wrapping_add(&b)),
        Binary::Sub => boxed::<T, WIDE>(|a, b| a.wrapping_sub(&b)),
        Binary::Mul => boxed::<T, WIDE>(|a, b| a.wrapping_mul(&b)),
        Binary::Div => boxed::<T, WIDE>(|a, b| a.quotient(b)),
        Binary::Mod { fmod: true } => boxed::<T, WIDE>(|a, b| a.remainder(b)),
        Binary::Mod { fmod: false } => boxed::<T, WIDE>(move |a, b| {
            let r = a.remainder(b);
            if r != zero && (r < zero) != (b < zero) { r + b } else { r }
        }),
        Binary::PRelu => boxed::<T, WIDE>(move |a, b| if a < zero { a.wrapping_mul(&b) } else { a }),
        Binary::BitwiseAnd => boxed::<T, WIDE>(|a, b| a & b),
        Binary::BitwiseOr => boxed::<T, WIDE>(|a, b| a | b),
        Binary::BitwiseXor => boxed::<T, WIDE>(|a, b| a ^ b),
        Binary::BitShift { left: true } => {
            boxed::<T, WIDE>(move |a, b| b.count().map_or(zero, |n| a << n as usize))
        }
        // A signed type keeps its sign, also when everything is shifted out.
        Binary::BitShift { left: false } => boxed::<T, WIDE>(move |a, b| {
            b.count().map_or(if a < zero { !zero } else { zero }, |n| a >> n as usize)
        }),
        _ => None,
    }
}

fn check<T: Integer>(op: Binary) -> Option<Check<T>> {
    matches!(op, Binary::Div | Binary::Mod { .. }).then_some(refuse_zero::<T>)
}

fn refuse_zero<T: Element + Zero>(divisors: &[T]) -> Result<(), OpError> {
    match divisors.iter().position(Zero::is_zero) {
        Some(at) => Err(OpError::Data(format!(
            "integer division by zero: element {at} of input 1 is 0; allowed is any other number"
        ))),
        None => Ok(()),
    }
}

fn build_comparison(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let Elementwise { op, alignment } = *node.op::<Elementwise>();
    fn kernel<T: Element + PartialOrd>(op: Binary, alignment: Alignment) -> Option<Box<dyn Kernel>> {
        fn boxed<T: Element>(f: impl Fn(T, T) -> bool + Send + Sync + 'static) -> Box<dyn Combine<T, Bool>> {
            Box::new(Pairwise::<_, false>(move |a, b| Bool::from(f(a, b))))
        }
        // a > b is b < a.
        let f = match op {
            Binary::Equal => boxed(|a: T, b| a == b),
            Binary::Greater | Binary::Less => boxed(|a: T, b| a < b),
            Binary::GreaterOrEqual | Binary::LessOrEqual => boxed(|a: T, b| a <= b),
            _ => return None,
        };
        let swap = matches!(op, Binary::Greater | Binary::GreaterOrEqual);
        Some(Box::new(ZipTo { f, alignment, swap }))
    }
    let kernel = match (node.input(0), op) {
        (Some(ElementType::String), Binary::Equal) => {
            return Ok(CpuKernel::Value(Box::new(StringEqual(alignment))));
        }
        (Some(ElementType::Bool), Binary::Equal) => {
            let f = Box::new(Pairwise::<_, false>(|a: Bool, b: Bool| Bool::from(a == b)));
            Some(Box::new(ZipTo { f, alignment, swap: false }) as Box<dyn Kernel>)
        }
        (ty, _) => dispatch!(ty, T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
            kernel::<T>(op, alignment), else None),
    };
    kernel.map(CpuKernel::Tensor).ok_or_else(|| node.no_kernel())
}

/// `Equal` of strings.
struct StringEqual(Alignment);

impl ValueKernel for StringEqual {
    fn run(&self, _cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let operand = |i: usize| {
            let value = inputs.get(i).copied().flatten();
            value.and_then(|v| v.strings().zip(v.shape())).ok_or_else(|| OpError::Input {
                index: i,
                name: if i == 0 { "A" } else { "B" }.to_owned(),
                reason: "it is no tensor of strings".to_owned(),
            })
        };
        let ((a, a_shape), (b, b_shape)) = (operand(0)?, operand(1)?);
        let mut second = b_shape.to_vec();
        second.resize(b_shape.len() + self.0.trailing(a_shape.len(), b_shape.len())?, 1);
        let shape = super::broadcast::shape_of(&[a_shape, &second])?;
        let walk = Broadcast::<2>::new(&shape, [a_shape, &second]);
        let mut result = vec![Bool(0); shape.iter().product()];
        walk.each(0..result.len(), |out, [ra, rb]| {
            for (i, y) in result[out].iter_mut().enumerate() {
                let at = |r: &std::ops::Range<usize>| if r.len() == 1 { r.start } else { r.start + i };
                *y = Bool::from(a[at(&ra)] == b[at(&rb)]);
            }
        });
        Ok(vec![Value::Tensor(Tensor::from_slice(&shape, &result)?)])
    }
}
