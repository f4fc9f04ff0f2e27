//! Which values the host's vector registers hold, so that an instruction finds what the one before computed.

use iced_x86::Register;

/// A value of sixteen lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A part of a vector register's row: so many times sixteen lanes behind its first.
    Row(u16, usize),
    /// A scalar register in all lanes.
    Scalar(u8),
    Constant(u32),
}

/// A vector register of the host.
pub type Zmm = usize;

const COUNT: usize = 32;

pub struct Cache {
    keys: [Option<Key>; COUNT],
    used: [u64; COUNT],
    /// Registers that the instruction in work needs.
    pinned: [bool; COUNT],
    clock: u64,
}

impl Cache {
    pub fn new() -> Cache {
        Cache { keys: [None; COUNT], used: [0; COUNT], pinned: [false; COUNT], clock: 0 }
    }

    pub fn find(&mut self, key: Key) -> Option<Zmm> {
        let found = self.keys.iter().position(|it| *it == Some(key))?;
        self.touch(found);
        Some(found)
    }

    /// A register whose value may be overwritten; it holds nothing that is known.
    pub fn take(&mut self) -> Zmm {
        let free = (0..COUNT).filter(|&it| !self.pinned[it]);
        // What holds nothing, else what was used first.
        let age = |&it: &usize| if self.keys[it].is_some() { self.used[it] + 1 } else { 0 };
        let Some(oldest) = free.min_by_key(age) else {
            unreachable!("an instruction needs fewer registers than there are");
        };
        self.keys[oldest] = None;
        self.touch(oldest);
        oldest
    }

    /// From now on the register holds this value, and no other does.
    pub fn set(&mut self, register: Zmm, key: Key) {
        self.forget(key);
        self.keys[register] = Some(key);
    }

    pub fn key(&self, register: Zmm) -> Option<Key> {
        self.keys[register]
    }

    pub fn forget(&mut self, key: Key) {
        for it in &mut self.keys {
            if *it == Some(key) {
                *it = None;
            }
        }
    }

    pub fn forget_all(&mut self) {
        self.keys = [None; COUNT];
    }

    /// The instruction in work needs no register any more.
    pub fn unpin(&mut self) {
        self.pinned = [false; COUNT];
    }

    fn touch(&mut self, register: Zmm) {
        self.clock += 1;
        self.used[register] = self.clock;
        self.pinned[register] = true;
    }
}

/// The register of a number.
pub fn zmm(register: Zmm) -> Register {
    const REGISTERS: [Register; COUNT] = [
        Register::ZMM0,
        Register::ZMM1,
        Register::ZMM2,
        Register::ZMM3,
        Register::ZMM4,
        Register::ZMM5,
        Register::ZMM6,
        Register::ZMM7,
        Register::ZMM8,
        Register::ZMM9,
        Register::ZMM10,
        Register::ZMM11,
        Register::ZMM12,
        Register::ZMM13,
        Register::ZMM14,
        Register::ZMM15,
        Register::ZMM16,
        Register::ZMM17,
        Register::ZMM18,
        Register::ZMM19,
        Register::ZMM20,
        Register::ZMM21,
        Register::ZMM22,
        Register::ZMM23,
        Register::ZMM24,
        Register::ZMM25,
        Register::ZMM26,
        Register::ZMM27,
        Register::ZMM28,
        Register::ZMM29,
        Register::ZMM30,
        Register::ZMM31,
    ];
    REGISTERS[register]
}
