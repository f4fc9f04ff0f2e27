//! Elements in the type they are computed in, a run at a time.

use crate::tensor::{Bool, Element, bf16, f16};

use super::map::Half;

/// Elements handled at a time: small enough that a run of any type stays in the first-level cache.
pub(crate) const RUN: usize = 1024;

/// An element and the type it is computed in: half types compute in f32, all others in themselves.
pub(crate) trait Widen: Element {
    type Wide: Element;

    /// Elements in the wide type: where they are, or in `buffer`, which has room for them.
    fn load<'a>(from: &'a [Self], buffer: &'a mut [Self::Wide]) -> &'a [Self::Wide];

    /// Elements in the wide type, copied.
    fn copy(from: &[Self], to: &mut [Self::Wide]);

    /// Lets `fill` write elements in the wide type, and stores them; half types are rounded once, to nearest
    /// even. What `fill` finds is unspecified. `buffer` has room for them.
    fn store(to: &mut [Self], buffer: &mut [Self::Wide], fill: impl FnOnce(&mut [Self::Wide]));

    /// As `store`, where `change` finds the elements that are there.
    fn update(to: &mut [Self], buffer: &mut [Self::Wide], change: impl FnOnce(&mut [Self::Wide]));

    /// One element.
    fn up(self) -> Self::Wide;
    fn down(x: Self::Wide) -> Self;
}

macro_rules! themselves {
    ($($ty:ty),*) => {$(
        impl Widen for $ty {
            type Wide = $ty;
            #[inline(always)]
            fn load<'a>(from: &'a [Self], _buffer: &'a mut [$ty]) -> &'a [$ty] {
                from
            }
            fn copy(from: &[Self], to: &mut [$ty]) {
                to.copy_from_slice(from);
            }
            #[inline(always)]
            fn store(to: &mut [Self], _buffer: &mut [$ty], fill: impl FnOnce(&mut [$ty])) {
                fill(to);
            }
            #[inline(always)]
            fn update(to: &mut [Self], _buffer: &mut [$ty], change: impl FnOnce(&mut [$ty])) {
                change(to);
            }
            #[inline(always)]
            fn up(self) -> $ty { self }
            #[inline(always)]
            fn down(x: $ty) -> Self { x }
        }
    )*};
}
themselves!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! halves {
    ($($ty:ty),*) => {$(
        impl Widen for $ty {
            type Wide = f32;
            fn load<'a>(from: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32] {
                let to = &mut buffer[..from.len()];
                <$ty as Half>::widen(from, to);
                to
            }
            fn copy(from: &[Self], to: &mut [f32]) {
                <$ty as Half>::widen(from, to);
            }
            fn store(to: &mut [Self], buffer: &mut [f32], fill: impl FnOnce(&mut [f32])) {
                let wide = &mut buffer[..to.len()];
                fill(wide);
                <$ty as Half>::narrow(wide, to);
            }
            fn update(to: &mut [Self], buffer: &mut [f32], change: impl FnOnce(&mut [f32])) {
                let wide = &mut buffer[..to.len()];
                <$ty as Half>::widen(to, wide);
                change(wide);
                <$ty as Half>::narrow(wide, to);
            }
            #[inline(always)]
            fn up(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn down(x: f32) -> Self { <$ty>::from_f32(x) }
        }
    )*};
}
halves!(f16, bf16);

/// Truth values compute as 0 and 1.
impl Widen for Bool {
    type Wide = u8;

    fn load<'a>(from: &'a [Self], buffer: &'a mut [u8]) -> &'a [u8] {
        let to = &mut buffer[..from.len()];
        Self::copy(from, to);
        to
    }
    fn copy(from: &[Self], to: &mut [u8]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.get() as u8);
    }
    fn store(to: &mut [Self], buffer: &mut [u8], fill: impl FnOnce(&mut [u8])) {
        let wide = &mut buffer[..to.len()];
        fill(wide);
        to.iter_mut().zip(wide).for_each(|(to, from)| *to = Bool::from(*from != 0));
    }
    fn update(to: &mut [Self], buffer: &mut [u8], change: impl FnOnce(&mut [u8])) {
        Self::copy(to, &mut buffer[..to.len()]);
        Self::store(to, buffer, change);
    }
    fn up(self) -> u8 {
        self.get() as u8
    }
    fn down(x: u8) -> Self {
        Bool::from(x != 0)
    }
}
