//! What tests of instructions need: a wave, memory, and instructions made by hand.

pub mod random;
mod twice;

use crate::isa::{Encoding, Instruction, Operand, Source, Target, sgpr};
use crate::machine::group::{Access, AccessKind, Group, Observer, Space};
use crate::machine::step::Setting;
use crate::machine::wave::Wave;
use crate::memory::{Kind, Memory, Settings};

/// A wave of a workgroup of its own.
pub struct Bench {
    pub target: Target,
    pub memory: Memory,
    pub wave: Wave,
    pub lds: Vec<u8>,
    /// Allocations whose bytes both ways must leave the same.
    pub compared: Vec<u64>,
    /// Accesses of all that ran: where, what, bytes, lanes, the first active lane's address.
    pub seen: Vec<(Space, AccessKind, u32, u64, u64)>,
}

impl Bench {
    /// `lanes`: 32 or 64. All are active.
    pub fn new(target: &str, lanes: usize) -> Bench {
        let settings = Settings { address_space: 1 << 30, ..Settings::default() };
        let memory = Memory::new(settings).unwrap();
        let mut wave = Wave::new(0, lanes);
        wave.set_exec(wave.all_lanes());
        let (target, lds) = (Target::find(target).unwrap(), vec![0; 4096]);
        Bench { target, memory, wave, lds, compared: Vec::new(), seen: Vec::new() }
    }

    pub fn setting(&self) -> Setting {
        Setting { target: self.target, lanes: self.wave.lanes, base: 0 }
    }

    /// Runs an instruction as the interpreter does, and as translated code, which must do the same.
    pub fn run(&mut self, instruction: &Instruction) -> Result<(), String> {
        let setting = self.setting();
        // One that there is no action for gives its error here; in a program it would be met only when it is reached.
        drop(super::action(instruction, setting).map_err(|fault| fault.to_string())?);
        twice::run(self, std::slice::from_ref(instruction))
    }

    /// Instructions one after the other, both ways, until one stops or meets two NaNs; how many those are.
    pub fn run_block(&mut self, instructions: &[Instruction]) -> usize {
        let defined = twice::defined(self, instructions);
        // Those that stop do so both ways.
        let _ = twice::run(self, &instructions[..defined]);
        defined
    }

    /// Instructions one after the other, both ways, until one stops. They compute nothing with floats.
    pub fn run_all(&mut self, instructions: &[Instruction]) -> Result<(), String> {
        twice::run(self, instructions)
    }

    /// Runs while somebody watches.
    pub fn run_observed(&mut self, instruction: &Instruction) -> Result<(), String> {
        let setting = self.setting();
        let action = super::action(instruction, setting).map_err(|fault| fault.to_string())?;
        let mut seen = Vec::new();
        let mut group = Group {
            target: self.target,
            memory: &self.memory,
            id: [0; 3],
            lds: std::mem::take(&mut self.lds),
            observers: vec![Box::new(Recorder(&mut seen))],
            observed: true,
        };
        let result = action(&mut self.wave, &mut group).map_err(|fault| fault.to_string());
        self.lds = std::mem::take(&mut group.lds);
        drop(group);
        self.seen.append(&mut seen);
        result
    }

    /// New memory with these bytes.
    pub fn allocate(&self, bytes: &[u8]) -> u64 {
        let address = self.memory.allocate(bytes.len() as u64, Kind::Device).unwrap();
        self.bytes(address).copy_from_slice(bytes);
        address
    }

    /// The bytes from an address to the end of its allocation.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is the device's, and a test uses one piece at a time"
    )]
    pub fn bytes(&self, address: u64) -> &mut [u8] {
        let range = self.memory.find(address).unwrap();
        let skipped = address - range.start;
        // SAFETY: the allocation lives as long as the bench.
        unsafe {
            let first = range.host.add(skipped as usize);
            std::slice::from_raw_parts_mut(first, (range.end - address) as usize)
        }
    }

    pub fn set_vector(&mut self, register: usize, value: impl Fn(usize) -> u32) {
        for lane in 0..self.wave.lanes {
            self.wave.vector.set(register, lane, value(lane));
        }
    }

    /// An address for each lane in two registers.
    pub fn set_addresses(&mut self, register: usize, address: impl Fn(usize) -> u64) {
        self.set_vector(register, |lane| address(lane) as u32);
        self.set_vector(register + 1, |lane| (address(lane) >> 32) as u32);
    }

    pub fn row(&self, register: usize) -> &[u32] {
        self.wave.vector.row(register)
    }
}

struct Recorder<'a>(&'a mut Vec<(Space, AccessKind, u32, u64, u64)>);

impl Observer for Recorder<'_> {
    fn access(&mut self, _: &Wave, access: &Access<'_>) -> Result<(), Box<crate::machine::fault::Fault>> {
        let first = access.addresses[access.mask.trailing_zeros() as usize];
        self.0.push((access.space, access.kind, access.bytes, access.mask, first));
        Ok(())
    }
}

/// An instruction with these operands.
pub fn instruction(
    name: &'static str,
    encoding: Encoding,
    destination: Operand,
    sources: &[Operand],
) -> Instruction {
    let mut instruction = Instruction::unknown(0);
    (instruction.name, instruction.encoding) = (name, encoding);
    instruction.destinations[0] = destination;
    instruction.sources[..sources.len()].copy_from_slice(sources);
    instruction
}

pub fn vector(register: u16, registers: u8) -> Operand {
    Operand { source: Source::Vector(register), registers }
}

pub fn scalar(register: u8, registers: u8) -> Operand {
    Operand { source: Source::Scalar(register), registers }
}

pub fn integer(value: i32) -> Operand {
    Operand { source: Source::Integer(value), registers: 1 }
}

pub const NONE: Operand = Operand { source: Source::None, registers: 0 };
pub const NULL: Operand = Operand { source: Source::Scalar(sgpr::NULL), registers: 1 };

/// Numbers that look random, the same each time.
pub fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}
