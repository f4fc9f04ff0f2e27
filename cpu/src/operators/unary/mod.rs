//! Elementwise operators of one input.

mod elementary;

use crate::ops::OpError;
use crate::ops::unary::{Predicate, Unary};
use crate::tensor::{Bool, Element, ElementType, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, NodeContext};
use crate::loops::exponential;
use crate::loops::map::{Function, HalfMap, Map, MapTo, Plain, Vector};
use crate::loops::number::dispatch;
use crate::loops::together::ManyVectors;
use crate::loops::vector as functions;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Abs", build),
    Entry::new("Acos", build),
    Entry::new("Acosh", build),
    Entry::new("Asin", build),
    Entry::new("Asinh", build),
    Entry::new("Atan", build),
    Entry::new("Atanh", build),
    Entry::new("BitwiseNot", build),
    Entry::new("Ceil", build),
    Entry::new("Celu", build),
    Entry::new("Cos", build),
    Entry::new("Cosh", build),
    Entry::new("Elu", build),
    Entry::new("Erf", build),
    Entry::new("Exp", build),
    Entry::new("Floor", build),
    Entry::new("Gelu", build),
    Entry::new("HardSigmoid", build),
    Entry::new("HardSwish", build),
    Entry::new("LeakyRelu", build),
    Entry::new("Log", build),
    Entry::new("Mish", build),
    Entry::new("Neg", build),
    Entry::new("Not", build),
    Entry::new("Reciprocal", build),
    Entry::new("Relu", build),
    Entry::new("Round", build),
    Entry::new("Selu", build),
    Entry::new("Shrink", build),
    Entry::new("Sigmoid", build),
    Entry::new("Sign", build),
    Entry::new("Sin", build),
    Entry::new("Sinh", build),
    Entry::new("Softplus", build),
    Entry::new("Softsign", build),
    Entry::new("Sqrt", build),
    Entry::new("Swish", build),
    Entry::new("Tan", build),
    Entry::new("Tanh", build),
    Entry::new("ThresholdedRelu", build),
    Entry::new("IsNaN", build_predicate),
    Entry::new("IsInf", build_predicate),
    Entry::new("Gelu", build).domain("com.microsoft"),
    Entry::new("QuickGelu", build).domain("com.microsoft"),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Unary>();
    let kernel: Option<Box<dyn Kernel>> = match node.input(0) {
        Some(ElementType::F32) => function_f32(op).map(|f| Box::new(Map(f)) as _),
        Some(ElementType::F64) => function(op).map(|f| Box::new(Map::<f64>(f)) as _),
        Some(ElementType::F16) => function_f32(op).map(|f| Box::new(HalfMap::<f16>::new(f)) as _),
        Some(ElementType::BF16) => function_f32(op).map(|f| Box::new(HalfMap::<bf16>::new(f)) as _),
        Some(ElementType::Bool) if op == Unary::Not => {
            Some(Box::new(Map::<Bool>(Box::new(Plain::<_, false>(|x: Bool| Bool((x.0 == 0) as u8))))))
        }
        ty => dispatch!(ty, T in [i8, i16, i32, i64, u8, u16, u32, u64] =>
            integer::<T>(op).map(|f| Box::new(Map(f)) as _), else None),
    };
    kernel.map(CpuKernel::Tensor).ok_or_else(|| node.no_kernel())
}

