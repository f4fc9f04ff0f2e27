//! Results of vector instructions: from a row of words to the destination.

use crate::isa::{Generation, Instruction, Sdwa, Source};
use crate::machine::fault::Fault;
use crate::machine::step::Setting;
use crate::machine::wave::Wave;

use super::input::rows;
use super::types::Type;

/// A destination made ready.
pub struct Output {
    to: To,
    registers: usize,
    /// Bounds for a float, with CLAMP: 0 to 1.
    clamp: Option<Type>,
    half: Half,
    sdwa: Option<Sdwa>,
}

enum To {
    Row(usize),
    /// What the first lane has (scalar floats of vector units).
    Scalar(u8),
}

/// Where a value of 16 bits goes, and what becomes of the other half.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    No,
    LowAndZero,
    LowAndKeep,
    High,
}

impl Output {
    /// `clamp`: whether CLAMP is still to be applied to a float.
    pub fn new(
        instruction: &Instruction,
        ty: Type,
        setting: Setting,
        clamp: bool,
    ) -> Result<Output, Box<Fault>> {
        let to = match instruction.destinations[0].source {
            Source::Vector(register) => To::Row(rows(register, ty, instruction)?),
            Source::Scalar(register) => To::Scalar(register),
            _ => return Err(Fault::instruction(format!("{} has no destination", instruction.name))),
        };
        let half = match ty.is_half() {
            false => Half::No,
            true if instruction.modifiers.sdwa.is_some() => Half::No,
            true if instruction.modifiers.op_sel & 8 != 0 => Half::High,
            true if setting.target.generation <= Generation::Gfx940 => Half::LowAndZero,
            true => Half::LowAndKeep,
        };
        let sdwa = instruction.modifiers.sdwa.filter(|sdwa| sdwa.destination != 6);
        Ok(Output { to, registers: ty.registers(), clamp: clamp.then_some(ty), half, sdwa })
    }

    /// A value of 16 bits in the low half leaves the high half as it is.
    pub fn keep_other_half(&mut self) {
        if self.half == Half::LowAndZero {
            self.half = Half::LowAndKeep;
        }
    }

    /// The register, where the result goes there as it is.
    pub fn plain_register(&self) -> Option<usize> {
        match self.to {
            To::Row(register) if self.clamp.is_none() && self.half == Half::No && self.sdwa.is_none() => {
                Some(register)
            }
            _ => None,
        }
    }

    /// Writes the lanes of `written`.
    pub fn write(&self, wave: &mut Wave, row: usize, written: u64) {
        let lanes = wave.lanes;
        let words = self.registers * lanes;
        let Wave { temporary, vector, .. } = wave;
        let value = &mut temporary[row].0;
        if let Some(ty) = self.clamp {
            clamp(value, ty, lanes);
        }
        let register = match self.to {
            To::Row(register) => register,
            To::Scalar(register) => {
                let value = value[0];
                wave.set_scalar(register, value);
                return;
            }
        };
        let old = &mut vector.words_mut()[register * lanes..][..words];
        merge_half(value, old, self.half);
        if let Some(sdwa) = self.sdwa {
            value.iter_mut().zip(old.iter()).for_each(|(value, &old)| *value = put_part(*value, old, sdwa));
        }
        if written == mask_of(lanes) {
            old.copy_from_slice(&value[..words]);
            return;
        }
        for (old, value) in old.chunks_exact_mut(lanes).zip(value.chunks_exact(lanes)) {
            blend(old, value, written);
        }
    }
}

fn mask_of(lanes: usize) -> u64 {
    if lanes == 64 { u64::MAX } else { u64::from(u32::MAX) }
}

/// Takes the lanes of a mask from `value`.
fn blend(old: &mut [u32], value: &[u32], mask: u64) {
    for (lane, (old, &value)) in old.iter_mut().zip(value).enumerate() {
        let keep = (mask >> lane & 1).wrapping_sub(1) as u32;
        *old = *old & keep | value & !keep;
    }
}

fn merge_half(value: &mut [u32; 128], old: &[u32], half: Half) {
    let pairs = value.iter_mut().zip(old);
    match half {
        Half::No => {}
        Half::LowAndZero => pairs.for_each(|(value, _)| *value &= 0xffff),
        Half::LowAndKeep => pairs.for_each(|(value, old)| *value = old & 0xffff_0000 | *value & 0xffff),
        Half::High => pairs.for_each(|(value, old)| *value = old & 0xffff | *value << 16),
    }
}

fn put_part(value: u32, old: u32, sdwa: Sdwa) -> u32 {
    let (shift, bits) = if sdwa.destination < 4 {
        (8 * u32::from(sdwa.destination), 8)
    } else {
        (16 * u32::from(sdwa.destination - 4), 16)
    };
    let mask = ((1u64 << bits) - 1) as u32;
    let part = (value & mask) << shift;
    match sdwa.unused {
        1 => {
            // The sign fills what is above; below there are zeros.
            let negative = value >> (bits - 1) & 1 != 0;
            let above = (!0u64 << (shift + bits)) as u32;
            if negative { part | above } else { part }
        }
        2 => part | old & !(mask << shift),
        _ => part,
    }
}

fn clamp(value: &mut [u32; 128], ty: Type, lanes: usize) {
    match ty {
        Type::F32 => value[..lanes].iter_mut().for_each(|word| {
            let x = f32::from_bits(*word);
            *word = if x > 0.0 { x.min(1.0).to_bits() } else { 0 };
        }),
        Type::F64 => {
            for lane in 0..lanes {
                let x = f64::from_bits(u64::from(value[lane]) | u64::from(value[lanes + lane]) << 32);
                let bits = if x > 0.0 { x.min(1.0).to_bits() } else { 0 };
                (value[lane], value[lanes + lane]) = (bits as u32, (bits >> 32) as u32);
            }
        }
        Type::F16 => value[..lanes].iter_mut().for_each(|word| *word = clamp_half(*word)),
        Type::PackedF16 => value[..lanes]
            .iter_mut()
            .for_each(|word| *word = clamp_half(*word & 0xffff) | clamp_half(*word >> 16) << 16),
        _ => {}
    }
}

/// Half-precision bits between 0 and 1; not a number becomes 0.
fn clamp_half(bits: u32) -> u32 {
    const ONE: u32 = 0x3c00;
    const INFINITY: u32 = 0x7c00;
    match bits & 0xffff {
        bits if bits <= ONE => bits,
        bits if bits <= INFINITY => ONE,
        _ => 0,
    }
}
