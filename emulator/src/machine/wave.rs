//! The state of a wave.

use crate::isa::{Source, Special, sgpr};

use super::fault::Fault;
use super::ranges::Ranges;
use super::registers::Registers;

/// The upper halves of the addresses under which flat instructions reach LDS and scratch.
pub const SHARED_APERTURE: u32 = 0x0001_0000;
pub const PRIVATE_APERTURE: u32 = 0x0002_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Running,
    AtBarrier,
    Ended,
}

/// A wave: up to 64 work items that run one instruction at a time.
pub struct Wave {
    /// Its number within the workgroup.
    pub id: usize,
    /// 32 or 64.
    pub lanes: usize,
    /// By the numbers of [`sgpr`].
    pub scalar: [u32; 128],
    pub scc: bool,
    pub vector: Registers,
    /// The next instruction, in bytes from the beginning of the code; which of its block's steps comes next.
    pub pc: u64,
    pub step: usize,
    pub state: State,
    /// Private memory: `scratch_size` bytes for each lane, one behind the other.
    pub scratch: Vec<u8>,
    pub scratch_size: u32,
    /// GFX9's indexing of vector registers (S_SET_GPR_IDX): which operands, as encoded.
    pub gpr_index_mode: u32,
    /// MODE as S_SETREG leaves it; bits 4 to 7 say which denormals are kept.
    pub mode: u32,
    /// Instructions until now.
    pub executed: u64,
    /// Where translated code that waited at a barrier goes on; 0: that is to be found.
    pub resume: usize,
    /// Allocations that it used last.
    pub ranges: Ranges,
    /// Rows for operands that are no registers and for results, each of 128 words.
    pub temporary: Box<[Temporary; 5]>,
}

/// A row for a value that is in no register.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Temporary(pub [u32; 128]);

impl Wave {
    /// `lanes`: 32 or 64.
    pub fn new(id: usize, lanes: usize) -> Wave {
        Wave {
            id,
            lanes,
            scalar: [0; 128],
            scc: false,
            vector: Registers::new(lanes),
            pc: 0,
            step: 0,
            state: State::Running,
            scratch: Vec::new(),
            scratch_size: 0,
            gpr_index_mode: 0,
            mode: 0,
            executed: 0,
            resume: 0,
            ranges: Ranges::default(),
            temporary: Box::new([Temporary([0; 128]); 5]),
        }
    }

    /// A bit for each lane that is there.
    pub fn all_lanes(&self) -> u64 {
        if self.lanes == 64 { u64::MAX } else { u64::from(u32::MAX) }
    }

    /// Lanes that take part.
    pub fn exec(&self) -> u64 {
        self.mask(sgpr::EXEC)
    }

    pub fn set_exec(&mut self, mask: u64) {
        self.set_mask(sgpr::EXEC, mask);
    }

    /// A scalar register, or two of a wave of 64 lanes, as a mask of lanes.
    pub fn mask(&self, register: u8) -> u64 {
        let low = u64::from(self.scalar[usize::from(register)]);
        if self.lanes == 64 {
            low | u64::from(self.scalar[(usize::from(register) + 1) & 127]) << 32
        } else {
            low
        }
    }

    pub fn set_mask(&mut self, register: u8, mask: u64) {
        if self.lanes == 64 {
            self.set_scalar64(register, mask)
        } else {
            self.set_scalar(register, mask as u32)
        }
    }

    pub fn set_scalar(&mut self, register: u8, value: u32) {
        if register != sgpr::NULL {
            self.scalar[usize::from(register) & 127] = value;
        }
    }

    pub fn scalar64(&self, register: u8) -> u64 {
        let at = usize::from(register) & 127;
        if register == sgpr::NULL {
            return 0;
        }
        u64::from(self.scalar[at]) | u64::from(self.scalar[(at + 1) & 127]) << 32
    }

    pub fn set_scalar64(&mut self, register: u8, value: u64) {
        if register != sgpr::NULL {
            self.scalar[usize::from(register) & 127] = value as u32;
            self.scalar[(usize::from(register) + 1) & 127] = (value >> 32) as u32;
        }
    }

    /// What a scalar operand of 32 bits reads.
    pub fn read32(&self, source: Source) -> Result<u32, Box<Fault>> {
        Ok(match source {
            Source::Scalar(register) => self.scalar[usize::from(register) & 127],
            Source::Integer(value) => value as u32,
            Source::Float(value) => (value as f32).to_bits(),
            Source::Literal(value) => value,
            Source::Special(special) => self.special(special) as u32,
            Source::None => 0,
            Source::Vector(_) => return Err(Fault::instruction("a vector register where a scalar is read")),
        })
    }

    /// What a scalar operand of 64 bits reads. A literal is extended by zeros.
    pub fn read64(&self, source: Source) -> Result<u64, Box<Fault>> {
        Ok(match source {
            Source::Scalar(register) => self.scalar64(register),
            Source::Integer(value) => i64::from(value) as u64,
            Source::Float(value) => value.to_bits(),
            Source::Literal(value) => u64::from(value),
            Source::Special(special) => self.special(special),
            Source::None => 0,
            Source::Vector(_) => return Err(Fault::instruction("a vector register where a scalar is read")),
        })
    }

    /// What a mask of lanes reads.
    pub fn read_mask(&self, source: Source) -> Result<u64, Box<Fault>> {
        if self.lanes == 64 { self.read64(source) } else { self.read32(source).map(u64::from) }
    }

    fn special(&self, special: Special) -> u64 {
        match special {
            Special::SharedBase => u64::from(SHARED_APERTURE) << 32,
            Special::PrivateBase => u64::from(PRIVATE_APERTURE) << 32,
            Special::SharedLimit | Special::PrivateLimit => u64::from(u32::MAX),
            Special::VccIsZero => u64::from(self.mask(sgpr::VCC) == 0),
            Special::ExecIsZero => u64::from(self.exec() == 0),
            Special::Scc => u64::from(self.scc),
        }
    }
}

/// The lanes of a mask, lowest first.
pub fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}