/// The function in f32: over vectors where there is one, else as in any float.
pub(crate) fn function_f32(op: Unary) -> Option<Box<dyn Function<f32>>> {
    Some(match op {
        Unary::Asinh => Box::new(Vector(elementary::Asinh)),
        Unary::Atan => Box::new(Vector(elementary::Atan)),
        Unary::Cos => Box::new(Vector(elementary::Wave::<true>)),
        Unary::Celu { alpha } if alpha > 0.0 && (1.0 / alpha).is_finite() => {
            Box::new(Vector(exponential::Elu { below: alpha, factor: 1.0 / alpha, scale: 1.0 }))
        }
        Unary::Cosh => Box::new(Vector(exponential::Hyperbolic::<true>)),
        Unary::Elu { alpha } => Box::new(Vector(exponential::Elu { below: alpha, factor: 1.0, scale: 1.0 })),
        Unary::Erf => Box::new(ManyVectors(functions::Erf)),
        Unary::Exp => Box::new(Vector(exponential::Exp)),
        Unary::Gelu { tanh: false } => Box::new(ManyVectors(functions::Gelu)),
        Unary::Gelu { tanh: true } => Box::new(Vector(exponential::TanhGelu)),
        Unary::Log => Box::new(Vector(elementary::Log)),
        Unary::Mish => Box::new(Vector(exponential::Mish)),
        Unary::Selu { alpha, gamma } => {
            Box::new(Vector(exponential::Elu { below: alpha, factor: 1.0, scale: gamma }))
        }
        Unary::Sin => Box::new(Vector(elementary::Wave::<false>)),
        Unary::Sigmoid => Box::new(ManyVectors(exponential::Sigmoid)),
        Unary::Sinh => Box::new(Vector(exponential::Hyperbolic::<false>)),
        Unary::Softplus => Box::new(Vector(exponential::Softplus)),
        Unary::Swish { alpha } => Box::new(Vector(exponential::Swish { alpha })),
        Unary::Tanh => Box::new(ManyVectors(exponential::Tanh)),
        op => return function(op),
    })
}

/// What f32 and f64 have beside `num_traits::Float`.
pub(crate) trait Real: num_traits::Float + Element {
    fn erf(self) -> Self;
    fn round_ties_even(self) -> Self;
    fn of(x: f64) -> Self;
}

impl Real for f32 {
    fn erf(self) -> Self {
        libm::erff(self)
    }
    #[inline(always)]
    fn round_ties_even(self) -> Self {
        f32::round_ties_even(self)
    }
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
}

impl Real for f64 {
    fn erf(self) -> Self {
        libm::erf(self)
    }
    #[inline(always)]
    fn round_ties_even(self) -> Self {
        f64::round_ties_even(self)
    }
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
}

/// `Celu` of a number below 0, and of any where `alpha` is 0, which ONNX Runtime divides by.
fn celu_below<T: Real>(x: T, alpha: T, zero: T) -> T {
    let low = alpha * (x / alpha).exp_m1();
    let above = if x > zero { x } else { zero };
    if low < zero {
        above + low
    } else if low.is_nan() {
        low
    } else {
        above
    }
}

/// A closure in one of the types.
fn plain<T: Element>(f: impl Fn(T) -> T + Send + Sync + 'static) -> Option<Box<dyn Function<T>>> {
    Some(Box::new(Plain::<_, false>(f)))
}

/// A closure whose loop has vector instructions, in f32.
fn vector<T: Element>(f: impl Fn(T) -> T + Send + Sync + 'static) -> Option<Box<dyn Function<T>>> {
    Some(Box::new(Plain::<_, true>(f)))
}

