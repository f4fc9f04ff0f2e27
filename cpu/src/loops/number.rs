//! How kernels go from an element type to a Rust type, and from half types to the type they compute in.

use num_traits::AsPrimitive;

use crate::tensor::{Element, bf16, f16};

use super::half_types::{narrowed, widened};

/// Evaluates `$body` with `$T` standing for the Rust type of `$ty` (an `Option<ElementType>`) when it
/// is in the list, else `$other`.
macro_rules! dispatch {
    ($ty:expr, $T:ident in [$($rust:ty),* $(,)?] => $body:expr, else $other:expr) => {
        match $ty {
            $(Some(<$rust as $crate::tensor::Element>::TYPE) => {
                type $T = $rust;
                $body
            })*
            _ => $other,
        }
    };
}

pub(crate) use dispatch;

/// A floating-point element. Half types compute in `f32` and round once, when stored.
pub(crate) trait Float: Element {
    type Compute: num_traits::Float
        + num_traits::NumAssign
        + AsPrimitive<f32>
        + AsPrimitive<f64>
        + std::iter::Sum
        + Default
        + std::fmt::Debug
        + Send
        + Sync
        + 'static;
    fn up(self) -> Self::Compute;
    fn down(x: Self::Compute) -> Self;
    /// A constant given in f64, in the type computed in.
    fn constant(x: f64) -> Self::Compute;
}

macro_rules! float {
    ($($ty:ty, $compute:ty, $up:expr, $down:expr);* $(;)?) => {$(
        impl Float for $ty {
            type Compute = $compute;
            #[inline(always)]
            fn up(self) -> $compute { ($up)(self) }
            #[inline(always)]
            fn down(x: $compute) -> Self { ($down)(x) }
            #[inline(always)]
            fn constant(x: f64) -> $compute { x as $compute }
        }
    )*};
}
float! {
    f32, f32, |x| x, |x| x;
    f64, f64, |x| x, |x| x;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, widened, narrowed;
}
