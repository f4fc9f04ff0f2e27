//! Elementwise operators of two inputs.

mod power;

use num_traits::{PrimInt, WrappingAdd, WrappingMul, WrappingSub, Zero};

use crate::ops::OpError;
use crate::ops::binary::{Alignment, Binary, Elementwise};
use crate::tensor::{Bool, Element, ElementType, Tensor, Value, ValueRef, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext, ValueKernel};
use crate::loops::broadcast::Broadcast;
use crate::loops::number::{Float, dispatch};
use crate::loops::zip::{Check, Combine, HalfZip, Pairwise, Update, Zip, ZipTo};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Add", build),
    Entry::new("Sub", build),
    Entry::new("Mul", build),
    Entry::new("Div", build),
    Entry::new("Mod", build),
    Entry::new("Pow", power::build),
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
        Some(ElementType::F16) => {
            float::<f32>(op).map(|f| Box::new(HalfZip { f, alignment }) as Box<dyn Kernel>)
        }
        // A shift away from a float: it needs no run of floats in between.
        Some(ElementType::BF16) => float::<bf16>(op).map(|f| zip(f, alignment, None)),
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

fn float<T: Float>(op: Binary) -> Option<Box<dyn Update<T>>> {
    match op {
        Binary::Add => wide(|a: T, b| T::down(a.up() + b.up())),
        Binary::Sub => wide(|a: T, b| T::down(a.up() - b.up())),
        Binary::Mul => wide(|a: T, b| T::down(a.up() * b.up())),
        Binary::Div => wide(|a: T, b| T::down(a.up() / b.up())),
        Binary::Mod { fmod: true } => wide(|a: T, b| T::down(a.up() % b.up())),
        Binary::Mod { fmod: false } => wide(|a: T, b| T::down(floor_mod(a.up(), b.up()))),
        Binary::PRelu => {
            let zero = T::constant(0.0);
            wide(move |a: T, b| if a.up() < zero { T::down(a.up() * b.up()) } else { a })
        }
        Binary::SwiGlu { alpha } => {
            let (alpha, one) = (T::constant(alpha.into()), T::constant(1.0));
            wide(move |a: T, b| T::down(a.up() / (one + num_traits::Float::exp(-alpha * a.up())) * b.up()))
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
    fn boxed(f: impl Fn(bool, bool) -> bool + Send + Sync + 'static) -> Option<Box<dyn Update<Bool>>> {
        Some(Box::new(Pairwise::<_, true>(move |a: Bool, b: Bool| Bool::from(f(a.get(), b.get())))))
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
        let shape = crate::loops::broadcast::shape_of(&[a_shape, &second])?;
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

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::ops::OpError;
    use crate::tensor::{Bool, Tensor, Value, bf16, f16};

    use crate::testing::{elements, run, t};

    #[test]
    fn broadcasts_both_ways_in_every_kind_of_type() {
        // numpy: [[1], [2]] op [10, 20, 30]
        let want = [11.0f32, 21.0, 31.0, 12.0, 22.0, 32.0];
        let out =
            run("Add", 14, &[], &[t(&[2, 1], &[1.0f32, 2.0]), t(&[3], &[10.0f32, 20.0, 30.0])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]), (vec![2, 3], want.to_vec()));
        let half = |x: [f32; 3]| x.map(f16::from_f32);
        let a = t(&[2, 1], &half([1.0, 2.0, 0.0])[..2]);
        let out = run("Add", 14, &[], &[a, t(&[3], &half([10.0, 20.0, 30.0]))], 1).unwrap();
        assert_eq!(elements::<f16>(&out[0]), (vec![2, 3], want.map(f16::from_f32).to_vec()));
        let out = run("Sub", 14, &[], &[t(&[3], &[bf16::ONE; 3]), t(&[], &[bf16::ONE])], 1).unwrap();
        assert_eq!(elements::<bf16>(&out[0]), (vec![3], vec![bf16::ZERO; 3]));
        let out = run("Mul", 14, &[], &[t(&[2, 1], &[100u8, 2]), t(&[2], &[3u8, 4])], 1).unwrap();
        assert_eq!(elements::<u8>(&out[0]), (vec![2, 2], vec![44, 144, 6, 8]));
        let out = run("Add", 14, &[], &[t::<f32>(&[0, 2], &[]), t(&[2], &[1.0f32, 2.0])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]), (vec![0, 2], vec![]));
    }

    #[test]
    fn old_broadcasting_aligns_at_the_axis() {
        let a = [0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0];
        let attributes = [("broadcast", Attribute::Int(1)), ("axis", Attribute::Int(0))];
        let out = run("Add", 6, &attributes, &[t(&[2, 3], &a), t(&[2], &[10.0f32, 20.0])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, [10.0, 11.0, 12.0, 23.0, 24.0, 25.0]);
        let out =
            run("Add", 6, &attributes[..1], &[t(&[2, 3], &a), t(&[3], &[10.0f32, 20.0, 30.0])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, [10.0, 21.0, 32.0, 13.0, 24.0, 35.0]);
        let wrong = run("Add", 6, &[], &[t(&[2, 3], &a), t(&[3], &[10.0f32, 20.0, 30.0])], 1);
        assert!(matches!(wrong, Err(OpError::Input { index: 1, .. })), "{wrong:?}");
    }

    #[test]
    fn division_and_remainder() {
        let (a, b) = ([7i32, -7, 7, -7, i32::MIN], [2i32, 2, -2, -2, -1]);
        for (name, fmod, want) in [
            ("Div", None, [3, -3, -3, 3, i32::MIN]),
            ("Mod", Some(0), [1, 1, -1, -1, 0]),
            ("Mod", Some(1), [1, -1, 1, -1, 0]),
        ] {
            let attributes: Vec<_> = fmod.map(|f| ("fmod", Attribute::Int(f))).into_iter().collect();
            let out = run(name, 14, &attributes, &[t(&[5], &a), t(&[5], &b)], 1).unwrap();
            assert_eq!(elements::<i32>(&out[0]).1, want, "{name} {fmod:?}");
        }
        for name in ["Div", "Mod"] {
            let zero = run(name, 14, &[], &[t(&[2], &[1i64, 2]), t(&[2], &[1i64, 0])], 1);
            assert!(matches!(zero, Err(OpError::Data(_))), "{name}: {zero:?}");
        }
        // numpy.mod of floats has the divisor's sign.
        let out = run(
            "Mod",
            28,
            &[],
            &[t(&[4], &[5.5f32, -5.5, 5.5, -4.0]), t(&[4], &[2.0f32, 2.0, -2.0, 2.0])],
            1,
        );
        assert_eq!(elements::<f32>(&out.unwrap()[0]).1, [1.5, 0.5, -0.5, 0.0]);
    }

    #[test]
    fn powers_of_mixed_types() {
        let x = t(&[3], &[1.0f32, -2.0, 3.0]);
        for (exponent, want) in
            [(2i64, [1.0f32, 4.0, 9.0]), (3, [1.0, -8.0, 27.0]), (-1, [1.0, -0.5, 1.0 / 3.0])]
        {
            let out = run("Pow", 15, &[], &[x.clone(), t(&[], &[exponent])], 1).unwrap();
            assert_eq!(elements::<f32>(&out[0]).1, want);
        }
        let out = run("Pow", 15, &[], &[t(&[3], &[2i32, -1, 10]), t(&[3], &[10.0f32, 3.0, 2.0])], 1).unwrap();
        assert_eq!(elements::<i32>(&out[0]).1, [1024, -1, 100]);
        let zero = run("Pow", 15, &[], &[t(&[1], &[0i32]), t(&[1], &[-1i32])], 1).unwrap();
        assert_eq!(elements::<i32>(&zero[0]).1, [i32::MIN]);
    }

    #[test]
    fn comparisons_and_strings() {
        let (a, b) = (t(&[3], &[1.0f32, f32::NAN, 3.0]), t(&[3], &[2.0f32, 2.0, 3.0]));
        for (name, want) in [
            ("Equal", [0, 0, 1]),
            ("Less", [1, 0, 0]),
            ("LessOrEqual", [1, 0, 1]),
            ("Greater", [0, 0, 0]),
            ("GreaterOrEqual", [0, 0, 1]),
        ] {
            let out = run(name, 16, &[], &[a.clone(), b.clone()], 1).unwrap();
            assert_eq!(elements::<Bool>(&out[0]).1, want.map(Bool), "{name}");
        }
        let strings = |shape: &[usize], s: &[&str]| {
            Some(Value::Tensor(Tensor::from_strings(shape, s.iter().map(|s| s.to_string()).collect())))
        };
        let out = run("Equal", 19, &[], &[strings(&[2], &["a", "b"]), strings(&[], &["b"])], 1).unwrap();
        assert_eq!(elements::<Bool>(&out[0]), (vec![2], vec![Bool(0), Bool(1)]));
    }

    #[test]
    fn shifts_past_the_width() {
        let x = t(&[4], &[-8i8, 8, -8, 1]);
        for (direction, counts, want) in
            [("RIGHT", [1i8, 1, 9, -1], [-4, 4, -1, 0]), ("LEFT", [1, 5, 8, 7], [-16, 0, 0, -128])]
        {
            let attributes = [("direction", Attribute::String(direction.into()))];
            let out = run("BitShift", 28, &attributes, &[x.clone(), t(&[4], &counts)], 1).unwrap();
            assert_eq!(elements::<i8>(&out[0]).1, want, "{direction}");
        }
    }
}
