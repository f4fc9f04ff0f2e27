//! Checks: mistakes of a kernel that a device lets pass, or that show on some devices only.
//!
//! | check | what it reports |
//! |---|---|
//! | `races` | two waves at one byte, one of them writes, and nothing orders them |
//! | `waits` | a register or LDS is used before the load that writes it is waited for |
//! | `uninitialized` | a value that nobody wrote is stored, is an address, or decides what runs |
//! | `barriers` | waves that wait at different barriers, lanes that skip one and run on |
//! | `alignment` | an access whose address is no multiple of what it should be |
//!
//! A check is a [`Watch`] of a launch. What it finds is an error that stops the kernel, with the instruction, the lane and
//! the address.

mod alignment;
mod barriers;
mod cache;
mod counters;
mod data;
mod operands;
mod races;
#[cfg(test)]
mod tests;
mod uninitialized;
mod waits;

use super::group::Watch;
use super::program::Program;
use crate::code_object::KernelDescriptor;
use crate::memory::Memory;

/// The names of checks, as `AMDEMU_CHECK` has them.
pub const NAMES: &[&str] = &["races", "waits", "barriers", "uninitialized", "alignment"];

/// The checks that are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks(u32);

/// What checks need to know of a launch.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub program: &'a Program,
    pub memory: &'a Memory,
    pub descriptor: &'a KernelDescriptor,
    /// How many workgroups there are in each direction.
    pub workgroups: [u32; 3],
    /// LDS of a workgroup in bytes.
    pub lds: u32,
}

impl Checks {
    /// From a list of names with commas between them, or `all`. `None` for an unknown name.
    pub fn parse(text: &str) -> Option<Checks> {
        let mut checks = Checks::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            checks.0 |= match name {
                "all" => (1 << NAMES.len()) - 1,
                name => 1 << NAMES.iter().position(|known| *known == name)?,
            };
        }
        Some(checks)
    }

    /// Whether it must be known which bytes of the device's memory nobody wrote.
    pub fn track_undefined(self) -> bool {
        self.has("uninitialized")
    }

    fn has(self, name: &str) -> bool {
        NAMES.iter().position(|known| *known == name).is_some_and(|bit| self.0 >> bit & 1 != 0)
    }

    /// The watches of a launch.
    pub fn watches<'a>(self, launch: Launch<'a>) -> Vec<Box<dyn Watch + 'a>> {
        let mut watches: Vec<Box<dyn Watch + 'a>> = Vec::new();
        if self.has("races") {
            watches.push(Box::new(races::Races::new(launch)));
        }
        if self.has("waits") {
            watches.push(Box::new(waits::Waits::new(launch)));
        }
        if self.has("barriers") {
            watches.push(Box::new(barriers::Barriers::new(launch)));
        }
        if self.has("uninitialized") {
            watches.push(Box::new(uninitialized::Uninitialized::new(launch)));
        }
        if self.has("alignment") {
            watches.push(Box::new(alignment::Alignment::new(launch)));
        }
        watches
    }
}

impl Launch<'_> {
    /// The number of a workgroup; x runs fastest.
    fn number(&self, group: [u32; 3]) -> u32 {
        let [x, y, z] = group;
        x + self.workgroups[0] * (y + self.workgroups[1] * z)
    }

    /// The reverse.
    fn group(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.workgroups;
        [number % x, number / x % y, number / (x * y)]
    }

    /// The text of the instruction at a byte of the code.
    fn text(&self, offset: u64, lanes: usize) -> String {
        let block = self.program.block(offset, lanes).ok();
        let instruction = block.and_then(|block| block.instructions.first());
        let text = instruction.map(|instruction| crate::isa::text(instruction, self.program.target));
        format!("'{}' at byte {offset:#x}", text.unwrap_or_default())
    }
}
