//! The types that quantization goes to, and the loops to and from them.

use crate::tensor::{
    Element, ElementType, F4E2M1, F6E2M3, F6E3M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I2, I4, U2, U4,
    bf16, f16,
};

use super::simd::{Loop, widest};
use super::widen::RUN;

/// A type that numbers are quantized to.
pub(crate) trait Quantized: Element {
    /// `y = saturate(round(x) + zero)` for an integer, the nearest value for a float; `zero` has one
    /// element, or as many as `x`. `saturate` has a meaning for 8-bit floats only.
    fn quantize(x: &[f32], zero: &[f32], saturate: bool, y: &mut [Self]);

    /// The same of `x / scale`.
    fn quantize_scaled(x: &[f32], scale: f32, zero: f32, saturate: bool, y: &mut [Self]) {
        let mut wide = [0.0f32; RUN];
        for (x, y) in x.chunks(RUN).zip(y.chunks_mut(RUN)) {
            let wide = &mut wide[..x.len()];
            wide.copy_from_slice(x);
            divide(wide, &[scale]);
            Self::quantize(wide, &[zero], saturate, y);
        }
    }

    fn value(self) -> f32;

    /// `y = (x − zero)·scale`; zero and scale have one element, or as many as `x`.
    fn dequantize(x: &[Self], zero: &[f32], scale: &[f32], y: &mut [f32]) {
        match (zero, scale) {
            (&[zero], &[scale]) => widest(Dequantize { x, zero, scale, y }),
            (zero, scale) => {
                let at = |s: &[f32], i: usize| if s.len() == 1 { s[0] } else { s[i] };
                for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
                    *y = (x.value() - at(zero, i)) * at(scale, i);
                }
            }
        }
    }
}

struct Dequantize<'a, Q> {
    x: &'a [Q],
    zero: f32,
    scale: f32,
    y: &'a mut [f32],
}

impl<Q: Quantized> Loop for Dequantize<'_, Q> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = (x.value() - self.zero) * self.scale;
        }
    }
}

/// Divides by one scale, or by as many as there are numbers.
pub(crate) fn divide(x: &mut [f32], scale: &[f32]) {
    widest(Divide { x, scale });
}

struct Divide<'a> {
    x: &'a mut [f32],
    scale: &'a [f32],
}

impl Loop for Divide<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.scale {
            &[scale] => self.x.iter_mut().for_each(|x| *x /= scale),
            scale => self.x.iter_mut().zip(scale).for_each(|(x, scale)| *x /= scale),
        }
    }
}

/// Rounds to an integer, shifts and limits. Only one zero point may go with a scale other than 1.
struct Round<'a, Q, F> {
    x: &'a [f32],
    scale: f32,
    zero: &'a [f32],
    low: f32,
    high: f32,
    y: &'a mut [Q],
    of: F,
}

impl<Q, F: Fn(f32) -> Q> Loop for Round<'_, Q, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (low, high) = (self.low, self.high);
        let one = |x: f32, zero: f32| (self.of)((x.round_ties_even() + zero).max(low).min(high));
        match (self.zero, self.scale) {
            (&[zero], 1.0) => self.y.iter_mut().zip(self.x).for_each(|(y, &x)| *y = one(x, zero)),
            (&[zero], scale) => {
                self.y.iter_mut().zip(self.x).for_each(|(y, &x)| *y = one(x / scale, zero));
            }
            (zero, _) => {
                for ((y, &x), &zero) in self.y.iter_mut().zip(self.x).zip(zero) {
                    *y = one(x, zero);
                }
            }
        }
    }
}

/// A whole number of at most 22 bits, whose low bits are the result's. Beside 1.5·2²³ a float has no room for
/// fractions, so the number lies in its last bits; a cast is no vector instruction, since it saturates.
#[inline(always)]
pub(crate) fn whole(x: f32) -> i32 {
    (x + 12_582_912.0).to_bits() as i32
}

macro_rules! integers {
    ($($ty:ty: $low:expr, $high:expr, $of:expr, $value:expr);* $(;)?) => {$(
        impl Quantized for $ty {
            fn quantize(x: &[f32], zero: &[f32], _saturate: bool, y: &mut [Self]) {
                let (low, high) = ($low as f32, $high as f32);
                widest(Round { x, scale: 1.0, zero, low, high, y, of: $of });
            }
            fn quantize_scaled(x: &[f32], scale: f32, zero: f32, _saturate: bool, y: &mut [Self]) {
                let (low, high) = ($low as f32, $high as f32);
                widest(Round { x, scale, zero: &[zero], low, high, y, of: $of });
            }
            #[inline(always)]
            fn value(self) -> f32 { ($value)(self) }
        }
    )*};
}
integers! {
    u8: u8::MIN, u8::MAX, |x| whole(x) as u8, |x| x as f32;
    i8: i8::MIN, i8::MAX, |x| whole(x) as i8, |x| x as f32;
    u16: u16::MIN, u16::MAX, |x| whole(x) as u16, |x| x as f32;
    i16: i16::MIN, i16::MAX, |x| whole(x) as i16, |x| x as f32;
    i32: i32::MIN, i32::MAX, |x| x as i32, |x| x as f32;
    U4: U4::MIN, U4::MAX, |x| U4(x as u8), |x: U4| x.0 as f32;
    I4: I4::MIN, I4::MAX, |x| I4(x as i8), |x: I4| x.0 as f32;
    U2: U2::MIN, U2::MAX, |x| U2(x as u8), |x: U2| x.0 as f32;
    I2: I2::MIN, I2::MAX, |x| I2(x as i8), |x: I2| x.0 as f32;
}

macro_rules! floats {
    ($($ty:ty: $of:expr);* $(;)?) => {$(
        impl Quantized for $ty {
            fn quantize(x: &[f32], zero: &[f32], saturate: bool, y: &mut [Self]) {
                let of: fn(f32, bool) -> $ty = $of;
                for (i, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                    let zero = if zero.len() == 1 { zero[0] } else { zero[i] };
                    *y = of(x + zero, saturate);
                }
            }
            #[inline(always)]
            fn value(self) -> f32 { self.to_f32() }
        }
    )*};
}
floats! {
    F8E4M3FN: F8E4M3FN::from_f32;
    F8E4M3FNUZ: F8E4M3FNUZ::from_f32;
    F8E5M2: F8E5M2::from_f32;
    F8E5M2FNUZ: F8E5M2FNUZ::from_f32;
    F4E2M1: |x, _| F4E2M1::from_f32(x);
    F6E2M3: |x, _| F6E2M3::from_f32(x);
    F6E3M2: |x, _| F6E3M2::from_f32(x);
}

/// Rounds to a half type and back, when it is one: what computing in that type gives.
pub(crate) fn round_to(precision: ElementType, x: &mut [f32]) {
    match precision {
        ElementType::F16 => x.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32()),
        ElementType::BF16 => x.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32()),
        _ => {}
    }
}
