//! A total order of elements, as numpy sorts them: NaN is the greatest and equals itself, complex
//! numbers compare by real part first, strings by their bytes.

use std::cmp::Ordering;

use crate::tensor::{Bool, C64, C128, bf16, f16};

pub(in crate::providers::cpu) trait Ordered {
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! ordered {
    (by Ord: $($int:ty),*; by PartialOrd: $($float:ty),*; complex: $($complex:ty),*) => {
        $(impl Ordered for $int {
            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        })*
        $(impl Ordered for $float {
            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        })*
        $(impl Ordered for $complex {
            fn order(&self, other: &Self) -> Ordering {
                self.re.order(&other.re).then_with(|| self.im.order(&other.im))
            }
        })*
    };
}
ordered! {
    by Ord: u8, u16, u32, u64, i8, i16, i32, i64, String;
    by PartialOrd: f32, f64, f16, bf16;
    complex: C64, C128
}

impl Ordered for Bool {
    fn order(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}
