//! Conversions between any two element types.
//!
//! The ten plain types (f32, f64, integers of 8 bits and more) convert directly, and so do f32 and
//! the half types. All other pairs go through f64, which holds every value of every type but large
//! 64-bit integers, so that there is one rounding; integers on their way into or out of two or four bits
//! go through i64, since they keep their low bits.

use num_traits::AsPrimitive;

use crate::ops::cast::RoundMode;
use crate::tensor::{
    Bool, Element, ElementType, F4E2M1, F6E2M3, F6E3M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, I2,
    I4, TensorView, TensorViewMut, U2, U4, bf16, f16,
};

use super::map::Half;
use super::number::dispatch;
use super::simd::{Loop, widest};

/// How numbers beyond an 8-bit float's range are treated, and how float8e8m0 rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    pub(crate) saturate: bool,
    pub(crate) mode: RoundMode,
}

/// The way from one type to another.
#[derive(Clone, Copy)]
pub(crate) enum Conversion {
    Direct(fn(&TensorView<'_>, &mut TensorViewMut<'_>)),
    Float(fn(&TensorView<'_>, &mut [f64]), fn(&[f64], &mut TensorViewMut<'_>, Rounding)),
    Integer(fn(&TensorView<'_>, &mut [i64]), fn(&[i64], &mut TensorViewMut<'_>)),
}

/// Elements that may be converted by one call.
pub(crate) const RUN: usize = 512;

impl Conversion {
    /// `None` for strings and complex numbers.
    pub(crate) fn between(from: ElementType, to: ElementType) -> Option<Self> {
        use ElementType as T;
        let float = || Some(Conversion::Float(reader(from)?, writer(to)?));
        match (from, to) {
            (T::F32, T::F16) => Some(Conversion::Direct(narrow::<f16>)),
            (T::F32, T::BF16) => Some(Conversion::Direct(narrow::<bf16>)),
            (T::F16, T::F32) => Some(Conversion::Direct(widen::<f16>)),
            (T::BF16, T::F32) => Some(Conversion::Direct(widen::<bf16>)),
            (_, T::I4 | T::U4 | T::I2 | T::U2) if from.is_integer() => {
                Some(Conversion::Integer(integer_reader(from)?, integer_writer(to)?))
            }
            (T::I4 | T::U4 | T::I2 | T::U2, to) if to.is_integer() => {
                Some(Conversion::Integer(integer_reader(from)?, integer_writer(to)?))
            }
            _ => dispatch!(Some(from), A in [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64] =>
                direct_from::<A>(to).map(Conversion::Direct).or_else(float), else float()),
        }
    }

    /// Converts at most [`RUN`] elements.
    pub(crate) fn run(self, x: &TensorView<'_>, y: &mut TensorViewMut<'_>, rounding: Rounding) {
        match self {
            Conversion::Direct(convert) => convert(x, y),
            Conversion::Float(read, write) => {
                let mut buffer = [0.0; RUN];
                let wide = &mut buffer[..x.len()];
                read(x, wide);
                write(wide, y, rounding);
            }
            Conversion::Integer(read, write) => {
                let mut buffer = [0; RUN];
                let wide = &mut buffer[..x.len()];
                read(x, wide);
                write(wide, y);
            }
        }
    }
}

fn narrow<H: Half>(x: &TensorView<'_>, y: &mut TensorViewMut<'_>) {
    H::narrow(x.slice::<f32>(), y.slice::<H>());
}

fn widen<H: Half>(x: &TensorView<'_>, y: &mut TensorViewMut<'_>) {
    H::widen(x.slice::<H>(), y.slice::<f32>());
}

/// Between plain types: floats into integers round towards zero and stop at the type's limits (NaN
/// gives 0), integers keep their low bits.
fn direct_from<A: Plain>(to: ElementType) -> Option<fn(&TensorView<'_>, &mut TensorViewMut<'_>)> {
    fn direct<A: Element + AsPrimitive<B>, B: Element>(x: &TensorView<'_>, y: &mut TensorViewMut<'_>) {
        widest(Direct { x: x.slice::<A>(), y: y.slice::<B>() });
    }
    dispatch!(Some(to), B in [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64] => Some(direct::<A, B>), else None)
}

trait Plain:
    Element
    + AsPrimitive<f32>
    + AsPrimitive<f64>
    + AsPrimitive<i8>
    + AsPrimitive<i16>
    + AsPrimitive<i32>
    + AsPrimitive<i64>
    + AsPrimitive<u8>
    + AsPrimitive<u16>
    + AsPrimitive<u32>
    + AsPrimitive<u64>
{
}

macro_rules! plain {
    ($($ty:ty),*) => {$(impl Plain for $ty {})*};
}
plain!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

