//! What poolings compute, one element after the other.

use std::marker::PhantomData;

use num_traits::Float as _;

use crate::tensor::{Element, bf16, f16};

use crate::loops::number::Float;

/// A reduction of a window's elements.
pub(super) trait Fold<T>: Send + Sync + 'static {
    type Sum: Element;
    /// Whether the result is the maximum.
    const IS_MAX: bool = false;
    fn start(&self) -> Self::Sum;
    fn add(&self, sum: Self::Sum, x: T) -> Self::Sum;
    /// The sum of two parts.
    fn join(&self, a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// The result for a window of `count` elements.
    fn finish(&self, sum: Self::Sum, count: usize) -> T;
}

/// An element with a least value, and what it is compared by: of half types an integer.
pub(super) trait Ordered: Element + PartialOrd {
    type Key: Element + PartialOrd;
    const LEAST: Self;
    fn key(self) -> Self::Key;
    fn of(key: Self::Key) -> Self;
}

macro_rules! ordered {
    ($($ty:ty: $least:expr),*) => {$(
        impl Ordered for $ty {
            type Key = $ty;
            const LEAST: Self = $least;
            #[inline(always)]
            fn key(self) -> $ty { self }
            #[inline(always)]
            fn of(key: $ty) -> $ty { key }
        }
    )*};
}
ordered!(f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY, i8: i8::MIN, u8: u8::MIN);

macro_rules! ordered_halves {
    ($($ty:ty),*) => {$(
        impl Ordered for $ty {
            type Key = i16;
            const LEAST: Self = <$ty>::NEG_INFINITY;
            /// Sign and magnitude as a number of two's complement. NaN of either sign is above infinity.
            #[inline(always)]
            fn key(self) -> i16 {
                let (bits, magnitude) = (self.to_bits(), self.to_bits() & 0x7fff);
                if magnitude > <$ty>::INFINITY.to_bits() { magnitude as i16 } else { turn(bits as i16) }
            }
            #[inline(always)]
            fn of(key: i16) -> $ty {
                <$ty>::from_bits(turn(key) as u16)
            }
        }
    )*};
}
ordered_halves!(f16, bf16);

/// Turns the magnitude's bits of negative numbers round.
#[inline(always)]
fn turn(x: i16) -> i16 {
    x ^ (x >> 15 & 0x7fff)
}

/// The maximum; NaN when there is one.
pub(super) struct Max;

impl<T: Ordered> Fold<T> for Max {
    type Sum = T::Key;
    const IS_MAX: bool = true;

    fn start(&self) -> T::Key {
        T::LEAST.key()
    }

    #[inline(always)]
    fn add(&self, max: T::Key, x: T) -> T::Key {
        larger(max, x.key())
    }

    #[inline(always)]
    fn join(&self, a: T::Key, b: T::Key) -> T::Key {
        larger(a, b)
    }

    #[inline(always)]
    fn finish(&self, max: T::Key, _: usize) -> T {
        T::of(max)
    }
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<K: PartialOrd>(max: K, x: K) -> K {
    if x > max || x != x { x } else { max }
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

    #[inline(always)]
    fn join(&self, a: T::Compute, b: T::Compute) -> T::Compute {
        a + b
    }

    #[inline(always)]
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

    #[inline(always)]
    fn join(&self, a: T::Compute, b: T::Compute) -> T::Compute {
        a + b
    }

    #[inline(always)]
    fn finish(&self, sum: T::Compute, _: usize) -> T {
        T::down(match (self.one, self.two) {
            (true, _) => sum,
            (_, true) => sum.sqrt(),
            _ => sum.powf(T::constant(1.0) / self.p),
        })
    }
}
