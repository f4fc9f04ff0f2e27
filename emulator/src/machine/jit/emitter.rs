//! What rows of the tables use to make code: registers, constants, masks, results.
//!
//! RBX holds the wave, R12 its vector registers, R13 the context, R14 the workgroup, R15 the constants. All other general
//! registers and K5 to K7 are free within an instruction. K1 to K4 hold EXEC, sixteen lanes each, where code is made for any
//! EXEC.

use std::mem::offset_of;

use iced_x86::{Code, Instruction, Register};

use crate::isa::sgpr;
use crate::machine::execute::simple::{Operand, Words};
use crate::machine::registers::ROWS;
use crate::machine::wave::Wave;

use super::assembler::{Assembler, Label, at};
use super::cache::{Cache, Key, Zmm, zmm};
use super::codes::{AND, MOVE, MOVE_UNALIGNED, RIGHT, XOR};
use super::constants::{Constants, constant_memory};
use super::inline::{KnownPlaces, shape_memory};

/// Lanes of a vector register of the host.
pub const TOGETHER: usize = 16;

/// R12 lies behind the first rows, so that short displacements lead to more of them.
pub const ROWS_BIAS: usize = 8192;

pub const SCALAR: usize = offset_of!(Wave, scalar);
pub const SCC: usize = offset_of!(Wave, scc);

/// Masks that rows of the tables use.
pub const BITS: Register = Register::K5;
pub const OTHER_BITS: Register = Register::K6;
pub const MORE_BITS: Register = Register::K7;

/// EXEC, sixteen lanes each.
const EXEC_MASKS: [Register; 4] = [Register::K1, Register::K2, Register::K3, Register::K4];

/// What registers held at a place in the code.
pub struct Held {
    registers: Vec<(Zmm, Key)>,
    masks: bool,
}

pub struct Emitter {
    pub assembler: Assembler,
    pub lanes: usize,
    /// Whether lanes may be switched off; else all take part.
    pub masked: bool,
    /// Whether K1 to K4 hold EXEC.
    masks_loaded: bool,
    cache: Cache,
    constants: Constants,
    /// What code finds out of places in memory.
    pub places: KnownPlaces,
    /// Where code begins that finds the range of an address, once it is used.
    pub range_finder: Option<Label>,
    asides: Vec<(Label, Aside)>,
}

/// Code for what is not usual, behind all other code.
type Aside = Box<dyn FnOnce(&mut Emitter)>;

impl Emitter {
    pub fn new(lanes: usize) -> Emitter {
        Emitter {
            assembler: Assembler::new(),
            lanes,
            masked: false,
            masks_loaded: false,
            cache: Cache::new(),
            constants: Constants::new(),
            places: KnownPlaces::default(),
            range_finder: None,
            asides: Vec::new(),
        }
    }

    /// Nothing is known of registers any more.
    pub fn forget(&mut self) {
        self.cache.forget_all();
        self.places.forget_all();
        self.masks_loaded = false;
    }

    /// EXEC was written.
    pub fn forget_masks(&mut self) {
        self.masks_loaded = false;
        self.places.forget_all();
    }

    /// A scalar register was written.
    pub fn forget_scalar(&mut self, register: u8) {
        self.cache.forget(Key::Scalar(register));
        self.places.forget_scalar(register);
    }

    /// Code begins at which jumps arrive.
    pub fn begin(&mut self) {
        self.forget();
        self.assembler.constant(Register::R15, self.constants.address());
    }

    /// Parts of a row.
    pub fn parts(&self) -> std::ops::Range<usize> {
        0..self.lanes / TOGETHER
    }

    /// The next part of an instruction, which needs no register of the part before.
    pub fn next_part(&mut self) {
        self.cache.unpin();
    }

    /// A register for a result.
    pub fn fresh(&mut self) -> Zmm {
        self.cache.take()
    }

    /// A register with the same in all lanes. It may not be written.
    pub fn constant(&mut self, value: u32) -> Zmm {
        self.load_key(Key::Constant(value))
    }

    /// A register with these lanes. It may not be written.
    pub fn pattern(&mut self, lanes: [u32; TOGETHER]) -> Zmm {
        let first = self.constant_place(&lanes);
        self.load_key(Key::Pattern(first))
    }

    /// The first word of a constant that code may read.
    pub fn constant_place(&mut self, constant: &[u32]) -> usize {
        self.constants.place(constant).unwrap_or_else(|| {
            self.assembler.fail("too many constants".to_owned());
            0
        })
    }

    /// A register with sixteen lanes of an operand, and its modifiers. It may not be written.
    pub fn load(&mut self, operand: &Operand, part: usize) -> Zmm {
        let plain = self.load_key(operand.key(part));
        self.modified(plain, operand)
    }