/// The function in a float type. Comparisons are written so that NaN stays NaN.
pub(crate) fn function<T: Real>(op: Unary) -> Option<Box<dyn Function<T>>> {
    let (zero, one) = (T::zero(), T::one());
    let of = |x: f32| T::of(x as f64);
    match op {
        Unary::Abs => vector(|x: T| x.abs()),
        Unary::Acos => plain(|x: T| x.acos()),
        Unary::Acosh => plain(|x: T| x.acosh()),
        Unary::Asin => plain(|x: T| x.asin()),
        Unary::Asinh => plain(|x: T| x.asinh()),
        Unary::Atan => plain(|x: T| x.atan()),
        Unary::Atanh => plain(|x: T| x.atanh()),
        Unary::Ceil => vector(|x: T| x.ceil()),
        Unary::Celu { alpha } => {
            let alpha = of(alpha);
            // The sum of both parts: where alpha is 0, what is not below 0 has no number.
            plain(move |x: T| if x < zero || alpha == zero { celu_below(x, alpha, zero) } else { x })
        }
        Unary::Cos => plain(|x: T| x.cos()),
        Unary::Cosh => plain(|x: T| x.cosh()),
        Unary::Elu { alpha } => {
            let alpha = of(alpha);
            plain(move |x: T| if x < zero { alpha * x.exp_m1() } else { x })
        }
        Unary::Erf => plain(|x: T| x.erf()),
        Unary::Exp => plain(|x: T| x.exp()),
        Unary::Floor => vector(|x: T| x.floor()),
        Unary::Gelu { tanh: false } => {
            let (half, root) = (T::of(0.5), T::of(std::f64::consts::FRAC_1_SQRT_2));
            plain(move |x: T| half * x * (one + (x * root).erf()))
        }
        Unary::Gelu { tanh: true } => {
            let (half, root) = (T::of(0.5), T::of((2.0 / std::f64::consts::PI).sqrt()));
            let cubic = T::of(0.044715);
            plain(move |x: T| half * x * (one + (root * (x + cubic * x * x * x)).tanh()))
        }
        Unary::HardSigmoid { alpha, beta } => {
            let (alpha, beta) = (of(alpha), of(beta));
            vector(move |x| clamp_unit(alpha * x + beta))
        }
        Unary::HardSwish => {
            let (sixth, half) = (one / T::of(6.0), T::of(0.5));
            vector(move |x| x * clamp_unit(x * sixth + half))
        }
        Unary::LeakyRelu { alpha } => {
            let alpha = of(alpha);
            vector(move |x| if x < zero { alpha * x } else { x })
        }
        Unary::Log => plain(|x: T| x.ln()),
        Unary::Mish => {
            // tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2); beyond 20 it is 1 and e² may overflow.
            let (two, limit) = (T::of(2.0), T::of(20.0));
            plain(move |x: T| {
                let e = x.exp();
                let n = e * (e + two);
                if x > limit { x } else { x * n / (n + two) }
            })
        }
        Unary::Neg => vector(|x: T| -x),
        Unary::Reciprocal => vector(move |x: T| one / x),
        Unary::Relu => vector(move |x| if x < zero { zero } else { x }),
        Unary::Round => vector(|x: T| x.round_ties_even()),
        Unary::Selu { alpha, gamma } => {
            let (alpha, gamma) = (of(alpha), of(gamma));
            plain(move |x: T| gamma * if x < zero { alpha * x.exp_m1() } else { x })
        }
        Unary::Shrink { bias, lambd } => {
            let (bias, lambd) = (of(bias), of(lambd));
            plain(move |x| {
                if x < -lambd {
                    x + bias
                } else if x > lambd {
                    x - bias
                } else {
                    zero
                }
            })
        }
        Unary::Sigmoid => plain(move |x: T| one / (one + (-x).exp())),
        Unary::Sign => plain(move |x| {
            if x > zero {
                one
            } else if x < zero {
                -one
            } else {
                x
            }
        }),
        Unary::Sin => plain(|x: T| x.sin()),
        Unary::Sinh => plain(|x: T| x.sinh()),
        // log(1 + exp(x)) without overflow.
        Unary::Softplus => plain(move |x: T| (if x > zero { x } else { zero }) + (-x.abs()).exp().ln_1p()),
        Unary::Softsign => vector(move |x: T| x / (one + x.abs())),
        Unary::Sqrt => vector(|x: T| x.sqrt()),
        Unary::Swish { alpha } => {
            let alpha = of(alpha);
            plain(move |x: T| x / (one + (-alpha * x).exp()))
        }
        Unary::Tan => plain(|x: T| x.tan()),
        Unary::Tanh => plain(|x: T| x.tanh()),
        Unary::ThresholdedRelu { alpha } => {
            let alpha = of(alpha);
            vector(move |x| if x > alpha { x } else { zero })
        }
        Unary::BitwiseNot | Unary::Not => None,
    }
}