struct Direct<'a, A, B> {
    x: &'a [A],
    y: &'a mut [B],
}

impl<A: AsPrimitive<B>, B: Copy + 'static> Loop for Direct<'_, A, B> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = x.as_();
        }
    }
}

/// A type whose values f64 holds.
trait ToF64: Element {
    fn to_f64(self) -> f64;
}

macro_rules! to_f64 {
    ($($ty:ty: $f:expr),* $(,)?) => {$(
        impl ToF64 for $ty {
            #[inline(always)]
            fn to_f64(self) -> f64 { ($f)(self) }
        }
    )*};
}
to_f64! {
    f32: |x| x as f64, f64: |x| x,
    i8: |x| x as f64, i16: |x| x as f64, i32: |x| x as f64, i64: |x| x as f64,
    u8: |x| x as f64, u16: |x| x as f64, u32: |x| x as f64, u64: |x| x as f64,
    f16: f16::to_f64, bf16: bf16::to_f64,
    Bool: |x: Bool| x.get() as u8 as f64,
    F8E4M3FN: |x: F8E4M3FN| x.to_f32() as f64, F8E4M3FNUZ: |x: F8E4M3FNUZ| x.to_f32() as f64,
    F8E5M2: |x: F8E5M2| x.to_f32() as f64, F8E5M2FNUZ: |x: F8E5M2FNUZ| x.to_f32() as f64,
    F8E8M0: |x: F8E8M0| x.to_f32() as f64, F4E2M1: |x: F4E2M1| x.to_f32() as f64,
    F6E2M3: |x: F6E2M3| x.to_f32() as f64, F6E3M2: |x: F6E3M2| x.to_f32() as f64,
    I4: |x: I4| x.0 as f64, U4: |x: U4| x.0 as f64, I2: |x: I2| x.0 as f64, U2: |x: U2| x.0 as f64,
}

/// Reads any type as f64; `None` for strings and complex numbers.
pub(crate) fn reader(from: ElementType) -> Option<fn(&TensorView<'_>, &mut [f64])> {
    fn read<A: ToF64>(x: &TensorView<'_>, y: &mut [f64]) {
        y.iter_mut().zip(x.slice::<A>()).for_each(|(y, x)| *y = x.to_f64());
    }
    dispatch!(Some(from), A in [
        f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, Bool,
        F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1, F6E2M3, F6E3M2, I4, U4, I2, U2
    ] => Some(read::<A>), else None)
}

/// A type that f64 rounds to. Floats into integers as in `direct_from`, narrow integers keep the
/// low bits of the whole part.
trait FromF64: Element {
    fn from_f64(x: f64, rounding: Rounding) -> Self;
}

macro_rules! from_f64 {
    ($($ty:ty: $f:expr),* $(,)?) => {$(
        impl FromF64 for $ty {
            #[inline(always)]
            fn from_f64(x: f64, rounding: Rounding) -> Self {
                let convert: fn(f64, Rounding) -> $ty = $f;
                convert(x, rounding)
            }
        }
    )*};
}
from_f64! {
    f32: |x, _| x as f32, f64: |x, _| x,
    i8: |x, _| x as i8, i16: |x, _| x as i16, i32: |x, _| x as i32, i64: |x, _| x as i64,
    u8: |x, _| x as u8, u16: |x, _| x as u16, u32: |x, _| x as u32, u64: |x, _| x as u64,
    f16: |x, _| f16::from_f64(x), bf16: |x, _| bf16::from_f64(x),
    Bool: |x, _| Bool::from(x != 0.0),
    F8E4M3FN: |x, r| F8E4M3FN::from_f32(x as f32, r.saturate),
    F8E4M3FNUZ: |x, r| F8E4M3FNUZ::from_f32(x as f32, r.saturate),
    F8E5M2: |x, r| F8E5M2::from_f32(x as f32, r.saturate),
    F8E5M2FNUZ: |x, r| F8E5M2FNUZ::from_f32(x as f32, r.saturate),
    F8E8M0: to_power_of_two,
    F4E2M1: |x, _| F4E2M1::from_f32(x as f32),
    F6E2M3: |x, _| F6E2M3::from_f32(x as f32), F6E3M2: |x, _| F6E3M2::from_f32(x as f32),
    I4: |x, _| I4::low_bits(x as i64), U4: |x, _| U4::low_bits(x as i64),
    I2: |x, _| I2::low_bits(x as i64), U2: |x, _| U2::low_bits(x as i64),
}

