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
    /// Sixteen words, from this one of the constants on.
    Pattern(usize),
    /// How the elements of sixteen lanes lie, in this place.
    Shape(usize, usize),
}

/// A vector register of the host.
pub type Zmm = usize;

/// Registers that hold values.
const COUNT: usize = 30;

/// Registers that hold nothing from one instruction to the next.
pub const SCRATCH: [Zmm; 2] = [30, 31];

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

    /// What all registers hold.
    pub fn held(&self) -> Vec<(Zmm, Key)> {
        self.keys.iter().enumerate().filter_map(|(register, key)| Some((register, (*key)?))).collect()
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
    Register::ZMM0 + register as u32
}

/// Its lowest 128 bits.
pub fn xmm(register: Zmm) -> Register {
    Register::XMM0 + register as u32
}
