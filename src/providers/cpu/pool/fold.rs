//! What poolings compute, one element after the other.

use std::marker::PhantomData;

use num_traits::Float as _;

use crate::tensor::{Element, bf16, f16};

use super::super::number::Float;

/// A reduction of a window's elements.
pub(super) trait Fold<T>: Send + Sync + 'static {
    type Sum: Element;
    fn start(&self) -> Self::Sum;
    fn add(&self, sum: Self::Sum, x: T) -> Self::Sum;
    /// The sum of two parts.
    fn join(&self, a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// The result for a window of `count` elements.
    fn finish(&self, sum: Self::Sum, count: usize) -> T;
}

/// An element with a least value.
pub(super) trait Ordered: Element + PartialOrd {
    const LEAST: Self;
}

macro_rules! ordered {
    ($($ty:ty: $least:expr),*) => {$( impl Ordered for $ty { const LEAST: Self = $least; } )*};
}
ordered!(f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY, f16: f16::NEG_INFINITY, bf16: bf16::NEG_INFINITY,
    i8: i8::MIN, u8: u8::MIN);

/// The maximum; NaN when there is one.
pub(super) struct Max;

impl<T: Ordered> Fold<T> for Max {
    type Sum = T;

    fn start(&self) -> T {
        T::LEAST
    }

    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn add(&self, max: T, x: T) -> T {
        if x > max || x != x { x } else { max }
    }

    fn join(&self, a: T, b: T) -> T {
        self.add(a, b)
    }

    fn finish(&self, max: T, _: usize) -> T {
        max
    }
}

/// The mean.
pub(super) struct Mean<T>(pub(super) PhantomData<fn(T)>);

impl<T: Float<Compute: Element>> Fold<T> for Mean<T> {
    type Sum = T::Compute;

    fn start(&self) -> T::Compute {
        T::Compute::default()
    }

    #[inline(always)]
    fn add(&self, sum: T::Compute, x: T) -> T::Compute {
        sum + x.up()
    }

    fn join(&self, a: T::Compute, b: T::Compute) -> T::Compute {
        a + b
    }

    fn finish(&self, sum: T::Compute, count: usize) -> T {
        T::down(sum / T::constant(count as f64))
    }
}

/// `(Σ |x|^p)^(1/p)`.
pub(super) struct Norm<T: Float> {
    p: T::Compute,
    one: bool,
    two: bool,
}

impl<T: Float> Norm<T> {
    pub(super) fn new(p: f32) -> Self {
        Norm { p: T::constant(p as f64), one: p == 1.0, two: p == 2.0 }
    }
}

impl<T: Float<Compute: Element>> Fold<T> for Norm<T> {
    type Sum = T::Compute;

    fn start(&self) -> T::Compute {
        T::Compute::default()
    }

    #[inline(always)]
    fn add(&self, sum: T::Compute, x: T) -> T::Compute {
        let x = x.up();
        sum + match (self.one, self.two) {
            (true, _) => x.abs(),
            (_, true) => x * x,
            _ => x.abs().powf(self.p),
        }
    }

    fn join(&self, a: T::Compute, b: T::Compute) -> T::Compute {
        a + b
    }

    fn finish(&self, sum: T::Compute, _: usize) -> T {
        T::down(match (self.one, self.two) {
            (true, _) => sum,
            (_, true) => sum.sqrt(),
            _ => sum.powf(T::constant(1.0) / self.p),
        })
    }
}
