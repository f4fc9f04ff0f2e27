//! Types of the lanes of vector instructions.

use crate::machine::numbers::{f16_to_f32, f32_to_f16};

/// How an operand's bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// There is no operand.
    Nothing,
    /// 32 bits: an integer, or bits.
    B32,
    F32,
    B64,
    /// 64 bits with a sign: a literal is extended by it.
    I64,
    F64,
    /// The low 16 bits of a register.
    B16,
    F16,
    /// Two numbers of 16 bits in a register.
    PackedB16,
    PackedF16,
}

impl Type {
    /// Registers that a value takes.
    pub const fn registers(self) -> usize {
        match self {
            Type::Nothing => 0,
            Type::B64 | Type::I64 | Type::F64 => 2,
            _ => 1,
        }
    }

    /// Whether it is half a register.
    pub fn is_half(self) -> bool {
        matches!(self, Type::B16 | Type::F16)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64 | Type::F16 | Type::PackedF16)
    }
}

/// A value of one lane.
pub trait Lane: Copy {
    const TYPE: Type;

    /// From its word, or its lower and its upper word.
    fn read(low: u32, high: u32) -> Self;

    fn write(self) -> (u32, u32);
}

/// What stands for an operand that there is not.
#[derive(Clone, Copy)]
pub struct Nothing;

impl Lane for Nothing {
    const TYPE: Type = Type::Nothing;

    #[inline(always)]
    fn read(_: u32, _: u32) -> Nothing {
        Nothing
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (0, 0)
    }
}

impl Lane for u32 {
    const TYPE: Type = Type::B32;

    #[inline(always)]
    fn read(low: u32, _: u32) -> u32 {
        low
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (self, 0)
    }
}

impl Lane for i32 {
    const TYPE: Type = Type::B32;

    #[inline(always)]
    fn read(low: u32, _: u32) -> i32 {
        low as i32
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (self as u32, 0)
    }
}

impl Lane for f32 {
    const TYPE: Type = Type::F32;

    #[inline(always)]
    fn read(low: u32, _: u32) -> f32 {
        f32::from_bits(low)
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (self.to_bits(), 0)
    }
}

impl Lane for u64 {
    const TYPE: Type = Type::B64;

    #[inline(always)]
    fn read(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (self as u32, (self >> 32) as u32)
    }
}

impl Lane for i64 {
    const TYPE: Type = Type::I64;

    #[inline(always)]
    fn read(low: u32, high: u32) -> i64 {
        u64::read(low, high) as i64
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (self as u64).write()
    }
}

impl Lane for f64 {
    const TYPE: Type = Type::F64;

    #[inline(always)]
    fn read(low: u32, high: u32) -> f64 {
        f64::from_bits(u64::read(low, high))
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        self.to_bits().write()
    }
}

impl Lane for u16 {
    const TYPE: Type = Type::B16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> u16 {
        low as u16
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (u32::from(self), 0)
    }
}

impl Lane for i16 {
    const TYPE: Type = Type::B16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> i16 {
        low as i16
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (u32::from(self as u16), 0)
    }
}

/// A half-precision number, which is computed with in single precision and rounded when it is written. Of one addition,
/// multiplication, division or square root that gives what rounding once gives.
#[derive(Clone, Copy)]
pub struct F16(pub f32);

impl Lane for F16 {
    const TYPE: Type = Type::F16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> F16 {
        F16(f16_to_f32(low as u16))
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (u32::from(f32_to_f16(self.0)), 0)
    }
}

/// The bits of a half-precision number.
#[derive(Clone, Copy)]
pub struct F16Bits(pub u16);

impl Lane for F16Bits {
    const TYPE: Type = Type::F16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> F16Bits {
        F16Bits(low as u16)
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (u32::from(self.0), 0)
    }
}

/// Two integers, low half first.
#[derive(Clone, Copy)]
pub struct Packed<T>(pub T, pub T);

impl Lane for Packed<u16> {
    const TYPE: Type = Type::PackedB16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> Self {
        Packed(low as u16, (low >> 16) as u16)
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (u32::from(self.0) | u32::from(self.1) << 16, 0)
    }
}

impl Lane for Packed<i16> {
    const TYPE: Type = Type::PackedB16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> Self {
        Packed(low as i16, (low >> 16) as i16)
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        Packed(self.0 as u16, self.1 as u16).write()
    }
}

impl Lane for Packed<F16> {
    const TYPE: Type = Type::PackedF16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> Self {
        Packed(F16::read(low, 0), F16::read(low >> 16, 0))
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (self.0.write().0 | self.1.write().0 << 16, 0)
    }
}

impl Lane for Packed<F16Bits> {
    const TYPE: Type = Type::PackedF16;

    #[inline(always)]
    fn read(low: u32, _: u32) -> Self {
        Packed(F16Bits(low as u16), F16Bits((low >> 16) as u16))
    }

    #[inline(always)]
    fn write(self) -> (u32, u32) {
        (u32::from(self.0.0) | u32::from(self.1.0) << 16, 0)
    }
}
