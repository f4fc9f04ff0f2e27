//! Scale and zero point that a whole tensor shares, and tables over all 256 values of a byte.

use super::Bytes;
use crate::loops::quantization::{Quantized, divide};
use crate::ops::OpError;
use crate::ops::quantize::check_scale;
use crate::tensor::TensorView;

/// `real = (byte − zero)·scale`.
#[derive(Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) scale: f32,
    pub(crate) zero: f32,
}

impl Linear {
    /// From input `scale` and input `scale + 1`, the zero point.
    pub(crate) fn read(inputs: &[Option<TensorView<'_>>], scale: usize) -> Result<Self, OpError> {
        Self::of(inputs, scale, scale + 1)
    }

    /// From these inputs; an omitted zero point is 0.
    pub(crate) fn of(inputs: &[Option<TensorView<'_>>], scale: usize, zero: usize) -> Result<Self, OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten().filter(|view| view.len() > 0);
        let scale = input(scale).map_or(f32::NAN, |view| super::scales(view)(0) as f32);
        check_scale(scale)?;
        Ok(Linear { scale, zero: input(zero).map_or(0.0, |view| Bytes::new(view).at(0)) })
    }

    /// What each byte stands for.
    pub(crate) fn values<Q: Byte>(self) -> [f32; 256] {
        std::array::from_fn(|byte| (Q::from_byte(byte as u8).value() - self.zero) * self.scale)
    }

    /// Numbers to bytes: scaled, rounded half to even, shifted, saturated.
    pub(crate) fn quantize<Q: Quantized>(self, x: &mut [f32], y: &mut [Q]) {
        divide(x, &[self.scale]);
        Q::quantize(x, &[self.zero], true, y);
    }

    /// The byte for each of 256 numbers.
    pub(crate) fn table<Q: Byte>(self, mut values: [f32; 256]) -> [Q; 256] {
        let mut table = [Q::default(); 256];
        self.quantize(&mut values, &mut table);
        table
    }
}

/// A quantized type of one byte.
pub(crate) trait Byte: Quantized + Ord {
    const LOW: f32;
    const HIGH: f32;
    fn byte(self) -> u8;
    fn from_byte(byte: u8) -> Self;
    fn int(self) -> i32;
}

macro_rules! bytes {
    ($($ty:ty),*) => {$(
        impl Byte for $ty {
            const LOW: f32 = <$ty>::MIN as f32;
            const HIGH: f32 = <$ty>::MAX as f32;
            #[inline(always)]
            fn byte(self) -> u8 { self as u8 }
            #[inline(always)]
            fn from_byte(byte: u8) -> $ty { byte as $ty }
            #[inline(always)]
            fn int(self) -> i32 { self as i32 }
        }
    )*};
}

bytes!(u8, i8);
