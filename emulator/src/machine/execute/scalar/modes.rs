//! Modes, hardware registers, messages.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::isa::{Instruction, Source};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::Wave;

/// Numbers of hardware registers (LLVM, "User Guide for AMDGPU Backend", hwreg).
const MODE: u32 = 1;
const CYCLES: u32 = 29;

/// `None` for other instructions.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Option<Action>, Box<Fault>> {
    let name = instruction.name;
    let immediate = instruction.modifiers.immediate as u32;
    let field =
        Field { register: immediate & 63, offset: immediate >> 6 & 31, width: (immediate >> 11 & 31) + 1 };
    let (source, destination) = (instruction.sources[0].source, instruction.destinations[0].source);
    Ok(Some(match name {
        "s_round_mode" | "s_denorm_mode" => {
            let shift = if name == "s_round_mode" { 0 } else { 4 };
            Box::new(move |wave, _| set_mode(wave, wave.mode & !(15 << shift) | (immediate & 15) << shift))
        }
        "s_setreg_b32" | "s_setreg_imm32_b32" => Box::new(move |wave, _| {
            let value = wave.read32(source)?;
            if field.register == MODE { set_mode(wave, field.put(wave.mode, value)) } else { Ok(()) }
        }),
        "s_getreg_b32" => Box::new(move |wave, _| {
            let value = match field.register {
                MODE => field.get(wave.mode),
                CYCLES => now() as u32 & 0xf_ffff,
                _ => 0,
            };
            set(wave, destination, u64::from(value), false);
            Ok(())
        }),
        "s_sendmsg_rtn_b32" => Box::new(move |wave, _| {
            set(wave, destination, now(), false);
            Ok(())
        }),
        "s_sendmsg_rtn_b64" => Box::new(move |wave, _| {
            set(wave, destination, now(), true);
            Ok(())
        }),
        _ => return Ok(None),
    }))
}

fn set_mode(wave: &mut Wave, mode: u32) -> Result<(), Box<Fault>> {
    check_float_mode(mode)?;
    wave.mode = mode;
    Ok(())
}

/// Bits of MODE: rounding to the nearest in all precisions, and subnormal numbers that are kept.
const FLOAT_MODE: u32 = 0xf0;

/// An error for a mode of floats that is not computed with here.
pub fn check_float_mode(mode: u32) -> Result<(), Box<Fault>> {
    if mode & 0xff == FLOAT_MODE {
        return Ok(());
    }
    Err(Fault::instruction(format!(
        "MODE asks for rounding {:#x} and subnormal numbers {:#x}; the emulator rounds to the nearest (0x0) and keeps subnormal \
         numbers (0xf)",
        mode & 15,
        mode >> 4 & 15
    )))
}

/// Some bits of a hardware register.
#[derive(Clone, Copy)]
struct Field {
    register: u32,
    offset: u32,
    width: u32,
}

impl Field {
    fn mask(self) -> u32 {
        ((1u64 << self.width) - 1) as u32
    }

    fn get(self, register: u32) -> u32 {
        register >> self.offset & self.mask()
    }

    fn put(self, register: u32, value: u32) -> u32 {
        let mask = self.mask() << self.offset;
        register & !mask | (value << self.offset) & mask
    }
}

fn set(wave: &mut Wave, destination: Source, value: u64, wide: bool) {
    match destination {
        Source::Scalar(register) if wide => wave.set_scalar64(register, value),
        Source::Scalar(register) => wave.set_scalar(register, value as u32),
        _ => {}
    }
}

/// A clock of 100 MHz, as the constant-rate counter of the hardware.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| (time.as_nanos() / 10) as u64)
}