    /// The lower words of an operand of 64 bits, which has no modifiers.
    pub fn load_low(&mut self, operand: &Operand, part: usize) -> Zmm {
        self.load_key(operand.key(part))
    }

    /// The upper words.
    pub fn load_high(&mut self, operand: &Operand, part: usize) -> Zmm {
        self.load_key(operand.high_key(part))
    }

    /// A register with this value. It may not be written.
    pub fn load_key(&mut self, key: Key) -> Zmm {
        if let Some(found) = self.cache.find(key) {
            return found;
        }
        let to = self.cache.take();
        self.fetch(to, key);
        self.cache.set(to, key);
        to
    }

    /// A register gets a value from where it lies.
    fn fetch(&mut self, to: Zmm, key: Key) {
        const BROADCAST: Code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        let (code, from) = match key {
            Key::Constant(0) => return self.three(XOR, to, to, to),
            Key::Constant(value) => (BROADCAST, constant_memory(self.constant_place(&[value]))),
            Key::Pattern(first) => (MOVE_UNALIGNED, constant_memory(first)),
            Key::Scalar(register) => (BROADCAST, scalar_memory(register)),
            Key::Row(row, part) => (MOVE, self.row_memory(usize::from(row), part)),
            Key::Shape(place, part) => (MOVE, shape_memory(place, part)),
        };
        self.assembler.load(code, zmm(to), from);
    }

    /// From now on the register holds this value.
    pub fn set_key(&mut self, register: Zmm, key: Key) {
        self.cache.set(register, key);
    }

    /// No register holds it any more.
    pub fn forget_key(&mut self, key: Key) {
        self.cache.forget(key);
    }

    /// What registers hold now, for code that goes on here from elsewhere.
    pub fn held(&self) -> Held {
        Held { registers: self.cache.held(), masks: self.masks_loaded }
    }

    /// Registers get what they held.
    pub fn hold(&mut self, held: &Held) {
        for &(register, key) in &held.registers {
            self.fetch(register, key);
        }
        if held.masks {
            self.load_masks();
        }
    }

    /// Code for what is not usual: it is made behind all other code.
    pub fn aside(&mut self, begin: Label, code: impl FnOnce(&mut Emitter) + 'static) {
        self.asides.push((begin, Box::new(code)));
    }

    /// Makes the code that was put aside.
    pub fn finish_asides(&mut self) {
        for (begin, code) in std::mem::take(&mut self.asides) {
            self.assembler.bind(begin);
            code(self);
        }
    }

    fn modified(&mut self, plain: Zmm, operand: &Operand) -> Zmm {
        let mut value = plain;
        let Words { shift, keep, invert } = operand.words;
        if shift != 0 {
            let to = self.fresh();
            self.two_immediate(RIGHT.by_constant, to, value, shift);
            value = to;
        }
        for (code, constant, changes) in [(AND, keep, keep != u32::MAX), (XOR, invert, invert != 0)] {
            if changes {
                let (constant, to) = (self.constant(constant), self.fresh());
                self.three(code, to, value, constant);
                value = to;
            }
        }
        value
    }

    /// Where a part of a row lies.
    pub fn row_memory(&self, row: usize, part: usize) -> iced_x86::MemoryOperand {
        debug_assert!(row < ROWS);
        let offset = 4 * (row * self.lanes + part * TOGETHER);
        iced_x86::MemoryOperand::with_base_displ(Register::R12, offset as i64 - ROWS_BIAS as i64)
    }

    /// Two registers: a result and a source.
    pub fn two(&mut self, code: Code, to: Zmm, a: Zmm) {
        self.assembler.vector(code, Register::None, &[zmm(to), zmm(a)], None);
    }

    pub fn two_immediate(&mut self, code: Code, to: Zmm, a: Zmm, value: u32) {
        self.assembler.vector(code, Register::None, &[zmm(to), zmm(a)], Some(value));
    }

    pub fn three(&mut self, code: Code, to: Zmm, a: Zmm, b: Zmm) {
        self.assembler.vector(code, Register::None, &[zmm(to), zmm(a), zmm(b)], None);
    }

    pub fn three_immediate(&mut self, code: Code, to: Zmm, a: Zmm, b: Zmm, value: u32) {
        self.assembler.vector(code, Register::None, &[zmm(to), zmm(a), zmm(b)], Some(value));
    }

    /// Only lanes of a mask are written.
    pub fn two_masked(&mut self, code: Code, mask: Register, to: Zmm, a: Zmm) {
        self.assembler.vector(code, mask, &[zmm(to), zmm(a)], None);
    }

