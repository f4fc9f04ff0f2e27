//! A total order of elements, as numpy sorts them: NaN is the greatest and equals itself, complex
//! numbers compare by real part first, strings by their bytes.

use std::cmp::Ordering;

use crate::tensor::{Bool, C64, C128, bf16, f16};

pub(crate) trait Ordered {
    /// Whether elements have no more than 32 bits, so that `key` orders them.
    const HAS_KEY: bool = false;

    fn order(&self, other: &Self) -> Ordering;

    /// A number in the same order; 0 for types without.
    fn key(&self) -> u32 {
        0
    }
}

/// The key of a number: below 0 the bits in the other direction.
#[inline(always)]
fn key_of_float(x: f32) -> u32 {
    // Zeros are equal.
    let bits = (x + 0.0).to_bits();
    let key = bits ^ if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
    if x.is_nan() { u32::MAX } else { key }
}

macro_rules! ordered {
    (by Ord: $($int:ty: $key:expr),*; by PartialOrd: $($float:ty: $number:expr),*; without a key: $($other:ty),*;
        complex: $($complex:ty),*) => {
        $(impl Ordered for $int {
            const HAS_KEY: bool = true;

            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            #[inline(always)]
            fn key(&self) -> u32 {
                $key(*self)
            }
        })*
        $(impl Ordered for $float {
            const HAS_KEY: bool = true;

            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }

            #[inline(always)]
            fn key(&self) -> u32 {
                key_of_float($number(*self))
            }
        })*
        $(impl Ordered for $other {
            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        })*
        $(impl Ordered for $complex {
            fn order(&self, other: &Self) -> Ordering {
                self.re.order(&other.re).then_with(|| self.im.order(&other.im))
            }
        })*
    };
}
/// The key of a signed integer.
#[inline(always)]
fn key_of_signed(x: impl Into<i32>) -> u32 {
    x.into() as u32 ^ 1 << 31
}

ordered! {
    by Ord: u8: u32::from, u16: u32::from, u32: u32::from, i8: key_of_signed, i16: key_of_signed, i32: key_of_signed;
    by PartialOrd: f32: f32::from, f16: f16::to_f32, bf16: bf16::to_f32;
    without a key: u64, i64, String;
    complex: C64, C128
}

impl Ordered for f64 {
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
    }
}

impl Ordered for Bool {
    fn order(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_elements() {
        fn check<T: Ordered>(elements: &[T]) {
            for (a, b) in elements.iter().flat_map(|a| elements.iter().map(move |b| (a, b))) {
                assert_eq!(a.key().cmp(&b.key()), a.order(b));
            }
        }
        let floats = [
            f32::NEG_INFINITY,
            -2.0,
            -1e-40,
            -0.0,
            0.0,
            1e-40,
            1.0,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
            -f32::NAN,
        ];
        check(&floats);
        check(&floats.map(f16::from_f32));
        check(&floats.map(bf16::from_f32));
        check(&[i32::MIN, -1, 0, 1, i32::MAX]);
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[i16::MIN, -1, 0, 1, i16::MAX]);
        check(&[0, 1, u8::MAX]);
        check(&[0, 1, u16::MAX]);
        check(&[0, 1, u32::MAX]);
    }
}
