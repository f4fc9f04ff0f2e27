//! Elements that can be interpolated.

use crate::tensor::{Element, bf16, f16};

/// An element and the type its weighted sums are computed in. Integers are rounded to the nearest,
/// and saturate.
pub(crate) trait Sample: Element {
    type Compute: Sample<Compute = Self::Compute>
        + num_traits::Float
        + num_traits::NumAssign
        + From<f32>
        + Default;
    fn load(self) -> Self::Compute;
    fn store(x: Self::Compute) -> Self;
    fn weight(x: f64) -> Self::Compute;
}

macro_rules! samples {
    ($($ty:ty => $compute:ty: $load:expr, $store:expr);* $(;)?) => {$(
        impl Sample for $ty {
            type Compute = $compute;
            #[inline(always)]
            fn load(self) -> $compute { ($load)(self) }
            #[inline(always)]
            fn store(x: $compute) -> Self { ($store)(x) }
            fn weight(x: f64) -> $compute { x as $compute }
        }
    )*};
}
macro_rules! integer_samples {
    ($($ty:ty => $compute:ty),*) => {
        samples! { $($ty => $compute: |x| x as $compute, |x: $compute| x.round_ties_even() as $ty);* }
    };
}
samples! {
    f32 => f32: |x| x, |x| x;
    f64 => f64: |x| x, |x| x;
    f16 => f32: f16::to_f32, f16::from_f32;
    bf16 => f32: bf16::to_f32, bf16::from_f32;
}
integer_samples!(u8 => f32, i8 => f32, u16 => f32, i16 => f32, u32 => f64, i32 => f64, u64 => f64, i64 => f64);