/// Limits to [0, 1]; NaN stays.
#[inline(always)]
fn clamp_unit<T: Real>(x: T) -> T {
    if x < T::zero() {
        T::zero()
    } else if x > T::one() {
        T::one()
    } else {
        x
    }
}

trait Integer: num_traits::PrimInt + num_traits::WrappingNeg + Element {
    fn magnitude(self) -> Self;
    fn as_f64(self) -> f64;
    fn from_f64(x: f64) -> Self;
}

macro_rules! integers {
    ($($ty:ty, $magnitude:expr);*) => {$(
        impl Integer for $ty {
            #[inline(always)]
            fn magnitude(self) -> Self { ($magnitude)(self) }
            fn as_f64(self) -> f64 { self as f64 }
            fn from_f64(x: f64) -> Self { x as $ty }
        }
    )*};
}
integers!(
    i8, i8::wrapping_abs; i16, i16::wrapping_abs; i32, i32::wrapping_abs; i64, i64::wrapping_abs;
    u8, |x| x; u16, |x| x; u32, |x| x; u64, |x| x
);

fn integer<T: Integer>(op: Unary) -> Option<Box<dyn Function<T>>> {
    let zero = T::zero();
    match op {
        Unary::Abs => plain(|x: T| x.magnitude()),
        Unary::Neg => plain(|x: T| x.wrapping_neg()),
        Unary::Relu => plain(move |x: T| x.max(zero)),
        Unary::BitwiseNot => plain(|x: T| !x),
        // In f32, rounded towards zero: erf(3) is below 1, and erf(4) rounds to it.
        Unary::Erf => plain(move |x: T| {
            let value = x.as_f64();
            if value.abs() < 4.0 { zero } else { T::from_f64(value.signum()) }
        }),
        Unary::Sign => plain(move |x: T| {
            if x > zero {
                T::one()
            } else if x < zero {
                // −1; an unsigned integer does not come here.
                !zero
            } else {
                zero
            }
        }),
        Unary::Shrink { bias, lambd } => {
            let (bias, lambd) = (bias as f64, lambd as f64);
            plain(move |x: T| {
                let value = x.as_f64();
                T::from_f64(if value < -lambd {
                    value + bias
                } else if value > lambd {
                    value - bias
                } else {
                    0.0
                })
            })
        }
        _ => None,
    }
}

fn build_predicate(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    fn kernel<T: Element>(
        op: Predicate,
        value: impl Fn(T) -> f32 + Send + Sync + 'static,
    ) -> Box<dyn Kernel> {
        match op {
            Predicate::IsNan => MapTo::boxed(move |x: T| Bool::from(value(x).is_nan())),
            Predicate::IsInf { negative, positive } => MapTo::boxed(move |x: T| {
                let x = value(x);
                Bool::from(positive && x == f32::INFINITY || negative && x == f32::NEG_INFINITY)
            }),
        }
    }
    let op = *node.op::<Predicate>();
    Ok(CpuKernel::Tensor(match node.input(0) {
        Some(ElementType::F32) => kernel::<f32>(op, |x| x),
        // Only the class of the number matters: a finite f64 must not become an infinite f32.
        Some(ElementType::F64) => kernel::<f64>(op, |x| if x.is_finite() { 0.0 } else { x as f32 }),
        Some(ElementType::F16) => kernel::<f16>(op, f16::to_f32),
        Some(ElementType::BF16) => kernel::<bf16>(op, bf16::to_f32),
        Some(ElementType::F8E4M3FN) => kernel::<F8E4M3FN>(op, F8E4M3FN::to_f32),
        Some(ElementType::F8E4M3FNUZ) => kernel::<F8E4M3FNUZ>(op, F8E4M3FNUZ::to_f32),
        Some(ElementType::F8E5M2) => kernel::<F8E5M2>(op, F8E5M2::to_f32),
        Some(ElementType::F8E5M2FNUZ) => kernel::<F8E5M2FNUZ>(op, F8E5M2FNUZ::to_f32),
        _ => return Err(node.no_kernel()),
    }))
}

#[cfg(test)]
mod tests;