    pub fn three_masked(&mut self, code: Code, mask: Register, to: Zmm, a: Zmm, b: Zmm) {
        self.assembler.vector(code, mask, &[zmm(to), zmm(a), zmm(b)], None);
    }

    /// A comparison; only lanes of `mask` can be true.
    pub fn compare(&mut self, code: Code, to: Register, mask: Register, a: Zmm, b: Zmm, predicate: u32) {
        self.assembler.vector(code, mask, &[to, zmm(a), zmm(b)], Some(predicate));
    }

    /// The signs of all lanes.
    pub fn signs(&mut self, to: Register, a: Zmm) {
        self.assembler.vector(Code::EVEX_Vpmovd2m_kr_zmm, Register::None, &[to, zmm(a)], None);
    }

    /// An operation on masks.
    pub fn masks(&mut self, code: Code, to: Register, a: Register, b: Register) {
        self.assembler.add(Instruction::with3(code, to, a, b));
    }

    pub fn copy(&mut self, to: Zmm, from: Zmm) {
        self.two(MOVE, to, from);
    }

    /// EXEC of sixteen lanes, or none where all take part.
    pub fn exec(&mut self, part: usize) -> Register {
        if !self.masked {
            return Register::None;
        }
        if !self.masks_loaded {
            self.load_masks();
            self.masks_loaded = true;
        }
        EXEC_MASKS[part]
    }

    fn load_masks(&mut self) {
        for part in self.parts() {
            self.load_bits(EXEC_MASKS[part], sgpr::EXEC, part);
        }
    }

    /// Sixteen bits of a mask of lanes in scalar registers.
    pub fn load_bits(&mut self, to: Register, register: u8, part: usize) {
        let from = at(Register::RBX, SCALAR + 4 * usize::from(register) + 2 * part);
        self.assembler.load(Code::VEX_Kmovw_kr_km16, to, from);
    }

    /// Adds what K5 holds to the bits in RBP.
    pub fn collect_bits(&mut self, part: usize) {
        if part == 0 {
            self.assembler.two(Code::VEX_Kmovw_r32_kr, Register::EBP, BITS);
            return;
        }
        self.assembler.two(Code::VEX_Kmovw_r32_kr, Register::EAX, BITS);
        self.assembler.immediate(Code::Shl_rm64_imm8, Register::RAX, 16 * part as i32);
        self.assembler.two(Code::Or_r64_rm64, Register::RBP, Register::RAX);
    }

    /// The collected bits go to a mask in scalar registers.
    pub fn store_bits(&mut self, register: u8) {
        let to = scalar_memory(register);
        match self.lanes {
            64 => self.assembler.store(Code::Mov_rm64_r64, to, Register::RBP),
            _ => self.assembler.store(Code::Mov_rm32_r32, to, Register::EBP),
        }
        self.forget_scalar(register);
        self.forget_scalar(register + 1);
    }

    /// A result goes to the row of a register, as far as its lanes take part.
    pub fn write(&mut self, row: usize, part: usize, value: Zmm) {
        self.places.forget_row(row);
        let key = Key::Row(row as u16, part);
        let mask = self.exec(part);
        let mut whole = value;
        if mask != Register::None {
            whole = self.load_key(key);
            if whole != value {
                self.two_masked(MOVE, mask, whole, value);
            }
        }
        let to = self.row_memory(row, part);
        self.assembler.store(Code::EVEX_Vmovdqa32_zmmm512_k1z_zmm, to, zmm(whole));
        match self.cache.key(whole) {
            // It stays what it is, and is the row, too.
            Some(other) if other != key => self.cache.forget(key),
            _ => self.cache.set(whole, key),
        }
    }

    /// Whether a register holds what is to stay: the value of a row, a scalar or a constant.
    pub fn holds(&self, register: Zmm) -> bool {
        self.cache.key(register).is_some()
    }

    /// A register that may be written, in lanes of EXEC only, and then be given to [`Emitter::write`]: that of the row
    /// itself.
    pub fn in_place(&mut self, row: usize, part: usize) -> Zmm {
        self.load_key(Key::Row(row as u16, part))
    }

    /// SCC becomes whether a condition of the flags holds.
    pub fn set_scc(&mut self, condition: Code) {
        self.assembler.add(Instruction::with1(condition, at(Register::RBX, SCC)));
    }

    /// The constants, which the code needs as long as it runs.
    pub fn into_pool(self) -> (Assembler, Box<[u32]>) {
        (self.assembler, self.constants.into_words())
    }
}

/// Where a scalar register lies.
pub fn scalar_memory(register: u8) -> iced_x86::MemoryOperand {
    at(Register::RBX, SCALAR + 4 * usize::from(register))
}
