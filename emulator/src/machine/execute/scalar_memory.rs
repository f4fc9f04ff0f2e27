//! Scalar memory: loads into scalar registers, and clocks.

use std::sync::OnceLock;
use std::time::Instant;

use crate::isa::{Instruction, Source, sgpr};

use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Group, Space};
use crate::machine::step::{Action, Setting};
use crate::machine::wave::Wave;

use super::operands::scalar;
use super::unsupported;

/// Nanoseconds of a tick of S_MEMREALTIME, whose clock runs at 100 MHz.
const REALTIME_TICK: u64 = 10;

/// What an instruction does.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Action, Box<Fault>> {
    match instruction.name {
        "s_memtime" => return clock(instruction, 1),
        "s_memrealtime" => return clock(instruction, REALTIME_TICK),
        name if is_for_caches(name) => return Ok(Box::new(|_, _| Ok(()))),
        _ => {}
    }
    let (buffer, element) = if let Some(element) = instruction.name.strip_prefix("s_buffer_load_") {
        (true, element)
    } else if let Some(element) = instruction.name.strip_prefix("s_load_") {
        (false, element)
    } else {
        return Err(unsupported(instruction));
    };
    let element = Element::find(element).ok_or_else(|| unsupported(instruction))?;
    let load = Load::new(instruction, element, buffer)?;
    Ok(Box::new(move |wave, group| load.run(wave, group)))
}

fn is_for_caches(name: &str) -> bool {
    ["s_dcache_", "s_gl1_inv", "s_prefetch_", "s_buffer_prefetch_", "s_atc_probe"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// What is loaded.
#[derive(Clone, Copy)]
struct Element {
    bytes: usize,
    /// Whether what is shorter than a register is extended by its sign.
    signed: bool,
}

impl Element {
    fn find(name: &str) -> Option<Element> {
        let (bytes, signed) = match name {
            "u8" => (1, false),
            "i8" => (1, true),
            "u16" => (2, false),
            "i16" => (2, true),
            "b32" => (4, false),
            "b64" => (8, false),
            "b96" => (12, false),
            "b128" => (16, false),
            "b256" => (32, false),
            "b512" => (64, false),
            _ => return None,
        };
        Some(Element { bytes, signed })
    }

    fn registers(self) -> usize {
        self.bytes.div_ceil(4)
    }
}

struct Load {
    element: Element,
    /// Whether the base is a buffer's resource.
    buffer: bool,
    base: u8,
    scalar_offset: Source,
    offset: i64,
    to: u8,
}

impl Load {
    fn new(instruction: &Instruction, element: Element, buffer: bool) -> Result<Load, Box<Fault>> {
        let [base, offset, ..] = instruction.sources;
        Ok(Load {
            element,
            buffer,
            base: scalar(instruction, base, if buffer { 4 } else { 2 })?,
            scalar_offset: offset.source,
            offset: i64::from(instruction.modifiers.memory.offset),
            to: scalar(instruction, instruction.destinations[0], element.registers())?,
        })
    }

    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
        let offset = self.offset + i64::from(wave.read32(self.scalar_offset)?);
        let base = wave.scalar64(self.base);
        // Words begin at multiples of four.
        let cut = if self.element.bytes < 4 { u64::MAX } else { !3 };
        let mut words = [0; 16];
        let words = &mut words[..self.element.registers()];
        if self.buffer {
            let base = base & 0xffff_ffff_ffff;
            let size = self.buffer_size(wave);
            let offset = offset as u64 & cut;
            for (i, word) in words.iter_mut().enumerate() {
                let (at, bytes) = (offset.wrapping_add(4 * i as u64), self.element.bytes.min(4));
                if at.checked_add(bytes as u64).is_some_and(|end| end <= size) {
                    read(wave, group, base.wrapping_add(at), bytes, std::slice::from_mut(word))?;
                }
            }
        } else {
            read(wave, group, base.wrapping_add(offset as u64) & cut, self.element.bytes, words)?;
        }
        if self.element.signed {
            let unused = 32 - 8 * self.element.bytes as u32;
            words[0] = ((words[0] << unused) as i32 >> unused) as u32;
        }
        if self.to != sgpr::NULL {
            wave.scalar[usize::from(self.to)..][..words.len()].copy_from_slice(words);
        }
        Ok(())
    }

    /// Bytes of the buffer whose resource is the base.
    fn buffer_size(&self, wave: &Wave) -> u64 {
        let stride = wave.scalar[usize::from(self.base) + 1] >> 16 & 0x3fff;
        u64::from(wave.scalar[usize::from(self.base) + 2]) * u64::from(stride.max(1))
    }
}

/// Reads bytes of the device's memory into words.
fn read(
    wave: &mut Wave,
    group: &mut Group<'_>,
    address: u64,
    bytes: usize,
    words: &mut [u32],
) -> Result<(), Box<Fault>> {
    if group.is_observed() {
        let addresses = [address; 64];
        let (space, kind) = (Space::Scalar, AccessKind::Load);
        let access = Access { space, kind, bytes: bytes as u32, mask: 1, addresses: &addresses };
        group.observe(wave, &access)?;
    }
    let from = wave.ranges.host(group.memory, address, bytes as u64)?;
    let bytes = bytes.min(size_of_val(words));
    // SAFETY: the bytes can be read, and the words have room for them.
    unsafe { std::ptr::copy_nonoverlapping(from, words.as_mut_ptr().cast(), bytes) };
    Ok(())
}

/// Time since the first that asked, in ticks.
fn clock(instruction: &Instruction, nanoseconds: u64) -> Result<Action, Box<Fault>> {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let to = scalar(instruction, instruction.destinations[0], 2)?;
    Ok(Box::new(move |wave, _| {
        let elapsed = BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64;
        wave.set_scalar64(to, elapsed / nanoseconds);
        Ok(())
    }))
}

#[cfg(test)]
mod tests;