/// Writes f64 into any type; `None` for strings and complex numbers.
pub(crate) fn writer(to: ElementType) -> Option<fn(&[f64], &mut TensorViewMut<'_>, Rounding)> {
    fn write<B: FromF64>(x: &[f64], y: &mut TensorViewMut<'_>, rounding: Rounding) {
        y.slice::<B>().iter_mut().zip(x).for_each(|(y, &x)| *y = B::from_f64(x, rounding));
    }
    dispatch!(Some(to), B in [
        f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, Bool,
        F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1, F6E2M3, F6E3M2, I4, U4, I2, U2
    ] => Some(write::<B>), else None)
}

/// The power of two for a magnitude; a sign is dropped. Beyond 2^±127: the nearest power that there
/// is when saturating, else NaN.
fn to_power_of_two(x: f64, rounding: Rounding) -> F8E8M0 {
    const NAN: u8 = 0xff;
    const LARGEST: i64 = 0xfe;
    if x.is_nan() {
        return F8E8M0(NAN);
    }
    let bits = x.abs().to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let up = match rounding.mode {
        RoundMode::Up => fraction != 0,
        RoundMode::Down => false,
        RoundMode::Nearest => fraction >= 1 << 51,
    };
    // The exponent of f64 has the bias 1023, that of float8e8m0 127.
    let code = (bits >> 52) as i64 - 1023 + 127 + up as i64;
    match code {
        0..=LARGEST => F8E8M0(code as u8),
        _ if rounding.saturate => F8E8M0(code.clamp(0, LARGEST) as u8),
        _ => F8E8M0(NAN),
    }
}

/// An integer of two or four bits.
trait Narrow: Element {
    fn low_bits(x: i64) -> Self;
}

impl Narrow for I4 {
    fn low_bits(x: i64) -> Self {
        I4(((x as i8) << 4) >> 4)
    }
}

impl Narrow for U4 {
    fn low_bits(x: i64) -> Self {
        U4(x as u8 & 15)
    }
}

impl Narrow for I2 {
    fn low_bits(x: i64) -> Self {
        I2(((x as i8) << 6) >> 6)
    }
}

impl Narrow for U2 {
    fn low_bits(x: i64) -> Self {
        U2(x as u8 & 3)
    }
}

fn integer_reader(from: ElementType) -> Option<fn(&TensorView<'_>, &mut [i64])> {
    fn plain<A: Element + AsPrimitive<i64>>(x: &TensorView<'_>, y: &mut [i64]) {
        y.iter_mut().zip(x.slice::<A>()).for_each(|(y, x)| *y = x.as_());
    }
    fn narrow<A: ToF64>(x: &TensorView<'_>, y: &mut [i64]) {
        y.iter_mut().zip(x.slice::<A>()).for_each(|(y, x)| *y = x.to_f64() as i64);
    }
    dispatch!(Some(from), A in [i8, i16, i32, i64, u8, u16, u32, u64] => Some(plain::<A>),
        else dispatch!(Some(from), A in [I4, U4, I2, U2] => Some(narrow::<A>), else None))
}

fn integer_writer(to: ElementType) -> Option<fn(&[i64], &mut TensorViewMut<'_>)> {
    fn plain<B: Element>(x: &[i64], y: &mut TensorViewMut<'_>)
    where
        i64: AsPrimitive<B>,
    {
        y.slice::<B>().iter_mut().zip(x).for_each(|(y, &x)| *y = x.as_());
    }
    fn narrow<B: Narrow>(x: &[i64], y: &mut TensorViewMut<'_>) {
        y.slice::<B>().iter_mut().zip(x).for_each(|(y, &x)| *y = B::low_bits(x));
    }
    dispatch!(Some(to), B in [i8, i16, i32, i64, u8, u16, u32, u64] => Some(plain::<B>),
        else dispatch!(Some(to), B in [I4, U4, I2, U2] => Some(narrow::<B>), else None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    /// NumPy's results with ml_dtypes: integers keep their low bits, those below 0 with their sign.
    #[test]
    fn integers_of_four_bits_wrap() {
        let cast =
            |x, to: ElementType| run("Cast", 21, &[("to", Attribute::Int(to as i64))], &[x], 1).unwrap();
        let x = || t(&[3], &[I4(-1), I4(-8), I4(7)]);
        assert_eq!(elements::<u8>(&cast(x(), ElementType::U8)[0]).1, [255, 248, 7]);
        assert_eq!(elements::<u64>(&cast(x(), ElementType::U64)[0]).1, [u64::MAX, u64::MAX - 7, 7]);
        assert_eq!(elements::<i16>(&cast(x(), ElementType::I16)[0]).1, [-1, -8, 7]);
        assert_eq!(elements::<U4>(&cast(x(), ElementType::U4)[0]).1, [U4(15), U4(8), U4(7)]);
        assert_eq!(elements::<I4>(&cast(t(&[2], &[200u8, 7]), ElementType::I4)[0]).1, [I4(-8), I4(7)]);
    }
}
